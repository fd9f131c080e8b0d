/**
 * Reads whole batches below the high watermark, or below the last stable offset with the aborted
 * transactions that a reader of committed records has to leave out.
 */
import type { Offset } from "../lib/brand.ts";
import type { ReadOptions as StreamReadOptions } from "../storage/storage.ts";
import { endOffset, type StreamRecord } from "../storage/stream_record.ts";
import type { Stream } from "../stream/stream.ts";
import { findAborted, type ReadHow } from "./aborted_lookup.ts";
import type { LogState } from "./log_state.ts";
import { LogView } from "./log_view.ts";
import type { AbortedTransaction, LogRead, ReadOptions, ReadRefused } from "./partition_log.ts";

export interface LogToRead {
  readonly log: Stream;
  readonly state: LogState;
  /** As it is now, null while nothing was indexed: it may be made, and take over what is in memory, during a read. */
  readonly txn: () => Stream | null;
}

interface Found {
  readonly batches: readonly Uint8Array[];
  readonly aborted: readonly AbortedTransaction[];
}

const NOTHING: Found = { batches: [], aborted: [] };
const OUT_OF_RANGE: ReadRefused = { ok: false, error: "OFFSET_OUT_OF_RANGE" };

export async function readLog(
  source: LogToRead,
  offset: Offset,
  options: ReadOptions,
): Promise<LogRead | ReadRefused | null> {
  for (;;) {
    const { cleanings } = source.state;
    const read = await readOnce(source, offset, options);
    // Batches from before a compaction with the aborted transactions from after it would show what was aborted.
    if (read !== "cleaned" && source.state.cleanings === cleanings) return read;
  }
}

async function readOnce(
  source: LogToRead,
  offset: Offset,
  options: ReadOptions,
): Promise<LogRead | ReadRefused | null | "cleaned"> {
  const { log, state } = source;
  const { cleanings } = state;
  if (offset < state.logStartOffset || offset > log.nextOffset) return OUT_OF_RANGE;
  // Both now: what a reader is told belongs to what was read.
  const highWatermark = log.confirmOffset;
  const lastStableOffset = state.lastStableOffset(highWatermark);
  const end = options.isolation === "committed" ? lastStableOffset : highWatermark;
  let found: Found | null = NOTHING;
  try {
    if (offset < end) found = await find(source, offset, end, options);
  } catch (error) {
    // Trimmed while the read was under way: the offset is gone, nothing is broken.
    if (state.cleanings !== cleanings) return "cleaned";
    if (offset >= state.logStartOffset) throw error;
  }
  const { logStartOffset } = state;
  if (offset < logStartOffset) return OUT_OF_RANGE;
  if (found === null) return null;
  const bytes = found.batches.reduce((sum, { length }) => sum + length, 0);
  return { ok: true, ...found, bytes, highWatermark, lastStableOffset, logStartOffset };
}

async function find(
  { log, state, txn }: LogToRead,
  start: Offset,
  limit: Offset,
  { bytesMax, lease, isolation, cacheOnly, isOpening, signal }: ReadOptions,
): Promise<Found | null> {
  const how: ReadHow = {
    ...(cacheOnly === undefined ? {} : { cacheOnly }),
    ...(isOpening === undefined ? {} : { isOpening }),
    ...(signal === undefined ? {} : { signal }),
  };
  const leased = lease === undefined ? {} : { lease };
  const view = new LogView(log, state.segments);
  const records = await fetchRun(view, start, limit, { bytesMax, ...how, ...leased });
  if (records === null) return null;
  const batches = wholeBatches(records, limit, bytesMax);
  const last = records[batches.length - 1];
  if (isolation === "uncommitted" || last === undefined) return { batches, aborted: [] };
  const { segments, aborted: known } = state;
  const end = endOffset(last);
  const query = { segments, aborted: known, txn: txn(), start, end, how };
  const aborted = await findAborted(query);
  return aborted === null ? null : { batches, aborted };
}

/** One read, or several where cleaned segments end: a reader must not get a little at each of their ends. */
async function fetchRun(
  view: LogView,
  start: Offset,
  limit: Offset,
  options: StreamReadOptions,
): Promise<readonly StreamRecord[] | null> {
  const found: StreamRecord[] = [];
  let bytesMax = options.bytesMax;
  for (let at = start;;) {
    const segment = view.cleanedAt(at);
    const records = await view.fetch(at, limit, { ...options, bytesMax });
    if (records === null) return found.length === 0 ? null : found;
    found.push(...records);
    for (const { payload } of records) bytesMax -= payload.length;
    const last = records.at(-1);
    if (last === undefined || bytesMax <= 0) return found;
    at = endOffset(last);
    if (segment === null || at < segment.endOffset || at >= limit) return found;
  }
}

/** The first batch is given however large it is, as KIP-74 asks. */
function wholeBatches(
  records: readonly StreamRecord[],
  end: Offset,
  bytesMax: number,
): readonly Uint8Array[] {
  const batches: Uint8Array[] = [];
  let bytes = 0;
  for (const record of records) {
    if (endOffset(record) > end) break;
    bytes += record.payload.length;
    if (batches.length > 0 && bytes > bytesMax) break;
    batches.push(record.payload);
  }
  return batches;
}
