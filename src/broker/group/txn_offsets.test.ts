/** Offsets of transactions in a shard, over a real log: sheet section 3.13. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadedShard } from "../../../tests/support/group_shard.ts";
import { createHarness, type Harness } from "../../../tests/support/partition_harness.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { ShardMemory } from "../shard/shard_memory.ts";
import { NEVER, type OffsetEntry } from "./offset_table.ts";
import type { Shard } from "./shard.ts";

const RETENTION_MS = 60_000;
const PRODUCER = { producerId: 7, producerEpoch: 3 };
const AT = { topic: "t", partition: 0 };

interface Opened {
  readonly shard: Shard;
  readonly memory: ShardMemory;
}

async function open(
  { env, log }: Harness,
  memory = new ShardMemory(2 ** 30),
): Promise<Opened> {
  const over = { retentionMs: RETENTION_MS, memory, compactBytesMin: 0 };
  return { shard: await loadedShard(env, log, over), memory };
}

function entryOf({ nowMs }: Harness, offset: number, metadata = ""): OffsetEntry {
  const stamps = { committedAtMs: nowMs, expireAtMs: NEVER };
  return { ...AT, offset, leaderEpoch: 0, metadata, ...stamps, topicId: ZERO_UUID };
}

async function pend(harness: Harness, shard: Shard, offset: number, producer = PRODUCER) {
  const entry = shard.findOrCreate("g");
  const verification = shard.pending.verify(producer, false);
  const offsets = [entryOf(harness, offset)];
  assert.equal(await shard.commitPending(entry, producer, offsets, verification), "NONE");
}

function plain(harness: Harness, shard: Shard, offset: number): Promise<void> {
  return shard.commit(shard.findOrCreate("g"), [entryOf(harness, offset)]);
}

async function end(shard: Shard, commit: boolean, producer = PRODUCER): Promise<void> {
  const marker = { ...producer, coordinatorEpoch: 0, commit, isTransactionsV2: false };
  const appended = shard.pending.appendMarker(marker);
  assert.ok(appended.ok, appended.ok ? "" : appended.error);
  await appended.durable;
}

function offsetOf(shard: Shard): number | undefined {
  return shard.find("g")?.offsets.get("t", 0, ZERO_UUID)?.offset;
}

/** What a shard says now, and what one that is loaded from the log says. */
async function both(harness: Harness, shard: Shard): Promise<unknown[]> {
  const { shard: again } = await open(harness);
  return [shard, again].map((one) => [offsetOf(one), one.pending.has("g", AT)]);
}

test("an offset is pending until its marker, then published or dropped; a reload says the same", async () => {
  const harness = await createHarness();
  const { shard } = await open(harness);
  await pend(harness, shard, 5);
  assert.deepEqual(await both(harness, shard), [[undefined, true], [undefined, true]]);
  await end(shard, true);
  assert.deepEqual(await both(harness, shard), [[5, false], [5, false]]);
  await pend(harness, shard, 9);
  assert.deepEqual(await both(harness, shard), [[5, true], [5, true]]);
  await end(shard, false);
  assert.deepEqual(await both(harness, shard), [[5, false], [5, false]]);
});

test("a plain commit behind a pending one wins, whenever the marker comes", async () => {
  const harness = await createHarness();
  const { shard } = await open(harness);
  await plain(harness, shard, 1);
  await pend(harness, shard, 5);
  await plain(harness, shard, 3);
  await end(shard, true);
  assert.deepEqual(await both(harness, shard), [[3, false], [3, false]]);
});

test("a plain commit before a pending one loses, though both become durable with the marker", async () => {
  const harness = await createHarness();
  const { shard } = await open(harness);
  harness.streams.durability = "manual";
  const committed = plain(harness, shard, 1);
  const pended = pend(harness, shard, 5);
  const ended = end(shard, true);
  assert.ok(shard.pending.has("g", AT), "as soon as it has its place in the log");
  harness.streams.confirm();
  await Promise.all([committed, pended, ended]);
  harness.streams.durability = "auto";
  assert.deepEqual(await both(harness, shard), [[5, false], [5, false]]);
});

