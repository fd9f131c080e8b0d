/** Classic groups: their life, their errors, and the offsets that they commit. */
import { toUtf8 } from "../../../src/lib/bytes.ts";
import { offsetCommitApi } from "../../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../../src/protocol/message/09_offset_fetch.ts";
import { joinGroupApi } from "../../../src/protocol/message/11_join_group.ts";
import { heartbeatApi } from "../../../src/protocol/message/12_heartbeat.ts";
import { leaveGroupApi } from "../../../src/protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../../src/protocol/message/14_sync_group.ts";
import { describeGroupsApi } from "../../../src/protocol/message/15_describe_groups.ts";
import { listGroupsApi } from "../../../src/protocol/message/16_list_groups.ts";
import { deleteGroupsApi } from "../../../src/protocol/message/42_delete_groups.ts";
import { consumerProtocolSubscription } from "../../../src/protocol/message/consumer_protocol.ts";
import { encodeVersioned } from "../../../src/protocol/versioned.ts";
import { ready } from "./ready.ts";
import { pause, type Scenario, type Script } from "../script.ts";

/** Kafka reads it, and never answers a join whose subscription has an impossible length. */
function subscription(userData = "subscribed"): Uint8Array {
  return encodeVersioned(consumerProtocolSubscription, 0, {
    topics: ["d-subscribed"],
    userData: toUtf8(userData),
    ownedPartitions: [],
  });
}

interface Joining {
  readonly memberId?: string;
  readonly groupInstanceId?: string | null;
  readonly protocols?: readonly string[];
  readonly protocolType?: string;
  readonly sessionTimeoutMs?: number;
  readonly rebalanceTimeoutMs?: number;
  readonly metadata?: string;
}

function joining(groupId: string, options: Joining = {}) {
  const { protocols = ["range"], metadata, ...rest } = options;
  return {
    groupId,
    sessionTimeoutMs: 30_000,
    rebalanceTimeoutMs: 30_000,
    memberId: "",
    protocolType: "consumer",
    ...rest,
    protocols: protocols.map((name) => ({
      name,
      metadata: subscription(metadata),
    })),
  };
}

function syncing(
  groupId: string,
  memberId: string,
  generationId: number,
  ...members: readonly string[]
) {
  return {
    groupId,
    generationId,
    memberId,
    protocolType: "consumer",
    protocolName: "range",
    assignments: members.map((id, index) => ({
      memberId: id,
      assignment: toUtf8(`part ${index}`),
    })),
  };
}

const refusals: Scenario = {
  name: "group refusals",
  async run(script) {
    await ready(script, "group");
    const join = (label: string, groupId: string, options: Joining = {}, version = 9) =>
      script.check(label, joinGroupApi, version, joining(groupId, options));
    await join("empty group id", "");
    await join("session time-out too short", "d-no", { sessionTimeoutMs: 499 });
    await join("session time-out too long", "d-no", { sessionTimeoutMs: 1_800_001 });
    await join("empty protocol type", "d-no", { protocolType: "" });
    await join("no protocols", "d-no", { protocols: [] });
    await join("empty protocol type v3", "d-no3", { protocolType: "" }, 3);
    await join("no protocols v3", "d-no3", { protocols: [] }, 3);
    await join("unknown member of an unknown group", "d-no2", { memberId: "nobody" });
    await join("empty instance id", "d-no4", { groupInstanceId: "" });
    await join("bad instance id", "d-no5", { groupInstanceId: "a b" });
    const none = { groupId: "d-none", generationId: 1, memberId: "nobody" };
    const range = { protocolType: "consumer", protocolName: "range" };
    await script.check("sync without a protocol", syncGroupApi, 5, { ...none, assignments: [] });
    await script.versions("sync, unknown group", syncGroupApi, {
      ...none,
      ...range,
      assignments: [],
    });
    await script.versions("heartbeat, unknown group", heartbeatApi, none);
    await script.versions("leave, unknown group", leaveGroupApi, {
      groupId: "d-none",
      memberId: "nobody",
      members: [{ memberId: "nobody" }],
    });
    await script.check("sync, empty group id", syncGroupApi, 5, {
      ...none,
      ...range,
      groupId: "",
      assignments: [],
    });
    await script.check("heartbeat, empty group id", heartbeatApi, 4, { ...none, groupId: "" });
    await script.check("leave, empty group id", leaveGroupApi, 5, {
      groupId: "",
      members: [{ memberId: "x" }],
    });
    await script.check("leave, nobody", leaveGroupApi, 5, { groupId: "d-none", members: [] });
    await script.versions("describe, unknown group", describeGroupsApi, { groups: ["d-none"] });
    await script.check("describe, empty group id", describeGroupsApi, 6, { groups: [""] });
    await script.check("describe, empty group id v5", describeGroupsApi, 5, { groups: [""] });
    for (const version of [5, 6]) {
      await script.check(`describe what may be done v${version}`, describeGroupsApi, version, {
        groups: ["d-none"],
        includeAuthorizedOperations: true,
      });
    }
    await script.check("describe nothing", describeGroupsApi, 5, { groups: [] });
    await script.check("describe twice", describeGroupsApi, 5, { groups: ["d-none", "d-none"] });
    await script.versions("delete, unknown group", deleteGroupsApi, { groupsNames: ["d-none"] });
    await script.check("delete, empty group id", deleteGroupsApi, 2, { groupsNames: [""] });
    await script.check("delete nothing", deleteGroupsApi, 2, { groupsNames: [] });
    await script.check("delete twice", deleteGroupsApi, 2, { groupsNames: ["d-none", "d-none"] });
  },
};

