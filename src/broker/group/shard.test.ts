import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { loadedShard } from "../../../tests/support/group_shard.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { brokerConfig } from "../../../tests/support/broker_world.ts";
import { createMemoryLog } from "../../../tests/support/memory_log.ts";
import { toUtf8, utf8 } from "../../lib/bytes.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { consumerProtocolSubscription } from "../../protocol/message/consumer_protocol.ts";
import { encodeVersioned } from "../../protocol/versioned.ts";
import { logConfigOf } from "../topic_config.ts";
import type { JoinAnswer, SyncAnswer } from "./group.ts";
import { join } from "./join.ts";
import { leave, tick } from "./membership.ts";
import { ShardMemory } from "../shard/shard_memory.ts";
import { NEVER, type OffsetEntry } from "./offset_table.ts";
import type { GroupEntry, Shard, ShardOptions } from "./shard.ts";
import { sync } from "./sync.ts";

const COMMITTED_AT_MS = 1_700_000_000_000;
const RETENTION_MS = 86_400_000;

function offsetOf(offset: number, metadata = ""): OffsetEntry {
  return {
    topic: "t",
    partition: 0,
    offset,
    leaderEpoch: 0,
    metadata,
    committedAtMs: COMMITTED_AT_MS,
    expireAtMs: NEVER,
    topicId: ZERO_UUID,
  };
}

function shardOver(
  log: Shard["log"],
  memory = new ShardMemory(2 ** 40),
  over: Partial<ShardOptions> = {},
): Promise<Shard> {
  return loadedShard(testEnv(), log, { retentionMs: RETENTION_MS, memory, ...over });
}

/** One that rewrites its log however small it is. */
function eagerShardOver(log: Shard["log"]): Promise<Shard> {
  return shardOver(log, undefined, { compactBytesMin: 0 });
}

/** Commits until most of the log is dead. */
async function makeHollow(shard: Shard, groupId = "g"): Promise<void> {
  const entry = shard.findOrCreate(groupId);
  for (let n = 0; n < 60; n++) await shard.commit(entry, [offsetOf(n, "m".repeat(500))]);
  await shard.commit(entry, [offsetOf(60)]);
}

/** Joins as a client of that name, whose member id it also is; a known member comes again. */
function joinAs(shard: Shard, name: string, metadata = toUtf8("m")): { answer: JoinAnswer | null } {
  const held: { answer: JoinAnswer | null } = { answer: null };
  const entry = shard.findOrCreate("g");
  const request = {
    memberId: entry.group.members.has(name) ? name : "",
    instanceId: null,
    clientId: name,
    clientHost: "127.0.0.1",
    sessionTimeoutMs: 10_000,
    rebalanceTimeoutMs: 60_000,
    protocolType: "consumer",
    protocols: [{ name: "range", metadata }],
    needsKnownId: false,
    canSkipAssignment: false,
  };
  join(entry.group, shard.host, request, (answer) => void (held.answer = answer));
  tick(entry.group, shard.host);
  return held;
}

/** Syncs as a member, which assigns to all when it leads. */
function syncAs(shard: Shard, memberId: string, generation: number): { answer: SyncAnswer | null } {
  const held: { answer: SyncAnswer | null } = { answer: null };
  const { group } = shard.find("g")!;
  const assignments = [...group.members.keys()].map((each) => ({
    memberId: each,
    assignment: toUtf8(`${each} in ${generation}`),
  }));
  const type = { protocolType: null, protocolName: null };
  const request = { memberId, instanceId: null, generation, ...type, assignments };
  sync(group, shard.host, request, (answer) => void (held.answer = answer));
  return held;
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

async function stableShard(log: Shard["log"], metadata?: Uint8Array): Promise<Shard> {
  const shard = await eagerShardOver(log);
  await makeHollow(shard);
  joinAs(shard, "a", metadata);
  syncAs(shard, "a", 1);
  await settle();
  assert.equal(shard.find("g")!.group.state, "Stable");
  return shard;
}

function pictureOf({ group, offsets }: GroupEntry) {
  const members = [...group.members.values()].map(({ memberId, assignment, protocols }) => ({
    memberId,
    assignment: utf8(assignment),
    protocols: protocols.map(({ name, metadata }) => `${name} ${utf8(metadata)}`),
  }));
  const { groupId, state, generation, leader, protocolName } = group;
  return {
    groupId,
    state,
    generation,
    leader,
    protocolName,
    members,
    offsets: [...offsets.entries()],
  };
}

async function reloadedPicture(log: Shard["log"]) {
  return [...(await shardOver(log)).groups.values()].map(pictureOf);
}

test("compaction never drops a commit that has just become durable", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await shardOver(log);
  const entry = shard.findOrCreate("g");
  const long = "m".repeat(30_000);
  for (let n = 0; n < 40; n++) await shard.commit(entry, [offsetOf(n, long)]);
  await shard.commit(entry, [offsetOf(40)]);
  log.durability = "manual";
  const committing = shard.commit(entry, [offsetOf(41)]);
  log.confirm();
  // The record is durable, its promise not yet looked at.
  log.durability = "auto";
  await Promise.all([shard.maintain(COMMITTED_AT_MS), committing]);
  const reloaded = await shardOver(log);
  assert.equal(reloaded.find("g")?.offsets.get("t", 0, ZERO_UUID)?.offset, 41);
  await shard.maintain(COMMITTED_AT_MS);
  assert.ok(log.logStartOffset > 0, "at rest it compacts");
});

