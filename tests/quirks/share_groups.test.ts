/** Share groups as their coordinator sees them (KIP-932), and settings of groups: sheet sections 3.9, 3.12, 3.19. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorName } from "../../src/protocol/error_code.ts";
import { offsetCommitApi } from "../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { joinGroupApi } from "../../src/protocol/message/11_join_group.ts";
import { heartbeatApi } from "../../src/protocol/message/12_heartbeat.ts";
import { leaveGroupApi } from "../../src/protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../src/protocol/message/14_sync_group.ts";
import { describeGroupsApi } from "../../src/protocol/message/15_describe_groups.ts";
import { listGroupsApi } from "../../src/protocol/message/16_list_groups.ts";
import { apiVersionsApi } from "../../src/protocol/message/18_api_versions.ts";
import { describeConfigsApi } from "../../src/protocol/message/32_describe_configs.ts";
import { deleteGroupsApi } from "../../src/protocol/message/42_delete_groups.ts";
import { offsetDeleteApi } from "../../src/protocol/message/47_offset_delete.ts";
import { consumerGroupDescribeApi } from "../../src/protocol/message/69_consumer_group_describe.ts";
import { listConfigResourcesApi } from "../../src/protocol/message/74_list_config_resources.ts";
import {
  shareGroupHeartbeatApi,
  type ShareGroupHeartbeatRequest,
} from "../../src/protocol/message/76_share_group_heartbeat.ts";
import { shareGroupDescribeApi } from "../../src/protocol/message/77_share_group_describe.ts";
import { describeShareGroupOffsetsApi } from "../../src/protocol/message/90_describe_share_group_offsets.ts";
import { alterShareGroupOffsetsApi } from "../../src/protocol/message/91_alter_share_group_offsets.ts";
import { deleteShareGroupOffsetsApi } from "../../src/protocol/message/92_delete_share_group_offsets.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { type FaultPlan, faultyStore } from "../support/faulty_store.ts";
import { ConsumerMember } from "./consumer_member.ts";
import { batch, named, type Quirks, restarted, startQuirks } from "./quirks.ts";
import { setGroup, ShareMember } from "./share_member.ts";

const GROUP = 32;

async function say(q: Quirks, request: Partial<ShareGroupHeartbeatRequest>) {
  return named(
    await q.call(shareGroupHeartbeatApi, 1, {
      groupId: "g",
      memberId: "a",
      memberEpoch: 0,
      subscribedTopicNames: null,
      ...request,
    }),
  );
}

async function describe(q: Quirks, groupId = "g") {
  const { groups } = await q.call(shareGroupDescribeApi, 1, {
    groupIds: [groupId],
    includeAuthorizedOperations: false,
  });
  return named(groups[0]!);
}

/** Beats until a member has so many partitions; states are made behind the answers. */
async function untilHas(member: ShareMember, count: number): Promise<number[]> {
  let held: number[] = [];
  for (let round = 0; round < 20; round++) {
    const { assignment } = await member.beat(member.memberEpoch, null);
    const of = assignment?.topicPartitions.flatMap(({ partitions }) => [...partitions]);
    if (of !== undefined) held = of;
    if (of?.length === count) return held;
    await member.q.node.clock.advance(10);
  }
  assert.fail(`it has ${held.length} partitions, not ${count}`);
}

async function offsetsOf(q: Quirks, groupId = "g") {
  const { groups: [group] } = await q.call(describeShareGroupOffsetsApi, 1, {
    groups: [{ groupId, topics: null }],
  });
  return group!.topics.flatMap(({ topicName, partitions }) =>
    partitions.map(({ partitionIndex, startOffset, lag }) =>
      `${topicName}-${partitionIndex}@${startOffset}+${lag}`
    )
  );
}

async function alter(q: Quirks, partitionIndex: number, startOffset: number) {
  return named(
    await q.call(alterShareGroupOffsetsApi, 0, {
      groupId: "g",
      topics: [{ topicName: "t", partitions: [{ partitionIndex, startOffset }] }],
    }),
  );
}

