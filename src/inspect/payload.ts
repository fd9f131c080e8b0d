/**
 * What a stream record carries: a Kafka batch in a log stream, a key and a value in a meta stream, index
 * entries in a stream that is addressed by bytes. The record does not say which: its bytes do.
 */
import type { StreamId } from "../lib/brand.ts";
import { DecodeError, toHex, utf8 } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { ABORTED_ENTRY_BYTES, decodeAborted } from "../log/aborted_transactions.ts";
import { decodeEpochs } from "../log/leader_epochs.ts";
import { decodeMetaKeyValue, type MetaKeyValue } from "../log/meta_codec.ts";
import { decodeSnapshot, decodeSnapshots } from "../log/producer_snapshot.ts";
import { decodeRequests } from "../log/request_snapshot.ts";
import { decodeWriters } from "../log/writer_snapshot.ts";
import { decodeTimeEntries, TIME_ENTRY_BYTES } from "../log/time_index.ts";
import {
  BATCH_PREFIX_BYTES,
  type BatchHeader,
  codecOf,
  isControlBatch,
  isLogAppendTime,
  isTransactionalBatch,
  lastOffset,
  readBatchHeader,
} from "../protocol/record_batch.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import type { Fields, FieldValue } from "./item.ts";

/** A batch's CRC covers everything from its attributes on. */
const BATCH_CRC_FROM = 21;
const SHOWN_BYTES_MAX = 32;
const SHOWN_ENTRIES_MAX = 64;

function headerOf(payload: Uint8Array): BatchHeader | string {
  try {
    return readBatchHeader(payload);
  } catch (error) {
    if (error instanceof DecodeError) return error.message;
    throw error;
  }
}

/**
 * What is wrong with a batch in its place; null when nothing is. Compacted batches lie in a stream of their own,
 * at offsets that are lower by the same number for all of them, and a record also covers the hole before its batch.
 */
function batchProblem({ payload, baseOffset, count }: StreamRecord, shift: number): string | null {
  const header = headerOf(payload);
  if (typeof header === "string") return header;
  const bytes = BATCH_PREFIX_BYTES + header.batchLength;
  if (bytes !== payload.length) return `batch says ${bytes} bytes, its record ${payload.length}`;
  const end = baseOffset + count + shift;
  const covered = header.lastOffsetDelta + 1;
  if (lastOffset(header) + 1 !== end || covered > count) {
    return `batch says offsets ${header.baseOffset} to ${lastOffset(header)}, its record ` +
      `${end - count} to ${end - 1}`;
  }
  const crc = crc32c(payload.subarray(BATCH_CRC_FROM));
  return crc === header.crc ? null : `batch has CRC-32C ${crc}, not ${header.crc}`;
}