test("offsets with long texts are stored in batches that the log takes", async () => {
  // 1000 of them in one batch are four times max.message.bytes: the commit could never succeed.
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await shardOver(log);
  const offsets = Array.from({ length: 1000 }, (_, partition) => ({
    ...offsetOf(partition, "m".repeat(4096)),
    partition,
  }));
  await shard.commit(shard.findOrCreate("g"), offsets);
  const { offsets: table } = (await shardOver(log)).find("g")!;
  assert.equal(table.size, 1000);
  assert.equal(table.get("t", 999, ZERO_UUID)?.offset, 999);
});

test("what groups hold is counted for the node, and given back when they go", async () => {
  const memory = new ShardMemory(50_000);
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await shardOver(log, memory);
  const entry = shard.findOrCreate("g");
  await shard.commit(entry, [offsetOf(1, "m".repeat(30_000))]);
  const { bytes } = memory;
  assert.ok(bytes > 30_000 && bytes < 35_000, `${bytes}`);
  const other = { ...offsetOf(1, "m".repeat(30_000)), partition: 1 };
  assert.equal(shard.hasRoomFor(entry, [other]), false);
  assert.ok(shard.hasRoomFor(entry, [offsetOf(2, "m".repeat(30_000))]), "an offset can move on");
  await shard.commit(entry, [offsetOf(2, "")]);
  assert.ok(memory.bytes < 2000);
  const waiting = shard.commit(entry, [other]);
  assert.ok(memory.bytes > 30_000, "what is being written counts");
  await waiting;
  await shard.commit(shard.findOrCreate("h"), [offsetOf(1)]);
  assert.equal((await shardOver(log)).groups.size, 2);
  await shard.delete(entry);
  shard.close();
  assert.equal(memory.bytes, 0);
  const failing = await shardOver(log, memory);
  const before = memory.bytes;
  log.refusal = "NOT_LEADER_OR_FOLLOWER";
  await assert.rejects(failing.commit(failing.findOrCreate("new"), [offsetOf(1)]));
  assert.equal(failing.find("new"), undefined, "a group that was never stored is not kept");
  assert.equal(memory.bytes, before);
});

test("compaction in the sync phase leaves the last stable generation, not one without assignments", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await stableShard(log);
  joinAs(shard, "b");
  joinAs(shard, "a");
  const { group } = shard.find("g")!;
  assert.deepEqual([group.state, group.generation], ["CompletingRebalance", 2]);
  await shard.maintain(COMMITTED_AT_MS);
  assert.ok(log.logStartOffset > 0, "a rebalance does not hold compaction up");
  const reloaded = await shardOver(log);
  assert.equal(syncAs(reloaded, "a", 2).answer?.error, "ILLEGAL_GENERATION", "so it joins again");
  const { error, assignment } = syncAs(reloaded, "a", 1).answer!;
  assert.deepEqual([error, utf8(assignment)], ["NONE", "a in 1"]);
  assert.equal(reloaded.find("g")!.offsets.get("t", 0, ZERO_UUID)?.offset, 60);
});

test("compaction in the join phase keeps who has left until somebody misses it", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await stableShard(log);
  joinAs(shard, "b");
  joinAs(shard, "a");
  syncAs(shard, "b", 2);
  syncAs(shard, "a", 2);
  await settle();
  leave(shard.find("g")!.group, shard.host, "a", null);
  assert.equal(shard.find("g")!.group.state, "PreparingRebalance");
  await shard.maintain(COMMITTED_AT_MS);
  assert.ok(log.logStartOffset > 0);
  const { group } = (await shardOver(log)).find("g")!;
  // Were it missing, the others would go on without its partitions and nothing would make them gather.
  assert.deepEqual([...group.members.keys()].toSorted(), ["a", "b"]);
  assert.deepEqual([group.state, group.generation], ["Stable", 2]);
});

