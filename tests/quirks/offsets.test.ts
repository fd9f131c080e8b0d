/** Committed offsets: sheet section 3.13 and the offsets row of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteWriter, toUtf8 } from "../../src/lib/bytes.ts";
import { type Uuid, ZERO_UUID } from "../../src/lib/uuid.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { offsetCommitApi } from "../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { parseBrokerConfig } from "../../src/broker/broker_config.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { faultyStore } from "../support/faulty_store.ts";
import { GroupMember, settled, stableGroup } from "./group_member.ts";
import { correlationIdOf } from "./quirk_node.ts";
import { named, type Quirks, restarted, startQuirks } from "./quirks.ts";

interface Commit {
  readonly group?: string;
  readonly offset?: number;
  readonly topic?: string;
  readonly topicId?: Uuid;
  readonly partition?: number;
  readonly metadata?: string | null;
  readonly leaderEpoch?: number;
  readonly generation?: number;
  readonly memberId?: string;
  readonly instanceId?: string | null;
  readonly retentionMs?: number;
  readonly version?: number;
}

function commitRequest(one: Commit) {
  const { group = "g", offset = 5, topic = "t", topicId = ZERO_UUID, partition = 0 } = one;
  return {
    groupId: group,
    generationIdOrMemberEpoch: one.generation ?? -1,
    memberId: one.memberId ?? "",
    groupInstanceId: one.instanceId ?? null,
    retentionTimeMs: one.retentionMs ?? -1,
    topics: [{
      name: topic,
      topicId,
      partitions: [{
        partitionIndex: partition,
        committedOffset: offset,
        committedLeaderEpoch: one.leaderEpoch ?? -1,
        committedMetadata: one.metadata === undefined ? "" : one.metadata,
      }],
    }],
  };
}

async function commit(q: Quirks, one: Commit = {}) {
  const answer = await q.call(offsetCommitApi, one.version ?? 8, commitRequest(one));
  return named(answer.topics[0]!.partitions[0]!).error;
}

async function fetchOne(q: Quirks, { group = "g", topic = "t", partition = 0, version = 7 } = {}) {
  const answer = await q.call(offsetFetchApi, version, {
    groupId: group,
    topics: [{ name: topic, partitionIndexes: [partition] }],
  });
  return named(answer.topics[0]!.partitions[0]!);
}

async function offsetOf(q: Quirks, where = {}): Promise<number> {
  const { error, committedOffset } = await fetchOne(q, where);
  assert.equal(error, "NONE");
  return committedOffset;
}

/** All topics of a group in the form of version 8: name, partition, offset. */
async function allOf(q: Quirks, group = "g") {
  const answer = await q.call(offsetFetchApi, 8, { groups: [{ groupId: group, topics: null }] });
  return answer.groups[0]!.topics.flatMap(({ name, partitions }) =>
    partitions.map((one) => [name, one.partitionIndex, one.committedOffset])
  );
}

async function withTopic(properties: Record<string, string> = {}): Promise<Quirks> {
  const q = await startQuirks(properties);
  await q.topic("t", 2);
  return q;
}

/** The consumer protocol's subscription, version 0. */
function subscription(topics: readonly string[]): Uint8Array {
  const writer = new ByteWriter();
  writer.i16(0);
  writer.i32(topics.length);
  for (const topic of topics) {
    const bytes = toUtf8(topic);
    writer.i16(bytes.length);
    writer.bytes(bytes);
  }
  writer.i32(-1);
  return writer.view();
}

// OffsetCommit.

test("every version commits, and every version fetches what was committed", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  for (let version = 2; version <= 10; version++) {
    const one = { version, offset: version, topicId: version < 10 ? ZERO_UUID : topicId };
    assert.equal(await commit(q, { ...one, metadata: "m" }), "NONE", `version ${version}`);
    for (let fetch = 1; fetch <= 7; fetch++) {
      const found = await fetchOne(q, { version: fetch });
      assert.deepEqual([found.error, found.committedOffset, found.metadata], [
        "NONE",
        version,
        "m",
      ]);
    }
  }
});

test("an empty group id is fine for old simple consumers", async () => {
  const q = await withTopic();
  assert.equal(await commit(q, { group: "" }), "NONE");
  assert.equal(await offsetOf(q, { group: "" }), 5);
});