const oldJoins: Scenario = {
  name: "group by every version",
  async run(script) {
    await ready(script, "group");
    for (let version = 0; version <= 9; version++) {
      const group = `d-join-${version}`;
      let joined = await script.call(`join v${version}`, joinGroupApi, version, joining(group));
      if (joined.errorCode === 79) {
        joined = await script.call(
          `join v${version} with the id`,
          joinGroupApi,
          version,
          joining(group, { memberId: joined.memberId }),
        );
      }
      const { memberId, generationId } = joined;
      const sync = Math.min(version, 5);
      await script.check(`sync v${sync} of join v${version}`, syncGroupApi, sync, {
        ...syncing(group, memberId, generationId, memberId),
        ...(version === 5 ? { protocolType: "consumer", protocolName: "range" } : {}),
      });
      const beat = Math.min(version, 4);
      await script.check(`heartbeat v${beat} of join v${version}`, heartbeatApi, beat, {
        groupId: group,
        generationId,
        memberId,
      });
      await script.check(
        `describe v${Math.min(version, 6)} of join v${version}`,
        describeGroupsApi,
        Math.min(version, 6),
        {
          groups: [group],
          includeAuthorizedOperations: true,
        },
      );
      const leave = Math.min(version, 5);
      await script.check(`leave v${leave} of join v${version}`, leaveGroupApi, leave, {
        groupId: group,
        memberId,
        members: [{ memberId }],
      });
      await script.check(`describe after leave of join v${version}`, describeGroupsApi, 5, {
        groups: [group],
      });
    }
  },
};

