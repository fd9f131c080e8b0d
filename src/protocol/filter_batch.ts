/**
 * Rewrites a stored batch with some of its records, as Kafka's log compaction does: offsets, sequences, codec and
 * flags stay, records keep every byte but their timestamp deltas. A batch with tombstones gets a delete horizon
 * once: attribute bit 6, with the time from which they may go as its base timestamp.
 */
import type { Codecs } from "../env/codecs.ts";
import { CLEAN_STEP_RECORDS } from "../lib/limits.ts";
import type { Offset } from "../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError } from "../lib/bytes.ts";
import { inflateRecords, withCodec } from "./compression.ts";
import {
  assemble,
  BATCH_HEADER_BYTES,
  type BatchHeader,
  codecOf,
  deleteHorizonOf,
  isIntact,
  isLogAppendTime,
  markHorizon,
} from "./record_batch.ts";

/** Attributes and the two deltas of a record. */
const HEAD_BYTES_MAX = 16;
/** Its length, attributes, both deltas and the lengths of key and value. */
const RECORD_BYTES_MIN = 6;

export interface FilteredRecord {
  readonly offset: Offset;
  readonly key: Uint8Array | null;
  /** Without a value. */
  readonly isTombstone: boolean;
}

/** Work that may take long; where it yields, others can have their turn. */
export type Steps<T> = Generator<void, T, void>;

export interface BatchFilter {
  readonly keeps: (record: FilteredRecord) => boolean;
  /** Set when it has none yet and tombstones are left. */
  readonly horizonMs: number;
  /** The horizon is set without tombstones too: for a marker. */
  readonly isHorizonDue: boolean;
  readonly codecs: Codecs;
}

interface Piece {
  /** Its place in the batch. */
  readonly index: number;
  readonly record: FilteredRecord;
  readonly timestampMs: number;
  readonly attributes: number;
  readonly offsetDelta: number;
  /** From the length of the key to the end. */
  readonly tail: Uint8Array;
}

function bad(what: string): DecodeError {
  return new DecodeError(`Cannot filter records: ${what}`);
}

function readPiece(
  plain: Uint8Array,
  reader: ByteReader,
  header: BatchHeader,
  index: number,
): Piece {
  const length = reader.varint();
  const end = reader.position + length;
  if (length < 0 || length > reader.remaining) throw bad(`length ${length}`);
  const attributes = reader.i8();
  const timestampDelta = reader.varlong();
  const offsetDelta = reader.varint();
  if (offsetDelta < 0 || offsetDelta > header.lastOffsetDelta) throw bad(`delta ${offsetDelta}`);
  const tailAt = reader.position;
  const keyLength = reader.varint();
  const key = keyLength < 0 ? null : reader.take(keyLength);
  const isTombstone = reader.varint() < 0;
  if (reader.position > end) throw bad("a length disagrees");
  reader.skip(end - reader.position);
  return {
    index,
    record: { offset: header.baseOffset + offsetDelta, key, isTombstone },
    timestampMs: isLogAppendTime(header)
      ? header.maxTimestamp
      : header.baseTimestamp + timestampDelta,
    attributes,
    offsetDelta,
    tail: plain.subarray(tailAt, end),
  };
}

/** One by one: a batch may hold millions of records, and objects for all of them would fill the memory. */
function* readPieces(plain: Uint8Array, header: BatchHeader): Generator<Piece, void> {
  const reader = new ByteReader(plain);
  for (let i = 0; i < header.recordCount; i++) yield readPiece(plain, reader, header, i);
  if (reader.remaining > 0) throw bad(`${reader.remaining} bytes left`);
}

function isStep({ index }: Piece): boolean {
  return index % CLEAN_STEP_RECORDS === CLEAN_STEP_RECORDS - 1;
}

function inflate(batch: Uint8Array, header: BatchHeader, codecs: Codecs): Uint8Array {
  if (!isIntact(batch)) throw bad("the checksum is wrong");
  const plain = inflateRecords(header.attributes, batch.subarray(BATCH_HEADER_BYTES), codecs);
  const { recordCount } = header;
  if (recordCount < 0 || recordCount * RECORD_BYTES_MIN > plain.length) {
    throw bad(`${recordCount} records in ${plain.length} bytes`);
  }
  return plain;
}

/**
 * Shows the records as a filter sees them until it returns false, and none at all of a batch that is broken anywhere:
 * such a one stays as it is, and nobody can read what it would make old. False when it was stopped. Throws as
 * `filterBatch`.
 */
