/**
 * Producers about to open a transaction here while the coordinator is asked whether it may (KIP-890). What
 * was handed out counts by identity: a marker, or the batch that opens the transaction, ends it, so an
 * answer that was on its way meanwhile opens nothing. Never stored.
 */
import { VERIFICATIONS_MAX } from "../lib/limits.ts";
import type { Verification, VerificationAsk } from "./partition_log.ts";
import { isAfter } from "./sequence.ts";

interface Entry {
  readonly verification: Verification;
  epoch: number;
  lowestSequence: number;
  readonly isTransactionsV2: boolean;
  readonly monotonicMs: number;
}

export class Verifications {
  /** Oldest first. */
  readonly #entries = new Map<number, Entry>();

  /** All that a producer asks before its transaction is open share one. */
  begin(ask: VerificationAsk, monotonicMs: number): Verification {
    const { producerId, producerEpoch, baseSequence, isTransactionsV2 } = ask;
    const entry = this.#entries.get(producerId);
    if (entry !== undefined) {
      noteLowest(entry, ask);
      return entry.verification;
    }
    const verification = { producerId, producerEpoch };
    this.#entries.set(producerId, {
      verification,
      epoch: producerEpoch,
      lowestSequence: baseSequence,
      isTransactionsV2,
      monotonicMs,
    });
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= VERIFICATIONS_MAX) break;
      this.#entries.delete(key);
    }
    return verification;
  }

  holds(verification: Verification | undefined): boolean {
    return verification !== undefined &&
      this.#entries.get(verification.producerId)?.verification === verification;
  }

  /** Why a sequence has to wait for an earlier one of the same producer, or null. */
  orderProblem(producerId: number, baseSequence: number, isKnown: boolean): string | null {
    const entry = this.#entries.get(producerId);
    if (entry === undefined) return null;
    if (entry.isTransactionsV2 && !isKnown && baseSequence !== 0) {
      return `expected sequence 0 of a producer without state, got ${baseSequence}`;
    }
    return isAfter(baseSequence, entry.lowestSequence)
      ? `sequence ${entry.lowestSequence} asked for its transaction first and is still missing`
      : null;
  }

  end(producerId: number): void {
    this.#entries.delete(producerId);
  }

  expire(monotonicMs: number, expirationMs: number): void {
    for (const [producerId, entry] of this.#entries) {
      if (monotonicMs - entry.monotonicMs < expirationMs) return;
      this.#entries.delete(producerId);
    }
  }
}

/** A higher epoch begins anew: what lower ones asked for will never come. */
function noteLowest(entry: Entry, { producerEpoch, baseSequence }: VerificationAsk): void {
  const isNewer = producerEpoch > entry.epoch;
  const isEarlier = producerEpoch === entry.epoch && isAfter(entry.lowestSequence, baseSequence);
  if (!isNewer && !isEarlier) return;
  entry.epoch = producerEpoch;
  entry.lowestSequence = baseSequence;
}
