/** The polls of a node: how much they look at at the same time, how many may wait, and what ends such a wait. */
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { HTTP_GROUP_LOOKS_MAX, HTTP_GROUP_WAITERS_MAX } from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import { busy, takePermits } from "../permit_wait.ts";

export interface PollLimits {
  readonly waiters: number;
  /** Partitions. */
  readonly looks: number;
}

const LIMITS: PollLimits = { waiters: HTTP_GROUP_WAITERS_MAX, looks: HTTP_GROUP_LOOKS_MAX };

export class PollWaits {
  readonly #env: Pick<Env, "clock" | "metrics">;
  readonly #limits: PollLimits;
  readonly #looks: Semaphore;
  readonly #hide: () => void;
  readonly #stop = new AbortController();
  #count = 0;

  constructor(env: Pick<Env, "clock" | "metrics">, limits = LIMITS) {
    this.#env = env;
    this.#limits = limits;
    this.#looks = new Semaphore(limits.looks);
    this.#hide = env.metrics.onRender((gauge) => {
      gauge("skerry_http_group_polls_waiting", this.#count);
    });
  }

  get isClosed(): boolean {
    return this.#stop.signal.aborted;
  }

  /** A look takes memory for each of its partitions; more than there may be at once take turns. Throws ProblemError. */
  async look<T>(partitions: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const permits = Math.min(partitions, this.#limits.looks);
    await takePermits(this.#looks, permits, this.#env.clock, { signal });
    try {
      return await work();
    } finally {
      this.#looks.release(permits);
    }
  }

  /** Throws ProblemError when too many wait. The caller looks what it was that ended the wait. */
  async wait(ms: number, signals: readonly AbortSignal[]): Promise<void> {
    if (this.#count >= this.#limits.waiters) throw busy();
    this.#count += 1;
    try {
      await sleep(this.#env.clock, ms, AbortSignal.any([this.#stop.signal, ...signals]));
    } finally {
      this.#count -= 1;
    }
  }

  /** Polls that wait are answered. */
  close(): void {
    this.#stop.abort();
    this.#hide();
  }
}