const life: Scenario = {
  name: "group life",
  async run(script) {
    await ready(script, "group");
    const group = "d-life";
    const join = (label: string, on: string, options: Joining = {}) =>
      script.begin(label, joinGroupApi, 9, joining(group, options), { on });
    const first = await (await join("first asks", "a")).answer();
    const a = first.memberId;
    await script.check("describe with a pending member", describeGroupsApi, 5, { groups: [group] });
    await script.check("heartbeat while pending", heartbeatApi, 4, {
      groupId: group,
      generationId: -1,
      memberId: a,
    });
    const one = await (await join("first joins", "a", { memberId: a })).answer();
    const generation = one.generationId ?? -1;
    await script.check("describe before sync", describeGroupsApi, 5, { groups: [group] });
    await script.check("heartbeat before sync", heartbeatApi, 4, {
      groupId: group,
      generationId: generation,
      memberId: a,
    });
    await (await join("joins again before sync", "a", { memberId: a })).answer();
    await script.check("sync of a wrong generation", syncGroupApi, 5, syncing(group, a, 99));
    await script.check(
      "sync of an unknown member",
      syncGroupApi,
      5,
      syncing(group, "nobody", generation),
    );
    await script.check("sync with a wrong type", syncGroupApi, 5, {
      ...syncing(group, a, generation, a),
      protocolType: "connect",
    });
    await script.check("sync with a wrong protocol", syncGroupApi, 5, {
      ...syncing(group, a, generation, a),
      protocolName: "other",
    });
    await script.check("sync of a wrong instance", syncGroupApi, 5, {
      ...syncing(group, a, generation, a),
      groupInstanceId: "i",
    });
    await script.check("sync of the leader", syncGroupApi, 5, syncing(group, a, generation, a));
    await script.check("sync again", syncGroupApi, 5, syncing(group, a, generation));
    await script.check("describe when stable", describeGroupsApi, 5, { groups: [group] });
    for (
      const [label, generationId, memberId] of [
        ["good", generation, a],
        ["wrong generation", 99, a],
        ["generation -1", -1, a],
        ["unknown member", generation, "nobody"],
        ["empty member", generation, ""],
      ] as const
    ) {
      await script.check(`heartbeat: ${label}`, heartbeatApi, 4, {
        groupId: group,
        generationId,
        memberId,
      });
    }
    await (await join("wrong type", "b", { protocolType: "connect" })).answer();
    await (await join("no common protocol", "b", { protocols: ["other"] })).answer();
    await (await join("unknown member", "b", { memberId: "nobody" })).answer();
    const { memberId: b } = await (await join("second asks", "b")).answer();
    const second = await join("second joins", "b", { memberId: b, protocols: ["sticky", "range"] });
    await pause(100);
    await script.check("heartbeat while rebalancing", heartbeatApi, 4, {
      groupId: group,
      generationId: generation,
      memberId: a,
    });
    await script.check("sync while rebalancing", syncGroupApi, 5, syncing(group, a, generation));
    await script.check("describe while rebalancing", describeGroupsApi, 5, { groups: [group] });
    const again = await join("first joins again", "a", {
      memberId: a,
      protocols: ["sticky", "range"],
    });
    await again.answer();
    await second.answer();
    const next = generation + 1;
    const sticky = { protocolName: "sticky" };
    const follower = { ...syncing(group, b, next), ...sticky };
    const waiting = await script.begin("follower syncs", syncGroupApi, 5, follower, {
      on: "b",
    });
    await pause(100);
    const leader = { ...syncing(group, a, next, a, b), ...sticky };
    await script.check("leader syncs", syncGroupApi, 5, leader, { on: "a" });
    await waiting.answer();
    await script.check("describe with two", describeGroupsApi, 5, { groups: [group] });
    await (await join("follower joins, nothing changed", "b", {
      memberId: b,
      protocols: ["sticky", "range"],
    })).answer();
    await script.check("delete while alive", deleteGroupsApi, 2, { groupsNames: [group] });
    await script.check("leave of two, one unknown", leaveGroupApi, 5, {
      groupId: group,
      members: [{ memberId: "nobody" }, { memberId: b }],
    });
    await script.check("heartbeat after the other left", heartbeatApi, 4, {
      groupId: group,
      generationId: next,
      memberId: a,
    });
    await script.check("leave of the last", leaveGroupApi, 5, {
      groupId: group,
      members: [{ memberId: a }],
    });
    await script.check("describe when empty", describeGroupsApi, 5, { groups: [group] });
    await script.check("heartbeat when empty", heartbeatApi, 4, {
      groupId: group,
      generationId: next,
      memberId: a,
    });
    await script.check("sync when empty", syncGroupApi, 5, syncing(group, a, next));
    await script.check("delete when empty", deleteGroupsApi, 2, { groupsNames: [group] });
    await script.check("describe when deleted", describeGroupsApi, 6, { groups: [group] });
  },
};

