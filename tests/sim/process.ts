/**
 * What makes a simulated process: nothing reaches it but through `deliver`, so that it can be killed between
 * two events, with all that it holds in memory, or stand still like a process that was stopped by a signal.
 */
import { createCodecs } from "../../src/adapters/codecs.ts";
import type { Clock } from "../../src/env/clock.ts";
import type { Env } from "../../src/env/env.ts";
import type { Logger } from "../../src/env/logger.ts";
import { createMetrics } from "../../src/env/metrics.ts";
import type { World } from "./world.ts";

const codecs = createCodecs();

/** Log events that only a bug explains. */
const BUG_EVENTS = new Set(["request-failed", "metadata-listener-failed"]);

export class SimProcess {
  readonly world: World;
  readonly name: string;
  /** Added to the wall clock of this process; its monotonic clock is true. */
  wallSkewMs = 0;
  #alive = true;
  #pausedUntilMs = 0;
  #waiting: (() => void)[] = [];
  readonly #onDeath: (() => void)[] = [];
  readonly env: Env;

  constructor(world: World, name: string) {
    this.world = world;
    this.name = name;
    this.env = {
      clock: this.#clock(),
      random: world.random(name),
      log: this.#logger(),
      metrics: createMetrics(),
      codecs,
    };
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Runs work of the process: never after its death, and after its pause. */
  deliver(work: () => void): void {
    if (!this.#alive) return;
    if (this.#pausedUntilMs > this.world.nowMs || this.#waiting.length > 0) {
      this.#waiting.push(work);
    } else work();
  }

  pause(forMs: number): void {
    if (!this.#alive || this.#pausedUntilMs > this.world.nowMs) return;
    this.world.note(`${this.name} stands still for ${Math.round(forMs)} ms`);
    this.#pausedUntilMs = this.world.nowMs + forMs;
    this.world.after(forMs, () => this.#resume());
  }

  /** One by one and in order: what comes meanwhile queues behind. */
  #resume(): void {
    if (!this.#alive) return;
    const [work] = this.#waiting;
    if (work === undefined) return;
    work();
    this.#waiting.shift();
    this.world.after(0, () => this.#resume());
  }

  onDeath(work: () => void): void {
    if (this.#alive) this.#onDeath.push(work);
    else work();
  }

  kill(why: string): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#waiting = [];
    this.world.note(`${this.name} is gone: ${why}`);
    for (const work of this.#onDeath.splice(0)) work();
  }

  #clock(): Clock {
    const { world } = this;
    return {
      nowMs: () => world.wallMs + this.wallSkewMs,
      monotonicMs: () => world.nowMs,
      after: (delayMs, work) => {
        let isCancelled = false;
        const cancel = world.after(delayMs, () => this.deliver(() => isCancelled || work()));
        return () => {
          isCancelled = true;
          cancel();
        };
      },
    };
  }

  #logger(): Logger {
    return {
      log: (level, event, fields = {}) => {
        if (!this.#alive) return;
        const text = JSON.stringify(fields);
        this.world.note(`${this.name} ${level} ${event} ${text}`);
        const isBug = BUG_EVENTS.has(event) || text.includes("bug: ") || level === "error" && (
              text.includes("AssertionError") ||
              event === "storage-stopped" && !text.includes("enced")
            );
        if (isBug) this.world.violated(`${this.name} logs a bug: ${event} ${text}`);
      },
    };
  }
}