test("a first rebalance is not stored by a compaction", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await eagerShardOver(log);
  await makeHollow(shard);
  assert.equal(joinAs(shard, "a").answer?.generation, 1);
  await shard.maintain(COMMITTED_AT_MS);
  assert.ok(log.logStartOffset > 0);
  const reloaded = await shardOver(log);
  assert.equal(syncAs(reloaded, "a", 1).answer?.error, "UNKNOWN_MEMBER_ID", "so it joins again");
  assert.equal(reloaded.find("g")!.offsets.size, 1);
});

test("compaction never writes an older record of a group behind one that has just become durable", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await stableShard(log);
  joinAs(shard, "a");
  log.durability = "manual";
  const answer = syncAs(shard, "a", 2);
  log.confirm();
  // The record is durable, its promise not yet looked at.
  log.durability = "auto";
  await shard.maintain(COMMITTED_AT_MS);
  await settle();
  assert.equal(answer.answer?.error, "NONE");
  assert.equal((await shardOver(log)).find("g")!.group.generation, 2);
  await shard.maintain(COMMITTED_AT_MS);
  assert.ok(log.logStartOffset > 0, "at rest it compacts");
  assert.equal((await shardOver(log)).find("g")!.group.generation, 2);
});

test("a group that another compaction wrote is kept through a reload and the next one", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  await (await stableShard(log)).maintain(COMMITTED_AT_MS);
  const before = await reloadedPicture(log);
  const again = await eagerShardOver(log);
  await makeHollow(again, "other");
  const start = log.logStartOffset;
  await again.maintain(COMMITTED_AT_MS);
  assert.ok(log.logStartOffset > start);
  assert.deepEqual((await reloadedPicture(log)).filter(({ groupId }) => groupId === "g"), before);
});

test("whatever a group is doing, a reload finds the same before and after a compaction", async () => {
  const name = fc.constantFrom("a", "b", "c");
  const step = fc.record({
    kind: fc.constantFrom("join", "sync", "leave", "refuse", "allow"),
    name,
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const log = createMemoryLog(logConfigOf({}, brokerConfig()));
      const shard = await eagerShardOver(log);
      await makeHollow(shard);
      for (const { kind, name } of steps) {
        const { group } = shard.findOrCreate("g");
        if (kind === "join") joinAs(shard, name);
        else if (kind === "sync") syncAs(shard, name, group.generation);
        else if (kind === "leave") leave(group, shard.host, name, null);
        else log.refusal = kind === "refuse" ? "NOT_ENOUGH_REPLICAS" : null;
        await settle();
      }
      log.refusal = null;
      const before = await reloadedPicture(log);
      await shard.maintain(COMMITTED_AT_MS);
      assert.ok(log.logStartOffset > 0);
      assert.deepEqual(await reloadedPicture(log), before);
    }),
    { numRuns: 60 },
  );
});

test("expiry leaves a group alone that was deleted and created anew while it waited", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await shardOver(log);
  await shard.commit(shard.findOrCreate("first"), [offsetOf(1)]);
  await shard.commit(shard.findOrCreate("g"), [offsetOf(1)]);
  log.durability = "manual";
  const maintaining = shard.maintain(COMMITTED_AT_MS + RETENTION_MS);
  const deleting = shard.delete(shard.find("g")!);
  const late = { ...offsetOf(2), committedAtMs: COMMITTED_AT_MS + RETENTION_MS };
  const committing = shard.commit(shard.findOrCreate("g"), [late]);
  log.confirm();
  log.durability = "auto";
  await Promise.all([maintaining, deleting, committing]);
  assert.equal(shard.find("g")?.offsets.get("t", 0, ZERO_UUID)?.offset, 2);
  const reloaded = await shardOver(log);
  assert.equal(reloaded.find("g")?.offsets.get("t", 0, ZERO_UUID)?.offset, 2);
});

test("expiry takes only those offsets out of the table that it has looked at", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await shardOver(log);
  const entry = shard.findOrCreate("g");
  const kept = { ...offsetOf(7), partition: 1, committedAtMs: COMMITTED_AT_MS + RETENTION_MS };
  await shard.commit(entry, [offsetOf(1), kept]);
  log.durability = "manual";
  const maintaining = shard.maintain(COMMITTED_AT_MS + RETENTION_MS);
  // What a commit does that is told first of the two.
  entry.offsets.set({ ...offsetOf(2), committedAtMs: COMMITTED_AT_MS + RETENTION_MS });
  log.confirm();
  await maintaining;
  assert.deepEqual([...entry.offsets.entries()].map(({ offset }) => offset).toSorted(), [2, 7]);
});

