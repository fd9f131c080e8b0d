/**
 * The aborted transactions that a read has to name (KIP-98): those that overlap what it returns, also when
 * they began before it. Newer ones come from memory, older ones from the transaction index: a binary search
 * for the first marker at or above the read, then entries until none can begin below its end.
 */
import type { Offset } from "../lib/brand.ts";
import { DecodeError, getInt64, viewOf } from "../lib/bytes.ts";
import { FaultError } from "../lib/errors.ts";
import { LOG_SCAN_BYTES } from "../lib/limits.ts";
import { partitionPoint } from "../lib/partition_point.ts";
import type { ReadOptions } from "../storage/storage.ts";
import { endOffset, type StreamRecord } from "../storage/stream_record.ts";
import type { Stream } from "../stream/stream.ts";
import {
  ABORTED_ENTRY_BYTES,
  type AbortedTransactions,
  decodeAborted,
} from "./aborted_transactions.ts";
import type { EndedTransaction } from "./open_transactions.ts";
import type { AbortedTransaction } from "./partition_log.ts";
import type { Segment } from "./segment.ts";
import type { Slice } from "./slice.ts";

const LAST_OFFSET_AT = 18;

/** `cacheOnly` answers null instead of reading objects. */
export type ReadHow = Omit<ReadOptions, "bytesMax" | "lease">;

export interface AbortedQuery {
  readonly segments: readonly Segment[];
  readonly aborted: AbortedTransactions;
  readonly txn: Stream | null;
  /** What is returned: [start, end). */
  readonly start: Offset;
  readonly end: Offset;
  readonly how: ReadHow;
}

/** The records at [start, end) of the index, as many as one read gives; null for a miss. */
async function fetchIndex(
  txn: Stream,
  start: Offset,
  end: Offset,
  bytesMax: number,
  { how }: AbortedQuery,
): Promise<readonly StreamRecord[] | null> {
  const records = await txn.fetch(start, end, { bytesMax, ...how });
  if (records?.length !== 0) return records;
  const where = `stream ${txn.streamId} at ${start}`;
  throw new FaultError("data-loss", `Cannot read the transaction index: nothing in ${where}`, {
    retriable: false,
  });
}

/** The part of a record that lies in [start, end). */
function within(record: StreamRecord, { start, end }: Slice): Uint8Array {
  const { baseOffset, payload } = record;
  return payload.subarray(Math.max(0, start - baseOffset), Math.max(0, end - baseOffset));
}

/** How many entries of a run have their marker below an offset. */
function countBelow(bytes: Uint8Array, offset: Offset): number {
  const view = viewOf(bytes);
  return partitionPoint(
    Math.floor(bytes.length / ABORTED_ENTRY_BYTES),
    (i) => getInt64(view, i * ABORTED_ENTRY_BYTES + LAST_OFFSET_AT) < offset,
  );
}

/** Place of the first entry of a slice whose marker is at or above an offset; null for a miss. */
async function seek(
  txn: Stream,
  slice: Slice,
  offset: Offset,
  query: AbortedQuery,
): Promise<Offset | null> {
  let { start: low, end: high } = slice;
  while (low < high) {
    const count = (high - low) / ABORTED_ENTRY_BYTES;
    const middle = low + Math.floor(count / 2) * ABORTED_ENTRY_BYTES;
    const records = await fetchIndex(txn, middle, high, 1, query);
    if (records === null) return null;
    const [record] = records;
    const from = Math.max(low, record!.baseOffset);
    const run = within(record!, { start: from, end: high });
    const below = countBelow(run, offset);
    const place = from + below * ABORTED_ENTRY_BYTES;
    if (below === 0) high = from;
    else if (place < from + run.length) return place;
    else low = place;
  }
  return low;
}

function decode(bytes: Uint8Array, txn: Stream): readonly EndedTransaction[] {
  try {
    return decodeAborted(bytes);
  } catch (cause) {
    if (!(cause instanceof DecodeError)) throw cause;
    const message = `Cannot read the transaction index in stream ${txn.streamId}`;
    throw new FaultError("corrupt", message, { retriable: false, cause });
  }
}

/** Collects what overlaps; `isComplete` once no later entry can. */
class Overlaps {
  readonly #query: AbortedQuery;
  readonly found: EndedTransaction[] = [];
  isComplete = false;

  constructor(query: AbortedQuery) {
    this.#query = query;
  }

  add(entries: readonly EndedTransaction[]): void {
    const { start, end } = this.#query;
    for (const entry of entries) {
      if (this.isComplete) return;
      if (entry.lastOffset >= start && entry.firstOffset < end) this.found.push(entry);
      this.isComplete = entry.lastStableOffset >= end;
    }
  }
}

/** Adds what a segment's slice has below `to`; false for a miss. */
async function addSlice(
  txn: Stream,
  slice: Slice,
  to: Offset,
  query: AbortedQuery,
  overlaps: Overlaps,
): Promise<boolean> {
  let at = await seek(txn, slice, query.start, query);
  while (at !== null && at < slice.end && !overlaps.isComplete) {
    const records = await fetchIndex(txn, at, slice.end, LOG_SCAN_BYTES, query);
    if (records === null) return false;
    for (const record of records) {
      const run = within(record, { start: at, end: slice.end });
      const older = countBelow(run, to);
      overlaps.add(decode(run.subarray(0, older * ABORTED_ENTRY_BYTES), txn));
      if (older * ABORTED_ENTRY_BYTES < run.length) return true;
    }
    at = endOffset(records.at(-1)!);
  }
  return at !== null;
}

/** In the order of their first offsets; null only with `cacheOnly` and a miss. */
export async function findAborted(
  query: AbortedQuery,
): Promise<readonly AbortedTransaction[] | null> {
  const { aborted, txn, start } = query;
  const overlaps = new Overlaps(query);
  // Both now: what leaves memory while the index is read was in neither otherwise.
  const memoryFrom = aborted.completeFrom;
  const recent = aborted.from(Math.max(start, memoryFrom));
  const slices = start >= memoryFrom || txn === null ? [] : query.segments
    .filter(({ baseOffset, endOffset: to }) => to > start && baseOffset < memoryFrom)
    .map(({ txnSlice }) => ({ ...txnSlice, end: Math.min(txnSlice.end, txn.confirmOffset) }));
  for (const slice of slices) {
    if (slice.start >= slice.end || overlaps.isComplete) continue;
    if (!await addSlice(txn!, slice, memoryFrom, query, overlaps)) return null;
  }
  overlaps.add(recent);
  return overlaps.found
    .toSorted((a, b) => a.firstOffset - b.firstOffset)
    .map(({ producerId, firstOffset }) => ({ producerId, firstOffset }));
}
