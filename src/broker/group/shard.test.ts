import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../../tests/support/test_env.ts";
import { brokerConfig } from "../../../tests/support/broker_world.ts";
import { createMemoryLog } from "../../../tests/support/memory_log.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { logConfigOf } from "../topic_config.ts";
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

async function shardOver(log: Shard["log"]): Promise<Shard> {
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