export function* eachRecord(
  batch: Uint8Array,
  header: BatchHeader,
  codecs: Codecs,
  show: (record: FilteredRecord) => boolean,
): Steps<boolean> {
  const plain = inflate(batch, header, codecs);
  yield;
  for (const piece of readPieces(plain, header)) if (isStep(piece)) yield;
  for (const piece of readPieces(plain, header)) {
    if (!show(piece.record)) return false;
    if (isStep(piece)) yield;
  }
  return true;
}

/** What is kept of a batch. */
class Selection {
  readonly #isKept: Uint8Array;
  count = 0;
  hasTombstone = false;
  firstTimestampMs = 0;
  maxTimestampMs = -1;

  constructor(recordCount: number) {
    this.#isKept = new Uint8Array(recordCount);
  }

  /** Called for each record in order. */
  add({ index, record, timestampMs }: Piece, isKept: boolean): void {
    this.#isKept[index] = isKept ? 1 : 0;
    if (!isKept) return;
    if (this.count === 0) this.firstTimestampMs = timestampMs;
    this.count++;
    this.hasTombstone ||= record.isTombstone;
    this.maxTimestampMs = Math.max(this.maxTimestampMs, timestampMs);
  }

  has({ index }: Piece): boolean {
    return this.#isKept[index] === 1;
  }
}

function* select(
  plain: Uint8Array,
  header: BatchHeader,
  { keeps }: BatchFilter,
): Steps<Selection> {
  const selection = new Selection(header.recordCount);
  for (const piece of readPieces(plain, header)) {
    selection.add(piece, keeps(piece.record));
    if (isStep(piece)) yield;
  }
  return selection;
}

function* writeSelected(
  plain: Uint8Array,
  header: BatchHeader,
  selection: Selection,
  baseTimestamp: number,
): Steps<Uint8Array> {
  const writer = new ByteWriter();
  for (const piece of readPieces(plain, header)) {
    if (isStep(piece)) yield;
    if (!selection.has(piece)) continue;
    const { timestampMs, attributes, offsetDelta, tail } = piece;
    const head = new ByteWriter(HEAD_BYTES_MAX);
    head.i8(attributes);
    head.varlong(timestampMs - baseTimestamp);
    head.varint(offsetDelta);
    writer.varint(head.length + tail.length);
    writer.bytes(head.view());
    writer.bytes(tail);
  }
  return writer.view();
}

function* rebuild(
  plain: Uint8Array,
  header: BatchHeader,
  selection: Selection,
  horizonMs: number | null,
  codecs: Codecs,
): Steps<Uint8Array> {
  const baseTimestamp = horizonMs ?? selection.firstTimestampMs;
  const left = yield* writeSelected(plain, header, selection, baseTimestamp);
  yield;
  const codec = codecOf(header) ?? null;
  return assemble({
    ...header,
    attributes: markHorizon(header.attributes, horizonMs !== null),
    baseTimestamp,
    maxTimestamp: isLogAppendTime(header) ? header.maxTimestamp : selection.maxTimestampMs,
    recordCount: selection.count,
  }, codec === null ? left : codecs.compress(codec, left));
}

/**
 * The batch with the records that are kept: the same bytes when nothing changes, null when none is left.
 * Throws DecodeError or FaultError("corrupt") for a batch that cannot be read.
 */
export function* filterBatch(
  batch: Uint8Array,
  header: BatchHeader,
  filter: BatchFilter,
): Steps<Uint8Array | null> {
  if (header.recordCount === 0) return null;
  const plain = inflate(batch, header, filter.codecs);
  yield;
  const selection = yield* select(plain, header, filter);
  if (selection.count === 0) return null;
  const horizonMs = deleteHorizonOf(header);
  const isDue = horizonMs === null && (filter.isHorizonDue || selection.hasTombstone);
  if (!isDue && selection.count === header.recordCount) return batch;
  return yield* rebuild(
    plain,
    header,
    selection,
    isDue ? filter.horizonMs : horizonMs,
    filter.codecs,
  );
}

/** Only the header, which still says where offsets and sequences end: what a batch without records leaves. */
export function emptiedBatch(header: BatchHeader): Uint8Array {
  return assemble({
    ...header,
    attributes: markHorizon(withCodec(header.attributes, null), false),
    baseTimestamp: -1,
    recordCount: 0,
  }, new Uint8Array(0));
}
