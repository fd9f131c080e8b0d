/**
 * When a second, identical PUT of a slow bulk is worth sending. Pure. Where PUTs cost money it never is; on a
 * store whose usual answer takes milliseconds it cuts the tail of a stuck connection. A store that is slow
 * for everybody must not get twice the load: hedges are a small share of the PUTs.
 */
import {
  WAL_HEDGE_BYTES_MAX,
  WAL_HEDGE_DELAY_MS_MIN,
  WAL_HEDGE_SAMPLES,
  WAL_HEDGE_SAMPLES_MIN,
} from "../../lib/limits.ts";

/** Share of the PUTs that may be hedged, and how many a quiet time saves up. */
const HEDGES_PER_PUT = 0.1;
const HEDGES_SAVED_MAX = 4;
/** A PUT is slow when it takes this many times the usual. */
const SLOW_FACTOR = 2;

export class HedgePace {
  /** Times of the latest small PUTs, a ring. */
  readonly #samples: number[] = [];
  #at = 0;
  #saved = 1;

  /** Time after which the PUT of a body is slow; null when it is not to be hedged. */
  delayMs(bodyBytes: number): number | null {
    if (bodyBytes > WAL_HEDGE_BYTES_MAX || this.#samples.length < WAL_HEDGE_SAMPLES_MIN) {
      return null;
    }
    const sorted = this.#samples.toSorted((a, b) => a - b);
    const median = sorted[sorted.length >> 1]!;
    return Math.max(WAL_HEDGE_DELAY_MS_MIN, SLOW_FACTOR * median);
  }

  /** Whether one more hedge fits the share; counts it. */
  take(): boolean {
    if (this.#saved < 1) return false;
    this.#saved -= 1;
    return true;
  }

  /** A PUT got its answer. Large ones say nothing about small ones. */
  observe(bodyBytes: number, tookMs: number): void {
    if (bodyBytes > WAL_HEDGE_BYTES_MAX) return;
    this.#samples[this.#at] = tookMs;
    this.#at = (this.#at + 1) % WAL_HEDGE_SAMPLES;
    this.#saved = Math.min(HEDGES_SAVED_MAX, this.#saved + HEDGES_PER_PUT);
  }
}
