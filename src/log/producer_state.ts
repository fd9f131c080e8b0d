/**
 * What a partition knows of its idempotent producers: the last five batches of each, its epoch and when
 * it last appended. `admit` judges a client's batch; `apply` learns from the log and never refuses, since
 * what is in the log is true by definition (KIP-98; replay with admission checks is Fluss issue 1386).
 */
import type { Offset } from "../lib/brand.ts";
import {
  CLOCK_JUMP_MS_MIN,
  PRODUCER_BATCHES_MAX,
  PRODUCERS_PER_PARTITION_MAX,
  REFUSED_SEQUENCE_MS,
  REFUSED_SEQUENCES_MAX,
} from "../lib/limits.ts";
import type { ErrorName } from "../protocol/error_code.ts";

const SEQUENCE_MAX = 2 ** 31 - 1;
const SEQUENCES = 2 ** 31;

export interface ProducerBatch {
  readonly lastSequence: number;
  readonly lastOffset: Offset;
  /** Offsets, and so sequences, between the first and the last record. */
  readonly offsetDelta: number;
  readonly timestampMs: number;
}

export interface ProducerEntry {
  readonly producerId: number;
  readonly epoch: number;
  /** Oldest first; empty when only a marker is known. */
  readonly batches: readonly ProducerBatch[];
  /** By our clock; expiry counts from here, never from a client's timestamp. */
  readonly appendedMs: number;
  readonly coordinatorEpoch: number;
  readonly currentTxnFirstOffset: Offset | null;
}

/** The fields of a batch header that matter here. */
export interface SequencedBatch {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  readonly lastOffsetDelta: number;
  readonly isTransactional: boolean;
  readonly isControl: boolean;
}

export interface StoredBatch extends SequencedBatch {
  readonly baseOffset: Offset;
  readonly maxTimestamp: number;
}

export type Admission =
  | { readonly kind: "accept" }
  | { readonly kind: "duplicate"; readonly baseOffset: Offset; readonly batch: ProducerBatch }
  | { readonly kind: "refuse"; readonly error: ErrorName; readonly message: string };

interface RefusedSequence {
  readonly epoch: number;
  readonly sequence: number;
  readonly monotonicMs: number;
}

const ACCEPT: Admission = { kind: "accept" };

/** Sequences run 0..2^31-1 and start again at 0. */
export function sequenceAfter(sequence: number, steps: number): number {
  return (sequence + steps) % SEQUENCES;
}

export function firstSequence(batch: ProducerBatch): number {
  return (batch.lastSequence - batch.offsetDelta + SEQUENCES) % SEQUENCES;
}

/** Half of the circle lies ahead, half behind. */
export function isAfter(sequence: number, other: number): boolean {
  const ahead = (sequence - other + SEQUENCES) % SEQUENCES;
  return ahead > 0 && ahead < SEQUENCES / 2;
}

function outOfOrder(message: string): Admission {
  return { kind: "refuse", error: "OUT_OF_ORDER_SEQUENCE_NUMBER", message };
}

export class ProducerState {
  /** Ordered by last change, oldest first. */
  readonly #entries = new Map<number, ProducerEntry>();
  readonly #refused = new Map<number, RefusedSequence>();
  #oddities = 0;
  /** Both clocks at the last look. */
  #looked: { readonly nowMs: number; readonly monotonicMs: number } | null = null;

  get size(): number {
    return this.#entries.size;
  }
  /** Batches in the log that no client path would have let in; for logs and metrics. */
  get oddities(): number {
    return this.#oddities;
  }

  get(producerId: number): ProducerEntry | undefined {
    return this.#entries.get(producerId);
  }

  entries(): IterableIterator<ProducerEntry> {
    return this.#entries.values();
  }

  admit(batch: SequencedBatch, monotonicMs: number): Admission {
    if (batch.producerId < 0) return ACCEPT;
    const entry = this.#entries.get(batch.producerId);
    if (entry === undefined) return this.#admitUnknown(batch, monotonicMs);
    const duplicate = findDuplicate(entry, batch);
    if (duplicate !== undefined) {
      const baseOffset = duplicate.lastOffset - duplicate.offsetDelta;
      return { kind: "duplicate", baseOffset, batch: duplicate };
    }
    return admitKnown(entry, batch);
  }

