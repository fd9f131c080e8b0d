/** Groups of the consumer protocol (KIP-848): sheet section 3.12, its rows of 3.13, and the migration. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorName } from "../../src/protocol/error_code.ts";
import {
  consumerProtocolAssignment,
  consumerProtocolSubscription,
} from "../../src/protocol/message/consumer_protocol.ts";
import { offsetCommitApi } from "../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { leaveGroupApi } from "../../src/protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../src/protocol/message/14_sync_group.ts";
import { describeGroupsApi } from "../../src/protocol/message/15_describe_groups.ts";
import { listGroupsApi } from "../../src/protocol/message/16_list_groups.ts";
import { createPartitionsApi } from "../../src/protocol/message/37_create_partitions.ts";
import { deleteGroupsApi } from "../../src/protocol/message/42_delete_groups.ts";
import { offsetDeleteApi } from "../../src/protocol/message/47_offset_delete.ts";
import { updateFeaturesApi } from "../../src/protocol/message/57_update_features.ts";
import {
  consumerGroupHeartbeatApi,
  type ConsumerGroupHeartbeatRequest,
} from "../../src/protocol/message/68_consumer_group_heartbeat.ts";
import { consumerGroupDescribeApi } from "../../src/protocol/message/69_consumer_group_describe.ts";
import { decodeGrowing, encodeVersioned } from "../../src/protocol/versioned.ts";
import { ConsumerMember } from "./consumer_member.ts";
import { GroupMember } from "./group_member.ts";
import { named, type Quirks, restarted, startQuirks } from "./quirks.ts";

async function describe(q: Quirks, groupId = "g") {
  const { groups } = await q.call(consumerGroupDescribeApi, 1, {
    groupIds: [groupId],
    includeAuthorizedOperations: false,
  });
  return named(groups[0]!);
}

async function commit(q: Quirks, memberId: string, epoch: number, version = 9) {
  const { topics } = await q.call(offsetCommitApi, version, {
    groupId: "g",
    memberId,
    generationIdOrMemberEpoch: epoch,
    topics: [{
      name: "t",
      partitions: [{ partitionIndex: 0, committedOffset: 7, committedMetadata: null }],
    }],
  });
  return errorName(topics[0]!.partitions[0]!.errorCode);
}

async function started(partitions = 4, properties: Record<string, string> = {}) {
  const q = await startQuirks(properties);
  const topicId = await q.topic("t", partitions);
  return { q, topicId, a: new ConsumerMember(q, "a"), b: new ConsumerMember(q, "b") };
}

/** Both have met and hold their halves. */
async function settled(members: readonly ConsumerMember[]) {
  for (let round = 0; round < 4; round++) for (const each of members) await each.beat();
}

