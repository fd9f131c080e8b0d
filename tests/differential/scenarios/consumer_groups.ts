/** Groups of the newer protocol (KIP-848): heartbeats, reconciliation, and groups of both kinds. */
import { offsetCommitApi } from "../../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../../src/protocol/message/09_offset_fetch.ts";
import { joinGroupApi } from "../../../src/protocol/message/11_join_group.ts";
import { describeGroupsApi } from "../../../src/protocol/message/15_describe_groups.ts";
import { listGroupsApi } from "../../../src/protocol/message/16_list_groups.ts";
import { deleteGroupsApi } from "../../../src/protocol/message/42_delete_groups.ts";
import { consumerGroupHeartbeatApi } from "../../../src/protocol/message/68_consumer_group_heartbeat.ts";
import { consumerGroupDescribeApi } from "../../../src/protocol/message/69_consumer_group_describe.ts";
import { ready } from "./ready.ts";
import { pause, type Scenario, type Script } from "../script.ts";

const APIS = [68, 69];
/** Kafka's coordinator hears of a topic after its clients have; a group that is early gets another epoch. */
const KNOWN_MS = 1_000;

interface Beat {
  readonly groupId?: string;
  readonly memberId?: string;
  readonly memberEpoch?: number;
  readonly instanceId?: string | null;
  readonly rebalanceTimeoutMs?: number;
  readonly subscribedTopicNames?: readonly string[] | null;
  readonly subscribedTopicRegex?: string | null;
  readonly serverAssignor?: string | null;
  readonly topicPartitions?:
    | readonly { readonly topicId: string; readonly partitions: readonly number[] }[]
    | null;
}

const A = "d-member-a";
const B = "d-member-b";

function beater(script: Script, groupId: string, topics: readonly string[]) {
  return (label: string, of: Beat = {}, version = 1) =>
    script.call(label, consumerGroupHeartbeatApi, version, {
      groupId,
      memberId: A,
      memberEpoch: 0,
      rebalanceTimeoutMs: 30_000,
      subscribedTopicNames: topics,
      topicPartitions: [],
      ...of,
    });
}

function naming(...groupIds: readonly string[]) {
  return { groupIds, includeAuthorizedOperations: false };
}

const quiet: Beat = {
  rebalanceTimeoutMs: -1,
  subscribedTopicNames: null,
  topicPartitions: null,
};

const refusals: Scenario = {
  name: "consumer group refusals",
  needs: APIS,
  async run(script) {
    await ready(script, "group");
    const beat = beater(script, "d-848-no", ["d-848-none"]);
    await beat("empty group", { groupId: "" });
    await beat("blank group", { groupId: " " });
    await beat("empty member", { memberId: "" });
    await beat("member epoch -3", { memberEpoch: -3 });
    await beat("leave, unknown", { ...quiet, memberEpoch: -1 });
    await beat("leave for a while, no instance", { ...quiet, memberEpoch: -2 });
    await beat("unknown member", { ...quiet, memberEpoch: 5 });
    await beat("no time-out", { rebalanceTimeoutMs: -1 });
    await beat("time-out 0", { rebalanceTimeoutMs: 0 });
    await beat("no subscription", { subscribedTopicNames: null });
    await beat("owns partitions", {
      topicPartitions: [{ topicId: "000102030405060708090a0b0c0d0e0f", partitions: [0] }],
    });
    await beat("partitions null", { topicPartitions: null });
    await beat("empty instance", { instanceId: "" });
    await beat("unknown assignor", { serverAssignor: "nonsense" });
    await beat("empty assignor", { serverAssignor: "" });
    await beat("bad pattern", { subscribedTopicRegex: "(", subscribedTopicNames: null });
    await script.versions("describe unknown", consumerGroupDescribeApi, naming("d-848-none"));
    await script.check("describe empty", consumerGroupDescribeApi, 1, naming(""));
    await script.check("describe nothing", consumerGroupDescribeApi, 1, naming());
    await script.check(
      "describe twice",
      consumerGroupDescribeApi,
      1,
      naming("d-848-none", "d-848-none"),
    );
  },
};

