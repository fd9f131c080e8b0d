/**
 * A segment: the unit that rolls and is deleted. It owns no bytes, only the account of a stretch of the
 * log stream, or of a stream of its own once it is cleaned. `countBatch` is the one way in, for live appends, for
 * replay and for the cleaner alike.
 */
import type { Offset } from "../lib/brand.ts";
import { SEGMENT_OFFSETS_MAX, TIME_INDEX_INTERVAL_BYTES } from "../lib/limits.ts";
import type { CleanedPart } from "./clean/cleaned_streams.ts";
import type { SegmentMeta } from "./log_meta.ts";
import type { LogConfig } from "./partition_log.ts";
import type { RetainedSegment } from "./retention.ts";
import { OPEN_END, type Slice } from "./slice.ts";
import type { TimeEntry } from "./time_index.ts";

export interface CountedBatch {
  readonly baseOffset: Offset;
  readonly lastOffset: Offset;
  readonly bytes: number;
  /** -1 when the batch has none. */
  readonly maxTimestampMs: number;
}

export type RollConfig = Pick<LogConfig, "segmentBytes" | "segmentMs">;

/** Where a cleaned segment is: the stream offset of its base, and the streams. */
export interface CleanedPlace {
  readonly part: CleanedPart;
  readonly start: Offset;
}

const NO_SLICE: Slice = { start: 0, end: 0 };
const NO_TIMESTAMP: TimeEntry = { timestampMs: -1, offset: -1 };

/** What segments hold from an offset on; of one that it cuts, by its share of offsets. */
export function bytesFrom(
  start: Offset,
  segments: readonly Pick<Segment, "baseOffset" | "endOffset" | "bytes">[],
): number {
  return segments.reduce((sum, { baseOffset, endOffset, bytes }) => {
    const part = start <= baseOffset
      ? 1
      : Math.max(0, endOffset - start) / (endOffset - baseOffset);
    return sum + Math.round(bytes * (endOffset === baseOffset ? 1 : part));
  }, 0);
}

export class Segment implements RetainedSegment {
  readonly baseOffset: Offset;
  readonly createdMs: number;
  /** Null while its bytes are in the log stream, at their own offsets. */
  readonly cleaned: CleanedPlace | null;
  #endOffset: Offset;
  #bytes = 0;
  #lastModifiedMs: number;
  #firstTimestampMs = -1;
  #largest = NO_TIMESTAMP;
  #bytesSinceEntry = 0;
  #lastEntry = NO_TIMESTAMP;
  #sealed = false;
  /** Entries of the time index that are in the stream. */
  timeSlice: Slice = NO_SLICE;
  /** Entries that are not in the stream yet. */
  readonly timePending: TimeEntry[] = [];
  /** Entries of the transaction index for the markers in here. */
  txnSlice: Slice = NO_SLICE;

  constructor(baseOffset: Offset, createdMs: number, cleaned: CleanedPlace | null = null) {
    this.baseOffset = baseOffset;
    this.cleaned = cleaned;
    this.#endOffset = baseOffset;
    this.createdMs = createdMs;
    this.#lastModifiedMs = createdMs;
  }

  /** A segment as stored; `endOffset` is where its account stops. */
  static fromMeta(meta: SegmentMeta, endOffset: Offset, part: CleanedPart | null = null): Segment {
    const cleaned = part === null ? null : { part, start: meta.log.start };
    const segment = new Segment(meta.baseOffset, meta.createdMs, cleaned);
    segment.#endOffset = endOffset;
    segment.#bytes = meta.bytes;
    segment.#lastModifiedMs = meta.lastModifiedMs;
    segment.#firstTimestampMs = meta.firstBatchTimestampMs;
    segment.#largest = meta.largest;
    segment.#lastEntry = meta.largest;
    segment.timeSlice = meta.time.end === OPEN_END ? NO_SLICE : meta.time;
    segment.txnSlice = meta.txn.end === OPEN_END ? NO_SLICE : meta.txn;
    segment.#sealed = meta.log.end !== OPEN_END;
    return segment;
  }

  get endOffset(): Offset {
    return this.#endOffset;
  }
  get bytes(): number {
    return this.#bytes;
  }
  get lastModifiedMs(): number {
    return this.#lastModifiedMs;
  }
  /** Of the first batch that has a timestamp; -1 when none has. */
  get firstTimestampMs(): number {
    return this.#firstTimestampMs;
  }
  get largest(): TimeEntry {
    return this.#largest;
  }
  get largestTimestampMs(): number {
    return this.#largest.timestampMs;
  }
  get isEmpty(): boolean {
    return this.#endOffset === this.baseOffset;
  }

  countBatch(batch: CountedBatch, nowMs: number): void {
    if (this.#firstTimestampMs < 0) this.#firstTimestampMs = batch.maxTimestampMs;
    if (batch.maxTimestampMs > this.#largest.timestampMs) {
      this.#largest = { timestampMs: batch.maxTimestampMs, offset: batch.lastOffset };
    }
    this.#endOffset = batch.lastOffset + 1;
    this.#bytes += batch.bytes;
    this.#lastModifiedMs = nowMs;
    this.#bytesSinceEntry += batch.bytes;
    if (this.#bytesSinceEntry > TIME_INDEX_INTERVAL_BYTES) this.#indexTime();
  }

  /** Entries strictly rise in time, and an entry's offset is the first that reached that time. */
  #indexTime(): void {
    this.#bytesSinceEntry = 0;
    if (this.#largest.timestampMs <= this.#lastEntry.timestampMs) return;
    this.#lastEntry = this.#largest;
    this.timePending.push(this.#largest);
  }

  seal(): void {
    this.#indexTime();
    this.#sealed = true;
  }

  /** Whether the batch must go to a new segment; an empty segment takes all that fits its offsets. */
  isFullFor(batch: CountedBatch, config: RollConfig, nowMs: number): boolean {
    if (batch.lastOffset - this.baseOffset >= SEGMENT_OFFSETS_MAX) return true;
    if (this.isEmpty) return false;
    if (this.#bytes + batch.bytes > config.segmentBytes) return true;
    const hasTimes = this.#firstTimestampMs >= 0 && batch.maxTimestampMs >= 0;
    const ageMs = hasTimes ? batch.maxTimestampMs - this.#firstTimestampMs : nowMs - this.createdMs;
    return ageMs > config.segmentMs;
  }

  get #logSlice(): Slice {
    if (this.cleaned === null) {
      return { start: this.baseOffset, end: this.#sealed ? this.#endOffset : OPEN_END };
    }
    const { start } = this.cleaned;
    return { start, end: start + this.#endOffset - this.baseOffset };
  }

  toMeta(): SegmentMeta {
    return {
      baseOffset: this.baseOffset,
      createdMs: this.createdMs,
      lastModifiedMs: this.#lastModifiedMs,
      bytes: this.#bytes,
      ...(this.cleaned === null ? {} : { suffix: this.cleaned.part.suffix }),
      log: this.#logSlice,
      time: this.timeSlice,
      txn: this.txnSlice,
      firstBatchTimestampMs: this.#firstTimestampMs,
      largest: this.#largest,
    };
  }
}
