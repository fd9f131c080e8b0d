/**
 * Everything a partition derives from its log: segments, leader epochs, producers, transactions. `learn` takes a stored
 * batch in; live appends and replay share it, so both end in the same state. Synchronous, no I/O.
 */
import type { Codecs } from "../env/codecs.ts";
import { assert } from "../lib/assert.ts";
import type { Offset } from "../lib/brand.ts";
import type { BatchHeader } from "../protocol/record_batch.ts";
import { readMarker } from "../protocol/control_record.ts";
import { isControlBatch, isTransactionalBatch, lastOffset } from "../protocol/record_batch.ts";
import { AbortedTransactions } from "./aborted_transactions.ts";
import { LeaderEpochs } from "./leader_epochs.ts";
import type { LogConfig } from "./partition_log.ts";
import { ProducerState, type SequencedBatch, type StoredBatch } from "./producer_state.ts";
import { isRequestBatch, readPart } from "./request_part.ts";
import { RequestTable } from "./request_table.ts";
import { bytesFrom, type CountedBatch, Segment } from "./segment.ts";
import { isStepBatch, readStep } from "./writer_step.ts";
import { WriterTable } from "./writer_table.ts";

/** Where replay takes up each part; live appends are past both. */
export interface LearnFrom {
  readonly segments: Offset;
  readonly producers: Offset;
  readonly requests: Offset;
  readonly writers: Offset;
}

const EVERYTHING: LearnFrom = { segments: 0, producers: 0, requests: 0, writers: 0 };

export function sequencedOf(header: BatchHeader): SequencedBatch {
  return {
    producerId: header.producerId,
    producerEpoch: header.producerEpoch,
    baseSequence: header.baseSequence,
    lastOffsetDelta: header.lastOffsetDelta,
    isTransactional: isTransactionalBatch(header),
  };
}

function storedOf(header: BatchHeader, batch: Uint8Array): StoredBatch {
  const isControl = isControlBatch(header);
  return {
    ...sequencedOf(header),
    isControl,
    marker: isControl ? readMarker(batch) : null,
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
  readonly requests = new RequestTable();
  readonly writers = new WriterTable();
  readonly aborted: AbortedTransactions;
  #logStartOffset: Offset;
  #rolls = 0;
  #cleanedTo: Offset = 0;
  #cleanings = 0;
  readonly #codecs: Codecs | null;

  /** Aborted transactions whose marker is below `indexedTo` are in the index already. */
  constructor(
    segments: readonly Segment[],
    epochs: LeaderEpochs,
    logStartOffset: Offset,
    indexedTo: Offset,
    codecs: Codecs | null = null,
  ) {
    assert(segments.length > 0, "a log has an active segment");
    this.segments = [...segments];
    this.epochs = epochs;
    this.#logStartOffset = logStartOffset;
    this.#codecs = codecs;
    this.aborted = new AbortedTransactions(indexedTo);
  }

  get logStartOffset(): Offset {
    return this.#logStartOffset;
  }
  get active(): Segment {
    return this.segments.at(-1)!;
  }
  /** Of a segment that the log start has entered, the part behind it, by offsets: nobody counts batches again. */
  get sizeBytes(): number {
    return bytesFrom(this.#logStartOffset, this.segments);
  }
  /** Segments begun so far, so that a caller sees whether one rolled. */
  get rolls(): number {
    return this.#rolls;
  }

  /** A named writer has ended it. */
  get isClosed(): boolean {
    return this.writers.closing !== null;
  }

  /** Below it the log is compacted. */
  get cleanedTo(): Offset {
    return this.#cleanedTo;
  }
  /** Times that cleaned segments took the place of others: what was read across one is to be read again. */
  get cleanings(): number {
    return this.#cleanings;
  }
  /** The end of the cleaned segments, which are the oldest; the log stream holds all above. */
  get streamFrom(): Offset {
    return this.segments.find(({ cleaned }) => cleaned === null)!.baseOffset;
  }

  /** From a checkpoint. */
  loadCleanedTo(offset: Offset): void {
    this.#cleanedTo = offset;
  }

  /**
   * Puts cleaned segments in the place of the oldest, less those that retention took meanwhile. No aborted data is
   * left in them, and so nothing may be said of it: an entry whose marker is gone would hide what came later.
   */
  replaceOldest(
    sources: readonly Segment[],
    cleaned: readonly Segment[],
    cleanedTo: Offset,
  ): void {
    const old = new Set(sources);
    const place = this.segments.findIndex((segment) => !old.has(segment));
    assert(place >= 0, "the active segment is never cleaned");
    if (place === 0) return;
    const start = this.segments[0]!.baseOffset;
    const left = cleaned.filter(({ endOffset }) => endOffset > start);
    assert(left.at(-1)?.endOffset === this.segments[place]!.baseOffset, "no offset is left out");
    this.segments.splice(0, place, ...left);
    this.aborted.trim(this.segments[left.length]!.baseOffset);
    this.#cleanedTo = Math.max(this.#cleanedTo, cleanedTo);
    this.#cleanings++;
  }

  /** The segment that holds an offset. */
  segmentAt(offset: Offset): Segment {
    return this.segments.findLast(({ baseOffset }) => baseOffset <= offset) ?? this.segments[0]!;
  }

  /** Below it no transaction is undecided; a log start that passed an open one hides its first batches. */
  lastStableOffset(highWatermark: Offset): Offset {
    const unstable = this.producers.firstUnstable(highWatermark);
    return unstable === null
      ? highWatermark
      : Math.min(highWatermark, Math.max(unstable, this.#logStartOffset));
  }

  learn(
    header: BatchHeader,
    batch: Uint8Array,
    config: LogConfig,
    appendedMs: number,
    from = EVERYTHING,
  ): void {
    if (header.baseOffset >= from.segments) {
      const counted = countedOf(header, batch.length);
      if (this.active.isFullFor(counted, config, appendedMs)) {
        this.roll(header.baseOffset, appendedMs);
      }
      this.active.countBatch(counted, appendedMs);
    }
    this.epochs.assign(header.partitionLeaderEpoch, header.baseOffset);
    if (header.baseOffset >= from.producers) {
      const aborted = this.producers.apply(storedOf(header, batch), appendedMs);
      if (aborted !== null && header.baseOffset >= from.segments) this.aborted.add(aborted);
    }
    if (header.baseOffset >= from.requests) this.#learnRequest(header, batch, appendedMs);
    if (header.baseOffset >= from.writers) this.#learnStep(header, batch);
  }

  #learnStep(header: BatchHeader, batch: Uint8Array): void {
    if (!isStepBatch(header) || this.#codecs === null) return;
    const step = readStep(batch, this.#codecs);
    if (step !== null) this.writers.apply(step, header);
  }

  #learnRequest(header: BatchHeader, batch: Uint8Array, appendedMs: number): void {
    if (!isRequestBatch(header) || this.#codecs === null) return;
    const part = readPart(batch, this.#codecs);
    if (part !== null) this.requests.apply(part, header, appendedMs);
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
    this.aborted.trim(this.segments[0]!.baseOffset);
  }

  raiseLogStart(offset: Offset): void {
    if (offset <= this.#logStartOffset) return;
    this.#logStartOffset = offset;
    this.epochs.truncateFromStart(offset);
  }
}
