/** One partition of share states over a real log: epochs, snapshots and updates, reload, rewrite, faults. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createHarness, type Harness } from "../../../tests/support/partition_harness.ts";
import { FaultError, isFault } from "../../lib/errors.ts";
import { ShardMemory } from "../shard/shard_memory.ts";
import { overlay, type ShareStateChange } from "./share_state.ts";
import { StateShard, type StateShardOptions } from "./state_shard.ts";
import type { StateBatch } from "./window.ts";

const KEY = { groupId: "g", topicId: "01".repeat(16), partition: 0 };
const OTHER = { ...KEY, groupId: "h" };

async function open(
  { env, log }: Harness,
  over: Partial<StateShardOptions> = {},
): Promise<StateShard> {
  const memory = new ShardMemory(2 ** 40);
  const options = { env, log, memory, updatesMax: 3, compactBytesMin: 1 << 20, ...over };
  const shard = new StateShard(options);
  await shard.load();
  return shard;
}

function change(startOffset: number, ...batches: readonly StateBatch[]): ShareStateChange {
  return { leaderEpoch: 1, startOffset, finalCount: 0, batches };
}

function done(first: number, last: number): StateBatch {
  return { first, last, state: "acknowledged", count: 1 };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

test("a state is made, written, made anew and removed; a reload finds the same", async () => {
  const harness = await createHarness();
  const shard = await open(harness);
  assert.equal(await shard.write(KEY, 0, change(0)), "COORDINATOR_NOT_AVAILABLE", "not made");
  assert.equal(await shard.initialize(KEY, 4, -1), null);
  assert.equal(await shard.write(KEY, 4, change(10, done(12, 13))), null);
  const seen = (await open(harness)).find(KEY)!;
  assert.deepEqual(
    [seen.stateEpoch, seen.leaderEpoch, seen.startOffset, seen.batches],
    [4, 1, 10, [done(12, 13)]],
  );
  assert.equal(await shard.initialize(KEY, 3, 0), "FENCED_STATE_EPOCH");
  assert.equal(await shard.initialize(KEY, 4, -1), null, "said again");
  assert.deepEqual(shard.find(KEY), seen, "which changes nothing");
  assert.equal(await shard.initialize(KEY, 5, 100), null);
  const anew = (await open(harness)).find(KEY)!;
  assert.deepEqual([anew.stateEpoch, anew.startOffset, anew.batches], [5, 100, []]);
  await shard.remove(KEY);
  assert.equal(shard.find(KEY), null);
  assert.equal((await open(harness)).find(KEY), null);
});

test("an earlier leader, and who reads an earlier state, are kept out", async () => {
  const shard = await open(await createHarness());
  await shard.initialize(KEY, 2, 0);
  await shard.write(KEY, 2, { ...change(0), leaderEpoch: 7 });
  assert.equal(
    await shard.write(KEY, 2, { ...change(0), leaderEpoch: 6 }),
    "FENCED_LEADER_EPOCH",
  );
  const newer = { ...change(0), leaderEpoch: 7 };
  assert.equal(await shard.write(KEY, 1, newer), "FENCED_STATE_EPOCH");
  assert.equal(await shard.write(KEY, 3, newer), "FENCED_STATE_EPOCH");
  assert.equal(await shard.write(KEY, 2, newer), null);
});

test("a node whose memory is full of states takes what makes them smaller, and nothing else", async () => {
  const memory = new ShardMemory(1_000);
  const shard = await open(await createHarness(), { memory });
  await shard.initialize(KEY, 1, 0);
  let last = 0;
  for (let at = 1; at <= 100; at++) {
    const refused = await shard.write(KEY, 1, change(0, done(2 * at, 2 * at)));
    if (refused === null) last = 2 * at;
    else assert.equal(refused, "COORDINATOR_NOT_AVAILABLE");
  }
  assert.ok(last > 2 && last < 100, `up to ${last}`);
  assert.ok(memory.bytes <= 1_000, `${memory.bytes} bytes`);
  assert.equal(shard.find(KEY)!.batches.at(-1)!.last, last, "what was refused changes nothing");
  assert.equal(await shard.write(KEY, 1, change(last + 1)), null, "it begins later");
  assert.deepEqual(shard.find(KEY)!.batches, []);
  assert.equal(await shard.write(KEY, 1, change(last + 1, done(300, 300))), null);
});

test("what is laid over a state is what a map of single records holds", () => {
  const state = fc.constantFrom("available" as const, "acknowledged" as const, "archived" as const);
  const batch = fc.tuple(fc.nat(30), fc.nat(6), state, fc.integer({ min: 1, max: 5 }));
  fc.assert(fc.property(
    fc.array(fc.tuple(fc.array(batch, { maxLength: 4 }), fc.nat(12)), { maxLength: 12 }),
    (writes) => {
      let known: readonly StateBatch[] = [];
      let start = 0;
      const records = new Map<number, string>();
      for (const [raw, to] of writes) {
        start = Math.max(start, to);
        const batches: StateBatch[] = [];
        for (const [first, more, name, count] of raw.toSorted(([a], [b]) => a - b)) {
          if (first <= (batches.at(-1)?.last ?? -1)) continue;
          batches.push({ first, last: first + more, state: name, count });
        }
        for (const { first, last, state: name, count } of batches) {
          for (let at = first; at <= last; at++) records.set(at, `${name} ${count}`);
        }
        known = overlay(known, batches, start);
        let before = -1;
        const found = new Map<number, string>();
        for (const { first, last, state: name, count } of known) {
          assert.ok(first > before && last >= first, "in order");
          before = last;
          for (let at = first; at <= last; at++) found.set(at, `${name} ${count}`);
        }
        for (const at of Array.from(records.keys())) if (at < start) records.delete(at);
        assert.deepEqual([...found].toSorted(), [...records].toSorted());
      }
    },
  ));
});

test("any run of writes comes back from the log, whatever became a snapshot or was rewritten", async () => {
  const write = fc.record({
    key: fc.constantFrom(KEY, OTHER),
    first: fc.nat(20),
    more: fc.nat(5),
    start: fc.nat(15),
    kind: fc.constantFrom("write", "write", "write", "write", "anew", "remove", "rewrite"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(write, { maxLength: 25 }), async (writes) => {
      const harness = await createHarness();
      const shard = await open(harness, { compactBytesMin: 300 });
      for (const { key, first, more, start, kind } of writes) {
        const known = shard.find(key);
        if (kind === "rewrite") await shard.maintain(() => true);
        else if (kind === "remove") await shard.remove(key);
        else if (kind === "anew" || known === null) {
          await shard.initialize(key, (known?.stateEpoch ?? 0) + 1, start);
        } else {
          const next = Math.max(start, known.startOffset);
          await shard.write(key, known.stateEpoch, change(next, done(first, first + more)));
        }
      }
      const again = await open(harness);
      for (const key of [KEY, OTHER]) assert.deepEqual(again.find(key), shard.find(key));
    }),
    { numRuns: 30 },
  );
});

test("a write is answered when it is durable, in the order of the calls", async () => {
  const harness = await createHarness();
  const shard = await open(harness);
  await shard.initialize(KEY, 0, 0);
  harness.streams.durability = "manual";
  const answered: string[] = [];
  const first = shard.write(KEY, 0, change(0, done(0, 0))).then(() => answered.push("first"));
  const second = shard.write(KEY, 0, change(0, done(1, 1))).then(() => answered.push("second"));
  await settle();
  assert.deepEqual(answered, []);
  harness.streams.confirm();
  await Promise.all([first, second]);
  assert.deepEqual(answered, ["first", "second"]);
});

test("a write without an outcome closes the shard; one that could not begin changes nothing", async () => {
  const harness = await createHarness();
  const shard = await open(harness);
  await shard.initialize(KEY, 0, 0);
  const full = new FaultError("overloaded", "full", { retriable: true });
  harness.streams.fail = (op) => op === "append" ? full : null;
  await assert.rejects(
    shard.write(KEY, 0, change(0, done(0, 5))),
    (error) => isFault(error, "overloaded"),
  );
  harness.streams.fail = null;
  assert.deepEqual([shard.closed, shard.find(KEY)?.batches], [false, []]);
  harness.streams.durability = "manual";
  const lost = shard.write(KEY, 0, change(0, done(0, 5)));
  lost.catch(() => {});
  await settle();
  await harness.crash();
  await assert.rejects(lost);
  assert.ok(shard.closed);
  await assert.rejects(shard.write(KEY, 0, change(0)), (error) => isFault(error, "closed"));
  harness.streams.durability = "auto";
  assert.deepEqual((await open(harness)).find(KEY)?.batches, []);
});

test("a hollow log is rewritten, states of topics that are gone end, and idle writes nothing", async () => {
  const harness = await createHarness();
  const memory = new ShardMemory(2 ** 40);
  const shard = await open(harness, { compactBytesMin: 1_000, memory });
  await shard.initialize(KEY, 0, 0);
  await shard.initialize({ ...OTHER, topicId: "02".repeat(16) }, 0, 0);
  for (let at = 0; at < 30; at++) await shard.write(KEY, 0, change(at, done(at, at)));
  await shard.maintain((topicId) => topicId === KEY.topicId);
  assert.ok(harness.log.logStartOffset >= 30, String(harness.log.logStartOffset));
  assert.equal(await shard.write(KEY, 0, change(30, done(31, 31))), null, "over the new snapshot");
  const again = await open(harness);
  assert.deepEqual([...again.keys()], [KEY]);
  assert.deepEqual(again.find(KEY), shard.find(KEY));
  const { appends } = harness.streams;
  await shard.maintain(() => true);
  assert.equal(harness.streams.appends, appends);
  shard.close();
  assert.equal(memory.bytes, 0);
});
