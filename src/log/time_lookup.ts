/**
 * Finds records by time: the segment by its largest timestamp, a place in it by the time index, then the
 * batch by its header and the record by its own timestamp (which may inflate one batch).
 */
import type { Offset } from "../lib/brand.ts";
import type { Codecs } from "../env/codecs.ts";
import { isFault } from "../lib/errors.ts";
import { DecodeError } from "../lib/bytes.ts";
import { LOG_SCAN_BYTES } from "../lib/limits.ts";
import {
  type BatchHeader,
  isLogAppendTime,
  lastOffset,
  readBatchHeader,
} from "../protocol/record_batch.ts";
import { readRecords } from "../protocol/record.ts";
import type { Stream } from "../stream/stream.ts";
import type { Readable } from "./log_view.ts";
import type { TimestampedOffset } from "./partition_log.ts";
import type { Segment } from "./segment.ts";
import { scan } from "./slice.ts";
import { lookupTime, readTimeEntries, type TimeEntry } from "./time_index.ts";

const NO_TIMESTAMP = -1;

export interface TimeLookupInput {
  readonly segments: readonly Segment[];
  readonly log: Readable;
  readonly time: Stream | null;
  readonly codecs: Codecs;
  readonly logStartOffset: Offset;
  /** Nothing at or above is looked at. */
  readonly end: Offset;
  /** Ends the search with a FaultError. */
  readonly signal?: AbortSignal;
}

interface Found {
  readonly header: BatchHeader;
  readonly batch: Uint8Array;
}

async function entriesOf(
  segment: Segment,
  { time, signal }: TimeLookupInput,
): Promise<readonly TimeEntry[]> {
  const { start, end } = segment.timeSlice;
  const pending = [...segment.timePending];
  const index = segment.cleaned === null ? time : segment.cleaned.part.time;
  if (index === null || start === end) return pending;
  // An index still on its way to the store is no reason to wait: the search just starts earlier.
  const durableEnd = Math.min(end, index.confirmOffset);
  const slice = { start, end: durableEnd };
  const stored = await readTimeEntries(index, slice, segment.baseOffset, signal);
  return [...stored, ...pending];
}

async function* batches(input: TimeLookupInput, from: Offset, to: Offset) {
  const start = Math.max(from, input.logStartOffset);
  const { log, signal } = input;
  const end = Math.min(to, input.end);
  for await (const { payload } of scan(log, start, end, LOG_SCAN_BYTES, signal)) {
    const header = readBatchHeader(payload);
    // What compaction has emptied keeps its time in the header.
    if (header.recordCount > 0) yield { header, batch: payload };
  }
}

/** First record of the batch at or after the time and the log start; a batch that cannot be inflated answers as a whole. */
function recordIn(
  { header, batch }: Found,
  timestampMs: number,
  input: TimeLookupInput,
): TimestampedOffset | null {
  const leaderEpoch = header.partitionLeaderEpoch;
  const start = Math.max(header.baseOffset, input.logStartOffset);
  const whole = { timestampMs: header.maxTimestamp, offset: start, leaderEpoch };
  if (isLogAppendTime(header)) return whole;
  try {
    for (const record of readRecords(batch, input.codecs)) {
      if (record.timestamp >= timestampMs && record.offset >= start) {
        return { timestampMs: record.timestamp, offset: record.offset, leaderEpoch };
      }
    }
    return null;
  } catch (error) {
    if (error instanceof DecodeError || isFault(error, "corrupt")) return whole;
    throw error;
  }
}

async function findIn(
  segment: Segment,
  timestampMs: number,
  input: TimeLookupInput,
): Promise<TimestampedOffset | null> {
  const entries = await entriesOf(segment, input);
  const from = lookupTime(entries, timestampMs, segment.baseOffset).offset;
  for await (const found of batches(input, from, segment.endOffset)) {
    if (found.header.maxTimestamp < timestampMs) continue;
    const record = recordIn(found, timestampMs, input);
    if (record !== null) return record;
  }
  return null;
}

export async function findByTime(
  input: TimeLookupInput,
  timestampMs: number,
): Promise<TimestampedOffset | null> {
  for (const segment of input.segments) {
    if (segment.baseOffset >= input.end) return null;
    if (segment.largestTimestampMs < timestampMs) continue;
    const found = await findIn(segment, timestampMs, input);
    if (found !== null && found.offset < input.end) return found;
  }
  return null;
}

/** The first batch with the largest timestamp of a segment, by reading its headers. */
async function largestBatch(segment: Segment, input: TimeLookupInput): Promise<TimeEntry | null> {
  let largest: TimeEntry | null = null;
  for await (const { header } of batches(input, segment.baseOffset, segment.endOffset)) {
    if (header.maxTimestamp > (largest?.timestampMs ?? -1)) {
      largest = { timestampMs: header.maxTimestamp, offset: lastOffset(header) };
    }
  }
  return largest;
}

/** The account is enough unless its record is gone by DeleteRecords or not durable yet. */
async function largestOf(segment: Segment, input: TimeLookupInput): Promise<TimeEntry | null> {
  const { offset, timestampMs } = segment.largest;
  if (timestampMs < 0) return null;
  if (offset >= input.logStartOffset && offset < input.end) return segment.largest;
  return await largestBatch(segment, input);
}

export async function findLargestTime(input: TimeLookupInput): Promise<TimestampedOffset | null> {
  let largest: TimeEntry | null = null;
  for (const segment of input.segments) {
    if (segment.baseOffset >= input.end || segment.endOffset <= input.logStartOffset) continue;
    const candidate = await largestOf(segment, input);
    if ((candidate?.timestampMs ?? -1) > (largest?.timestampMs ?? -1)) largest = candidate;
  }
  // Where no record has a time all are alike, and the first one stands for them, as in Kafka.
  const from = largest?.offset ?? input.logStartOffset;
  const to = largest === null ? input.end : largest.offset + 1;
  for await (const found of batches(input, from, to)) {
    const record = recordIn(found, largest?.timestampMs ?? NO_TIMESTAMP, input);
    if (record !== null) return record;
  }
  return null;
}