test("what a request must say: INVALID_REQUEST and its like, as Kafka words them", async () => {
  const { q } = await started();
  const join = {
    groupId: "g",
    memberId: "a",
    memberEpoch: 0,
    rebalanceTimeoutMs: 1000,
    subscribedTopicNames: ["t"],
    topicPartitions: [],
  };
  const cases: readonly (readonly [Partial<ConsumerGroupHeartbeatRequest>, string, RegExp])[] = [
    [{ memberId: "" }, "INVALID_REQUEST", /MemberId can't be empty/],
    [{ groupId: "" }, "INVALID_REQUEST", /GroupId can't be empty/],
    [{ instanceId: "" }, "INVALID_REQUEST", /InstanceId can't be empty/],
    [{ rackId: "" }, "INVALID_REQUEST", /RackId can't be empty/],
    [{ rebalanceTimeoutMs: -1 }, "INVALID_REQUEST", /RebalanceTimeoutMs must be provided/],
    [{ topicPartitions: null }, "INVALID_REQUEST", /TopicPartitions must be empty/],
    [{ subscribedTopicNames: null }, "INVALID_REQUEST", /Either SubscribedTopicNames or/],
    [{ memberEpoch: -2 }, "INVALID_REQUEST", /InstanceId can't be null/],
    [{ memberEpoch: -3 }, "INVALID_REQUEST", /MemberEpoch is invalid/],
    [{ serverAssignor: "sticky" }, "UNSUPPORTED_ASSIGNOR", /Supported assignors: uniform, range/],
    [{ subscribedTopicRegex: "(" }, "INVALID_REGULAR_EXPRESSION", /missing \)/],
    [{ memberEpoch: 3 }, "GROUP_ID_NOT_FOUND", /not a consumer group/],
    [{ memberEpoch: -1 }, "GROUP_ID_NOT_FOUND", /not a consumer group/],
  ];
  for (const [change, error, message] of cases) {
    const answer = named(await q.call(consumerGroupHeartbeatApi, 1, { ...join, ...change }));
    assert.deepEqual([change, answer.error], [change, error]);
    assert.match(answer.errorMessage ?? "", message);
  }
  const { groups } = await q.call(listGroupsApi, 5, { statesFilter: [], typesFilter: [] });
  assert.deepEqual(groups, [], "nothing of it has made a group");
});

test("the broker makes the member id in v0, the client its own in v1", async () => {
  const { q } = await started();
  const join = {
    groupId: "g",
    memberEpoch: 0,
    rebalanceTimeoutMs: 1000,
    subscribedTopicNames: ["t"],
    topicPartitions: [],
  };
  const made = await q.call(consumerGroupHeartbeatApi, 0, { ...join, memberId: "" });
  assert.match(made.memberId ?? "", /^[\w-]{22}$/);
  const own = await q.call(consumerGroupHeartbeatApi, 1, { ...join, memberId: "own" });
  assert.deepEqual([own.errorCode, own.memberId, own.heartbeatIntervalMs], [0, "own", 5000]);
});

test("two members share, a new partition is assigned, who stays takes over; all of it survives a crash", async () => {
  const { q, topicId, a, b } = await started();
  const first = await a.join();
  assert.deepEqual([first.memberEpoch, a.partitions], [1, [0, 1, 2, 3]]);
  assert.equal(a.held[0]!.topicId, topicId);
  await b.join();
  assert.deepEqual(b.partitions, []);
  await settled([a, b]);
  assert.deepEqual([...a.partitions, ...b.partitions].toSorted(), [0, 1, 2, 3]);
  assert.deepEqual([a.epoch, b.epoch], [2, 2]);
  const next = await restarted(q, { clean: false });
  const [c, d] = [new ConsumerMember(next, "a"), new ConsumerMember(next, "b")];
  Object.assign(c, { epoch: a.epoch, held: a.held });
  Object.assign(d, { epoch: b.epoch, held: b.held });
  assert.deepEqual((await c.beat()).error, "NONE");
  assert.equal((await describe(next)).groupState, "Stable");
  await next.call(createPartitionsApi, 3, {
    topics: [{ name: "t", count: 6, assignments: null }],
    timeoutMs: 1000,
    validateOnly: false,
  });
  await settled([c, d]);
  assert.equal(c.partitions.length + d.partitions.length, 6);
  assert.equal((await c.leave()).memberEpoch, -1);
  await settled([d]);
  assert.deepEqual(d.partitions, [0, 1, 2, 3, 4, 5]);
});

test("a silent member is fenced after its session", async () => {
  const { q, a, b } = await started();
  await a.join();
  await q.node.clock.advance(30_000);
  await b.join();
  await q.node.clock.advance(15_001);
  assert.equal((await a.beat()).error, "UNKNOWN_MEMBER_ID");
  await b.beat();
  assert.deepEqual(b.partitions, [0, 1, 2, 3]);
});

test("a regular expression finds topics that come later, and never internal ones", async () => {
  const { q, a } = await started(1);
  await q.topic("x-1");
  await a.join([], { subscribedTopicRegex: ".*" });
  assert.equal(a.held.length, 2);
  await q.topic("x-2");
  await a.beat();
  assert.equal(a.held.length, 3);
  const [member] = (await describe(q)).members;
  assert.deepEqual([member!.subscribedTopicNames, member!.subscribedTopicRegex], [[], ".*"]);
});

test("offsets: commits and reads show the member's epoch", async () => {
  const { q, a } = await started();
  await a.join();
  assert.equal(await commit(q, "a", 1), "NONE");
  assert.equal(await commit(q, "a", 0), "STALE_MEMBER_EPOCH");
  assert.equal(await commit(q, "x", 1), "UNKNOWN_MEMBER_ID");
  assert.equal(await commit(q, "", -1), "UNKNOWN_MEMBER_ID");
  assert.equal(await commit(q, "a", 1, 8), "UNSUPPORTED_VERSION");
  const read = async (memberId: string | null, memberEpoch: number) => {
    const topics = [{ name: "t", partitionIndexes: [0] }];
    const { groups } = await q.call(offsetFetchApi, 9, {
      groups: [{ groupId: "g", memberId, memberEpoch, topics }],
    });
    const { errorCode, topics: found } = groups[0]!;
    return errorCode === 0 ? found[0]!.partitions[0]!.committedOffset : errorName(errorCode);
  };
  assert.equal(await read("a", 1), 7);
  assert.equal(await read(null, -1), 7);
  assert.equal(await read("a", 4), "STALE_MEMBER_EPOCH");
  assert.equal(await read("x", 1), "UNKNOWN_MEMBER_ID");
  await a.leave();
  assert.equal(await commit(q, "", -1), "NONE", "tools commit for an empty group");
});

test("tools see the group: described, listed by type and state, deleted only when it is empty", async () => {
  const { q, topicId, a } = await started(2);
  await a.join(["t"], { instanceId: "i", rackId: "r" });
  const group = await describe(q);
  assert.deepEqual(
    [group.groupState, group.groupEpoch, group.assignmentEpoch, group.assignorName],
    ["Stable", 1, 1, "uniform"],
  );
  const [member] = group.members;
  const all = { topicPartitions: [{ topicId, topicName: "t", partitions: [0, 1] }] };
  assert.deepEqual([member!.assignment, member!.targetAssignment], [all, all]);
  assert.deepEqual([member!.instanceId, member!.rackId, member!.memberType], ["i", "r", 1]);
  const list = async (typesFilter: string[], statesFilter: string[] = []) => {
    const { groups } = await q.call(listGroupsApi, 5, { statesFilter, typesFilter });
    return groups.map(({ groupId, groupType, groupState, protocolType }) =>
      `${groupId} ${groupType} ${groupState} ${protocolType}`
    );
  };
  assert.deepEqual(await list([]), ["g consumer Stable consumer"]);
  assert.deepEqual(await list(["Consumer"], ["stable"]), ["g consumer Stable consumer"]);
  assert.deepEqual(await list(["classic"]), []);
  assert.deepEqual(await list([], ["Empty"]), []);
  const classic = (version: number) => q.call(describeGroupsApi, version, { groups: ["g"] });
  assert.deepEqual(
    (await classic(5)).groups.map(({ errorCode, groupState }) => [errorCode, groupState]),
    [[0, "Dead"]],
  );
  assert.equal(errorName((await classic(6)).groups[0]!.errorCode), "GROUP_ID_NOT_FOUND");
  assert.equal((await describe(q, "none")).error, "GROUP_ID_NOT_FOUND");
  await commit(q, "a", 1);
  const drop = async () => {
    const topics = [{ name: "t", partitions: [{ partitionIndex: 0 }] }];
    const answer = await q.call(offsetDeleteApi, 0, { groupId: "g", topics });
    return errorName(answer.topics[0]?.partitions[0]?.errorCode ?? answer.errorCode);
  };
  const remove = async () => {
    const { results } = await q.call(deleteGroupsApi, 2, { groupsNames: ["g"] });
    return errorName(results[0]!.errorCode);
  };
  assert.equal(await drop(), "GROUP_SUBSCRIBED_TO_TOPIC");
  assert.equal(await remove(), "NON_EMPTY_GROUP");
  const left = await q.call(leaveGroupApi, 5, {
    groupId: "g",
    members: [{ memberId: "", groupInstanceId: "i" }, { memberId: "a", groupInstanceId: null }],
  });
  assert.deepEqual(left.members.map(({ errorCode }) => errorName(errorCode)), [
    "NONE",
    "UNKNOWN_MEMBER_ID",
  ]);
  assert.equal(await drop(), "NONE");
  assert.equal(await remove(), "NONE");
  assert.equal((await describe(q)).error, "GROUP_ID_NOT_FOUND");
});

test("the protocol can be turned off, by the feature or by the property", async () => {
  const { a, q } = await started(1, { "group.coordinator.rebalance.protocols": "classic" });
  assert.equal((await a.join()).error, "UNSUPPORTED_VERSION");
  await q.node.close();
  const other = await started();
  await other.q.call(updateFeaturesApi, 1, {
    timeoutMs: 1000,
    featureUpdates: [{ feature: "group.version", maxVersionLevel: 0, upgradeType: 2 }],
    validateOnly: false,
  });
  assert.equal((await other.a.join()).error, "UNSUPPORTED_VERSION");
});

// Groups that change their protocol while they have members.

function subscription(owned: readonly number[] = []): Uint8Array {
  return encodeVersioned(consumerProtocolSubscription, 1, {
    topics: ["t"],
    ownedPartitions: owned.length === 0 ? [] : [{ topic: "t", partitions: owned }],
  });
}

/** A classic consumer of topic `t`; the broker's assignment decoded. */
class ClassicConsumer extends GroupMember {
  owned: readonly number[] = [];

  constructor(q: Quirks) {
    super(q, { protocols: [["cooperative-sticky", subscription()]] });
  }

  async enterWith(owned: readonly number[] = this.owned) {
    this.options = { protocols: [["cooperative-sticky", subscription(owned)]] };
    return await this.enter();
  }

  async take() {
    const answer = await this.sync({}, { version: 4 });
    if (answer.error === "NONE") this.owned = partitionsOf(answer.assignment);
    return answer.error;
  }
}

function partitionsOf(assignment: Uint8Array): readonly number[] {
  if (assignment.length === 0) return [];
  const { assignedPartitions } = decodeGrowing(consumerProtocolAssignment, assignment);
  return assignedPartitions.flatMap(({ partitions }) => partitions);
}

/** A stable classic group of one, which has assigned all four partitions to itself. */
async function classicGroup(properties: Record<string, string> = {}) {
  const made = await started(4, properties);
  const { q } = made;
  const c = new ClassicConsumer(q);
  const entering = c.enterWith();
  await q.node.clock.advance(0);
  await q.node.clock.advance(0);
  await entering;
  const assignment = encodeVersioned(consumerProtocolAssignment, 1, {
    assignedPartitions: [{ topic: "t", partitions: [0, 1, 2, 3] }],
  });
  const synced = await c.client.call(syncGroupApi, 4, {
    groupId: "g",
    generationId: c.generation,
    memberId: c.id,
    assignments: [{ memberId: c.id, assignment }],
  });
  c.owned = partitionsOf(synced.assignment);
  assert.deepEqual(c.owned, [0, 1, 2, 3]);
  return { ...made, c };
}

test("upgrade: a consumer joins a live classic group, and no partition has two owners on the way", async () => {
  const { q, a, c } = await classicGroup();
  const joined = await a.join();
  assert.deepEqual([joined.error, joined.memberEpoch, a.partitions], ["NONE", 2, []]);
  const group = await describe(q);
  assert.deepEqual(group.members.map(({ memberType }) => memberType), [0, 1]);
  assert.equal(await c.beat(), "REBALANCE_IN_PROGRESS");
  await c.enterWith();
  assert.equal(await c.take(), "NONE");
  assert.equal(c.owned.length, 2, "it is asked to let go first");
  await a.beat();
  assert.deepEqual(a.partitions, [], "it has not said yet that it did");
  assert.equal(await c.beat(), "REBALANCE_IN_PROGRESS");
  await c.enterWith();
  assert.equal(await c.take(), "NONE");
  await a.beat();
  assert.deepEqual([...c.owned, ...a.partitions].toSorted(), [0, 1, 2, 3]);
  assert.equal(await c.beat(), "NONE");
  assert.equal(await commit(q, c.id, c.generation, 8), "NONE");
  assert.equal(await commit(q, c.id, 1, 8), "ILLEGAL_GENERATION");
  const next = await restarted(q, { clean: false });
  assert.equal((await describe(next)).groupState, "Stable");
});

test("downgrade: when the last consumer leaves, the classic members gather again with a leader", async () => {
  const { q, a, c } = await classicGroup();
  await a.join();
  await c.enterWith();
  await c.take();
  await c.enterWith();
  await c.take();
  await a.beat();
  await a.leave();
  const shown = await q.call(describeGroupsApi, 5, { groups: ["g"] });
  assert.equal(shown.groups[0]!.groupState, "PreparingRebalance");
  assert.equal(await c.beat(), "ILLEGAL_GENERATION");
  const answer = await c.enterWith();
  assert.deepEqual([answer.error, answer.leader], ["NONE", c.id]);
  assert.equal((await describe(q)).error, "GROUP_ID_NOT_FOUND");
  const next = await restarted(q, { clean: false });
  const after = await next.call(listGroupsApi, 5, { statesFilter: [], typesFilter: [] });
  assert.deepEqual(after.groups.map(({ groupType }) => groupType), ["classic"]);
});

test("a classic member joins a group of consumers; one that does not sync or rejoin is fenced", async () => {
  const { q, a } = await started();
  await a.join();
  const c = new ClassicConsumer(q);
  const entered = await c.enterWith([]);
  assert.deepEqual([entered.error, entered.leader, entered.generationId], ["NONE", "", 2]);
  assert.equal(await c.take(), "NONE");
  assert.deepEqual(c.owned, []);
  await settled([a]);
  assert.equal(await c.beat(), "REBALANCE_IN_PROGRESS", "what it waits for is free");
  await c.enterWith();
  for (let ms = 0; ms < 20_000; ms += 5000) {
    await q.node.clock.advance(5000);
    await c.beat();
    await a.beat();
  }
  assert.equal(await c.beat(), "UNKNOWN_MEMBER_ID", "it never asked for its assignment");
  await settled([a]);
  assert.deepEqual(a.partitions, [0, 1, 2, 3]);
});

test("what does not fit is refused: other protocol types, and policies that forbid it", async () => {
  const { q, a } = await started();
  await a.join();
  const other = new GroupMember(q, { protocolType: "connect" });
  assert.equal((await other.enter()).error, "INCONSISTENT_GROUP_PROTOCOL");
  const forbidden = await classicGroup({ "group.consumer.migration.policy": "downgrade" });
  assert.equal((await forbidden.a.join()).error, "GROUP_ID_NOT_FOUND");
  assert.equal(await forbidden.c.beat(), "NONE", "the classic group goes on");
});
