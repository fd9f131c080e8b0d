/**
 * Deletes slots whose records are committed elsewhere, in the background and in batches. Failures are
 * retried for as long as the WAL is open; what is left then falls to the collection of the sealed WAL.
 */
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import { WAL_DELETE_KEYS_MAX } from "../../lib/limits.ts";
import { backoffMs } from "../../object/backoff.ts";
import type { ObjectStore } from "../../object/object_store.ts";

export class SlotTrimmer {
  readonly #store: ObjectStore;
  readonly #env: Env;
  readonly #keyOf: (slot: number) => string;
  readonly #stop = new AbortController();
  /** Slots below are gone. */
  #deletedTo: number;
  /** Slots below may go. */
  #target: number;
  #run: Promise<void> | null = null;

  constructor(store: ObjectStore, env: Env, keyOf: (slot: number) => string, firstSlot: number) {
    this.#store = store;
    this.#env = env;
    this.#keyOf = keyOf;
    this.#deletedTo = firstSlot;
    this.#target = firstSlot;
  }

  trimTo(slot: number): void {
    if (slot <= this.#target || this.#stop.signal.aborted) return;
    this.#target = slot;
    this.#run ??= this.#work().finally(() => {
      this.#run = null;
    });
  }

  /** Lets the deletion in flight end; retries no more. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#run;
  }

  /** Never rejects. */
  async #work(): Promise<void> {
    for (let failures = 0; this.#deletedTo < this.#target;) {
      const to = Math.min(this.#target, this.#deletedTo + WAL_DELETE_KEYS_MAX);
      const error = await this.#delete(this.#deletedTo, to);
      if (error === null) {
        this.#deletedTo = to;
        failures = 0;
        continue;
      }
      failures += 1;
      this.#env.log.log("warn", "wal-trim-failed", { slot: this.#deletedTo, failures, error });
      await sleep(this.#env.clock, backoffMs(failures, this.#env.random), this.#stop.signal);
      if (this.#stop.signal.aborted) return;
    }
  }

  async #delete(from: number, to: number): Promise<string | null> {
    const keys: string[] = [];
    for (let slot = from; slot < to; slot++) keys.push(this.#keyOf(slot));
    try {
      const { failed } = await this.#store.delete(keys);
      return failed.length === 0 ? null : `${failed.length} keys were not deleted`;
    } catch (error) {
      return isFault(error) ? error.message : `bug: ${messageOf(error)}`;
    }
  }
}