test("what a request must say: INVALID_REQUEST, as Kafka words it", async () => {
  const q = await startQuirks();
  const cases: readonly (readonly [Partial<ShareGroupHeartbeatRequest>, RegExp])[] = [
    [{ memberId: "" }, /Invalid member id/],
    [{ memberId: "x".repeat(37) }, /Invalid member id/],
    [{ groupId: "" }, /GroupId can't be empty/],
    [{ rackId: "" }, /RackId can't be empty/],
    [{}, /SubscribedTopicNames must be set/],
    [{ subscribedTopicNames: [] }, /SubscribedTopicNames must be set/],
    [{ memberEpoch: -2 }, /MemberEpoch is invalid/],
  ];
  for (const [request, message] of cases) {
    const answer = await say(q, request);
    assert.equal(answer.error, "INVALID_REQUEST", JSON.stringify(request));
    assert.match(answer.errorMessage!, message);
  }
  assert.equal((await say(q, { memberEpoch: 3 })).error, "GROUP_ID_NOT_FOUND");
  assert.equal((await say(q, { memberEpoch: -1 })).error, "GROUP_ID_NOT_FOUND");
  assert.equal((await describe(q)).error, "GROUP_ID_NOT_FOUND", "no heartbeat has made a group");
  await q.node.close();
});

test("two members share the partitions, and one alone has all of them", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t", 4);
  const [a, b] = [new ShareMember(q, topicId), new ShareMember(q, topicId)];
  const first = await a.beat(0);
  assert.deepEqual(first.assignment?.topicPartitions, [], "nothing has a state yet");
  assert.equal(first.heartbeatIntervalMs, 5000);
  assert.deepEqual(await untilHas(a, 4), [0, 1, 2, 3]);
  await b.beat(0);
  const halves = [await untilHas(a, 2), await untilHas(b, 2).catch(() => [])];
  const { members } = await describe(q);
  const all = members.flatMap(({ assignment }) =>
    assignment.topicPartitions.flatMap(({ partitions }) => [...partitions])
  );
  assert.deepEqual(all.toSorted(), [0, 1, 2, 3]);
  assert.equal(halves[0]!.length, 2);
  await a.beat(-1, null);
  assert.deepEqual(await untilHas(b, 4), [0, 1, 2, 3]);
  await q.node.close();
});

test("more members than partitions: all of them read", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t", 1);
  const members = [1, 2, 3].map(() => new ShareMember(q, topicId));
  for (const member of members) await member.beat(0);
  for (let round = 0; round < 3; round++) {
    await q.node.clock.advance(10);
    for (const member of members) await member.beat(member.memberEpoch, null);
  }
  const { members: described } = await describe(q);
  for (const { assignment } of described) {
    assert.deepEqual(assignment.topicPartitions.map(({ partitions }) => partitions), [[0]]);
  }
  await q.node.close();
});

test("a killed node finds the group with its member, which goes on in its epoch", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t", 2);
  const a = new ShareMember(q, topicId);
  await a.beat(0);
  await untilHas(a, 2);
  const before = await describe(q);
  const next = await restarted(q, { clean: false });
  assert.deepEqual(await describe(next), before);
  const answer = await say(next, { memberId: a.id, memberEpoch: a.memberEpoch });
  assert.equal(answer.error, "NONE");
  assert.equal(answer.memberEpoch, a.memberEpoch);
  await next.node.clock.advance(45_000);
  assert.equal((await describe(next)).members.length, 0, "it has a whole session, and no more");
  await next.node.close();
});

/** What was under way when a process was killed is under way for ever, and its store takes nothing more of it. */
function killedAfter(puts: number): FaultPlan {
  let left = puts;
  return ({ op }) => {
    if (left === 0) return { kind: "hang", happens: false };
    if (op === "put") left -= 1;
    return undefined;
  };
}

test("a kill after any write of a join: the next node makes what states are missing", async () => {
  for (let puts = 0; puts < 8; puts++) {
    const clock = createFakeClock();
    const store = createMemoryStore(clock);
    const mortal = faultyStore(store, clock);
    const q = await startQuirks({}, { clock, store: mortal });
    const topicId = await q.topic("t", 2);
    const a = new ShareMember(q, topicId);
    mortal.setPlan(killedAfter(puts));
    let heard = false;
    void a.beat(0).then(() => void (heard = true));
    await clock.advance(50);
    const next = await startQuirks({}, { clock, store, seed: 100 + puts });
    const again = new ShareMember(next, topicId);
    Object.assign(again, { id: a.id, memberEpoch: a.memberEpoch });
    if (!heard) await again.beat(0);
    assert.deepEqual(await untilHas(again, 2), [0, 1], `after ${puts} writes`);
    await next.node.close();
  }
});

test("a silent member is fenced, after its group's own session time-out", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t", 1);
  assert.equal(await setGroup(q, "g", { "share.session.timeout.ms": "60000" }), "NONE");
  const a = new ShareMember(q, topicId);
  await a.beat(0);
  await q.node.clock.advance(59_000);
  assert.equal((await describe(q)).members.length, 1);
  await q.node.clock.advance(1_000);
  assert.equal((await describe(q)).groupState, "Empty");
  assert.equal((await say(q, { memberId: a.id, memberEpoch: 1 })).error, "UNKNOWN_MEMBER_ID");
  await q.node.close();
});

