/**
 * Everything a partition derives from its log: segments, leader epochs, producers. `learn` takes a stored
 * batch in; live appends and replay share it, so both end in the same state. Synchronous, no I/O.
 */
import { assert } from "../lib/assert.ts";
import type { Offset } from "../lib/brand.ts";
import type { BatchHeader } from "../protocol/record_batch.ts";
import { isControlBatch, isTransactionalBatch, lastOffset } from "../protocol/record_batch.ts";
import { LeaderEpochs } from "./leader_epochs.ts";
import type { LogConfig } from "./partition_log.ts";
import { ProducerState, type StoredBatch } from "./producer_state.ts";
import { type CountedBatch, Segment } from "./segment.ts";

/** Where replay takes up each part; live appends are past both. */
export interface LearnFrom {
  readonly segments: Offset;
  readonly producers: Offset;
}

const EVERYTHING: LearnFrom = { segments: 0, producers: 0 };

export function sequencedOf(header: BatchHeader): StoredBatch {
  return {
    producerId: header.producerId,
    producerEpoch: header.producerEpoch,
    baseSequence: header.baseSequence,
    lastOffsetDelta: header.lastOffsetDelta,
    isTransactional: isTransactionalBatch(header),
    isControl: isControlBatch(header),
    baseOffset: header.baseOffset,
    maxTimestamp: header.maxTimestamp,
  };
}

function countedOf(header: BatchHeader, bytes: number): CountedBatch {
  return {
    baseOffset: header.baseOffset,
    lastOffset: lastOffset(header),
    bytes,
    maxTimestampMs: header.maxTimestamp,
  };
}

export class LogState {
  readonly segments: Segment[];
  readonly epochs: LeaderEpochs;
  readonly producers = new ProducerState();
  #logStartOffset: Offset;
  #rolls = 0;

  constructor(segments: readonly Segment[], epochs: LeaderEpochs, logStartOffset: Offset) {
    assert(segments.length > 0, "a log has an active segment");
    this.segments = [...segments];
    this.epochs = epochs;
    this.#logStartOffset = logStartOffset;
  }

  get logStartOffset(): Offset {
    return this.#logStartOffset;
  }
  get active(): Segment {
    return this.segments.at(-1)!;
  }
  get sizeBytes(): number {
    return this.segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }
  /** Segments begun so far, so that a caller sees whether one rolled. */
  get rolls(): number {
    return this.#rolls;
  }

  /** The segment that holds an offset. */
  segmentAt(offset: Offset): Segment {
    return this.segments.findLast(({ baseOffset }) => baseOffset <= offset) ?? this.segments[0]!;
  }

  learn(
    header: BatchHeader,
    bytes: number,
    config: LogConfig,
    appendedMs: number,
    from = EVERYTHING,
  ): void {
    if (header.baseOffset >= from.segments) {
      const counted = countedOf(header, bytes);
      if (this.active.isFullFor(counted, config, appendedMs)) {
        this.roll(header.baseOffset, appendedMs);
      }
      this.active.countBatch(counted, appendedMs);
    }
    this.epochs.assign(header.partitionLeaderEpoch, header.baseOffset);
    if (header.baseOffset >= from.producers) {
      this.producers.apply(sequencedOf(header), appendedMs);
    }
  }

  /** Begins a segment at the log's end. One that is empty already stays the only one of its base. */
  roll(baseOffset: Offset, nowMs: number): void {
    if (this.active.isEmpty && this.active.baseOffset === baseOffset) return;
    this.active.seal();
    this.segments.push(new Segment(baseOffset, nowMs));
    this.#rolls++;
  }

  /** Drops the oldest segments; an active one among them is rolled first. */
  deleteOldest(count: number, nowMs: number): void {
    if (count === this.segments.length) this.roll(this.active.endOffset, nowMs);
    this.segments.splice(0, count);
    this.raiseLogStart(this.segments[0]!.baseOffset);
  }

  raiseLogStart(offset: Offset): void {
    if (offset <= this.#logStartOffset) return;
    this.#logStartOffset = offset;
    this.epochs.truncateFromStart(offset);
  }
}
