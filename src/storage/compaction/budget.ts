/**
 * Compaction's own share of the store: few requests at once and so many bytes per second. Produce and
 * fetch have the rest for themselves, whatever the backlog is.
 */
import type { Clock } from "../../env/clock.ts";
import { sleep } from "../../env/clock.ts";
import { COMPACTION_READS_MAX, COMPACTION_WRITES_MAX } from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import { throwIfStopped } from "../upload/retry.ts";

export class CompactionBudget {
  readonly #clock: Clock;
  readonly #bytesPerMs: number;
  readonly #reads = new Semaphore(COMPACTION_READS_MAX);
  readonly #writes = new Semaphore(COMPACTION_WRITES_MAX);
  /** When the bytes that were promised so far are paid. */
  #paidAtMs = 0;

  constructor(clock: Clock, bytesPerSecond: number) {
    this.#clock = clock;
    this.#bytesPerMs = bytesPerSecond / 1_000;
  }

  /** The bytes are paid after the read that took them: a pause never grows with one request's size. */
  async read<T>(bytes: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#reads.acquire(1, signal);
    try {
      const waitMs = this.#reserve(bytes);
      if (waitMs > 0) await sleep(this.#clock, waitMs, signal);
      throwIfStopped(signal);
      return await work();
    } finally {
      this.#reads.release();
    }
  }

  async write<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#writes.acquire(1, signal);
    try {
      throwIfStopped(signal);
      return await work();
    } finally {
      this.#writes.release();
    }
  }

  /** How long to wait before these bytes are read. */
  #reserve(bytes: number): number {
    const nowMs = this.#clock.monotonicMs();
    const fromMs = Math.max(nowMs, this.#paidAtMs);
    this.#paidAtMs = fromMs + bytes / this.#bytesPerMs;
    return fromMs - nowMs;
  }
}