test("an unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION; others of the request are stored", async () => {
  const q = await withTopic();
  const request = commitRequest({});
  const [topic] = request.topics;
  const answer = await q.call(offsetCommitApi, 8, {
    ...request,
    topics: [{ ...topic!, name: "u" }, topic!],
  });
  assert.deepEqual(answer.topics.map(({ partitions }) => named(partitions[0]!).error), [
    "UNKNOWN_TOPIC_OR_PARTITION",
    "NONE",
  ]);
  assert.equal(await commit(q, { partition: 9 }), "UNKNOWN_TOPIC_OR_PARTITION");
  assert.equal(await offsetOf(q), 5);
});

test("v10: an unknown id is UNKNOWN_TOPIC_ID, for commit and for fetch", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  assert.equal(await commit(q, { version: 10 }), "UNKNOWN_TOPIC_ID");
  assert.equal(await commit(q, { version: 10, topicId, offset: 3 }), "NONE");
  const answer = await q.call(offsetFetchApi, 10, {
    groups: [{
      groupId: "g",
      topics: [topicId, ZERO_UUID].map((id) => ({ topicId: id, partitionIndexes: [0] })),
    }],
  });
  const found = answer.groups[0]!.topics.map(({ partitions }) => named(partitions[0]!));
  assert.deepEqual(found.map(({ error, committedOffset }) => [error, committedOffset]), [
    ["NONE", 3],
    ["UNKNOWN_TOPIC_ID", -1],
  ]);
});

test("metadata above 4096 bytes is OFFSET_METADATA_TOO_LARGE; null reads back as empty", async () => {
  const q = await withTopic();
  assert.equal(await commit(q, { metadata: "x".repeat(4097) }), "OFFSET_METADATA_TOO_LARGE");
  assert.equal(await commit(q, { metadata: "x".repeat(4096) }), "NONE");
  assert.equal((await fetchOne(q)).metadata?.length, 4096);
  assert.equal(await commit(q, { metadata: null }), "NONE");
  assert.equal((await fetchOne(q)).metadata, "");
});

test("offset.metadata.max.bytes is obeyed, in UTF-16 units as in Kafka, up to the bytes that a record can hold", async () => {
  const q = await startQuirks({ "offset.metadata.max.bytes": "32767" });
  await q.topic("t", 2);
  assert.equal(await commit(q, { metadata: "x".repeat(32_767) }), "NONE");
  assert.equal((await fetchOne(q)).metadata?.length, 32_767);
  assert.equal(await commit(q, { metadata: "é".repeat(16_383) }), "NONE");
  const small = await startQuirks({ "offset.metadata.max.bytes": "3" });
  await small.topic("t", 2);
  assert.equal(await commit(small, { metadata: "ééé" }), "NONE");
  assert.equal(await commit(small, { metadata: "éééé" }), "OFFSET_METADATA_TOO_LARGE");
  assert.equal(await commit(small, { metadata: "abc" }), "NONE");
  const config = parseBrokerConfig({ "offset.metadata.max.bytes": "32768" });
  assert.ok(!config.ok);
});

test("no group: without a generation a simple one is made, with one it is refused by version", async () => {
  const q = await withTopic();
  assert.equal(await commit(q, { generation: 3, memberId: "m", version: 8 }), "ILLEGAL_GENERATION");
  assert.equal(await commit(q, { generation: 3, memberId: "m", version: 9 }), "GROUP_ID_NOT_FOUND");
  assert.equal(await commit(q, { generation: 0, memberId: "m", version: 2 }), "ILLEGAL_GENERATION");
  assert.equal(await commit(q), "NONE");
});

test("an empty group takes commits without a generation (kafka-consumer-groups resets)", async () => {
  const q = await withTopic();
  const member = new GroupMember(q);
  await stableGroup(q, [member]);
  const own = { generation: member.generation, memberId: member.id };
  assert.equal(await commit(q, { ...own, offset: 7 }), "NONE");
  await member.leave();
  assert.equal(await commit(q, { offset: 2 }), "NONE");
  assert.equal(await offsetOf(q), 2);
  assert.equal(await commit(q, own), "UNKNOWN_MEMBER_ID");
});