  /** No state means accept, whatever the sequence; only a refusal of ours makes a later one wait. */
  #admitUnknown(batch: SequencedBatch, monotonicMs: number): Admission {
    const refused = this.#refused.get(batch.producerId);
    if (refused === undefined || refused.epoch !== batch.producerEpoch) return ACCEPT;
    if (monotonicMs - refused.monotonicMs >= REFUSED_SEQUENCE_MS) {
      this.#refused.delete(batch.producerId);
      return ACCEPT;
    }
    if (!isAfter(batch.baseSequence, refused.sequence)) return ACCEPT;
    return outOfOrder(`sequence ${refused.sequence} was refused before and is still missing`);
  }

  /** Remembers a refusal that the client will retry, so that later batches in flight cannot pass it. */
  refuse(batch: SequencedBatch, monotonicMs: number): void {
    if (batch.producerId < 0 || batch.baseSequence < 0) return;
    const earlier = this.#refused.get(batch.producerId);
    const holds = earlier !== undefined &&
      monotonicMs - earlier.monotonicMs < REFUSED_SEQUENCE_MS &&
      (earlier.epoch > batch.producerEpoch ||
        earlier.epoch === batch.producerEpoch && isAfter(batch.baseSequence, earlier.sequence));
    if (holds) return;
    this.#refused.delete(batch.producerId);
    this.#refused.set(batch.producerId, {
      epoch: batch.producerEpoch,
      sequence: batch.baseSequence,
      monotonicMs,
    });
    dropOldest(this.#refused, REFUSED_SEQUENCES_MAX);
  }

  apply(batch: StoredBatch, appendedMs: number): void {
    if (batch.producerId < 0) return;
    const earlier = this.#entries.get(batch.producerId);
    if (earlier !== undefined && batch.producerEpoch < earlier.epoch) this.#oddities++;
    this.#refused.delete(batch.producerId);
    this.put(
      batch.isControl ? marked(earlier, batch, appendedMs) : extended(earlier, batch, appendedMs),
    );
  }

  /** Sets a producer's entry; from a snapshot. */
  put(entry: ProducerEntry): void {
    this.#entries.delete(entry.producerId);
    this.#entries.set(entry.producerId, entry);
    if (this.#entries.size > PRODUCERS_PER_PARTITION_MAX) this.#forgetOldest();
  }

  /** Drops producers without an append for so long; open transactions stay. Returns how many went. */
  expire(nowMs: number, expirationMs: number): number {
    const before = this.#entries.size;
    for (const entry of this.#entries.values()) {
      if (isExpired(entry, nowMs, expirationMs)) this.#entries.delete(entry.producerId);
    }
    return before - this.#entries.size;
  }

  /**
   * A wall clock that jumps (set late after a start, or wrongly) makes nobody idle: append times move forward
   * with it, and none stays in the future.
   */
  followClock(nowMs: number, monotonicMs: number): void {
    const last = this.#looked;
    this.#looked = { nowMs, monotonicMs };
    if (last === null) return;
    // Whole, as append times are: a monotonic clock counts fractions.
    const jumpMs = Math.floor(nowMs - last.nowMs - (monotonicMs - last.monotonicMs));
    if (Math.abs(jumpMs) >= CLOCK_JUMP_MS_MIN) this.#shift(Math.max(0, jumpMs), nowMs);
  }

  /**
   * After a restore: idle time ends with the log's last append, since nobody could append while it was closed, and
   * a clock that jumped meanwhile looks the same. A log that was left for longer than the expiration starts anew.
   */
  settle(nowMs: number, lastAppendMs: number, expirationMs: number): void {
    let newestMs = lastAppendMs;
    for (const { appendedMs } of this.#entries.values()) newestMs = Math.max(newestMs, appendedMs);
    const isLeft = nowMs - newestMs >= expirationMs;
    this.expire(Math.min(nowMs, newestMs), expirationMs);
    this.#shift(isLeft ? nowMs - newestMs : 0, nowMs);
  }

  #shift(byMs: number, nowMs: number): void {
    for (const [producerId, entry] of this.#entries) {
      const appendedMs = Math.min(nowMs, entry.appendedMs + byMs);
      if (appendedMs !== entry.appendedMs) this.#entries.set(producerId, { ...entry, appendedMs });
    }
  }

  #forgetOldest(): void {
    for (const { producerId, currentTxnFirstOffset } of this.#entries.values()) {
      if (currentTxnFirstOffset !== null) continue;
      this.#entries.delete(producerId);
      return;
    }
  }
}

