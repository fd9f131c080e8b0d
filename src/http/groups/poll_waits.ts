/** The polls of a node that wait for records: how many there may be, and what ends such a wait. */
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { HTTP_GROUP_WAITERS_MAX } from "../../lib/limits.ts";
import { busy } from "../permit_wait.ts";

export class PollWaits {
  readonly #env: Pick<Env, "clock" | "metrics">;
  readonly #max: number;
  readonly #hide: () => void;
  readonly #stop = new AbortController();
  #count = 0;

  constructor(env: Pick<Env, "clock" | "metrics">, max = HTTP_GROUP_WAITERS_MAX) {
    this.#env = env;
    this.#max = max;
    this.#hide = env.metrics.onRender((gauge) => {
      gauge("skerry_http_group_polls_waiting", this.#count);
    });
  }

  get isClosed(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Throws ProblemError when too many wait. The caller looks what it was that ended the wait. */
  async wait(ms: number, signals: readonly AbortSignal[]): Promise<void> {
    if (this.#count >= this.#max) throw busy();
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