test("a group with members: outsiders, strangers, wrong instances and generations are refused", async () => {
  const q = await withTopic();
  const member = new GroupMember(q, { instanceId: "i" });
  await stableGroup(q, [member]);
  const { generation, id } = member;
  assert.equal(await commit(q), "UNKNOWN_MEMBER_ID");
  assert.equal(await commit(q, { generation, memberId: "x" }), "UNKNOWN_MEMBER_ID");
  assert.equal(
    await commit(q, { generation, memberId: "x", instanceId: "i" }),
    "FENCED_INSTANCE_ID",
  );
  for (const wrong of [generation + 1, generation - 1]) {
    const one = { generation: wrong, memberId: id, instanceId: "i" };
    assert.equal(await commit(q, one), "ILLEGAL_GENERATION");
  }
  assert.equal(await commit(q, { generation, memberId: id, instanceId: "i" }), "NONE");
});

test("a member commits in Stable and in Preparing, not in CompletingRebalance", async () => {
  const q = await withTopic();
  const member = new GroupMember(q);
  await settled(q, member.enter());
  const own = () => ({ generation: member.generation, memberId: member.id });
  assert.equal(await commit(q, own()), "REBALANCE_IN_PROGRESS");
  await member.sync();
  assert.equal(await commit(q, own()), "NONE");
  void new GroupMember(q).enter();
  await q.node.clock.advance(0);
  assert.equal(await member.beat(), "REBALANCE_IN_PROGRESS");
  assert.equal(await commit(q, { ...own(), offset: 9 }), "NONE", "before it rejoins");
  assert.equal(await offsetOf(q), 9);
});

test("a commit keeps the member's session alive", async () => {
  const q = await withTopic();
  const member = new GroupMember(q);
  await stableGroup(q, [member]);
  for (let round = 0; round < 3; round++) {
    await q.node.clock.advance(9000);
    const own = { generation: member.generation, memberId: member.id };
    assert.equal(await commit(q, { ...own, offset: round }), "NONE");
  }
  assert.equal(await member.beat(), "NONE");
});

test("the leader epoch is stored from v6 on, and -1 when unknown", async () => {
  const q = await withTopic();
  await commit(q, { version: 6, leaderEpoch: 4 });
  assert.equal((await fetchOne(q, { version: 5 })).committedLeaderEpoch, 4);
  await commit(q, { version: 5, leaderEpoch: 4 });
  assert.equal((await fetchOne(q, { version: 5 })).committedLeaderEpoch, -1);
});

test("the last write wins, also when it goes back", async () => {
  const q = await withTopic();
  for (const offset of [10, 3, 7]) await commit(q, { offset });
  assert.equal(await offsetOf(q), 7);
});

test("a commit is not answered before it is durable", async () => {
  const clock = createFakeClock();
  const store = faultyStore(createMemoryStore(clock), clock);
  const q = await startQuirks({}, { clock, store });
  await q.topic("t", 1);
  await commit(q, { offset: 1 });
  store.setPlan(({ op }) => op === "put" ? { kind: "delay", delayMs: 3000 } : undefined);
  const other = q.node.connect();
  other.post(offsetCommitApi, 8, commitRequest({ offset: 2 }));
  await clock.advance(2000);
  assert.equal(other.unread, 0);
  assert.equal(await offsetOf(q), 1);
  await clock.advance(2000);
  assert.equal(other.unread, 1);
  assert.equal(await offsetOf(q), 2);
});

// OffsetFetch.

test("no commit is -1, -1, empty and no error; so it is for an unknown group", async () => {
  const q = await withTopic();
  await commit(q);
  for (const where of [{ partition: 1 }, { group: "none" }, { topic: "u" }]) {
    for (let version = 1; version <= 7; version++) {
      const found = await fetchOne(q, { ...where, version });
      const { error, committedOffset, committedLeaderEpoch, metadata } = found;
      assert.deepEqual([error, committedOffset, committedLeaderEpoch, metadata], [
        "NONE",
        -1,
        -1,
        "",
      ]);
    }
  }
});

