/**
 * Appends on their way into the WAL. Records that became durable are handed on in WAL order, whatever the
 * order in which promises are looked at: a log cache in another order would let a trim cover lost records.
 */
import { assert } from "../lib/assert.ts";
import type { Appended } from "./wal/wal.ts";

interface Group {
  readonly slot: number;
  /** Resolves once the records were handed on. */
  readonly delivered: Promise<void>;
  readonly walDurable: Promise<Uint8Array>;
  /** The WAL object, once it is durable. */
  body: Uint8Array | null;
}

export class AppendQueue {
  readonly #groups: Group[] = [];
  readonly #deliver: (body: Uint8Array, slot: number) => void;

  constructor(deliver: (body: Uint8Array, slot: number) => void) {
    this.#deliver = deliver;
  }

  /** Slot of the oldest record that is not handed on. */
  get firstSlot(): number | null {
    return this.#groups[0]?.slot ?? null;
  }

  /** Resolves when the record is durable and handed on. Records of one bulk share the promise. */
  add({ slot, durable }: Pick<Appended, "slot" | "durable">): Promise<void> {
    const last = this.#groups.at(-1);
    assert(last === undefined || slot >= last.slot, `WAL went back to slot ${slot}`);
    if (last?.walDurable === durable) return last.delivered;
    const group: Group = {
      slot,
      walDurable: durable,
      body: null,
      delivered: durable.then((body) => this.#onDurable(group, body), (error: unknown) => {
        this.#drop(group);
        throw error;
      }),
    };
    // Whoever appended may not wait for the outcome.
    group.delivered.catch(() => {});
    this.#groups.push(group);
    return group.delivered;
  }

  /** Resolves when everything added so far is handed on or has failed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#groups.map(({ delivered }) => delivered));
  }

  #onDurable(group: Group, durable: Uint8Array): void {
    group.body = durable;
    for (let head = this.#groups[0]; head !== undefined; head = this.#groups[0]) {
      if (head.body === null) return;
      this.#groups.shift();
      this.#deliver(head.body, head.slot);
    }
  }

  #drop(group: Group): void {
    const at = this.#groups.indexOf(group);
    if (at >= 0) this.#groups.splice(at, 1);
  }
}
