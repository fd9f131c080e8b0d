/** One line on the terminal that says how far long work is, now and then. */
import type { Clock } from "../../env/clock.ts";
import type { Io } from "./io.ts";

const EVERY_MS = 500;

export class Progress {
  readonly #show: Io["progress"];
  readonly #clock: Clock;
  readonly #beganMs: number;
  #shownMs: number;
  #isShown = false;

  constructor({ progress, env }: Pick<Io, "progress" | "env">, isWanted = true) {
    this.#show = isWanted ? progress : null;
    this.#clock = env.clock;
    this.#beganMs = this.#clock.monotonicMs();
    this.#shownMs = this.#beganMs;
  }

  /** Cheap enough for every record. */
  update(records: number, bytes: number): void {
    if (this.#show === null) return;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#shownMs < EVERY_MS) return;
    this.#shownMs = nowMs;
    this.#isShown = true;
    this.#show(progressText(records, bytes, nowMs - this.#beganMs));
  }

  /** Takes the line away. */
  end(): void {
    if (this.#isShown) this.#show?.("");
    this.#isShown = false;
  }
}

export function progressText(records: number, bytes: number, tookMs: number): string {
  const megabytes = bytes / 1e6;
  const seconds = Math.max(tookMs, 1) / 1000;
  return `${records} records, ${megabytes.toFixed(1)} MB, ` +
    `${Math.round(records / seconds)} records/s, ${(megabytes / seconds).toFixed(1)} MB/s`;
}
