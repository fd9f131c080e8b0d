import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../../tests/support/test_env.ts";
import { brokerConfig } from "../../../tests/support/broker_world.ts";
import { createMemoryLog } from "../../../tests/support/memory_log.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { logConfigOf } from "../topic_config.ts";
import { GroupMemory } from "./memory.ts";
import { NEVER, type OffsetEntry } from "./offset_table.ts";
import { Shard } from "./shard.ts";

const COMMITTED_AT_MS = 1_700_000_000_000;

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

async function shardOver(
  log: Shard["log"],
  memory = new GroupMemory(2 ** 40),
): Promise<Shard> {
  const shard = new Shard({
    env: testEnv(),
    log,
    settings: {
      sessionTimeoutMsMin: 6000,
      sessionTimeoutMsMax: 60_000,
      initialRebalanceDelayMs: 0,
      membersMax: 10,
    },
    retentionMs: 86_400_000,
    newMemberId: (prefix) => prefix,
    topicExists: () => true,
    memory,
  });
  await shard.load();
  return shard;
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
  const memory = new GroupMemory(50_000);
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