function isExpired(entry: ProducerEntry, nowMs: number, expirationMs: number): boolean {
  return entry.currentTxnFirstOffset === null && nowMs - entry.appendedMs >= expirationMs;
}

function findDuplicate(entry: ProducerEntry, batch: SequencedBatch): ProducerBatch | undefined {
  if (entry.epoch !== batch.producerEpoch) return undefined;
  const last = sequenceAfter(batch.baseSequence, batch.lastOffsetDelta);
  return entry.batches.find((stored) =>
    stored.lastSequence === last && stored.offsetDelta === batch.lastOffsetDelta
  );
}

function admitKnown(entry: ProducerEntry, batch: SequencedBatch): Admission {
  if (batch.producerEpoch < entry.epoch) {
    const message = `producer epoch ${batch.producerEpoch} is older than ${entry.epoch}`;
    return { kind: "refuse", error: "INVALID_PRODUCER_EPOCH", message };
  }
  const last = batch.producerEpoch > entry.epoch ? undefined : entry.batches.at(-1);
  const expected = last === undefined || last.lastSequence === SEQUENCE_MAX
    ? 0
    : last.lastSequence + 1;
  if (batch.baseSequence !== expected) {
    return outOfOrder(`expected sequence ${expected}, got ${batch.baseSequence}`);
  }
  if (!batch.isTransactional && entry.currentTxnFirstOffset !== null) {
    const message = "the producer has an open transaction in this partition";
    return { kind: "refuse", error: "INVALID_TXN_STATE", message };
  }
  return ACCEPT;
}

/** A marker ends the transaction and may raise the epoch; it carries no sequence. */
function marked(
  earlier: ProducerEntry | undefined,
  batch: StoredBatch,
  appendedMs: number,
): ProducerEntry {
  return {
    producerId: batch.producerId,
    epoch: batch.producerEpoch,
    batches: earlier?.epoch === batch.producerEpoch ? earlier.batches : [],
    appendedMs: Math.max(appendedMs, earlier?.appendedMs ?? appendedMs),
    coordinatorEpoch: earlier?.coordinatorEpoch ?? -1,
    currentTxnFirstOffset: null,
  };
}

function extended(
  earlier: ProducerEntry | undefined,
  batch: StoredBatch,
  appendedMs: number,
): ProducerEntry {
  const known = earlier?.epoch === batch.producerEpoch ? earlier.batches : [];
  const added: ProducerBatch[] = batch.baseSequence < 0 ? [] : [{
    lastSequence: sequenceAfter(batch.baseSequence, batch.lastOffsetDelta),
    lastOffset: batch.baseOffset + batch.lastOffsetDelta,
    offsetDelta: batch.lastOffsetDelta,
    timestampMs: batch.maxTimestamp,
  }];
  const txnStart = earlier?.currentTxnFirstOffset ?? null;
  return {
    producerId: batch.producerId,
    epoch: batch.producerEpoch,
    batches: [...known, ...added].slice(-PRODUCER_BATCHES_MAX),
    appendedMs: Math.max(appendedMs, earlier?.appendedMs ?? appendedMs),
    coordinatorEpoch: earlier?.coordinatorEpoch ?? -1,
    currentTxnFirstOffset: batch.isTransactional ? txnStart ?? batch.baseOffset : txnStart,
  };
}

function dropOldest<K, V>(map: Map<K, V>, sizeMax: number): void {
  for (const key of map.keys()) {
    if (map.size <= sizeMax) return;
    map.delete(key);
  }
}