const life: Scenario = {
  name: "consumer group life",
  needs: APIS,
  async run(script) {
    await ready(script, "group");
    const topicId = await script.topic("d-848", { partitions: 2 });
    await pause(KNOWN_MS);
    const groupId = "d-848-group";
    const beat = beater(script, groupId, ["d-848"]);
    const describe = (label: string) =>
      script.versions(label, consumerGroupDescribeApi, naming(groupId));
    const { memberEpoch } = await beat("joins");
    const owned = (...partitions: readonly number[]) => [{ topicId, partitions }];
    await describe("describe after join");
    await script.check("describe what may be done", consumerGroupDescribeApi, 1, {
      ...naming(groupId, "d-848-none"),
      includeAuthorizedOperations: true,
    });
    await beat("beats", { ...quiet, memberEpoch });
    await beat("says what it owns", { ...quiet, memberEpoch, topicPartitions: owned(0, 1) });
    await beat("full request", { memberEpoch, topicPartitions: owned(0, 1) });
    await beat("epoch too high", { ...quiet, memberEpoch: memberEpoch + 5 });
    await beat("epoch too low", { ...quiet, memberEpoch: memberEpoch - 1 });
    await beat("unknown member", { ...quiet, memberId: "nobody", memberEpoch });
    await beat("joins again", {});
    await describe("describe after joining again");
    const commit = (label: string, version: number, generation: number, memberId = A) =>
      script.call(label, offsetCommitApi, version, {
        groupId,
        generationIdOrMemberEpoch: generation,
        memberId,
        topics: [{
          name: "d-848",
          topicId,
          partitions: [{ partitionIndex: 0, committedOffset: 5, committedMetadata: "" }],
        }],
      });
    await commit("commit", 9, memberEpoch);
    await commit("commit v10", 10, memberEpoch);
    await commit("commit v8", 8, memberEpoch);
    await commit("commit of a later epoch", 9, memberEpoch + 3);
    await commit("commit of an earlier epoch", 9, memberEpoch - 1);
    await commit("commit of an unknown member", 9, memberEpoch, "nobody");
    await commit("commit of an outsider", 9, -1, "");
    for (
      const [label, memberId, epoch] of [
        ["member", A, memberEpoch],
        ["later epoch", A, memberEpoch + 3],
        ["unknown member", "nobody", memberEpoch],
        ["outsider", null, -1],
      ] as const
    ) {
      await script.check(`offset fetch of ${label}`, offsetFetchApi, 9, {
        groups: [{
          groupId,
          memberId,
          memberEpoch: epoch,
          topics: [{ name: "d-848", partitionIndexes: [0] }],
        }],
      });
    }
    await script.check("classic describe", describeGroupsApi, 5, { groups: [groupId] });
    await script.check("classic describe v6", describeGroupsApi, 6, { groups: [groupId] });
    await script.check("listed", listGroupsApi, 5, { typesFilter: ["consumer"] });
    await script.check("delete while alive", deleteGroupsApi, 2, { groupsNames: [groupId] });
    const second = await beat("second joins", { memberId: B });
    await describe("describe while the second waits");
    const now = await beat("first hears of it", {
      ...quiet,
      memberEpoch,
      topicPartitions: owned(0, 1),
    });
    await describe("describe while the first must give up one");
    const kept = now.assignment?.topicPartitions[0]?.partitions ?? [];
    const done = await beat("first gives up one", {
      ...quiet,
      memberEpoch: now.memberEpoch,
      topicPartitions: owned(...kept),
    });
    await beat("second gets it", { ...quiet, memberId: B, memberEpoch: second.memberEpoch });
    await describe("describe with two");
    await beat("first leaves", { ...quiet, memberEpoch: -1 });
    await beat("first beats after it left", { ...quiet, memberEpoch: done.memberEpoch });
    await beat("second is alone", { ...quiet, memberId: B, memberEpoch: second.memberEpoch });
    await beat("second leaves", { ...quiet, memberId: B, memberEpoch: -1 });
    await describe("describe when empty");
    await script.check("delete", deleteGroupsApi, 2, { groupsNames: [groupId] });
    await describe("describe when deleted");
  },
};

const statics: Scenario = {
  name: "static consumer members",
  needs: APIS,
  async run(script) {
    await ready(script, "group");
    await script.topic("d-848-static", { partitions: 1 });
    await pause(KNOWN_MS);
    const beat = beater(script, "d-848-static-group", ["d-848-static"]);
    const { memberEpoch } = await beat("joins", { instanceId: "one" });
    await beat("another with its instance", { instanceId: "one", memberId: B });
    await beat("beats with a wrong instance", { ...quiet, memberEpoch, instanceId: "two" });
    await beat("leaves for a while", { ...quiet, memberEpoch: -2, instanceId: "one" });
    await script.check("describe", consumerGroupDescribeApi, 1, naming("d-848-static-group"));
    await beat("takes its place", { instanceId: "one", memberId: B });
    await beat("the old one beats", { ...quiet, memberEpoch, instanceId: "one" });
    await beat("leaves", { ...quiet, memberEpoch: -1, instanceId: "one", memberId: B });
  },
};

const mixed: Scenario = {
  name: "groups of both kinds",
  needs: APIS,
  async run(script) {
    await ready(script, "group");
    await script.topic("d-848-mixed", { partitions: 1 });
    await pause(KNOWN_MS);
    const groupId = "d-848-mixed-group";
    const join = (protocolType: string, group: string) => ({
      groupId: group,
      sessionTimeoutMs: 30_000,
      rebalanceTimeoutMs: 30_000,
      memberId: "",
      protocolType,
      protocols: [{ name: "range", metadata: new Uint8Array([1]) }],
    });
    await beater(script, groupId, ["d-848-mixed"])("joins");
    await script.check(
      "a classic member that cannot be read",
      joinGroupApi,
      3,
      join("consumer", groupId),
    );
    await script.check(
      "a classic member of another type",
      joinGroupApi,
      3,
      join("connect", groupId),
    );
    const classic = "d-848-classic";
    await script.check("a classic group", joinGroupApi, 3, join("connect", classic));
    await beater(script, classic, ["d-848-mixed"])("joins a classic group of another type");
    await script.check("described as one", consumerGroupDescribeApi, 1, naming(classic));
  },
};

export const CONSUMER_GROUPS = [refusals, life, statics, mixed];
