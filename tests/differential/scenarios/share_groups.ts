/** Share groups (KIP-932): membership, offsets by admin, groups of other kinds beside them, and settings of groups. */
import { offsetCommitApi } from "../../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../../src/protocol/message/09_offset_fetch.ts";
import { joinGroupApi } from "../../../src/protocol/message/11_join_group.ts";
import { heartbeatApi } from "../../../src/protocol/message/12_heartbeat.ts";
import { leaveGroupApi } from "../../../src/protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../../src/protocol/message/14_sync_group.ts";
import { describeGroupsApi } from "../../../src/protocol/message/15_describe_groups.ts";
import { listGroupsApi } from "../../../src/protocol/message/16_list_groups.ts";
import { describeConfigsApi } from "../../../src/protocol/message/32_describe_configs.ts";
import { alterConfigsApi } from "../../../src/protocol/message/33_alter_configs.ts";
import { deleteGroupsApi } from "../../../src/protocol/message/42_delete_groups.ts";
import { incrementalAlterConfigsApi } from "../../../src/protocol/message/44_incremental_alter_configs.ts";
import { offsetDeleteApi } from "../../../src/protocol/message/47_offset_delete.ts";
import { consumerGroupHeartbeatApi } from "../../../src/protocol/message/68_consumer_group_heartbeat.ts";
import { consumerGroupDescribeApi } from "../../../src/protocol/message/69_consumer_group_describe.ts";
import { listConfigResourcesApi } from "../../../src/protocol/message/74_list_config_resources.ts";
import {
  shareGroupHeartbeatApi,
  type ShareGroupHeartbeatRequest,
} from "../../../src/protocol/message/76_share_group_heartbeat.ts";
import { shareGroupDescribeApi } from "../../../src/protocol/message/77_share_group_describe.ts";
import { describeShareGroupOffsetsApi } from "../../../src/protocol/message/90_describe_share_group_offsets.ts";
import { alterShareGroupOffsetsApi } from "../../../src/protocol/message/91_alter_share_group_offsets.ts";
import { deleteShareGroupOffsetsApi } from "../../../src/protocol/message/92_delete_share_group_offsets.ts";
import { ready } from "./ready.ts";
import { batch, pause, type Scenario, type Script } from "../script.ts";
import { produceApi } from "../../../src/protocol/message/00_produce.ts";

const APIS = [76, 77, 90, 91, 92];
/** Kafka's coordinator hears of a topic after its clients have; a group that is early gets another epoch. */
const KNOWN_MS = 1_000;

const A = "d-member-a";
const B = "d-member-b";

type Beat = Partial<ShareGroupHeartbeatRequest>;

function beater(script: Script, groupId: string, topics: readonly string[]) {
  return (label: string, of: Beat = {}) =>
    script.call(label, shareGroupHeartbeatApi, 1, {
      groupId,
      memberId: A,
      memberEpoch: 0,
      subscribedTopicNames: topics,
      ...of,
    });
}

const quiet: Beat = { subscribedTopicNames: null };

/** States are made behind the answers: beats until the member has what it waits for; its epoch then. */
async function settled(
  script: Script,
  groupId: string,
  memberEpoch: number,
  partitions: number,
  memberId = A,
): Promise<number> {
  const request = { groupId, memberId, memberEpoch };
  const answer = await script.until(
    shareGroupHeartbeatApi,
    1,
    request,
    ({ assignment }) =>
      assignment !== null && assignment !== undefined &&
      assignment.topicPartitions.reduce((sum, one) => sum + one.partitions.length, 0) ===
        partitions,
  );
  return answer.memberEpoch;
}

/** Kafka answers nothing about states before it has made the topic that holds them. */
async function statesReady(script: Script): Promise<void> {
  const groupId = "d-share-ready";
  const partitions = [{ partitionIndex: 0, startOffset: 0 }];
  const topics = [{ topicName: "d-share-other", partitions }];
  await script.until(
    alterShareGroupOffsetsApi,
    0,
    { groupId, topics },
    ({ responses: [one] }) => one?.partitions[0]?.errorCode === 0,
  );
}

