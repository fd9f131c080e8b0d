/**
 * Compaction's own share of the store: few requests at once and so many bytes per second. The rate follows
 * the uploads, so that a fast node does not fall behind; while somebody waits for one of them, reads pause.
 */
import type { Clock } from "../../env/clock.ts";
import { sleep } from "../../env/clock.ts";
import {
  COMPACTION_READS_MAX,
  COMPACTION_WRITES_MAX,
  COMPACTION_YIELD_MS,
  COMPACTION_YIELDS_MAX,
} from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import type { UploadLoad } from "../storage.ts";
import { throwIfStopped } from "../upload/retry.ts";
import { ReadRate } from "./read_rate.ts";

const NO_LOAD: UploadLoad = { bytes: 0, isHurried: false };

export class CompactionBudget {
  readonly #clock: Clock;
  readonly #load: () => UploadLoad;
  readonly #rate: ReadRate;
  readonly #reads = new Semaphore(COMPACTION_READS_MAX);
  readonly #writes = new Semaphore(COMPACTION_WRITES_MAX);
  /** When the bytes that were promised so far are paid. */
  #paidAtMs = 0;

  constructor(clock: Clock, bytesPerSecond: number, load: () => UploadLoad = () => NO_LOAD) {
    this.#clock = clock;
    this.#load = load;
    this.#rate = new ReadRate(bytesPerSecond / 1_000, clock.monotonicMs(), load().bytes);
  }

  /** The bytes are paid after the read that took them: a pause never grows with one request's size. */
  async read<T>(bytes: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#reads.acquire(1, signal);
    try {
      await this.#yield(signal);
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

  async #yield(signal: AbortSignal): Promise<void> {
    for (let i = 0; i < COMPACTION_YIELDS_MAX && this.#load().isHurried; i++) {
      if (signal.aborted) return;
      await sleep(this.#clock, COMPACTION_YIELD_MS, signal);
    }
  }

  /** How long to wait before these bytes are read. */
  #reserve(bytes: number): number {
    const nowMs = this.#clock.monotonicMs();
    const fromMs = Math.max(nowMs, this.#paidAtMs);
    this.#paidAtMs = fromMs + bytes / this.#rate.bytesPerMs(nowMs, this.#load().bytes);
    return fromMs - nowMs;
  }
}
