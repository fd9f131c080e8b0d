/**
 * The list of 56 recovery scenarios as tests through a whole broker: each after both ways to end, and on both kinds
 * of store. `expiry` has 1-8 and 27-30, `crash` 9-18, `sequences` 19-26, `clock` 31-35, `snapshots` 36-42,
 * `transactions` 43-47, `deletion` 48-51, `brokers` 52-55, `random` 56.
 *
 * A client cannot see all that the list says; instead of
 *
 *   new or duplicate    it sees the base offset of the answer, and that the log's end stays
 *   1 in memory, 12     a snapshot's absence by what is known after the next start; 1 asks DescribeProducers
 *   3 snap@0            a close of a partition that was read and never written
 *   4 loader drops      two runs with different expirations: within one run a tick drops it first
 *   10 orphan object    a WAL object behind a slot that is missing; an upload without its commit is one of 12's steps
 *   12 temporary object there are none: a checkpoint is records; a crash at each store call of a close
 *   25, 46              what no client can write is put there between two runs (`surgery.ts`), as are 21 and 36-42
 *   26 after compaction a marker of a producer that never wrote
 *   56 compaction       half of the runs have a compacted topic; its map of admitted batches is by key
 */
import { describe, test } from "node:test";
import { type End, inWorld, type Kafka, type RecoveryWorld, type Store } from "./world.ts";

interface Variant {
  readonly store: Store;
  readonly end: End;
}

const VARIANTS: readonly Variant[] = [
  { store: "memory", end: "kill" },
  { store: "memory", end: "close" },
  { store: "directory", end: "kill" },
];

export interface ScenarioOptions {
  readonly kafka?: Kafka;
  /** False: the scenario says itself how each process ends, so one way is enough. */
  readonly bothEnds?: boolean;
  /** Only in memory: what it varies has nothing to do with the store, and it starts many processes. */
  readonly memoryOnly?: boolean;
}

/** `title` begins with the scenario's number in the list. */
export function scenario(
  title: string,
  run: (world: RecoveryWorld, end: End) => Promise<void>,
  { kafka = {}, bothEnds = true, memoryOnly = false }: ScenarioOptions = {},
): void {
  describe(title, () => {
    for (const { store, end } of VARIANTS) {
      if (!bothEnds && end === "close" || memoryOnly && store === "directory") continue;
      const how = bothEnds ? `${store}, ${end}` : store;
      test(how, () => inWorld(store, kafka, (world) => run(world, end)));
    }
  });
}