function naming(...groupIds: readonly string[]) {
  return { groupIds, includeAuthorizedOperations: false };
}

const refusals: Scenario = {
  name: "share group refusals",
  needs: APIS,
  async run(script) {
    await ready(script, "group");
    const beat = beater(script, "d-share-no", ["d-share-none"]);
    await beat("empty group", { groupId: "" });
    await beat("blank group", { groupId: " " });
    await beat("empty member", { memberId: "" });
    await beat("long member", { memberId: "x".repeat(37) });
    await beat("empty rack", { rackId: "" });
    await beat("member epoch -2", { memberEpoch: -2 });
    await beat("leave, unknown", { ...quiet, memberEpoch: -1 });
    await beat("unknown group", { ...quiet, memberEpoch: 5 });
    await beat("no subscription", { subscribedTopicNames: null });
    await beat("empty subscription", { subscribedTopicNames: [] });
    await script.check("describe unknown", shareGroupDescribeApi, 1, naming("d-share-none"));
    await script.check("describe empty", shareGroupDescribeApi, 1, naming(""));
    await script.check("describe nothing", shareGroupDescribeApi, 1, naming());
    await beat("joins for a topic that is not there");
    await script.check(
      "described without partitions",
      shareGroupDescribeApi,
      1,
      naming("d-share-no"),
    );
  },
};

const life: Scenario = {
  name: "share group life",
  needs: APIS,
  async run(script) {
    await ready(script, "group");
    await script.topic("d-share", { partitions: 2 });
    await pause(KNOWN_MS);
    const groupId = "d-share-group";
    const beat = beater(script, groupId, ["d-share"]);
    const describe = (label: string) =>
      script.check(label, shareGroupDescribeApi, 1, naming(groupId));
    const { memberEpoch: first } = await beat("joins");
    const memberEpoch = await settled(script, groupId, first, 2);
    await describe("describe after join");
    await script.check("describe what may be done", shareGroupDescribeApi, 1, {
      groupIds: [groupId, "d-share-none"],
      includeAuthorizedOperations: true,
    });
    await beat("beats", { ...quiet, memberEpoch });
    await beat("full request", { memberEpoch });
    await beat("epoch too high", { ...quiet, memberEpoch: memberEpoch + 5 });
    await beat("the epoch before", { ...quiet, memberEpoch: memberEpoch - 1 });
    await beat("epoch too low", { ...quiet, memberEpoch: memberEpoch - 2 });
    await beat("unknown member", { ...quiet, memberId: "nobody", memberEpoch });
    await beat("joins again", {});
    await describe("describe after joining again");
    await script.check("listed", listGroupsApi, 5, { typesFilter: ["share"] });
    await script.check("listed by state", listGroupsApi, 5, {
      typesFilter: ["Share"],
      statesFilter: ["Stable"],
    });
    await script.check("delete while alive", deleteGroupsApi, 2, { groupsNames: [groupId] });
    // Which of the two it gets follows from hash order in Kafka.
    const second = await script.until(shareGroupHeartbeatApi, 1, {
      groupId,
      memberId: B,
      memberEpoch: 0,
      rackId: "r",
      subscribedTopicNames: ["d-share"],
    }, ({ assignment }) => assignment?.topicPartitions[0]?.partitions.length === 1);
    const other = second.memberEpoch;
    await settled(script, groupId, memberEpoch, 1);
    script.note("the second is ahead of the first", other > memberEpoch);
    await beat("first leaves", { ...quiet, memberEpoch: -1 });
    await beat("first beats after it left", { ...quiet, memberEpoch: other });
    await settled(script, groupId, other, 2, B);
    await describe("describe with the second alone");
    await beat("second leaves", { ...quiet, memberId: B, memberEpoch: -1 });
    await describe("describe when empty");
    await script.check("delete", deleteGroupsApi, 2, { groupsNames: [groupId] });
    await describe("describe when deleted");
    await script.check("delete again", deleteGroupsApi, 2, { groupsNames: [groupId] });
  },
};

