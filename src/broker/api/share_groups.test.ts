import assert from "node:assert/strict";
import { test } from "node:test";
import { type BrokerWorld, createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { MemoryShareGroups } from "../../../tests/support/memory_share_groups.ts";
import { errorCode, errorName } from "../../protocol/error_code.ts";
import { listGroupsApi } from "../../protocol/message/16_list_groups.ts";
import { deleteGroupsApi } from "../../protocol/message/42_delete_groups.ts";
import { updateFeaturesApi } from "../../protocol/message/57_update_features.ts";
import {
  shareGroupHeartbeatApi,
  type ShareGroupHeartbeatRequest,
} from "../../protocol/message/76_share_group_heartbeat.ts";
import { shareGroupDescribeApi } from "../../protocol/message/77_share_group_describe.ts";
import { describeShareGroupOffsetsApi } from "../../protocol/message/90_describe_share_group_offsets.ts";
import { alterShareGroupOffsetsApi } from "../../protocol/message/91_alter_share_group_offsets.ts";
import { deleteShareGroupOffsetsApi } from "../../protocol/message/92_delete_share_group_offsets.ts";
import { Coordinator } from "../group/coordinator.ts";
import { routesOf } from "../routes.ts";
import { Transactions } from "../txn/transactions.ts";

/** A broker whose groups have their states in memory. */
async function shareWorld() {
  const shareGroups = new MemoryShareGroups();
  const broker = await createBrokerWorld({
    properties: { "offsets.topic.num.partitions": "1" },
    routes: (services) => {
      const coordinator = new Coordinator({ ...services, shareGroups });
      const transactions = new Transactions({ ...services, coordinator });
      return routesOf({ ...services, coordinator, transactions });
    },
  });
  return { broker, shareGroups };
}

function naming(...groupIds: readonly string[]) {
  return { groupIds, includeAuthorizedOperations: false };
}

function beat(broker: BrokerWorld, more: Partial<ShareGroupHeartbeatRequest> = {}) {
  return broker.call(shareGroupHeartbeatApi, 1, {
    groupId: "g",
    memberId: "a",
    memberEpoch: 0,
    subscribedTopicNames: ["t"],
    ...more,
  });
}

/** A group whose only member has all partitions of a topic. */
async function settledWorld(partitions = 2) {
  const { broker, shareGroups } = await shareWorld();
  const topicId = await broker.createTopic("t", partitions);
  await beat(broker);
  await broker.clock.advance(0);
  await beat(broker, { memberEpoch: 1, subscribedTopicNames: null });
  return { broker, topicId, shareGroups };
}

async function offsetsOf(broker: BrokerWorld, partitions: readonly number[] | null, version = 1) {
  const topics = partitions === null ? null : [{ topicName: "t", partitions }];
  const { groups: [group] } = await broker.call(describeShareGroupOffsetsApi, version, {
    groups: [{ groupId: "g", topics }],
  });
  assert.equal(errorName(group!.errorCode), "NONE");
  return group!.topics.flatMap((topic) => topic.partitions)
    .map(({ partitionIndex, startOffset, lag }) => [partitionIndex, startOffset, lag]);
}

function alter(broker: BrokerWorld, partitionIndex: number, startOffset: number, topicName = "t") {
  return broker.call(alterShareGroupOffsetsApi, 0, {
    groupId: "g",
    topics: [{ topicName, partitions: [{ partitionIndex, startOffset }] }],
  });
}

function remove(broker: BrokerWorld, ...names: readonly string[]) {
  return broker.call(deleteShareGroupOffsetsApi, 0, {
    groupId: "g",
    topics: names.map((topicName) => ({ topicName })),
  });
}

test("a share group is described with its member and listed by its type", async () => {
  const { broker, topicId } = await settledWorld();
  const { groups: [group] } = await broker.call(shareGroupDescribeApi, 1, {
    groupIds: ["g"],
    includeAuthorizedOperations: false,
  });
  assert.equal(group!.groupState, "Stable");
  assert.equal(group!.assignorName, "simple");
  assert.deepEqual([group!.groupEpoch, group!.assignmentEpoch], [2, 2]);
  assert.deepEqual(
    group!.members.map(({ memberId, memberEpoch, assignment }) => ({
      memberId,
      memberEpoch,
      of: assignment.topicPartitions,
    })),
    [{ memberId: "a", memberEpoch: 2, of: [{ topicId, topicName: "t", partitions: [0, 1] }] }],
  );
  const listed = await broker.call(listGroupsApi, 5, { typesFilter: ["Share"] });
  assert.deepEqual(listed.groups, [
    { groupId: "g", protocolType: "share", groupState: "Stable", groupType: "share" },
  ]);
  const others = await broker.call(listGroupsApi, 5, { typesFilter: ["consumer", "classic"] });
  assert.deepEqual(others.groups, []);
});

test("offsets: -1 until the first reader has chosen, then the start and how far behind it is", async () => {
  const { broker } = await settledWorld();
  assert.deepEqual(await offsetsOf(broker, null), [[0, -1, -1], [1, -1, -1]]);
  const log = await broker.log("t", 0);
  log.append(broker.batch("x"));
  await beat(broker, { memberEpoch: -1 });
  assert.equal((await alter(broker, 0, 0)).responses[0]!.partitions[0]!.errorCode, 0);
  assert.deepEqual(await offsetsOf(broker, [0, 1, 5]), [
    [0, 0, 1],
    [1, -1, -1],
    [5, -1, -1],
  ]);
  assert.deepEqual((await offsetsOf(broker, [0], 0))[0]!.slice(0, 2), [0, 0]);
});

test("offsets cannot be altered or deleted while somebody is in the group", async () => {
  const { broker } = await settledWorld();
  assert.equal(errorName((await alter(broker, 0, 0)).errorCode), "NON_EMPTY_GROUP");
  assert.equal(errorName((await remove(broker, "t")).errorCode), "NON_EMPTY_GROUP");
  const { results } = await broker.call(deleteGroupsApi, 2, { groupsNames: ["g"] });
  assert.equal(errorName(results[0]!.errorCode), "NON_EMPTY_GROUP");
  await beat(broker, { memberEpoch: -1 });
  assert.equal((await alter(broker, 0, 0)).errorCode, 0);
  assert.equal((await remove(broker, "t")).errorCode, 0);
  assert.deepEqual(await offsetsOf(broker, null), []);
});

test("alter answers for each partition, and makes a group that is not there", async () => {
  const { broker } = await shareWorld();
  await broker.createTopic("t", 1);
  const answer = await broker.call(alterShareGroupOffsetsApi, 0, {
    groupId: "g",
    topics: [
      {
        topicName: "t",
        partitions: [
          { partitionIndex: 0, startOffset: 3 },
          { partitionIndex: 1, startOffset: 3 },
          { partitionIndex: 0, startOffset: -2 },
        ],
      },
      { topicName: "none", partitions: [{ partitionIndex: 0, startOffset: 0 }] },
    ],
  });
  const errors = answer.responses.map(({ partitions }) =>
    partitions.map((one) => errorName(one.errorCode))
  );
  assert.deepEqual(errors, [
    ["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_REQUEST"],
    ["UNKNOWN_TOPIC_OR_PARTITION"],
  ]);
  assert.deepEqual((await offsetsOf(broker, null)).map(([at, start]) => [at, start]), [[0, 3]]);
  const { groups: [group] } = await broker.call(shareGroupDescribeApi, 1, naming("g"));
  assert.equal(group!.groupState, "Empty");
});

test("an alteration that starts nothing makes no group", async () => {
  const { broker } = await shareWorld();
  await alter(broker, 0, 0, "none");
  const { groups: [group] } = await broker.call(shareGroupDescribeApi, 1, naming("g"));
  assert.equal(errorName(group!.errorCode), "GROUP_ID_NOT_FOUND");
});

test("a group stays while a state of it cannot be taken away, and goes with a later attempt", async () => {
  const { broker, shareGroups } = await settledWorld();
  await beat(broker, { memberEpoch: -1 });
  shareGroups.errors.push("COORDINATOR_NOT_AVAILABLE");
  const first = await broker.call(deleteGroupsApi, 2, { groupsNames: ["g"] });
  assert.equal(errorName(first.results[0]!.errorCode), "COORDINATOR_NOT_AVAILABLE");
  const second = await broker.call(deleteGroupsApi, 2, { groupsNames: ["g"] });
  assert.equal(errorName(second.results[0]!.errorCode), "NONE");
  assert.equal(shareGroups.states.size, 0);
});

test("a member that joins while a group is being deleted keeps the group", async () => {
  const { broker, shareGroups } = await settledWorld();
  await beat(broker, { memberEpoch: -1 });
  let open = () => {};
  shareGroups.gate = new Promise((resolve) => void (open = resolve));
  const deleting = broker.call(deleteGroupsApi, 2, { groupsNames: ["g"] });
  await broker.clock.advance(0);
  assert.equal((await beat(broker)).errorCode, 0);
  open();
  const { results } = await deleting;
  assert.equal(errorName(results[0]!.errorCode), "NON_EMPTY_GROUP");
  await broker.clock.advance(0);
  await beat(broker, { memberEpoch: 4, subscribedTopicNames: null });
  assert.equal(shareGroups.states.size, 2, "its states are made again");
});

test("with share.version 0 everything about share groups is UNSUPPORTED_VERSION", async () => {
  const { broker } = await shareWorld();
  await broker.createTopic("t", 1);
  const update = (maxVersionLevel: number, upgradeType: number) =>
    broker.call(updateFeaturesApi, 2, {
      featureUpdates: [{ feature: "share.version", maxVersionLevel, upgradeType }],
    });
  assert.equal((await update(0, 2)).errorCode, 0);
  const off = errorCode("UNSUPPORTED_VERSION");
  assert.equal((await beat(broker)).errorCode, off);
  const asked = { groups: [{ groupId: "g", topics: null }] };
  assert.deepEqual([
    (await broker.call(shareGroupDescribeApi, 1, naming("g"))).groups[0]!.errorCode,
    (await broker.call(describeShareGroupOffsetsApi, 1, asked)).groups[0]!.errorCode,
    (await alter(broker, 0, 0)).errorCode,
    (await remove(broker, "t")).errorCode,
  ], [off, off, off, off]);
  assert.equal((await update(1, 1)).errorCode, 0);
  assert.equal((await beat(broker)).errorCode, 0);
});
