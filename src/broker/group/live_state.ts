/**
 * A group that is a value, with what the log knows of it: a change is written as the difference in the same stretch
 * in which it becomes true, and whoever is told of it waits for `durable`.
 */
import type { KeyValue } from "../shard/shard_log.ts";

export interface LiveStateOptions<G> {
  readonly recordsBetween: (before: G, after: G) => readonly KeyValue[];
  readonly bytesOf: (group: G) => number;
  /**
   * Appends in this very stretch and resolves when all is durable. Throws FaultError when the log takes
   * nothing: nothing has happened then.
   */
  readonly write: (records: readonly KeyValue[]) => Promise<void>;
}

export class LiveState<G> {
  readonly #options: LiveStateOptions<G>;
  #group: G;
  #written: G;
  #bytes: number;
  #durable: Promise<void> = Promise.resolve();

  /** `written`: what the log knows of it. */
  constructor(options: LiveStateOptions<G>, group: G, written: G) {
    this.#options = options;
    this.#group = group;
    this.#written = written;
    this.#bytes = options.bytesOf(group);
  }

  get group(): G {
    return this.#group;
  }
  get written(): G {
    return this.#written;
  }
  /** What it takes up, estimated. */
  get bytes(): number {
    return this.#bytes;
  }
  /** Of the newest change that was written. */
  get durable(): Promise<void> {
    return this.#durable;
  }

  growthTo(next: G): number {
    return next === this.#group ? 0 : this.#options.bytesOf(next) - this.#bytes;
  }

  change(next: G): void {
    if (next === this.#written) return;
    const records = this.#options.recordsBetween(this.#written, next);
    if (records.length > 0) {
      const written = this.#options.write(records);
      // Who waits for it is told; nobody may.
      written.catch(() => {});
      this.#durable = written;
    }
    this.#written = next;
    if (next === this.#group) return;
    this.#group = next;
    this.#bytes = this.#options.bytesOf(next);
  }
}
