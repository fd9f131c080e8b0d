/**
 * Sequences of idempotent producers that were refused because their log could not be opened. A log that is
 * not open cannot remember them itself, and once it opens it takes any first sequence of a producer that it
 * does not know: a later batch in flight would pass the refused one, which could then never get in.
 */
import type { Clock } from "../env/clock.ts";
import { DecodeError } from "../lib/bytes.ts";
import { REFUSED_SEQUENCE_MS, REFUSED_SEQUENCES_MAX } from "../lib/limits.ts";
import type { Uuid } from "../lib/uuid.ts";
import { isAfter } from "../log/sequence.ts";
import { readBatchHeader } from "../protocol/record_batch.ts";

interface Refused {
  readonly epoch: number;
  readonly sequence: number;
  readonly monotonicMs: number;
}

/** Null for a batch without a sequence, or one that does not parse: the log judges it. */
function sequenceOf(batch: Uint8Array) {
  try {
    const { producerId, producerEpoch, baseSequence } = readBatchHeader(batch);
    return producerId < 0 || baseSequence < 0 ? null : { producerId, producerEpoch, baseSequence };
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

export class RefusedSequences {
  readonly #clock: Clock;
  /** Oldest first; the oldest are forgotten beyond the bound. */
  readonly #refused = new Map<string, Refused>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(topicId: Uuid, partition: number, batch: Uint8Array): void {
    const found = sequenceOf(batch);
    if (found === null) return;
    const { producerId, producerEpoch: epoch, baseSequence: sequence } = found;
    const key = `${topicId}/${partition}/${producerId}`;
    const earlier = this.#current(key);
    // What an older epoch sends late must not take the guard of the live producer away.
    if (earlier !== null && earlier.epoch > epoch) return;
    if (earlier?.epoch === epoch && isAfter(sequence, earlier.sequence)) return;
    this.#refused.delete(key);
    this.#refused.set(key, { epoch, sequence, monotonicMs: this.#clock.monotonicMs() });
    for (const oldest of this.#refused.keys()) {
      if (this.#refused.size <= REFUSED_SEQUENCES_MAX) break;
      this.#refused.delete(oldest);
    }
  }

  /** The refused sequence that must come before this batch; null when the batch may go to the log. */
  missingBefore(topicId: Uuid, partition: number, batch: Uint8Array): number | null {
    if (this.#refused.size === 0) return null;
    const found = sequenceOf(batch);
    if (found === null) return null;
    const key = `${topicId}/${partition}/${found.producerId}`;
    const refused = this.#current(key);
    if (refused?.epoch !== found.producerEpoch) return null;
    if (isAfter(found.baseSequence, refused.sequence)) return refused.sequence;
    this.#refused.delete(key);
    return null;
  }

  #current(key: string): Refused | null {
    const refused = this.#refused.get(key);
    if (refused === undefined) return null;
    return this.#clock.monotonicMs() - refused.monotonicMs < REFUSED_SEQUENCE_MS ? refused : null;
  }
}