test("a share group is no group for the other protocols, and theirs are none for it", async () => {
  const q = await startQuirks();
  await q.topic("t", 1);
  assert.equal((await say(q, { subscribedTopicNames: ["t"] })).error, "NONE");
  const join = await q.call(joinGroupApi, 5, {
    groupId: "g",
    sessionTimeoutMs: 30_000,
    rebalanceTimeoutMs: 30_000,
    memberId: "",
    protocolType: "consumer",
    protocols: [{ name: "range", metadata: new Uint8Array([1]) }],
  });
  const of = { groupId: "g", generationId: 1, memberId: "a" };
  const topics = [{
    name: "t",
    partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: "" }],
  }];
  const asked = [{ name: "t", partitionIndexes: [0] }];
  const consumer = new ConsumerMember(q, "c");
  const errors = [
    join.errorCode,
    (await q.call(heartbeatApi, 3, of)).errorCode,
    (await q.call(syncGroupApi, 4, { ...of, assignments: [] })).errorCode,
    (await q.call(leaveGroupApi, 3, { groupId: "g", members: [{ memberId: "a" }] }))
      .members[0]!.errorCode,
    (await q.call(offsetCommitApi, 9, {
      groupId: "g",
      memberId: "",
      generationIdOrMemberEpoch: -1,
      topics,
    })).topics[0]!.partitions[0]!.errorCode,
    (await q.call(offsetDeleteApi, 0, {
      groupId: "g",
      topics: [{ name: "t", partitions: [{ partitionIndex: 0 }] }],
    })).errorCode,
    (await q.call(describeGroupsApi, 6, { groups: ["g"] })).groups[0]!.errorCode,
    (await q.call(consumerGroupDescribeApi, 1, {
      groupIds: ["g"],
      includeAuthorizedOperations: false,
    })).groups[0]!.errorCode,
  ].map(errorName);
  assert.deepEqual(errors, [
    "INCONSISTENT_GROUP_PROTOCOL",
    "UNKNOWN_MEMBER_ID",
    "UNKNOWN_MEMBER_ID",
    "UNKNOWN_MEMBER_ID",
    "GROUP_ID_NOT_FOUND",
    "GROUP_ID_NOT_FOUND",
    "GROUP_ID_NOT_FOUND",
    "GROUP_ID_NOT_FOUND",
  ]);
  assert.equal((await consumer.join()).error, "GROUP_ID_NOT_FOUND");
  const { groups: [fetched] } = await q.call(offsetFetchApi, 9, {
    groups: [{ groupId: "g", topics: asked }],
  });
  assert.equal(fetched!.errorCode, 0, "as of a group that has committed nothing");
  assert.equal(fetched!.topics[0]!.partitions[0]!.committedOffset, -1);
  const simple = await q.call(offsetCommitApi, 8, {
    groupId: "simple",
    memberId: "",
    generationIdOrMemberEpoch: -1,
    topics,
  });
  assert.equal(simple.topics[0]!.partitions[0]!.errorCode, 0);
  const refused = await say(q, { groupId: "simple", subscribedTopicNames: ["t"] });
  assert.equal(refused.error, "GROUP_ID_NOT_FOUND");
  assert.equal((await describe(q, "simple")).error, "GROUP_ID_NOT_FOUND");
  const { groups } = await q.call(listGroupsApi, 5, { typesFilter: ["share"] });
  assert.deepEqual(groups.map(({ groupId, protocolType }) => [groupId, protocolType]), [
    ["g", "share"],
  ]);
  await q.node.close();
});

test("offsets are altered and deleted while nobody is in the group, and outlive a kill", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t", 2);
  await q.produce("t", batch(["a", "b", "c"]));
  assert.equal((await alter(q, 0, 2)).error, "NONE");
  for (const wild of [-2, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) {
    const { responses } = await alter(q, 0, wild);
    assert.equal(errorName(responses[0]!.partitions[0]!.errorCode), "INVALID_REQUEST");
  }
  assert.deepEqual(await offsetsOf(q), ["t-0@2+1"]);
  const next = await restarted(q, { clean: false });
  assert.deepEqual(await offsetsOf(next), ["t-0@2+1"]);
  const a = new ShareMember(next, topicId);
  await a.beat(0);
  await untilHas(a, 2);
  assert.deepEqual(await offsetsOf(next), ["t-0@2+1", "t-1@-1+-1"]);
  assert.equal((await alter(next, 0, 0)).error, "NON_EMPTY_GROUP");
  const remove = async () =>
    named(
      await next.call(deleteShareGroupOffsetsApi, 0, {
        groupId: "g",
        topics: [{ topicName: "t" }],
      }),
    );
  assert.equal((await remove()).error, "NON_EMPTY_GROUP");
  const deleteGroup = async () => {
    const { results } = await next.call(deleteGroupsApi, 2, { groupsNames: ["g"] });
    return errorName(results[0]!.errorCode);
  };
  assert.equal(await deleteGroup(), "NON_EMPTY_GROUP");
  await a.beat(-1, null);
  assert.equal((await remove()).responses[0]!.errorCode, 0);
  assert.deepEqual(await offsetsOf(next), []);
  assert.equal(await deleteGroup(), "NONE");
  const last = await restarted(next, { clean: false });
  assert.equal((await describe(last)).error, "GROUP_ID_NOT_FOUND");
  await last.node.close();
});