const beside: Scenario = {
  name: "share groups beside others",
  needs: [...APIS, 68],
  async run(script) {
    await ready(script, "group");
    const topicId = await script.topic("d-share-beside", { partitions: 1 });
    await pause(KNOWN_MS);
    const groupId = "d-share-beside-group";
    const beat = beater(script, groupId, ["d-share-beside"]);
    await beat("joins");
    await script.check("classic join", joinGroupApi, 5, {
      groupId,
      sessionTimeoutMs: 30_000,
      rebalanceTimeoutMs: 30_000,
      memberId: "",
      protocolType: "consumer",
      protocols: [{ name: "range", metadata: new Uint8Array([1]) }],
    });
    await script.check("classic heartbeat", heartbeatApi, 3, {
      groupId,
      generationId: 1,
      memberId: A,
    });
    await script.check("classic leave", leaveGroupApi, 3, { groupId, members: [{ memberId: A }] });
    await script.check("classic sync", syncGroupApi, 4, {
      groupId,
      generationId: 1,
      memberId: A,
      assignments: [],
    });
    await script.check("consumer heartbeat", consumerGroupHeartbeatApi, 1, {
      groupId,
      memberId: A,
      memberEpoch: 0,
      rebalanceTimeoutMs: 30_000,
      subscribedTopicNames: ["d-share-beside"],
      topicPartitions: [],
    });
    for (const version of [8, 9, 10]) {
      await script.check(`commit v${version}`, offsetCommitApi, version, {
        groupId,
        generationIdOrMemberEpoch: -1,
        memberId: "",
        topics: [{
          name: "d-share-beside",
          topicId,
          partitions: [{ partitionIndex: 0, committedOffset: 5, committedMetadata: "" }],
        }],
      });
    }
    for (const version of [7, 9]) {
      const asked = [{ name: "d-share-beside", partitionIndexes: [0] }];
      await script.check(`offset fetch v${version}`, offsetFetchApi, version, {
        groupId,
        topics: asked,
        groups: [{ groupId, topics: asked }],
      });
    }
    await script.check("offset delete", offsetDeleteApi, 0, {
      groupId,
      topics: [{ name: "d-share-beside", partitions: [{ partitionIndex: 0 }] }],
    });
    for (const version of [5, 6]) {
      await script.check(`classic describe v${version}`, describeGroupsApi, version, {
        groups: [groupId],
      });
    }
    await script.check("consumer describe", consumerGroupDescribeApi, 1, naming(groupId));
    const simple = "d-share-simple";
    await script.check("a simple group", offsetCommitApi, 8, {
      groupId: simple,
      generationIdOrMemberEpoch: -1,
      memberId: "",
      topics: [{
        name: "d-share-beside",
        partitions: [{ partitionIndex: 0, committedOffset: 5, committedMetadata: "" }],
      }],
    });
    const other = beater(script, simple, ["d-share-beside"]);
    await other("joins a simple group");
    await other("beats in a simple group", { ...quiet, memberEpoch: 3 });
    await script.check("described as a share group", shareGroupDescribeApi, 1, naming(simple));
    await script.check("alter offsets of it", alterShareGroupOffsetsApi, 0, {
      groupId: simple,
      topics: [{
        topicName: "d-share-beside",
        partitions: [{ partitionIndex: 0, startOffset: 0 }],
      }],
    });
    await script.check("delete offsets of it", deleteShareGroupOffsetsApi, 0, {
      groupId: simple,
      topics: [{ topicName: "d-share-beside" }],
    });
    await script.check("share offsets of it", describeShareGroupOffsetsApi, 1, {
      groups: [{ groupId: simple, topics: null }],
    });
  },
};

