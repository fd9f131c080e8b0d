/**
 * What makes a simulated process: nothing reaches it but through `deliver`, so that it can be killed between
 * two events, with all that it holds in memory, or stand still like a process that was stopped by a signal.
 */
import { createCodecs } from "../../src/adapters/codecs.ts";
import type { Clock } from "../../src/env/clock.ts";
import type { Env } from "../../src/env/env.ts";
import type { Logger } from "../../src/env/logger.ts";
import { createMetrics, type Metrics } from "../../src/env/metrics.ts";
import type { World } from "./world.ts";

/** One for all runs: a WebAssembly instance costs as much as thousands of events. */
const real = createCodecs();
export const codecs: Env["codecs"] = {
  ...real,
  // Runtimes bring other versions of zlib, and sizes are in the trace: only stored blocks are the same.
  compress: (name, bytes, level) => real.compress(name, bytes, name === "gzip" ? 0 : level),
};

/** Sums of delays may miss their mark by a rounding; and no timer of a real host fires without time passing. */
const TIMER_SLACK_MS = 0.001;

/** Log events that only a bug explains. */
const BUG_EVENTS = new Set(["request-failed", "metadata-listener-failed", "metadata-behind-store"]);

export class SimProcess {
  readonly world: World;
  readonly name: string;
  /** Added to the wall clock of this process; its monotonic clock is true. */
  wallSkewMs = 0;
  #alive = true;
  #pausedUntilMs = 0;
  /** Time that the monotonic clock has missed: it stands still while a machine is suspended. */
  #sleptMs = 0;
  /** Told of every gauge that the process sets: what it believes of itself. */
  onGauge: ((name: string, value: number) => void) | null = null;
  #waiting: (() => void)[] = [];
  /** Name of the newest line in its log. */
  lastEvent = "";
  readonly #onDeath: (() => void)[] = [];
  readonly env: Env;

  constructor(world: World, name: string) {
    this.world = world;
    this.name = name;
    this.env = {
      clock: this.#clock(),
      random: world.random(name),
      log: this.#logger(),
      metrics: this.#metrics(),
      codecs,
    };
  }

  get alive(): boolean {
    return this.#alive;
  }
  get pausedUntilMs(): number {
    return this.#pausedUntilMs;
  }

  /** Runs work of the process: never after its death, and after its pause. */
  deliver(work: () => void): void {
    if (!this.#alive) return;
    if (this.#pausedUntilMs > this.world.nowMs || this.#waiting.length > 0) {
      this.#waiting.push(work);
    } else work();
  }

  /** Stopped by a signal, or suspended with its machine: then its monotonic clock misses the time, too. */
  pause(forMs: number, how: "stopped" | "suspended" = "stopped"): void {
    if (!this.#alive || this.#pausedUntilMs > this.world.nowMs) return;
    this.world.note(`${this.name} is ${how} for ${Math.round(forMs)} ms`);
    this.#pausedUntilMs = this.world.nowMs + forMs;
    this.world.after(forMs, () => {
      if (how === "suspended") this.#sleptMs += forMs;
      this.#resume();
    });
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
    const monotonicMs = () => world.nowMs - this.#sleptMs;
    return {
      nowMs: () => world.wallMs + this.wallSkewMs,
      monotonicMs,
      after: (delayMs, work) => {
        const dueMs = monotonicMs() + Math.max(0, delayMs);
        let isCancelled = false;
        let cancel = () => {};
        const fire = () => {
          if (isCancelled) return;
          const leftMs = dueMs - monotonicMs();
          if (leftMs > TIMER_SLACK_MS) arm(leftMs);
          else work();
        };
        const arm = (leftMs: number) => {
          const forMs = leftMs > 0 ? Math.max(leftMs, TIMER_SLACK_MS) : 0;
          cancel = world.after(forMs, () => this.deliver(fire));
        };
        arm(delayMs);
        return () => {
          isCancelled = true;
          cancel();
        };
      },
    };
  }

  #metrics(): Metrics {
    const metrics = createMetrics();
    return {
      ...metrics,
      count: (name, labels = {}, by) => {
        metrics.count(name, labels, by);
        const isRewrite = name === "skerry_compaction_runs_total" && labels["outcome"] === "done";
        if (this.#alive && isRewrite) this.world.note(`${this.name} rewrote by ${labels["kind"]}`);
      },
      gauge: (name, value, labels) => {
        metrics.gauge(name, value, labels);
        if (this.#alive) this.onGauge?.(name, value);
      },
    };
  }

  #logger(): Logger {
    return {
      log: (level, event, fields = {}) => {
        if (!this.#alive) return;
        this.lastEvent = event;
        // What gzip makes of a snapshot is not the same on every runtime.
        const isPacked = event === "snapshot-written";
        const text = JSON.stringify(isPacked ? { ...fields, bytes: undefined } : fields);
        this.world.note(`${this.name} ${level} ${event} ${text}`);
        const isBug = BUG_EVENTS.has(event) || text.includes("bug: ") ||
          text.includes("not a safe integer") || level === "error" && (
              text.includes("AssertionError") ||
              event === "storage-stopped" && !text.includes("enced")
            );
        if (isBug) this.world.violated(`${this.name} logs a bug: ${event} ${text}`);
      },
    };
  }
}