test("a group's settings: shown with their source, checked against the broker's bounds, kept, taken back", async () => {
  const q = await startQuirks();
  const settings = async (node: Quirks, keys: readonly string[] | null) => {
    const { results: [result] } = await node.call(describeConfigsApi, 4, {
      resources: [{ resourceType: GROUP, resourceName: "g", configurationKeys: keys }],
    });
    return result!.configs.map(({ name, value, configSource }) => [name, value, configSource]);
  };
  const DEFAULT = 5;
  const OWN = 8;
  assert.deepEqual(await settings(q, null), [
    ["consumer.heartbeat.interval.ms", "5000", DEFAULT],
    ["consumer.session.timeout.ms", "45000", DEFAULT],
    ["share.auto.offset.reset", "latest", DEFAULT],
    ["share.heartbeat.interval.ms", "5000", DEFAULT],
    ["share.isolation.level", "read_uncommitted", DEFAULT],
    ["share.record.lock.duration.ms", "30000", DEFAULT],
    ["share.session.timeout.ms", "45000", DEFAULT],
  ]);
  for (
    const [name, value] of [
      ["no.such.key", "1"],
      ["consumer.session.timeout.ms", "44999"],
      ["consumer.session.timeout.ms", "60001"],
      ["share.heartbeat.interval.ms", "4999"],
      ["share.record.lock.duration.ms", "14999"],
      ["share.auto.offset.reset", "none"],
      ["share.auto.offset.reset", "by_duration:-PT1H"],
      ["share.isolation.level", "serializable"],
    ] as const
  ) assert.equal(await setGroup(q, "g", { [name]: value }), "INVALID_CONFIG", name);
  assert.equal(
    await setGroup(q, "", { "share.isolation.level": "read_committed" }),
    "INVALID_REQUEST",
  );
  const own = {
    "share.auto.offset.reset": "by_duration:P1DT2H",
    "consumer.heartbeat.interval.ms": "7000",
  };
  assert.equal(await setGroup(q, "g", own), "NONE");
  const next = await restarted(q, { clean: false });
  assert.deepEqual(await settings(next, Object.keys(own)), [
    ["consumer.heartbeat.interval.ms", "7000", OWN],
    ["share.auto.offset.reset", "by_duration:P1DT2H", OWN],
  ]);
  const listed = async () => {
    const answer = await next.call(listConfigResourcesApi, 1, { resourceTypes: [GROUP] });
    return answer.configResources.map(({ resourceName }) => resourceName);
  };
  assert.deepEqual(await listed(), ["g"]);
  await next.topic("t", 1);
  const member = new ConsumerMember(next, "m");
  assert.equal((await member.join()).heartbeatIntervalMs, 7000);
  const other = new ConsumerMember(next, "m", "other");
  assert.equal((await other.join()).heartbeatIntervalMs, 5000);
  await next.node.close();
});

test("a consumer group's own session time-out counts", async () => {
  const q = await startQuirks();
  await q.topic("t", 1);
  assert.equal(await setGroup(q, "g", { "consumer.session.timeout.ms": "60000" }), "NONE");
  const a = new ConsumerMember(q, "a");
  await a.join();
  await q.node.clock.advance(59_000);
  assert.equal((await a.beat()).error, "NONE");
  await q.node.clock.advance(60_000);
  assert.equal((await a.beat()).error, "UNKNOWN_MEMBER_ID");
  await q.node.close();
});

test("ApiVersions shows share.version 1 as finalized", async () => {
  const q = await startQuirks();
  const { supportedFeatures, finalizedFeatures } = await q.call(apiVersionsApi, 4, {
    clientSoftwareName: "q",
    clientSoftwareVersion: "1",
  });
  assert.deepEqual(
    supportedFeatures?.find(({ name }) => name === "share.version"),
    { name: "share.version", minVersion: 0, maxVersion: 1 },
  );
  assert.deepEqual(
    finalizedFeatures?.find(({ name }) => name === "share.version"),
    { name: "share.version", minVersionLevel: 1, maxVersionLevel: 1 },
  );
  await q.node.close();
});