test("a rebalance does not make offsets expire of topics whose subscriber is only late", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const topics = (names: readonly string[]) =>
    encodeVersioned(consumerProtocolSubscription, 0, { topics: names });
  const shard = await stableShard(log, topics(["t"]));
  joinAs(shard, "b", topics(["u"]));
  leave(shard.find("g")!.group, shard.host, "a", null);
  const { group, offsets } = shard.find("g")!;
  assert.notEqual(group.state, "Stable");
  await shard.maintain(COMMITTED_AT_MS + RETENTION_MS);
  assert.equal(offsets.size, 1, "it may come again before the rebalance ends");
  syncAs(shard, "b", group.generation);
  await settle();
  await shard.maintain(COMMITTED_AT_MS + RETENTION_MS);
  assert.equal(offsets.size, 0);
});

function offsetsOf(shard: Shard): (readonly [partition: number, offset: number])[] {
  const entry = shard.find("g");
  return [...entry?.offsets.entries() ?? []]
    .map(({ partition, offset }) => [partition, offset] as const)
    .toSorted(([a], [b]) => a - b);
}

test("a deletion takes commits along that were on their way before it, and none behind it", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await shardOver(log);
  const entry = shard.findOrCreate("g");
  await shard.commit(entry, [{ ...offsetOf(1), partition: 1 }]);
  log.durability = "manual";
  const at = [0, 1].map((partition) => ({ topic: "t", partition }));
  const writes = [
    shard.commit(entry, [offsetOf(5)]),
    shard.deleteOffsets(entry, at),
    shard.commit(entry, [{ ...offsetOf(7), partition: 1 }]),
  ];
  log.confirm();
  await Promise.all(writes);
  assert.deepEqual(offsetsOf(shard), [[1, 7]]);
  assert.deepEqual(offsetsOf(await shardOver(log)), [[1, 7]]);
});

test("a deletion of what there is not writes nothing; one that fails deletes nothing", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await shardOver(log);
  const entry = shard.findOrCreate("g");
  await shard.commit(entry, [offsetOf(1)]);
  const end = log.logEndOffset;
  await shard.deleteOffsets(entry, [{ topic: "t", partition: 9 }]);
  assert.equal(log.logEndOffset, end);
  log.refusal = "NOT_LEADER_OR_FOLLOWER";
  await assert.rejects(shard.deleteOffsets(entry, [{ topic: "t", partition: 0 }]));
  assert.deepEqual(offsetsOf(shard), [[0, 1]]);
});

test("a deletion that names a partition again and again writes one tombstone", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const shard = await shardOver(log);
  const entry = shard.findOrCreate("g");
  await shard.commit(entry, [offsetOf(1)]);
  const end = log.logEndOffset;
  await shard.deleteOffsets(
    entry,
    Array.from({ length: 50 }, () => ({ topic: "t", partition: 0 })),
  );
  assert.equal(log.logEndOffset, end + 1);
});

test("a group that cannot be deleted keeps its offsets, and those of open transactions", async () => {
  const log = createMemoryLog(logConfigOf({}, brokerConfig()));
  const memory = new ShardMemory(2 ** 40);
  const shard = await shardOver(log, memory);
  const entry = shard.findOrCreate("g");
  await shard.commit(entry, [offsetOf(1)]);
  shard.pending.replay(7, { groupId: "g", entry: offsetOf(5), position: 1 });
  const before = memory.bytes;
  log.refusal = "NOT_ENOUGH_REPLICAS";
  await assert.rejects(shard.delete(entry));
  assert.deepEqual(offsetsOf(shard), [[0, 1]]);
  assert.ok(shard.pending.has("g", { topic: "t", partition: 0 }));
  assert.equal(memory.bytes, before);
});

test("commits and deletions in any order, in flight or not: a reload finds what memory has", async () => {
  const step = fc.record({
    deletes: fc.boolean(),
    partitions: fc.uniqueArray(fc.nat(2), { minLength: 1 }),
    confirms: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const log = createMemoryLog(logConfigOf({}, brokerConfig()));
      log.durability = "manual";
      const shard = await shardOver(log);
      const model = new Map<number, number>();
      const writes: Promise<void>[] = [];
      for (const [n, { deletes, partitions, confirms }] of steps.entries()) {
        // A group without anything is forgotten.
        const entry = shard.findOrCreate("g");
        if (deletes) {
          const at = partitions.map((partition) => ({ topic: "t", partition }));
          writes.push(shard.deleteOffsets(entry, at));
          for (const partition of partitions) model.delete(partition);
        } else {
          const offsets = partitions.map((partition) => ({ ...offsetOf(n), partition }));
          writes.push(shard.commit(entry, offsets));
          for (const partition of partitions) model.set(partition, n);
        }
        if (confirms) {
          log.confirm();
          await Promise.all(writes);
        }
      }
      log.confirm();
      await Promise.all(writes);
      const expected = [...model].toSorted(([a], [b]) => a - b);
      assert.deepEqual(offsetsOf(shard), expected);
      assert.deepEqual(offsetsOf(await shardOver(log)), expected);
    }),
    { numRuns: 200 },
  );
});
