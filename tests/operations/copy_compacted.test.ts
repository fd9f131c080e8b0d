/** `skerry copy` of a store with compacted topics: cleaned streams, offsets with holes, a pass during the copy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { copyCluster } from "../../src/inspect/copy.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { batch, batchesOf, textOf } from "../quirks/quirks.ts";
import { drive, FaultWorld } from "../faults/world.ts";
import { check, clusterOf, contentOf } from "../support/stored_world.ts";
import { testEnv } from "../support/test_env.ts";

const BUSY = { "skerry.upload.interval.ms": "1000", "skerry.metadata.snapshot.entries": "10" };
const COMPACTED = {
  "cleanup.policy": "compact",
  "segment.ms": "1000",
  "min.cleanable.dirty.ratio": "0.01",
};
const KEYS = ["a", "b", "c", "d"];
const NEW_ID = "restored-compacted";

class Source extends FaultWorld {
  #round = 0;

  constructor() {
    super({ kafka: BUSY });
  }

  /** One more value of each key but "d", which has only one. */
  async round(): Promise<void> {
    const value = `${this.#round++}`;
    for (const key of value === "0" ? KEYS : KEYS.slice(0, -1)) {
      const one = batch([{ key, value, timestamp: this.clock.nowMs() }]);
      const { error } = await drive(this.clock, this.q.produce("t", one));
      assert.equal(error, "NONE");
    }
    await this.clock.advance(5_000);
  }

  async passes(): Promise<number> {
    const page = await (await this.fetch("/metrics")).text();
    assert.doesNotMatch(page, /skerry_log_cleaner_runs_total\{outcome="failed"\}/);
    return Number(/skerry_log_cleaner_runs_total\{outcome="done"\} (\d+)/.exec(page)?.[1] ?? 0);
  }

  /** Writes until compaction has been over it once more. */
  async compacted(): Promise<void> {
    const before = await this.passes();
    for (let rounds = 0; await this.passes() === before; rounds++) {
      assert.ok(rounds < 60, "no pass");
      await this.round();
    }
  }
}

/** `offset key=value` of all that is stored. */
async function recordsOf({ clock, q }: FaultWorld): Promise<string[]> {
  const found: string[] = [];
  for (let at = 0, end = 1; at < end;) {
    const { highWatermark, records, error } = await drive(clock, q.fetch("t", at));
    assert.equal(error, "NONE");
    end = highWatermark;
    const batches = batchesOf(records);
    if (batches.length === 0) break;
    for (const { baseOffset, lastOffsetDelta, records: all } of batches) {
      for (const { offset, key, value } of all) {
        if (offset >= at) found.push(`${offset} ${textOf(key)}=${textOf(value)}`);
      }
      at = baseOffset + lastOffsetDelta + 1;
    }
  }
  return found;
}

/** The newest of each key, as `key=value`. */
function newestOf(records: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    records.map((one) => one.split(" ")[1]!.split("=") as [string, string]),
  );
}

async function copied(world: Source, from: ObjectStore): Promise<ObjectStore> {
  const to = createMemoryStore(world.clock);
  const env = testEnv({ clock: world.clock });
  await drive(world.clock, copyCluster({ from, to, env, clusterId: NEW_ID }), "the copy");
  return to;
}

async function restoredFrom(world: Source, bucket: ObjectStore): Promise<FaultWorld> {
  const proven = await check(bucket);
  assert.deepEqual([proven.damaged, proven.summary.verdict], [[], "clean"], proven.text);
  assert.equal(clusterOf(await contentOf(bucket)), NEW_ID);
  const restored = new FaultWorld({ clock: world.clock, bucket, seed: 77, kafka: BUSY });
  await restored.start();
  return restored;
}

async function source(): Promise<Source> {
  const world = new Source();
  await world.start();
  await drive(world.clock, world.q.topic("t", 1, COMPACTED));
  await world.compacted();
  await world.compacted();
  return world;
}

test("a copy of a compacted store has the same records at the same offsets, and is compacted further", async () => {
  const world = await source();
  const records = await recordsOf(world);
  assert.ok(records.some((one) => one.endsWith("d=0")) && !records[0]!.startsWith("0 "), "holes");
  const restored = await restoredFrom(world, await copied(world, world.bucket));
  assert.deepEqual(await recordsOf(restored), records);
  for (const value of ["x", "y"]) {
    await drive(
      world.clock,
      restored.q.produce("t", batch([{ key: "a", value, timestamp: world.clock.nowMs() }])),
    );
    await world.clock.advance(60_000);
  }
  assert.deepEqual(newestOf(await recordsOf(restored)), { ...newestOf(records), a: "y" });
  await drive(world.clock, restored.q.node.close());
  await drive(world.clock, world.q.node.close());
  assert.equal((await check(restored.bucket)).summary.verdict, "clean");
});

test("a pass that ends while the copy is made: the copy is one moment, with the newest of each key", async () => {
  const world = await source();
  const before = newestOf(await recordsOf(world));
  let reads = 0;
  const busy: ObjectStore = {
    ...world.bucket,
    get: async (key, options) => {
      if (++reads === 5 || reads === 30) await world.compacted();
      return await world.bucket.get(key, options);
    },
    list: (prefix, options) => world.bucket.list(prefix, options),
    head: (key) => world.bucket.head(key),
  };
  const passes = await world.passes();
  const bucket = await copied(world, busy);
  assert.ok(await world.passes() >= passes + 1, "it was compacted meanwhile");
  const restored = await restoredFrom(world, bucket);
  const after = newestOf(await recordsOf(restored));
  assert.deepEqual(Object.keys(after).toSorted(), KEYS);
  assert.equal(after["d"], "0");
  for (const key of KEYS) assert.ok(Number(after[key]) >= Number(before[key]), key);
  await drive(world.clock, restored.q.node.close());
  await drive(world.clock, world.q.node.close());
});