function metaOf(payload: Uint8Array): MetaKeyValue | null {
  try {
    return decodeMetaKeyValue(payload);
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

/** In a stream of unknown kind: zeros at a batch's begin would pass for an empty key. */
function likelyMetaOf(payload: Uint8Array): MetaKeyValue | null {
  const found = metaOf(payload);
  return found !== null && /^[A-Z][A-Z0-9_]*$/.test(found.key) ? found : null;
}

/** By how much a batch's offsets are above those of its record; 0 for what is no batch. */
function shiftOf({ payload, baseOffset, count }: StreamRecord): number {
  const header = headerOf(payload);
  return typeof header === "string" ? 0 : Math.max(0, lastOffset(header) + 1 - baseOffset - count);
}

/** The shift of a stream is that of its first batch. */
function expectedShift(record: StreamRecord, shifts: Map<StreamId, number>): number {
  const known = shifts.get(record.streamId);
  if (known !== undefined || typeof headerOf(record.payload) === "string") return known ?? 0;
  const shift = shiftOf(record);
  shifts.set(record.streamId, shift);
  return shift;
}

/** An index stream counts bytes as offsets. */
function isIndex({ payload, count }: StreamRecord): boolean {
  return count === payload.length;
}

/**
 * What is wrong with a record's payload; null when nothing is. `isMeta`: metadata names the stream as a
 * partition's meta stream. One that it does not name yet may still be a meta stream. `shifts` is what is known of
 * each stream so far.
 */
export function payloadProblem(
  record: StreamRecord,
  isMeta: boolean,
  shifts = new Map<StreamId, number>(),
): string | null {
  if (isMeta) return metaOf(record.payload) === null ? "not a record of a meta stream" : null;
  const problem = batchProblem(record, expectedShift(record, shifts));
  const isOther = () => isIndex(record) || likelyMetaOf(record.payload) !== null;
  return problem === null || isOther() ? null : problem;
}

// --- description --------------------------------------------------------------------------------

function batchFields(header: BatchHeader, problem: string | null): Fields {
  const flags = [
    isControlBatch(header) ? "control" : "",
    isTransactionalBatch(header) ? "transactional" : "",
    isLogAppendTime(header) ? "append-time" : "",
  ].filter((flag) => flag !== "");
  return {
    offsets: `${header.baseOffset}..${lastOffset(header)}`,
    records: header.recordCount,
    leaderEpoch: header.partitionLeaderEpoch,
    codec: codecOf(header) ?? (codecOf(header) === null ? "none" : "unknown"),
    baseTimestamp: header.baseTimestamp,
    maxTimestamp: header.maxTimestamp,
    producerId: header.producerId,
    producerEpoch: header.producerEpoch,
    baseSequence: header.baseSequence,
    ...(flags.length === 0 ? {} : { flags: flags.join(",") }),
    crc: problem ?? "ok",
  };
}

function jsonOrHex(value: Uint8Array): FieldValue {
  try {
    // Any JSON value is a field value.
    return JSON.parse(utf8(value)) as FieldValue;
  } catch {
    return hexOf(value);
  }
}

function hexOf(bytes: Uint8Array): string {
  const shown = toHex(bytes.subarray(0, SHOWN_BYTES_MAX));
  return bytes.length > SHOWN_BYTES_MAX ? `${shown}...` : shown;
}

function metaValue({ key, value }: MetaKeyValue): FieldValue {
  if (key === "PRODUCER_SNAPSHOTS") {
    return decodeSnapshots(value).map(({ offset, bytes }) => ({
      offset,
      producers: decodeSnapshot(bytes)?.length ?? "damaged",
    }));
  }
  if (key === "REQUESTS") {
    const requests = decodeRequests(value);
    return requests === null
      ? "damaged"
      : { offset: requests.offset, requests: requests.entries.length };
  }
  if (key === "WRITERS") {
    const writers = decodeWriters(value);
    return writers === null ? "damaged" : {
      offset: writers.offset,
      closedAt: writers.closing?.end ?? null,
      order: writers.order,
      writers: writers.entries.map(({ name, epoch, sequence, end }) => ({
        name,
        epoch,
        sequence,
        end,
      })),
    };
  }
  if (key !== "LEADER_EPOCH_CHECKPOINT") return jsonOrHex(value);
  try {
    return decodeEpochs(value).map(({ epoch, startOffset }) => ({ epoch, startOffset }));
  } catch (error) {
    if (error instanceof DecodeError) return hexOf(value);
    throw error;
  }
}

function looksLikeBatch({ payload, baseOffset }: StreamRecord): boolean {
  const header = headerOf(payload);
  if (typeof header === "string") return false;
  return header.baseOffset === baseOffset ||
    header.batchLength + BATCH_PREFIX_BYTES === payload.length;
}

/** Null when the bytes are no entries of a transaction index. */
function abortedFields(payload: Uint8Array): Fields | null {
  if (payload.length % ABORTED_ENTRY_BYTES !== 0) return null;
  try {
    const entries = decodeAborted(payload);
    const isSound = entries.every(({ firstOffset, lastOffset: last, lastStableOffset }) =>
      firstOffset >= 0 && firstOffset < last && lastStableOffset <= last + 1
    );
    return isSound
      ? { aborted: entries.slice(0, SHOWN_ENTRIES_MAX).map((one) => ({ ...one })) }
      : null;
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

function indexFields(payload: Uint8Array): Fields {
  const aborted = abortedFields(payload);
  if (aborted !== null) return aborted;
  if (payload.length % TIME_ENTRY_BYTES !== 0) return { bytes: hexOf(payload) };
  const shown = payload.subarray(0, SHOWN_ENTRIES_MAX * TIME_ENTRY_BYTES);
  try {
    const entries = decodeTimeEntries(shown, 0);
    return {
      times: entries.map(({ timestampMs, offset }) => ({ timestampMs, relativeOffset: offset })),
    };
  } catch (error) {
    if (error instanceof DecodeError) return { bytes: hexOf(payload) };
    throw error;
  }
}

/** A record's own fields, and what its payload is by its looks. */
export function recordFields(record: StreamRecord): Fields {
  const { streamId, epoch, baseOffset, count, payload } = record;
  const own = { stream: streamId, epoch, offset: baseOffset, count, bytes: payload.length };
  if (looksLikeBatch(record)) {
    const header = readBatchHeader(payload);
    return { ...own, batch: batchFields(header, batchProblem(record, shiftOf(record))) };
  }
  const meta = likelyMetaOf(payload);
  if (meta !== null) return { ...own, meta: { key: meta.key, value: metaValue(meta) } };
  if (isIndex(record) && payload.length > 0) return { ...own, index: indexFields(payload) };
  return { ...own, payload: hexOf(payload) };
}