test("null topics mean all from v2 on, an empty list none", async () => {
  const q = await withTopic();
  await q.topic("u");
  await commit(q, { offset: 1 });
  await commit(q, { offset: 2, partition: 1 });
  await commit(q, { offset: 3, topic: "u" });
  for (let version = 2; version <= 7; version++) {
    const all = await q.call(offsetFetchApi, version, { groupId: "g", topics: null });
    const found = all.topics.flatMap(({ name, partitions }) =>
      partitions.map((one) => [name, one.partitionIndex, one.committedOffset])
    );
    assert.deepEqual(found, [["t", 0, 1], ["t", 1, 2], ["u", 0, 3]]);
    const none = await q.call(offsetFetchApi, version, { groupId: "g", topics: [] });
    assert.deepEqual(none.topics, []);
  }
});

test("v8 and later: many groups, each with its own answer and error", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  await commit(q, { group: "a", offset: 1 });
  await commit(q, { group: "b", offset: 2 });
  for (let version = 8; version <= 10; version++) {
    const topics = [{ name: "t", topicId, partitionIndexes: [0] }];
    const groups = ["a", "b", "none"].map((groupId) => ({ groupId, topics }));
    const answer = await q.call(offsetFetchApi, version, { groups, requireStable: true });
    const found = answer.groups.map((one) => [
      one.groupId,
      named(one).error,
      one.topics[0]!.partitions[0]!.committedOffset,
    ]);
    assert.deepEqual(found, [["a", "NONE", 1], ["b", "NONE", 2], ["none", "NONE", -1]]);
  }
});

test("RequireStable changes nothing while no transaction is open", async () => {
  const q = await withTopic();
  await commit(q);
  const answer = await q.call(offsetFetchApi, 7, {
    groupId: "g",
    topics: [{ name: "t", partitionIndexes: [0] }],
    requireStable: true,
  });
  assert.equal(answer.topics[0]!.partitions[0]!.committedOffset, 5);
});

test("a deleted topic's offsets are gone, also for a new topic of its name", async () => {
  const q = await withTopic();
  await commit(q);
  await q.call(deleteTopicsApi, 5, { topicNames: ["t"], timeoutMs: 1000 });
  assert.equal(await offsetOf(q), -1);
  assert.deepEqual(await allOf(q), []);
  await q.topic("t");
  assert.equal(await offsetOf(q), -1);
});

for (const clean of [true, false]) {
  test(`offsets survive a ${clean ? "clean restart" : "crash"}, and are never "none" while they load`, async () => {
    const before = await withTopic();
    for (const group of ["a", "b", "c", "d"]) {
      await commit(before, { group, offset: 42, metadata: group });
    }
    const q = await restarted(before, { clean });
    const asked = ["a", "b", "c", "d"].map((group) => {
      const client = q.node.connect();
      return client.call(offsetFetchApi, 7, {
        groupId: group,
        topics: [{ name: "t", partitionIndexes: [0] }],
      });
    });
    for (const answer of await Promise.all(asked)) {
      const { error, committedOffset } = named(answer.topics[0]!.partitions[0]!);
      assert.deepEqual([error, committedOffset], ["NONE", 42]);
    }
  });
}

// Expiry.

const EXPIRY = {
  "offsets.retention.minutes": "20",
  "offsets.retention.check.interval.ms": "60000",
  "connections.max.idle.ms": "100000000",
};
const MINUTE = 60_000;

test("a simple group's offset expires by the time of its commit", async () => {
  const q = await withTopic(EXPIRY);
  await commit(q, { offset: 1 });
  await q.node.clock.advance(12 * MINUTE);
  await commit(q, { offset: 2, partition: 1 });
  await q.node.clock.advance(7 * MINUTE);
  assert.deepEqual(await allOf(q), [["t", 0, 1], ["t", 1, 2]]);
  await q.node.clock.advance(2 * MINUTE);
  assert.deepEqual(await allOf(q), [["t", 1, 2]]);
});

test("an idle but live consumer keeps its positions for ever", async () => {
  const q = await withTopic(EXPIRY);
  const protocols = [["range", subscription(["t"])]] as const;
  const member = new GroupMember(q, { sessionTimeoutMs: 1_800_000, protocols });
  await stableGroup(q, [member]);
  await commit(q, { generation: member.generation, memberId: member.id });
  for (let round = 0; round < 3; round++) {
    await q.node.clock.advance(25 * MINUTE);
    assert.equal(await member.beat(), "NONE");
  }
  assert.equal(await offsetOf(q), 5);
});

