/**
 * A segment: the unit that rolls and is deleted. It owns no bytes, only the account of a stretch of the
 * log stream. `countBatch` is the one way in, for live appends and for replay alike.
 */
import type { Offset } from "../lib/brand.ts";
import { SEGMENT_OFFSETS_MAX, TIME_INDEX_INTERVAL_BYTES } from "../lib/limits.ts";
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

const NO_SLICE: Slice = { start: 0, end: 0 };
const NO_TIMESTAMP: TimeEntry = { timestampMs: -1, offset: -1 };

export class Segment implements RetainedSegment {
  readonly baseOffset: Offset;
  readonly createdMs: number;
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

  constructor(baseOffset: Offset, createdMs: number) {
    this.baseOffset = baseOffset;
    this.#endOffset = baseOffset;
    this.createdMs = createdMs;
    this.#lastModifiedMs = createdMs;
  }

  /** A segment as stored; `endOffset` is where its account stops. */
  static fromMeta(meta: SegmentMeta, endOffset: Offset): Segment {
    const segment = new Segment(meta.baseOffset, meta.createdMs);
    segment.#endOffset = endOffset;
    segment.#bytes = meta.bytes;
    segment.#lastModifiedMs = meta.lastModifiedMs;
    segment.#firstTimestampMs = meta.firstBatchTimestampMs;
    segment.#largest = meta.largest;
    segment.#lastEntry = meta.largest;
    segment.timeSlice = meta.time.end === OPEN_END ? NO_SLICE : meta.time;
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
  isFullFor(batch: CountedBatch, config: LogConfig, nowMs: number): boolean {
    if (batch.lastOffset - this.baseOffset >= SEGMENT_OFFSETS_MAX) return true;
    if (this.isEmpty) return false;
    if (this.#bytes + batch.bytes > config.segmentBytes) return true;
    const hasTimes = this.#firstTimestampMs >= 0 && batch.maxTimestampMs >= 0;
    const ageMs = hasTimes ? batch.maxTimestampMs - this.#firstTimestampMs : nowMs - this.createdMs;
    return ageMs > config.segmentMs;
  }

  toMeta(): SegmentMeta {
    return {
      baseOffset: this.baseOffset,
      createdMs: this.createdMs,
      lastModifiedMs: this.#lastModifiedMs,
      bytes: this.#bytes,
      log: { start: this.baseOffset, end: this.#sealed ? this.#endOffset : OPEN_END },
      time: this.timeSlice,
      txn: NO_SLICE,
      firstBatchTimestampMs: this.#firstTimestampMs,
      largest: this.#largest,
    };
  }
}
