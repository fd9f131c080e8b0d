/**
 * Of a compacted partition: the newest committed record of a key can always be read, or, if it was a deletion, for as
 * long as deletions are kept; nobody who reads on finds an older one instead. Offsets and contents are the history's.
 */
import type { World } from "../world.ts";
import { name, type PartitionHistory } from "./history.ts";
import type { SeenRecord } from "./log_view.ts";
import type { TransactionLedger } from "./transactions.ts";

interface Written {
  readonly id: string;
  readonly offset: number;
  readonly isDeletion: boolean;
  readonly ackedMs: number;
}

export interface Pass {
  readonly history: PartitionHistory;
  readonly from: number;
  /** The last stable offset that the reader got to. */
  readonly to: number;
  readonly beganMs: number;
  /** All records that a reader of committed records got on the way. */
  readonly records: readonly SeenRecord[];
}

export class CompactedLedger {
  readonly #world: World;
  readonly #transactions: TransactionLedger;
  readonly #deletionMs: number;
  readonly #isTimeTrue: () => boolean;
  /** By partition and key: records outside of transactions. */
  readonly #written = new Map<PartitionHistory, Map<string, Written[]>>();

  constructor(
    world: World,
    transactions: TransactionLedger,
    { deletionMs, isTimeTrue }: {
      readonly deletionMs: number;
      readonly isTimeTrue: () => boolean;
    },
  ) {
    this.#world = world;
    this.#transactions = transactions;
    this.#deletionMs = deletionMs;
    this.#isTimeTrue = isTimeTrue;
  }

  /** A record without a transaction is acknowledged. */
  acknowledged(history: PartitionHistory, key: string, written: Omit<Written, "ackedMs">): void {
    const keys = this.#written.get(history) ?? new Map<string, Written[]>();
    this.#written.set(history, keys);
    keys.set(key, [...keys.get(key) ?? [], { ...written, ackedMs: this.#world.nowMs }]);
  }

  /** The newest of each key that was committed, and known to be, before a time. */
  #newest(history: PartitionHistory, beforeMs: number): Map<string, Written> {
    const newest = new Map<string, Written>();
    const take = (key: string, one: Written) => {
      if (one.ackedMs >= beforeMs || one.offset < (newest.get(key)?.offset ?? -1)) return;
      newest.set(key, one);
    };
    for (const [key, all] of this.#written.get(history) ?? []) {
      for (const one of all) take(key, one);
    }
    for (const { outcome, committedMs, records } of this.#transactions.all()) {
      if (outcome !== "committed") continue;
      for (const { history: at, id, key, isDeletion, offset } of records) {
        if (at !== history || offset === null) continue;
        take(key, { id, offset, isDeletion, ackedMs: committedMs });
      }
    }
    return newest;
  }

  check({ history, from, to, beganMs, records }: Pass): void {
    const last = new Map<string, number>();
    for (const { key, offset } of records) last.set(key, offset);
    for (const [key, { id, offset, isDeletion, ackedMs }] of this.#newest(history, beganMs)) {
      if (offset < from || offset >= to || (last.get(key) ?? -1) >= offset) continue;
      const isOver = !this.#isTimeTrue() || this.#world.nowMs - ackedMs >= this.#deletionMs;
      if (isDeletion && isOver && !last.has(key)) continue;
      const found = last.has(key) ? `ends with offset ${last.get(key)}` : "has nothing";
      return this.#world.violated(
        `${name(history)} read from ${from}: key ${key} ${found}, ${id} at ${offset} is newer`,
      );
    }
  }

  /** Long after the last write everything is compacted. */
  checkOnce(history: PartitionHistory, records: readonly SeenRecord[]): void {
    const last = new Map<string, SeenRecord>();
    for (const record of records) {
      const before = last.get(record.key);
      if (record.id !== null && before !== undefined) {
        return this.#world.violated(
          `${name(history)} is not compacted: key ${record.key} has ${before.id} and ${record.id}`,
        );
      }
      if (record.id !== null) last.set(record.key, record);
    }
  }
}