const offsets: Scenario = {
  name: "share group offsets",
  needs: APIS,
  async run(script) {
    await ready(script, "group");
    const topic = "d-share-offsets";
    await script.topic(topic, { partitions: 2 });
    await script.topic("d-share-other");
    await pause(KNOWN_MS);
    await script.call("produce", produceApi, 9, {
      acks: -1,
      timeoutMs: 5000,
      topicData: [{
        name: topic,
        partitionData: [{ index: 0, records: batch(["a", "b", "c", "d", "e"]) }],
      }],
    });
    const groupId = "d-share-offsets-group";
    const describe = async (label: string, asked: readonly number[] | null = null, of = topic) => {
      const topics = asked === null ? null : [{ topicName: of, partitions: asked }];
      await script.versions(label, describeShareGroupOffsetsApi, { groups: [{ groupId, topics }] });
    };
    const alter = (label: string, partition: number, startOffset: number, of = topic) =>
      script.check(label, alterShareGroupOffsetsApi, 0, {
        groupId,
        topics: [{ topicName: of, partitions: [{ partitionIndex: partition, startOffset }] }],
      });
    const remove = (label: string, ...names: readonly string[]) =>
      script.check(label, deleteShareGroupOffsetsApi, 0, {
        groupId,
        topics: names.map((topicName) => ({ topicName })),
      });
    await statesReady(script);
    await describe("unknown group", [0, 1]);
    await describe("all of an unknown group");
    await describe("no topics", []);
    await describe("unknown topic", [0], "d-share-nothing");
    await remove("delete of an unknown group", topic);
    await alter("alter makes the group", 0, 2);
    await script.until(
      describeShareGroupOffsetsApi,
      1,
      { groups: [{ groupId, topics: null }] },
      ({ groups: [one] }) => one?.topics.length === 1,
    );
    await describe("after alter");
    await describe("after alter, asked", [0, 1]);
    await script.check("described", shareGroupDescribeApi, 1, naming(groupId));
    await alter("unknown partition", 9, 0);
    await alter("unknown topic", 0, 0, "d-share-nothing");
    await alter("the same again", 0, 4);
    await describe("after another alter", [0]);
    await script.check("no topics", alterShareGroupOffsetsApi, 0, { groupId, topics: [] });
    await script.check("empty group", alterShareGroupOffsetsApi, 0, { groupId: "", topics: [] });
    await script.check("delete, empty group", deleteShareGroupOffsetsApi, 0, {
      groupId: "",
      topics: [],
    });
    await remove("delete of a topic without state", "d-share-other");
    await remove("delete of an unknown topic", "d-share-nothing");
    await remove("delete of nothing");
    const beat = beater(script, groupId, [topic]);
    const { memberEpoch } = await beat("joins");
    await settled(script, groupId, memberEpoch, 2);
    await alter("alter with a member", 0, 1);
    await remove("delete with a member", topic);
    await describe("all, with a member");
    await beat("leaves", { ...quiet, memberEpoch: -1 });
    await alter("alter when empty", 0, 1);
    await describe("after alter when empty", [0]);
    await remove("delete", topic, "d-share-nothing");
    await describe("after delete", [0, 1]);
    await describe("all after delete");
    await remove("delete again", topic);
    await script.check("delete the group", deleteGroupsApi, 2, { groupsNames: [groupId] });
    await describe("all of the deleted group");
  },
};

const GROUP = 32;
const SET = 0;
const DELETE = 1;
const APPEND = 2;

