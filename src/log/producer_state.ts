/**
 * What a partition knows of its idempotent producers: the last five batches of each, its epoch, when it last
 * appended and where its open transaction began. `admit` judges a client's batch and `admitMarker` a
 * coordinator's marker; `apply` learns from the log and never refuses, since what is in the log is true by
 * definition (KIP-98; replay with admission checks is Fluss issue 1386).
 */
import type { Offset } from "../lib/brand.ts";
import {
  CLOCK_JUMP_MS_MIN,
  OPEN_TRANSACTIONS_MAX,
  PRODUCERS_PER_PARTITION_MAX,
  REFUSED_SEQUENCE_MS,
  REFUSED_SEQUENCES_MAX,
} from "../lib/limits.ts";
import type { EndMarker } from "../protocol/control_record.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import { type EndedTransaction, OpenTransactions } from "./open_transactions.ts";
import type { TransactionMarker, Verification, VerificationAsk } from "./partition_log.ts";
import { extended, marked } from "./producer_change.ts";
import { isAfter, SEQUENCE_MAX, sequenceAfter, SEQUENCES } from "./sequence.ts";
import { Verifications } from "./verifications.ts";

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
  /** Of the last batch or marker, as it says itself. */
  readonly lastTimestampMs: number;
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
}

export interface StoredBatch extends SequencedBatch {
  readonly isControl: boolean;
  /** Of a control batch; null for data, and for control records of other types. */
  readonly marker: EndMarker | null;
  readonly baseOffset: Offset;
  readonly maxTimestamp: number;
}

interface Refusal {
  readonly kind: "refuse";
  readonly error: ErrorName;
  readonly message: string;
}

export type Admission =
  | { readonly kind: "accept" }
  | { readonly kind: "duplicate"; readonly baseOffset: Offset; readonly batch: ProducerBatch }
  | Refusal;

/** `repeat`: the log ends with the same marker as far as this producer goes; nothing is to be written. */
export type MarkerAdmission = { readonly kind: "accept" | "repeat" } | Refusal;

interface RefusedSequence {
  readonly epoch: number;
  readonly sequence: number;
  readonly monotonicMs: number;
}

const ACCEPT = { kind: "accept" } as const;

export function firstSequence(batch: ProducerBatch): number {
  return (batch.lastSequence - batch.offsetDelta + SEQUENCES) % SEQUENCES;
}

function refuse(error: ErrorName, message: string): Refusal {
  return { kind: "refuse", error, message };
}

function outOfOrder(message: string): Refusal {
  return refuse("OUT_OF_ORDER_SEQUENCE_NUMBER", message);
}

export class ProducerState {
  /** Ordered by last change, oldest first. */
  readonly #entries = new Map<number, ProducerEntry>();
  readonly #refused = new Map<number, RefusedSequence>();
  readonly #transactions = new OpenTransactions();
  readonly #verifications = new Verifications();
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

  /** All of them, or the one with an id. */
  entries(producerId?: number): Iterable<ProducerEntry> {
    if (producerId === undefined) return this.#entries.values();
    return [this.get(producerId)].filter((entry) => entry !== undefined);
  }

