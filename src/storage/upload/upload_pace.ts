/**
 * How fast objects are written. An upload as fast as it can go would take the line from the WAL, whose
 * writes somebody waits for; one that is slower than producers would fill the log cache. So a block is
 * written twice as fast as it was filled, and at once when somebody waits for it or room gets short.
 */
import { type Clock, sleep } from "../../env/clock.ts";
import { UPLOAD_PACED_MS_MIN, UPLOAD_SPREAD_MS_MAX } from "../../lib/limits.ts";

/** Above one, so that the pipeline keeps up with producers that go on as they did. */
const FASTER_THAN_FILLED = 2;

export class UploadPace {
  readonly #clock: Clock;
  readonly #limit: number | null;
  #bytesPerSecond = 0;
  /** When what was granted so far is written at that rate. */
  #freeAtMs = 0;
  #burst = new AbortController();

  /** `bytesPerSecond` replaces the rate of filling. */
  constructor(clock: Clock, bytesPerSecond: number | null) {
    this.#clock = clock;
    this.#limit = bytesPerSecond;
    this.reset();
  }

  /** A block is to be uploaded. The fastest one sets the rate until all are. */
  add(bytes: number, filledInMs: number): void {
    const rate = filledInMs <= UPLOAD_PACED_MS_MIN
      ? Infinity
      : FASTER_THAN_FILLED * bytes * 1_000 / Math.min(UPLOAD_SPREAD_MS_MAX, filledInMs);
    this.#bytesPerSecond = this.#limit ?? Math.max(this.#bytesPerSecond, rate);
  }

  get isHurried(): boolean {
    return this.#burst.signal.aborted;
  }

  /** Until `reset` nobody waits any more. */
  hurry(): void {
    this.#burst.abort();
  }

  /** Nothing is being uploaded. */
  reset(): void {
    this.#bytesPerSecond = 0;
    if (this.#burst.signal.aborted) this.#burst = new AbortController();
  }

  /** Resolves when it is the turn of the next bytes: after the time that those before them may take. */
  async wait(bytes: number): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const startMs = Math.max(nowMs, this.#freeAtMs);
    this.#freeAtMs = startMs + bytes * 1_000 / this.#bytesPerSecond;
    if (startMs <= nowMs) return;
    const { signal } = this.#burst;
    await sleep(this.#clock, startMs - nowMs, signal);
    // What was granted ahead of time is not waited for again.
    if (signal.aborted) this.#freeAtMs = Math.min(this.#freeAtMs, this.#clock.monotonicMs());
  }
}