const configs: Scenario = {
  name: "group configs",
  async run(script) {
    await ready(script, "group");
    const name = "d-configured";
    const describing = (resourceName: string, configurationKeys: readonly string[] | null) => ({
      resources: [{ resourceType: GROUP, resourceName, configurationKeys }],
      includeSynonyms: true,
      includeDocumentation: false,
    });
    const describe = (label: string, keys: readonly string[] | null = null, of = name) =>
      script.check(label, describeConfigsApi, 4, describing(of, keys));
    const alter = (
      label: string,
      key: string,
      value: string | null,
      configOperation = SET,
      validateOnly = false,
      resourceName = name,
    ) =>
      script.check(label, incrementalAlterConfigsApi, 1, {
        resources: [{
          resourceType: GROUP,
          resourceName,
          configs: [{ name: key, configOperation, value }],
        }],
        validateOnly,
      });
    await script.versions("all", describeConfigsApi, describing(name, null));
    await describe("one key", ["share.isolation.level"]);
    await describe("unknown key", ["no.such.key"]);
    await describe("no name", null, "");
    await alter("no name to alter", "share.isolation.level", "read_committed", SET, false, "");
    await alter("unknown", "no.such.key", "1");
    await alter("too short", "consumer.session.timeout.ms", "44999");
    await alter("too long", "consumer.session.timeout.ms", "60001");
    await alter("not a number", "consumer.session.timeout.ms", "soon");
    await alter("zero", "share.heartbeat.interval.ms", "0");
    await alter("below the least", "share.heartbeat.interval.ms", "4999");
    await alter("lock too short", "share.record.lock.duration.ms", "14999");
    await alter("lock too long", "share.record.lock.duration.ms", "60001");
    await alter("reset to nothing", "share.auto.offset.reset", "none");
    await alter("reset in capitals", "share.auto.offset.reset", "EARLIEST");
    await alter("reset by nothing", "share.auto.offset.reset", "by_duration");
    await alter("reset by no duration", "share.auto.offset.reset", "by_duration:P");
    await alter("reset by words", "share.auto.offset.reset", "by_duration:one day");
    await alter("reset by a negative duration", "share.auto.offset.reset", "by_duration:-PT1H");
    await alter("isolation unknown", "share.isolation.level", "serializable");
    await alter("null value", "share.isolation.level", null);
    await alter("append", "share.isolation.level", "read_committed", APPEND);
    await alter("only validated", "share.isolation.level", "read_committed", SET, true);
    await describe("nothing was set", ["share.isolation.level"]);
    await alter("session", "share.session.timeout.ms", "50000");
    await alter("heartbeat", "consumer.heartbeat.interval.ms", " 6000 ");
    await alter("lock", "share.record.lock.duration.ms", "15000");
    await alter("reset by a duration", "share.auto.offset.reset", "by_duration:P1DT2H3M4.5S");
    await alter("isolation", "share.isolation.level", "read_committed");
    await describe("all that was set", [
      "share.session.timeout.ms",
      "consumer.heartbeat.interval.ms",
      "share.record.lock.duration.ms",
      "share.auto.offset.reset",
      "share.isolation.level",
      "share.heartbeat.interval.ms",
    ]);
    await alter("delete", "share.isolation.level", null, DELETE);
    await alter("delete what is not set", "share.heartbeat.interval.ms", null, DELETE);
    await describe("after delete", ["share.isolation.level"]);
    await script.check("listed", listConfigResourcesApi, 1, { resourceTypes: [GROUP] });
    await script.check("replaced", alterConfigsApi, 2, {
      resources: [{
        resourceType: GROUP,
        resourceName: name,
        configs: [{ name: "share.auto.offset.reset", value: "earliest" }],
      }],
      validateOnly: false,
    });
    await describe("after replace", ["share.auto.offset.reset", "share.session.timeout.ms"]);
    await script.check("replaced by nothing", alterConfigsApi, 2, {
      resources: [{ resourceType: GROUP, resourceName: name, configs: [] }],
      validateOnly: false,
    });
    await script.check("listed no more", listConfigResourcesApi, 1, { resourceTypes: [GROUP] });
    const own = "d-configured-848";
    await script.topic("d-configured-topic");
    await pause(KNOWN_MS);
    await alter("heartbeat of a group", "consumer.heartbeat.interval.ms", "7000", SET, false, own);
    await pause(KNOWN_MS);
    await script.check("joins a group with settings", consumerGroupHeartbeatApi, 1, {
      groupId: own,
      memberId: A,
      memberEpoch: 0,
      rebalanceTimeoutMs: 30_000,
      subscribedTopicNames: ["d-configured-topic"],
      topicPartitions: [],
    });
  },
};

export const SHARE_GROUPS = [refusals, life, beside, offsets, configs];