  /** Sets all that is known; from a snapshot. */
  load(entries: readonly ProducerEntry[]): void {
    for (const entry of entries) this.#put(entry);
    this.#transactions.load(
      entries.flatMap(({ producerId, currentTxnFirstOffset }) =>
        currentTxnFirstOffset === null ? [] : [{ producerId, firstOffset: currentTxnFirstOffset }]
      ),
    );
  }

  /** The lowest offset whose transaction is not settled below the high watermark; null for none. */
  firstUnstable(highWatermark: Offset): Offset | null {
    return this.#transactions.firstUnstable(highWatermark);
  }

  /** Null when the batch needs none, or would be refused with any. */
  verify(ask: VerificationAsk, monotonicMs: number): Verification | null {
    const entry = this.#entries.get(ask.producerId);
    const isOld = entry !== undefined && ask.producerEpoch < entry.epoch;
    if (ask.producerId < 0 || isOld || isOpen(entry, ask.producerEpoch)) return null;
    return this.#verifications.begin(ask, monotonicMs);
  }

  admit(batch: SequencedBatch, monotonicMs: number, verification?: Verification): Admission {
    if (batch.producerId < 0) return ACCEPT;
    const entry = this.#entries.get(batch.producerId);
    const duplicate = entry === undefined ? undefined : findDuplicate(entry, batch);
    if (duplicate !== undefined) {
      const baseOffset = duplicate.lastOffset - duplicate.offsetDelta;
      return { kind: "duplicate", baseOffset, batch: duplicate };
    }
    if (entry !== undefined && batch.producerEpoch < entry.epoch) {
      return oldEpoch(batch.producerEpoch, entry.epoch);
    }
    const unverified = this.#checkTransaction(batch, entry, verification);
    if (unverified !== null) return unverified;
    const isKnown = entry !== undefined;
    const { producerId, baseSequence } = batch;
    const waits = this.#verifications.orderProblem(producerId, baseSequence, isKnown);
    if (waits !== null) return outOfOrder(waits);
    return isKnown ? admitKnown(entry, batch) : this.#admitUnknown(batch, monotonicMs);
  }

  /** Only the coordinator opens transactions; one that is open here was verified when it began. */
  #checkTransaction(
    batch: SequencedBatch,
    entry: ProducerEntry | undefined,
    verification: Verification | undefined,
  ): Refusal | null {
    if (!batch.isTransactional || isOpen(entry, batch.producerEpoch)) return null;
    const isVerified = verification?.producerId === batch.producerId &&
      this.#verifications.holds(verification);
    if (!isVerified) {
      return refuse("INVALID_TXN_STATE", "The partition was not added to a transaction");
    }
    // The entries of open transactions are never dropped, so their number has to be bounded here.
    return this.#transactions.size < OPEN_TRANSACTIONS_MAX
      ? null
      : refuse("NOT_ENOUGH_REPLICAS", "Too many transactions are open in this partition");
  }

  admitMarker(marker: TransactionMarker): MarkerAdmission {
    const { producerEpoch, coordinatorEpoch, isTransactionsV2 } = marker;
    const entry = this.#entries.get(marker.producerId);
    if (entry === undefined) return ACCEPT;
    if (producerEpoch < entry.epoch) return oldEpoch(producerEpoch, entry.epoch);
    // Every end raises the epoch there: with this one something was appended after that end (KIP-1228).
    const isSame = isTransactionsV2 && producerEpoch === entry.epoch;
    if (isSame && (entry.batches.length > 0 || entry.currentTxnFirstOffset !== null)) {
      return oldEpoch(producerEpoch, entry.epoch + 1);
    }
    if (coordinatorEpoch < entry.coordinatorEpoch) {
      const message = `coordinator epoch ${coordinatorEpoch} is older than ` +
        `${entry.coordinatorEpoch}`;
      return refuse("TRANSACTION_COORDINATOR_FENCED", message);
    }
    return isSame ? { kind: "repeat" } : ACCEPT;
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

  /** Returns the transaction that the batch aborts, if any. */
  apply(batch: StoredBatch, appendedMs: number): EndedTransaction | null {
    const { producerId } = batch;
    // Control records of other types say nothing of a producer.
    if (producerId < 0 || (batch.isControl && batch.marker === null)) return null;
    const earlier = this.#entries.get(producerId);
    if (isOdd(earlier, batch)) this.#oddities++;
    this.#refused.delete(producerId);
    if (batch.isTransactional) this.#verifications.end(producerId);
    const { marker } = batch;
    if (marker !== null) {
      this.#put(marked(earlier, batch, marker, appendedMs));
      const ended = this.#transactions.end(producerId, batch.baseOffset + batch.lastOffsetDelta);
      return marker.commit ? null : ended;
    }
    const entry = extended(earlier, batch, appendedMs);
    this.#put(entry);
    if (entry.currentTxnFirstOffset !== null) {
      this.#transactions.begin(producerId, entry.currentTxnFirstOffset);
    }
    return null;
  }

  #put(entry: ProducerEntry): void {
    this.#entries.delete(entry.producerId);
    this.#entries.set(entry.producerId, entry);
    if (this.#entries.size > PRODUCERS_PER_PARTITION_MAX) this.#forgetOldest();
  }

  expireVerifications(monotonicMs: number, expirationMs: number): void {
    this.#verifications.expire(monotonicMs, expirationMs);
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

function isOpen(entry: ProducerEntry | undefined, producerEpoch: number): boolean {
  return entry !== undefined && entry.currentTxnFirstOffset !== null &&
    entry.epoch === producerEpoch;
}

function oldEpoch(epoch: number, lowest: number): Refusal {
  return refuse("INVALID_PRODUCER_EPOCH", `producer epoch ${epoch} is older than ${lowest}`);
}

/** What no live path would have let in. */
function isOdd(earlier: ProducerEntry | undefined, batch: StoredBatch): boolean {
  if (earlier === undefined) return false;
  return batch.producerEpoch < earlier.epoch ||
    (batch.marker !== null && batch.marker.coordinatorEpoch < earlier.coordinatorEpoch);
}

function admitKnown(entry: ProducerEntry, batch: SequencedBatch): Admission {
  const last = batch.producerEpoch > entry.epoch ? undefined : entry.batches.at(-1);
  const expected = last === undefined || last.lastSequence === SEQUENCE_MAX
    ? 0
    : last.lastSequence + 1;
  if (batch.baseSequence !== expected) {
    return outOfOrder(`expected sequence ${expected}, got ${batch.baseSequence}`);
  }
  if (!batch.isTransactional && entry.currentTxnFirstOffset !== null) {
    return refuse("INVALID_TXN_STATE", "the producer has an open transaction in this partition");
  }
  return ACCEPT;
}

function dropOldest<K, V>(map: Map<K, V>, sizeMax: number): void {
  for (const key of map.keys()) {
    if (map.size <= sizeMax) return;
    map.delete(key);
  }
}
