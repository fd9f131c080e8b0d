/**
 * Record batch v2: its 61-byte header read, checked, written and rewritten in place. Big-endian:
 *  0 baseOffset i64 · 8 batchLength i32 (bytes behind it) · 12 partitionLeaderEpoch i32 · 16 magic i8 (2)
 * 17 crc u32 (CRC-32C of byte 21 to the end) · 21 attributes i16 · 23 lastOffsetDelta i32
 * 27 baseTimestamp i64 · 35 maxTimestamp i64 · 43 producerId i64 · 51 producerEpoch i16
 * 53 baseSequence i32 · 57 record count i32 · 61 records, compressed together if a codec is set.
 */
import type { CodecName, Codecs } from "../env/codecs.ts";
import { assert } from "../lib/assert.ts";
import type { Offset } from "../lib/brand.ts";
import { DecodeError, getInt64, setInt64, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { findCodec, inflatedBytesMax, withCodec } from "./compression.ts";
import type { ErrorName } from "./error_code.ts";
import { type NewRecord, RECORD_BYTES_MIN, writeRecords } from "./record_writer.ts";

export const BATCH_HEADER_BYTES = 61;
/** Bytes up to and with batchLength, which batchLength does not count. */
export const BATCH_PREFIX_BYTES = 12;
const MAGIC = 2;
const LENGTH_AT = 8;
const LEADER_EPOCH_AT = 12;
const MAGIC_AT = 16;
const CRC_AT = 17;
/** The CRC covers everything from here. */
const ATTRIBUTES_AT = 21;
const LAST_OFFSET_DELTA_AT = 23;
const BASE_TIMESTAMP_AT = 27;
const MAX_TIMESTAMP_AT = 35;
const PRODUCER_ID_AT = 43;
const PRODUCER_EPOCH_AT = 51;
const BASE_SEQUENCE_AT = 53;
const COUNT_AT = 57;

const LOG_APPEND_TIME = 1 << 3;
const TRANSACTIONAL = 1 << 4;
const CONTROL = 1 << 5;
/** The broker's own mark on compacted batches: baseTimestamp is then the delete horizon. */
const DELETE_HORIZON = 1 << 6;

export interface BatchHeader {
  readonly baseOffset: Offset;
  /** Bytes behind this field: all but the first twelve. */
  readonly batchLength: number;
  readonly partitionLeaderEpoch: number;
  readonly crc: number;
  readonly attributes: number;
  readonly lastOffsetDelta: number;
  readonly baseTimestamp: number;
  readonly maxTimestamp: number;
  /** -1 for none. */
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly recordCount: number;
}

export function isLogAppendTime(header: BatchHeader): boolean {
  return (header.attributes & LOG_APPEND_TIME) !== 0;
}
export function isTransactionalBatch(header: BatchHeader): boolean {
  return (header.attributes & TRANSACTIONAL) !== 0;
}
/** Control batches carry transaction markers, no client data; their sequence is -1. */
export function isControlBatch(header: BatchHeader): boolean {
  return (header.attributes & CONTROL) !== 0;
}
/** When tombstones or the marker in here may go; null until a compaction has set it. */
export function deleteHorizonOf(header: BatchHeader): number | null {
  return (header.attributes & DELETE_HORIZON) === 0 ? null : header.baseTimestamp;
}
/** Null for none; undefined for an id that Kafka does not know. */
export function codecOf(header: BatchHeader): CodecName | null | undefined {
  return findCodec(header.attributes);
}
/** Not baseOffset + count - 1: compaction leaves gaps. */
export function lastOffset(header: BatchHeader): Offset {
  return header.baseOffset + header.lastOffsetDelta;
}

/** Reads the header at `at`. Throws DecodeError when it is cut off, not v2 or out of the safe range. */
export function readBatchHeader(bytes: Uint8Array, at = 0): BatchHeader {
  if (bytes.length - at < BATCH_HEADER_BYTES) throw new DecodeError("Cannot read batch: cut off");
  const view = viewOf(bytes);
  const magic = view.getInt8(at + MAGIC_AT);
  if (magic !== MAGIC) throw new DecodeError(`Cannot read batch: magic ${magic}`);
  return {
    baseOffset: getInt64(view, at),
    batchLength: view.getInt32(at + LENGTH_AT),
    partitionLeaderEpoch: view.getInt32(at + LEADER_EPOCH_AT),
    crc: view.getUint32(at + CRC_AT),
    attributes: view.getInt16(at + ATTRIBUTES_AT),
    lastOffsetDelta: view.getInt32(at + LAST_OFFSET_DELTA_AT),
    baseTimestamp: getInt64(view, at + BASE_TIMESTAMP_AT),
    maxTimestamp: getInt64(view, at + MAX_TIMESTAMP_AT),
    producerId: getInt64(view, at + PRODUCER_ID_AT),
    producerEpoch: view.getInt16(at + PRODUCER_EPOCH_AT),
    baseSequence: view.getInt32(at + BASE_SEQUENCE_AT),
    recordCount: view.getInt32(at + COUNT_AT),
  };
}

/** The whole batches in a run of bytes, as views; a partial one at the end is left out. Throws DecodeError. */
export function splitBatches(bytes: Uint8Array): Uint8Array[] {
  const view = viewOf(bytes);
  const batches: Uint8Array[] = [];
  for (let at = 0; bytes.length - at >= BATCH_PREFIX_BYTES;) {
    const length = BATCH_PREFIX_BYTES + view.getInt32(at + LENGTH_AT);
    if (length < BATCH_HEADER_BYTES) {
      throw new DecodeError(`Cannot split batches: length ${length}`);
    }
    if (length > bytes.length - at) break;
    const magic = view.getInt8(at + MAGIC_AT);
    if (magic !== MAGIC) throw new DecodeError(`Cannot split batches: magic ${magic}`);
    batches.push(bytes.subarray(at, at + length));
    at += length;
  }
  return batches;
}

export interface ValidBatch {
  readonly ok: true;
  readonly header: BatchHeader;
  /** The one batch, without the bytes that followed it. */
  readonly batch: Uint8Array;
}

export interface InvalidBatch {
  readonly ok: false;
  readonly error: ErrorName;
  readonly message: string;
}

function invalid(error: ErrorName, message: string): InvalidBatch {
  return { ok: false, error, message };
}

/** Finds the one batch of a produce request: its length and magic are right, and no second one follows. */
function findBatch(bytes: Uint8Array, bytesMax: number): Uint8Array | InvalidBatch {
  if (bytes.length === 0) return invalid("INVALID_RECORD", "No record batch");
  // Kafka finds no batch in what is cut off.
  if (bytes.length <= MAGIC_AT) return invalid("INVALID_RECORD", "Batch is cut off");
  const view = viewOf(bytes);
  const length = BATCH_PREFIX_BYTES + view.getInt32(LENGTH_AT);
  const magic = view.getInt8(MAGIC_AT);
  if (magic < 0 || magic > MAGIC) return invalid("CORRUPT_MESSAGE", `Magic is ${magic}, not 2`);
  if (magic !== MAGIC) return invalid("INVALID_RECORD", `Magic is ${magic}, not 2`);
  if (length < BATCH_HEADER_BYTES) return invalid("CORRUPT_MESSAGE", `Batch length is ${length}`);
  if (length > bytes.length) {
    return invalid("INVALID_RECORD", `Batch length is ${length} in ${bytes.length} bytes`);
  }
  const rest = bytes.length - length;
  // A partial batch behind the first is trimmed, a whole one is refused, as Kafka does.
  if (rest >= BATCH_PREFIX_BYTES) {
    const next = BATCH_PREFIX_BYTES + view.getInt32(length + LENGTH_AT);
    if (next <= rest) return invalid("INVALID_RECORD", "More than one record batch");
  }
  if (length > bytesMax) {
    return invalid("MESSAGE_TOO_LARGE", `Batch has ${length} bytes, ${bytesMax} are allowed`);
  }
  return bytes.subarray(0, length);
}

/** The header's fields as a producer may set them. */
function checkFields(header: BatchHeader): InvalidBatch | null {
  const { attributes, recordCount: count } = header;
  if (header.baseOffset !== 0) return invalid("INVALID_RECORD", "Base offset is not 0");
  if (count <= 0) return invalid("INVALID_RECORD", `Record count is ${count}`);
  if (header.lastOffsetDelta !== count - 1) {
    return invalid(
      "INVALID_RECORD",
      `Last offset delta is ${header.lastOffsetDelta}, not count - 1`,
    );
  }
  const payloadBytes = BATCH_PREFIX_BYTES + header.batchLength - BATCH_HEADER_BYTES;
  // Else a few bytes would use up billions of offsets.
  if (count * RECORD_BYTES_MIN > inflatedBytesMax(attributes, payloadBytes)) {
    return invalid("INVALID_RECORD", `${count} records do not fit into ${payloadBytes} bytes`);
  }
  if (isControlBatch(header)) return invalid("INVALID_RECORD", "Clients write no control batches");
  if ((attributes & DELETE_HORIZON) !== 0) {
    return invalid("INVALID_RECORD", "Clients set no delete horizon");
  }
  if (isTransactionalBatch(header) && header.producerId >= 0 && header.producerEpoch < 0) {
    return invalid("INVALID_PRODUCER_EPOCH", "A transactional producer has an epoch");
  }
  if (header.producerId >= 0 && (header.producerEpoch < 0 || header.baseSequence < 0)) {
    return invalid("INVALID_RECORD", "Producer id without epoch or sequence");
  }
  if (codecOf(header) === undefined) {
    return invalid("UNSUPPORTED_COMPRESSION_TYPE", `Codec ${attributes & 7} is unknown`);
  }
  return null;
}

function isSafeInt64(view: DataView, at: number): boolean {
  const value = view.getBigInt64(at);
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER;
}

/** 64-bit fields past 2^53 would be misread: refused with the error of the field. */
function checkRange(view: DataView): InvalidBatch | null {
  if (!isSafeInt64(view, BASE_TIMESTAMP_AT) || !isSafeInt64(view, MAX_TIMESTAMP_AT)) {
    return invalid("INVALID_TIMESTAMP", "Timestamp is out of range");
  }
  if (!isSafeInt64(view, 0) || !isSafeInt64(view, PRODUCER_ID_AT)) {
    return invalid("INVALID_RECORD", "Base offset or producer id is out of range");
  }
  return null;
}

/**
 * Checks the records field of a produce request from the outside: exactly one sound batch v2, in the
 * order and with the errors of Kafka's log. Looks at no record: that would mean inflating.
 */
export function validateBatch(
  bytes: Uint8Array,
  bytesMax: number = Number.MAX_SAFE_INTEGER,
): ValidBatch | InvalidBatch {
  const batch = findBatch(bytes, bytesMax);
  if (!(batch instanceof Uint8Array)) return batch;
  const view = viewOf(batch);
  if (view.getUint32(CRC_AT) !== crc32c(batch.subarray(ATTRIBUTES_AT))) {
    return invalid("CORRUPT_MESSAGE", "Checksum is wrong");
  }
  const outOfRange = checkRange(view);
  if (outOfRange !== null) return outOfRange;
  const header = readBatchHeader(batch);
  return checkFields(header) ?? { ok: true, header, batch };
}

/** Whether a stored batch is what was admitted: its length and its checksum. */
export function isIntact(batch: Uint8Array): boolean {
  if (batch.length < BATCH_HEADER_BYTES) return false;
  const view = viewOf(batch);
  return view.getInt8(MAGIC_AT) === MAGIC &&
    view.getInt32(LENGTH_AT) === batch.length - BATCH_PREFIX_BYTES &&
    view.getUint32(CRC_AT) === crc32c(batch.subarray(ATTRIBUTES_AT));
}

/** Recomputes the checksum after a change behind it. */
function seal(batch: Uint8Array, view: DataView): void {
  view.setUint32(CRC_AT, crc32c(batch.subarray(ATTRIBUTES_AT)));
}

/**
 * Gives an admitted batch its place, in place. Base offset and leader epoch lie outside the checksum;
 * only `logAppendTimeMs` (topics that stamp on arrival) changes bytes under it.
 */
export function assignOffsets(
  batch: Uint8Array,
  baseOffset: Offset,
  leaderEpoch: number,
  logAppendTimeMs: number | null = null,
): void {
  const view = viewOf(batch);
  setInt64(view, 0, baseOffset);
  view.setInt32(LEADER_EPOCH_AT, leaderEpoch);
  if (logAppendTimeMs === null) return;
  view.setInt16(ATTRIBUTES_AT, view.getInt16(ATTRIBUTES_AT) | LOG_APPEND_TIME);
  setInt64(view, MAX_TIMESTAMP_AT, logAppendTimeMs);
  seal(batch, view);
}

/** Takes a client's claim away that the broker gave the times, in place: only `assignOffsets` may say so. */
export function dropAppendTime(batch: Uint8Array): void {
  const view = viewOf(batch);
  view.setInt16(ATTRIBUTES_AT, view.getInt16(ATTRIBUTES_AT) & ~LOG_APPEND_TIME);
  seal(batch, view);
}

/** Corrects the largest time in the header of an admitted batch, in place. */
export function setMaxTimestamp(batch: Uint8Array, maxTimestampMs: number): void {
  const view = viewOf(batch);
  setInt64(view, MAX_TIMESTAMP_AT, maxTimestampMs);
  seal(batch, view);
}

/** The attributes with the mark that baseTimestamp is a delete horizon, or without it. */
export function markHorizon(attributes: number, isHorizon: boolean): number {
  return isHorizon ? attributes | DELETE_HORIZON : attributes & ~DELETE_HORIZON;
}

/** A batch with the given header fields around record bytes that are already compressed. */
export function assemble(
  header: Omit<BatchHeader, "crc" | "batchLength">,
  payload: Uint8Array,
): Uint8Array {
  const batch = new Uint8Array(BATCH_HEADER_BYTES + payload.length);
  const view = viewOf(batch);
  setInt64(view, 0, header.baseOffset);
  view.setInt32(LENGTH_AT, batch.length - BATCH_PREFIX_BYTES);
  view.setInt32(LEADER_EPOCH_AT, header.partitionLeaderEpoch);
  view.setInt8(MAGIC_AT, MAGIC);
  view.setInt16(ATTRIBUTES_AT, header.attributes);
  view.setInt32(LAST_OFFSET_DELTA_AT, header.lastOffsetDelta);
  setInt64(view, BASE_TIMESTAMP_AT, header.baseTimestamp);
  setInt64(view, MAX_TIMESTAMP_AT, header.maxTimestamp);
  setInt64(view, PRODUCER_ID_AT, header.producerId);
  view.setInt16(PRODUCER_EPOCH_AT, header.producerEpoch);
  view.setInt32(BASE_SEQUENCE_AT, header.baseSequence);
  view.setInt32(COUNT_AT, header.recordCount);
  batch.set(payload, BATCH_HEADER_BYTES);
  seal(batch, view);
  return batch;
}

/** The same batch around other record bytes: after recompression. */
export function replacePayload(
  header: BatchHeader,
  codec: CodecName | null,
  payload: Uint8Array,
): Uint8Array {
  return assemble({ ...header, attributes: withCodec(header.attributes, codec) }, payload);
}

export interface BatchInput {
  /** At least one. */
  readonly records: readonly NewRecord[];
  readonly codec: CodecName | null;
  readonly codecs: Codecs;
  readonly producerId?: number;
  readonly producerEpoch?: number;
  readonly baseSequence?: number;
  readonly transactional?: boolean;
  readonly control?: boolean;
}

/** A batch as a producer sends it: base offset 0, no leader epoch, offsets without gaps. */
export function buildBatch(input: BatchInput): Uint8Array {
  const { records, codec } = input;
  const [first] = records;
  assert(first !== undefined, "a batch has at least one record");
  const baseTimestamp = first.timestampMs;
  const plain = writeRecords(records, baseTimestamp);
  const flags = (input.transactional === true ? TRANSACTIONAL : 0) |
    (input.control === true ? CONTROL : 0);
  return assemble({
    baseOffset: 0,
    partitionLeaderEpoch: -1,
    attributes: withCodec(flags, codec),
    lastOffsetDelta: records.length - 1,
    baseTimestamp,
    maxTimestamp: records.reduce((most, { timestampMs }) => Math.max(most, timestampMs), -1),
    producerId: input.producerId ?? -1,
    producerEpoch: input.producerEpoch ?? -1,
    baseSequence: input.baseSequence ?? -1,
    recordCount: records.length,
  }, codec === null ? plain : input.codecs.compress(codec, plain));
}
