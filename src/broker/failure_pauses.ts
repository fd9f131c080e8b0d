/**
 * Work that failed is not tried again at once: until its pause is over the same failure is the answer, so
 * that what cannot be opened costs a request of the store now and then instead of one per client's retry.
 */
import type { Clock } from "../env/clock.ts";
import { isFault } from "../lib/errors.ts";
import {
  FAILED_WORK_SHARE,
  REOPEN_FIRST_MS,
  REOPEN_LASTING_CAP_MS,
  REOPEN_PASSING_CAP_MS,
} from "../lib/limits.ts";

interface Failure<A> {
  readonly error: unknown;
  readonly about: A;
  readonly pauseMs: number;
  /** Monotonic. */
  readonly untilMs: number;
}

/** One entry per key whose last try failed, and what the owner knows about it; it forgets what is gone. */
export class FailurePauses<K, A> {
  readonly #clock: Clock;
  readonly #lastingCapMs: number;
  readonly #failures = new Map<K, Failure<A>>();

  constructor(clock: Clock, lastingCapMs = REOPEN_LASTING_CAP_MS) {
    this.#clock = clock;
    this.#lastingCapMs = lastingCapMs;
  }

  /** A fault that may pass is tried again within seconds, so that nobody waits long for a store that is back. */
  #longestPauseMs(error: unknown): number {
    return isFault(error) && error.retriable ? REOPEN_PASSING_CAP_MS : this.#lastingCapMs;
  }

  get size(): number {
    return this.#failures.size;
  }

  /** Throws the last failure while its pause lasts. */
  check(key: K): void {
    const failure = this.#failures.get(key);
    if (failure !== undefined && this.#clock.monotonicMs() < failure.untilMs) throw failure.error;
  }

  /** Begins the next pause; returns its length. What worked for long before it failed pauses for longer. */
  failed(key: K, error: unknown, about: A, workedMs = 0): number {
    const last = this.#failures.get(key)?.pauseMs;
    const next = last === undefined ? REOPEN_FIRST_MS : 2 * last;
    const pauseMs = Math.min(
      Math.max(Math.min(next, this.#longestPauseMs(error)), FAILED_WORK_SHARE * workedMs),
      this.#lastingCapMs,
    );
    const untilMs = this.#clock.monotonicMs() + pauseMs;
    this.#failures.set(key, { error, about, pauseMs, untilMs });
    return pauseMs;
  }

  forget(key: K): void {
    this.#failures.delete(key);
  }

  forgetWhere(isGone: (about: A, key: K) => boolean): void {
    for (const [key, { about }] of this.#failures) if (isGone(about, key)) this.forget(key);
  }
}