test("in a group with members only topics that nobody subscribes to expire", async () => {
  const q = await withTopic(EXPIRY);
  await q.topic("old");
  const protocols = [["range", subscription(["t"])]] as const;
  const member = new GroupMember(q, { sessionTimeoutMs: 1_800_000, protocols });
  await stableGroup(q, [member]);
  const own = { generation: member.generation, memberId: member.id };
  await commit(q, own);
  await commit(q, { ...own, topic: "old" });
  await q.node.clock.advance(22 * MINUTE);
  assert.deepEqual(await allOf(q), [["t", 0, 5]]);
});

test("a group whose subscriptions cannot be read keeps all", async () => {
  const q = await withTopic(EXPIRY);
  for (const [group, protocolType] of [["c", "connect"], ["b", "consumer"]] as const) {
    const options = { group, protocolType, sessionTimeoutMs: 1_800_000 };
    const member = new GroupMember(q, options);
    await stableGroup(q, [member]);
    const own = { group, generation: member.generation, memberId: member.id };
    assert.equal(await commit(q, own), "NONE");
  }
  await q.node.clock.advance(25 * MINUTE);
  assert.equal(await offsetOf(q, { group: "c" }), 5);
  assert.equal(await offsetOf(q, { group: "b" }), 5);
});

test("an emptied group counts from when it became empty, not from its commits", async () => {
  const q = await withTopic(EXPIRY);
  const protocols = [["range", subscription(["t"])]] as const;
  const member = new GroupMember(q, { sessionTimeoutMs: 1_800_000, protocols });
  await stableGroup(q, [member]);
  await commit(q, { generation: member.generation, memberId: member.id });
  await q.node.clock.advance(15 * MINUTE);
  await member.leave();
  await q.node.clock.advance(15 * MINUTE);
  assert.equal(await offsetOf(q), 5, "30 minutes after the commit, 15 after the leave");
  await q.node.clock.advance(7 * MINUTE);
  assert.equal(await offsetOf(q), -1);
});

test("when it became empty is still known after a crash", async () => {
  const before = await withTopic(EXPIRY);
  const member = new GroupMember(before, { sessionTimeoutMs: 1_800_000 });
  await stableGroup(before, [member]);
  await commit(before, { generation: member.generation, memberId: member.id });
  await before.node.clock.advance(15 * MINUTE);
  await member.leave();
  await before.node.clock.settle();
  const q = await restarted(before, { clean: false }, EXPIRY);
  await q.node.clock.advance(15 * MINUTE);
  assert.equal(await offsetOf(q), 5);
  await q.node.clock.advance(7 * MINUTE);
  assert.equal(await offsetOf(q), -1);
});

test("an explicit retention of v2 to v4 is obeyed", async () => {
  const q = await withTopic(EXPIRY);
  for (const [version, partition] of [[2, 0], [4, 1]] as const) {
    await commit(q, { version, partition, retentionMs: 5 * MINUTE });
  }
  await q.node.clock.advance(4 * MINUTE);
  assert.equal((await allOf(q)).length, 2);
  await q.node.clock.advance(2 * MINUTE);
  assert.deepEqual(await allOf(q), []);
});

test("an explicit retention survives a crash, and Long.MAX means for ever", async () => {
  const before = await withTopic(EXPIRY);
  await commit(before, { version: 2, retentionMs: 40 * MINUTE });
  const id = before.client.post(offsetCommitApi, 2, {
    ...commitRequest({ partition: 1 }),
    retentionTimeMs: Number.MAX_SAFE_INTEGER,
  });
  const answer = await before.client.next();
  assert.equal(correlationIdOf(answer), id);
  const q = await restarted(before, { clean: false }, EXPIRY);
  assert.equal((await allOf(q)).length, 2);
  await q.node.clock.advance(30 * MINUTE);
  assert.equal((await allOf(q)).length, 2);
  await q.node.clock.advance(12 * MINUTE);
  assert.deepEqual(await allOf(q), [["t", 1, 5]]);
});