const statics: Scenario = {
  name: "static members",
  async run(script) {
    await ready(script, "group");
    const group = "d-static";
    const call = (label: string, options: Joining = {}) =>
      script.call(label, joinGroupApi, 9, joining(group, { groupInstanceId: "one", ...options }));
    const first = await call("joins at once");
    const old = first.memberId;
    const generationId = first.generationId ?? -1;
    await script.check("sync", syncGroupApi, 5, {
      ...syncing(group, old, generationId, old),
      groupInstanceId: "one",
    });
    await script.check("describe", describeGroupsApi, 5, { groups: [group] });
    const restarted = await call("comes back without its id");
    const member = restarted.memberId;
    await script.check("old id beats", heartbeatApi, 4, {
      groupId: group,
      generationId,
      memberId: old,
      groupInstanceId: "one",
    });
    await script.check("old id beats without instance", heartbeatApi, 4, {
      groupId: group,
      generationId,
      memberId: old,
    });
    await script.check("old id syncs", syncGroupApi, 5, {
      ...syncing(group, old, generationId),
      groupInstanceId: "one",
    });
    await call("old id joins", { memberId: old });
    await call("unknown instance with the id", { memberId: member, groupInstanceId: "two" });
    await script.check("new id beats", heartbeatApi, 4, {
      groupId: group,
      generationId,
      memberId: member,
      groupInstanceId: "one",
    });
    await script.check("unknown instance beats", heartbeatApi, 4, {
      groupId: group,
      generationId,
      memberId: member,
      groupInstanceId: "two",
    });
    await call("comes back with other metadata", { metadata: "else" });
    await script.check("describe after metadata changed", describeGroupsApi, 5, {
      groups: [group],
    });
    await script.check("unknown instance leaves", leaveGroupApi, 5, {
      groupId: group,
      members: [{ memberId: "", groupInstanceId: "two" }],
    });
    await script.check("old id leaves", leaveGroupApi, 5, {
      groupId: group,
      members: [{ memberId: old, groupInstanceId: "one" }],
    });
    await script.check("leaves by instance", leaveGroupApi, 5, {
      groupId: group,
      members: [{ memberId: "", groupInstanceId: "one" }],
    });
    await script.check("describe in the end", describeGroupsApi, 5, { groups: [group] });
  },
};

const expiry: Scenario = {
  name: "session time-outs",
  async run(script) {
    await ready(script, "group");
    const { memberId, generationId } = await script.call(
      "joins",
      joinGroupApi,
      3,
      joining("d-expire", { sessionTimeoutMs: 500 }),
    );
    await script.check(
      "syncs",
      syncGroupApi,
      3,
      syncing("d-expire", memberId, generationId, memberId),
    );
    await script.until(
      describeGroupsApi,
      5,
      { groups: ["d-expire"] },
      ({ groups }) => groups[0]?.groupState === "Empty",
    );
    await script.check("describe", describeGroupsApi, 5, { groups: ["d-expire"] });
    await script.check("beats too late", heartbeatApi, 4, {
      groupId: "d-expire",
      generationId,
      memberId,
    });
  },
};

const listing: Scenario = {
  name: "list groups",
  async run(script) {
    await ready(script, "group");
    // Groups of the scenarios before are there too, on both sides the same.
    const { memberId, generationId } = await script.call(
      "joins",
      joinGroupApi,
      3,
      joining("d-listed"),
    );
    await script.check(
      "syncs",
      syncGroupApi,
      3,
      syncing("d-listed", memberId, generationId, memberId),
    );
    await script.versions("all", listGroupsApi, {});
    const states = [
      ["Stable"],
      ["stable"],
      ["Empty"],
      ["Dead"],
      ["Stable", "Empty"],
      ["PreparingRebalance"],
      ["CompletingRebalance"],
      ["Nonsense"],
      [""],
    ];
    for (const statesFilter of states) {
      await script.check(`states ${statesFilter.join(" ")}`, listGroupsApi, 4, { statesFilter });
    }
    for (
      const typesFilter of [["classic"], ["Classic"], ["consumer"], ["share"], ["nonsense"], [""]]
    ) {
      await script.check(`types ${typesFilter.join(" ")}`, listGroupsApi, 5, { typesFilter });
    }
    await script.check("leaves", leaveGroupApi, 3, {
      groupId: "d-listed",
      members: [{ memberId }],
    });
  },
};