test("what stands behind a marker belongs to the next transaction", async () => {
  const harness = await createHarness();
  const { shard } = await open(harness);
  await pend(harness, shard, 5);
  harness.streams.durability = "manual";
  const ended = end(shard, true);
  const pended = pend(harness, shard, 9);
  harness.streams.confirm();
  await Promise.all([ended, pended]);
  harness.streams.durability = "auto";
  assert.deepEqual(await both(harness, shard), [[5, true], [5, true]]);
  await end(shard, false);
  assert.deepEqual(await both(harness, shard), [[5, false], [5, false]]);
});

test("many commits of one transaction take the memory of one", async () => {
  const harness = await createHarness();
  const { shard, memory } = await open(harness);
  await pend(harness, shard, 1);
  const once = memory.bytes;
  for (let offset = 2; offset < 20; offset++) await pend(harness, shard, offset);
  assert.equal(memory.bytes, once);
  await end(shard, true);
  assert.deepEqual(await both(harness, shard), [[19, false], [19, false]]);
});

test("producers have pending offsets of the same partition side by side", async () => {
  const harness = await createHarness();
  const { shard } = await open(harness);
  const other = { producerId: 8, producerEpoch: 0 };
  await pend(harness, shard, 5);
  await pend(harness, shard, 6, other);
  await end(shard, true);
  assert.deepEqual(await both(harness, shard), [[5, true], [5, true]]);
  await end(shard, true, other);
  assert.deepEqual(await both(harness, shard), [[6, false], [6, false]]);
});

test("pending offsets neither expire, nor go with their group, nor under a rewrite of the log", async () => {
  const harness = await createHarness();
  const { shard, memory } = await open(harness);
  for (let offset = 0; offset < 20; offset++) await plain(harness, shard, offset);
  await pend(harness, shard, 50);
  const start = harness.log.logStartOffset;
  harness.nowMs += 10 * RETENTION_MS;
  await shard.maintain(harness.nowMs);
  assert.equal(harness.log.logStartOffset, start, "not rewritten while a transaction is open");
  assert.deepEqual(await both(harness, shard), [[19, true], [19, true]]);
  await end(shard, true);
  await shard.maintain(harness.nowMs);
  assert.equal(shard.find("g"), undefined, "its offset was committed long ago");
  assert.equal(memory.bytes, 0);
});

test("a deleted group's pending offsets are gone; their marker brings nothing back", async () => {
  const harness = await createHarness();
  const { shard } = await open(harness);
  await pend(harness, shard, 5);
  await shard.delete(shard.find("g")!);
  assert.deepEqual(await both(harness, shard), [[undefined, false], [undefined, false]]);
  await end(shard, true);
  assert.deepEqual(await both(harness, shard), [[undefined, false], [undefined, false]]);
});

test("offsets of an old epoch, or of a transaction that nobody opened, are refused by the log", async () => {
  const harness = await createHarness();
  const { shard } = await open(harness);
  await pend(harness, shard, 5);
  const entry = shard.find("g")!;
  const offsets = [entryOf(harness, 6)];
  const older = { ...PRODUCER, producerEpoch: 2 };
  assert.equal(await shard.commitPending(entry, older, offsets, null), "INVALID_PRODUCER_EPOCH");
  const stranger = { producerId: 99, producerEpoch: 0 };
  assert.equal(await shard.commitPending(entry, stranger, offsets, null), "INVALID_TXN_STATE");
});

test("a pending offset counts with the name of its group, which it holds", async () => {
  const harness = await createHarness();
  const memory = new ShardMemory(20_000);
  const { shard } = await open(harness, memory);
  const groupId = "g".repeat(10_000);
  const offsets = [entryOf(harness, 5)];
  assert.ok(shard.pending.hasRoomFor(groupId, offsets));
  const before = memory.bytes;
  shard.pending.replay(7, { groupId, entry: offsets[0]!, position: 0 });
  assert.ok(memory.bytes - before >= groupId.length);
  assert.ok(!shard.pending.hasRoomFor(groupId, offsets));
  shard.pending.clear();
  assert.equal(memory.bytes, before);
});
