/**
 * Before a client is told that something does not exist, the metadata log is read once more: another node may just
 * have made it, and an idle node looks there every few seconds only. Names that nobody made cost a request of the
 * store now and then: each is looked for again after a pause that grows, and all of them together so often.
 */
import { sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import { messageOf } from "../lib/errors.ts";
import {
  LOOK_PAUSE_CAP_MS,
  LOOK_PAUSE_FIRST_MS,
  LOOK_REFILL_MS,
  LOOK_WAIT_MS,
  LOOKED_FOR_MAX,
  LOOKS_AT_ONCE_MAX,
} from "../lib/limits.ts";
import { Lru } from "../lib/lru.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";

interface Missing {
  readonly pauseMs: number;
  /** Monotonic. */
  readonly againMs: number;
}

export interface SecondLookOptions {
  readonly env: Pick<Env, "clock" | "log">;
  readonly metadata: Pick<MetadataStore, "fresh">;
}

export class SecondLook {
  readonly #options: SecondLookOptions;
  readonly #missing = new Lru<string, Missing>(LOOKED_FOR_MAX, () => 1);
  #running: Promise<void> | null = null;
  /** Looks that may be had now, and when that was counted. */
  #left = LOOKS_AT_ONCE_MAX;
  #countedMs: number;

  constructor(options: SecondLookOptions) {
    this.#options = options;
    this.#countedMs = options.env.clock.monotonicMs();
  }

  /** Null when nothing is unknown or may be looked for now. Never rejects; `isKnown` says what came of it. */
  look(keys: Iterable<string>, isKnown: (key: string) => boolean): Promise<void> | null {
    let due: string[] | null = null;
    const nowMs = this.#options.env.clock.monotonicMs();
    for (const key of keys) {
      if (isKnown(key) || (this.#missing.peek(key)?.againMs ?? -Infinity) > nowMs) continue;
      due ??= [];
      due.push(key);
    }
    if (due === null || (this.#running === null && !this.#isAllowed(nowMs))) return null;
    return this.#lookFor(due, isKnown);
  }

  #isAllowed(nowMs: number): boolean {
    const refilled = Math.floor((nowMs - this.#countedMs) / LOOK_REFILL_MS);
    this.#left = Math.min(LOOKS_AT_ONCE_MAX, this.#left + refilled);
    this.#countedMs += refilled * LOOK_REFILL_MS;
    if (this.#left === 0) return false;
    this.#left -= 1;
    return true;
  }

  async #lookFor(keys: readonly string[], isKnown: (key: string) => boolean): Promise<void> {
    this.#running ??= this.#read().finally(() => void (this.#running = null));
    await this.#running;
    const nowMs = this.#options.env.clock.monotonicMs();
    for (const key of keys) {
      if (isKnown(key)) this.#missing.delete(key);
      else {
        const pauseMs = Math.min(
          2 * (this.#missing.peek(key)?.pauseMs ?? LOOK_PAUSE_FIRST_MS / 2),
          LOOK_PAUSE_CAP_MS,
        );
        this.#missing.set(key, { pauseMs, againMs: nowMs + pauseMs });
      }
    }
  }

  /** A store that does not answer must not hold up those who would be told "unknown". */
  async #read(): Promise<void> {
    const { env, metadata } = this.#options;
    const enough = new AbortController();
    const read = metadata.fresh().then(() => {}, (error: unknown) => {
      env.log.log("debug", "metadata-look-failed", { reason: messageOf(error) });
    });
    try {
      await Promise.race([read, sleep(env.clock, LOOK_WAIT_MS, enough.signal)]);
    } finally {
      enough.abort();
    }
  }
}