const commits: Scenario = {
  name: "offsets of groups",
  async run(script) {
    await ready(script, "group");
    const id = await script.topic("d-commit", { partitions: 3 });
    const committing = (groupId: string, committedOffset: number, extra: {
      readonly partitionIndex?: number;
      readonly committedMetadata?: string | null;
      readonly name?: string;
      readonly topicId?: string;
      readonly generationIdOrMemberEpoch?: number;
      readonly memberId?: string;
      readonly groupInstanceId?: string | null;
    } = {}) => {
      const {
        partitionIndex = 0,
        committedMetadata = "",
        name = "d-commit",
        topicId = id,
        ...rest
      } = extra;
      return {
        groupId,
        memberId: "",
        ...rest,
        topics: [{
          name,
          topicId,
          partitions: [{
            partitionIndex,
            committedOffset,
            committedLeaderEpoch: 0,
            committedMetadata,
          }],
        }],
      };
    };
    const asked = (
      groupId: string,
      partitionIndexes = [0, 1],
      name = "d-commit",
      topicId = id,
    ) => ({
      groupId,
      topics: [{ name, partitionIndexes }],
      groups: [{ groupId, topics: [{ name, topicId, partitionIndexes }] }],
    });
    await script.versions("commit", offsetCommitApi, (version) => committing("d-simple", version));
    await script.versions("fetch", offsetFetchApi, asked("d-simple"));
    await script.versions("fetch all", offsetFetchApi, {
      groupId: "d-simple",
      topics: null,
      groups: [{ groupId: "d-simple", topics: null }],
    }, { from: 2 });
    await script.versions("fetch of an unknown group", offsetFetchApi, asked("d-unknown"));
    await script.versions("fetch all of an unknown group", offsetFetchApi, {
      groupId: "d-unknown",
      topics: null,
      groups: [{ groupId: "d-unknown", topics: null }],
    }, { from: 2 });
    await script.versions(
      "fetch of an unknown topic",
      offsetFetchApi,
      asked("d-simple", [0], "d-commit-none", "000102030405060708090a0b0c0d0e0f"),
    );
    await script.check("fetch of an unknown partition", offsetFetchApi, 9, asked("d-simple", [9]));
    await script.check("fetch of many groups", offsetFetchApi, 8, {
      groups: [...asked("d-simple").groups, ...asked("d-unknown").groups],
    });
    await script.check("fetch of no groups", offsetFetchApi, 8, { groups: [] });
    await script.check("fetch of a group twice", offsetFetchApi, 8, {
      groups: [...asked("d-simple").groups, ...asked("d-simple").groups],
    });
    await script.check("fetch of no topics", offsetFetchApi, 7, {
      groupId: "d-simple",
      topics: [],
    });
    await script.check("fetch stable", offsetFetchApi, 7, {
      ...asked("d-simple"),
      requireStable: true,
    });
    await script.check("fetch of the empty group", offsetFetchApi, 7, asked(""));
    await script.check("fetch of the empty group v8", offsetFetchApi, 8, asked(""));
    await script.check("fetch as a member", offsetFetchApi, 9, {
      groups: [{ ...asked("d-simple").groups[0]!, memberId: "nobody", memberEpoch: 1 }],
    });
    const commit = (label: string, version: number, ...of: Parameters<typeof committing>) =>
      script.check(label, offsetCommitApi, version, committing(...of));
    await commit("to the empty group", 7, "", 5);
    await commit("unknown topic", 7, "d-simple", 5, { name: "d-commit-none" });
    await commit("unknown id", 10, "d-simple", 5, { topicId: "000102030405060708090a0b0c0d0e0f" });
    await commit("unknown partition", 7, "d-simple", 5, { partitionIndex: 9 });
    await commit("negative partition", 7, "d-simple", 5, { partitionIndex: -1 });
    await commit("negative offset", 7, "d-simple", -1);
    await commit("offset -5", 7, "d-simple", -5);
    await commit("far offset", 7, "d-simple", Number.MAX_SAFE_INTEGER, { partitionIndex: 2 });
    await commit("null metadata", 7, "d-simple", 6, { committedMetadata: null });
    await script.check("after null metadata", offsetFetchApi, 7, asked("d-simple"));
    await commit("metadata", 7, "d-simple", 7, { committedMetadata: "m".repeat(4096) });
    await commit("metadata too large", 7, "d-simple", 8, { committedMetadata: "m".repeat(4097) });
    await commit("metadata of 2-byte letters", 7, "d-simple", 9, {
      committedMetadata: "ä".repeat(2049),
    });
    await script.check("after metadata", offsetFetchApi, 7, asked("d-simple"));
    await commit("generation of no group", 7, "d-new", 1, {
      generationIdOrMemberEpoch: 3,
      memberId: "x",
    });
    await commit("generation of no group v9", 9, "d-new", 1, {
      generationIdOrMemberEpoch: 3,
      memberId: "x",
    });
    await commit("member of no group", 7, "d-new", 1, { memberId: "x" });
    await script.check("describe no group", describeGroupsApi, 5, { groups: ["d-new"] });
    await script.check("describe the simple group", describeGroupsApi, 6, { groups: ["d-simple"] });
    await script.check("no topics", offsetCommitApi, 7, {
      groupId: "d-simple",
      memberId: "",
      topics: [],
    });
    await script.check("partition twice", offsetCommitApi, 7, {
      groupId: "d-simple",
      memberId: "",
      topics: [{
        name: "d-commit",
        partitions: [11, 12].map((committedOffset) => ({
          partitionIndex: 1,
          committedOffset,
          committedMetadata: "",
        })),
      }],
    });
    await script.check("retention of old versions", offsetCommitApi, 2, {
      ...committing("d-retention", 3),
      retentionTimeMs: 60_000,
    });
    await script.check("after retention", offsetFetchApi, 7, asked("d-retention"));
    await memberCommits(script, commit);
    await script.check("delete the simple group", deleteGroupsApi, 2, {
      groupsNames: ["d-simple"],
    });
    await script.check("fetch after delete", offsetFetchApi, 7, asked("d-simple"));
  },
};

async function memberCommits(
  script: Script,
  commit: (label: string, version: number, group: string, offset: number, extra: {
    readonly generationIdOrMemberEpoch?: number;
    readonly memberId?: string;
    readonly groupInstanceId?: string;
  }) => Promise<unknown>,
): Promise<void> {
  const group = "d-members";
  const { memberId, generationId } = await script.call(
    "a member joins",
    joinGroupApi,
    3,
    joining(group),
  );
  const mine = { generationIdOrMemberEpoch: generationId, memberId };
  await commit("member before sync", 7, group, 1, mine);
  await script.check(
    "the member syncs",
    syncGroupApi,
    3,
    syncing(group, memberId, generationId, memberId),
  );
  await commit("member", 7, group, 2, mine);
  await commit("member v9", 9, group, 3, mine);
  await commit("wrong generation", 7, group, 4, { ...mine, generationIdOrMemberEpoch: 99 });
  await commit("wrong generation v9", 9, group, 4, { ...mine, generationIdOrMemberEpoch: 99 });
  await commit("unknown member", 7, group, 5, { ...mine, memberId: "nobody" });
  await commit("outsider", 7, group, 6, {});
  await commit("generation -1 of a member", 7, group, 6, { memberId });
  await commit("wrong instance", 7, group, 7, { ...mine, groupInstanceId: "i" });
  await script.check("the member leaves", leaveGroupApi, 3, {
    groupId: group,
    members: [{ memberId }],
  });
  await commit("member that left", 7, group, 8, mine);
  await commit("outsider of an empty group", 7, group, 9, {});
  await commit("generation 0 of an empty group", 7, group, 9, { generationIdOrMemberEpoch: 0 });
}

export const GROUPS = [refusals, oldJoins, life, statics, expiry, commits, listing];
