/** The rest of administration: records deleted, all configs replaced, directories, quotas, features. */
import { produceApi } from "../../../src/protocol/message/00_produce.ts";
import { fetchApi } from "../../../src/protocol/message/01_fetch.ts";
import { listOffsetsApi } from "../../../src/protocol/message/02_list_offsets.ts";
import { offsetCommitApi } from "../../../src/protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../../src/protocol/message/09_offset_fetch.ts";
import { joinGroupApi } from "../../../src/protocol/message/11_join_group.ts";
import { leaveGroupApi } from "../../../src/protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../../src/protocol/message/14_sync_group.ts";
import { describeConfigsApi } from "../../../src/protocol/message/32_describe_configs.ts";
import { deleteRecordsApi } from "../../../src/protocol/message/21_delete_records.ts";
import { alterConfigsApi } from "../../../src/protocol/message/33_alter_configs.ts";
import { describeLogDirsApi } from "../../../src/protocol/message/35_describe_log_dirs.ts";
import { electLeadersApi } from "../../../src/protocol/message/43_elect_leaders.ts";
import { alterPartitionReassignmentsApi } from "../../../src/protocol/message/45_alter_partition_reassignments.ts";
import { offsetDeleteApi } from "../../../src/protocol/message/47_offset_delete.ts";
import { describeClientQuotasApi } from "../../../src/protocol/message/48_describe_client_quotas.ts";
import { alterClientQuotasApi } from "../../../src/protocol/message/49_alter_client_quotas.ts";
import { updateFeaturesApi } from "../../../src/protocol/message/57_update_features.ts";
import { listConfigResourcesApi } from "../../../src/protocol/message/74_list_config_resources.ts";
import { describeTopicPartitionsApi } from "../../../src/protocol/message/75_describe_topic_partitions.ts";
import { consumerProtocolSubscription } from "../../../src/protocol/message/consumer_protocol.ts";
import { encodeVersioned } from "../../../src/protocol/versioned.ts";
import { ready } from "./ready.ts";
import { batch, type Scenario, type Script } from "../script.ts";

async function fill(script: Script, name: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await script.check(`fills ${name} ${i}`, produceApi, 9, {
      acks: -1,
      timeoutMs: 5000,
      topicData: [{
        name,
        partitionData: [{ index: 0, records: batch([`k=${i}`, `k=${i}+`]) }],
      }],
    });
  }
}

const deleteRecords: Scenario = {
  name: "delete records",
  needs: [21],
  async run(script) {
    await script.topic("d-purge", { partitions: 2 });
    await script.topic("d-purge-compact", { configs: { "cleanup.policy": "compact" } });
    await script.topic("d-purge-both", { configs: { "cleanup.policy": "compact,delete" } });
    await fill(script, "d-purge", 4);
    await fill(script, "d-purge-compact", 1);
    await fill(script, "d-purge-both", 1);
    const request = (offset: number, partitionIndex = 0, name = "d-purge") => ({
      topics: [{ name, partitions: [{ partitionIndex, offset }] }],
      timeoutMs: 5000,
    });
    const call = (label: string, ...of: Parameters<typeof request>) =>
      script.check(label, deleteRecordsApi, 2, request(...of));
    await script.versions("to 1", deleteRecordsApi, request(1));
    await call("to 0 again", 0);
    await call("to the same", 1);
    await call("inside a batch", 3);
    await call("beyond the end", 99);
    await call("negative", -2);
    await call("empty partition", 0, 1);
    await call("empty partition to the end", -1, 1);
    await call("unknown partition", 0, 9);
    await call("unknown topic", 0, 0, "d-purge-none");
    await call("bad name", 0, 0, "a b");
    await call("compacted", 1, 0, "d-purge-compact");
    await call("compacted and deleted", 1, 0, "d-purge-both");
    await call("internal", 0, 0, "__consumer_offsets");
    for (const fetchOffset of [0, 1, 2, 3, 8]) {
      await script.check(`fetch at ${fetchOffset}`, fetchApi, 11, {
        maxWaitMs: 0,
        minBytes: 0,
        maxBytes: 100_000,
        sessionId: 0,
        topics: [{
          topic: "d-purge",
          partitions: [{ partition: 0, fetchOffset, partitionMaxBytes: 100_000 }],
        }],
        forgottenTopicsData: [],
        rackId: "",
      });
    }
    for (const timestamp of [-1, -2, -3, 0]) {
      await script.check(`list offsets ${timestamp}`, listOffsetsApi, 9, {
        replicaId: -1,
        isolationLevel: 0,
        topics: [{ name: "d-purge", partitions: [{ partitionIndex: 0, timestamp }] }],
      });
    }
    await call("all", -1);
    await call("all again", -1);
    await call("below", 2);
    await script.check("nothing", deleteRecordsApi, 2, { topics: [], timeoutMs: 5000 });
  },
};

const alterConfigs: Scenario = {
  name: "alter configs",
  needs: [33],
  async run(script) {
    await script.topic("d-replace", { configs: { "segment.ms": "9999" } });
    const request = (
      configs: Readonly<Record<string, string | null>>,
      resourceName = "d-replace",
      resourceType = 2,
    ) => ({
      resources: [{
        resourceType,
        resourceName,
        configs: Object.entries(configs).map(([name, value]) => ({ name, value })),
      }],
      validateOnly: false,
    });
    const now = (label: string) =>
      script.check(label, describeConfigsApi, 4, {
        resources: [{
          resourceType: 2,
          resourceName: "d-replace",
          configurationKeys: ["retention.ms", "segment.ms", "cleanup.policy"],
        }],
        includeSynonyms: false,
        includeDocumentation: false,
      });
    await script.versions("replaces", alterConfigsApi, request({ "retention.ms": "5000" }));
    await now("after replaces");
    await call("null value", { "retention.ms": null });
    await call("bad value", { "retention.ms": "x" });
    await call("unknown key", { "no.such.key": "1" });
    await call("empty list", { "cleanup.policy": "" });
    await now("after refusals");
    await call("nothing set");
    await now("after nothing set");
    await script.check("validate only", alterConfigsApi, 2, {
      ...request({ "segment.ms": "7777" }),
      validateOnly: true,
    });
    await call("unknown topic", { "retention.ms": "1" }, "d-replace-none");
    await call("bad topic name", { "retention.ms": "1" }, "a b");
    await call("read-only broker key", { "num.partitions": "2" }, "1", 4);
    await call("other broker", { "log.retention.ms": "1000" }, "99", 4);
    for (const kind of [0, 3, 99]) await call(`resource type ${kind}`, {}, "x", kind);
    const twice = request({ "retention.ms": "1" });
    await script.check("resource twice", alterConfigsApi, 2, {
      ...twice,
      resources: [...twice.resources, ...twice.resources],
    });
    await script.check("key twice", alterConfigsApi, 2, {
      resources: [{
        resourceType: 2,
        resourceName: "d-replace",
        configs: ["1", "2"].map((value) => ({ name: "retention.ms", value })),
      }],
      validateOnly: false,
    });
    await now("in the end");
    async function call(
      label: string,
      configs: Readonly<Record<string, string | null>> = {},
      ...rest: readonly [string?, number?]
    ): Promise<void> {
      await script.check(label, alterConfigsApi, 2, request(configs, ...rest));
    }
  },
};

const directories: Scenario = {
  name: "log directories",
  needs: [35],
  async run(script) {
    await script.topic("d-dir", { partitions: 2 });
    await fill(script, "d-dir", 1);
    const one = { topics: [{ topic: "d-dir", partitions: [0, 1] }] };
    await script.versions("one topic", describeLogDirsApi, one);
    await script.check("one partition", describeLogDirsApi, 4, {
      topics: [{ topic: "d-dir", partitions: [1] }],
    });
    await script.check("unknown topic", describeLogDirsApi, 4, {
      topics: [{ topic: "d-dir-none", partitions: [0] }],
    });
    await script.check("unknown partition", describeLogDirsApi, 4, {
      topics: [{ topic: "d-dir", partitions: [9] }],
    });
    await script.check("no topics", describeLogDirsApi, 4, { topics: [] });
    await script.check("no partitions", describeLogDirsApi, 4, {
      topics: [{ topic: "d-dir", partitions: [] }],
    });
  },
};

const leaders: Scenario = {
  name: "elect leaders",
  needs: [43],
  async run(script) {
    await script.topic("d-elect", { partitions: 2 });
    const request = (topic: string, ...partitions: readonly number[]) => ({
      electionType: 0,
      topicPartitions: [{ topic, partitions }],
      timeoutMs: 5000,
    });
    await script.versions("preferred", electLeadersApi, request("d-elect", 0, 1));
    await script.check("unclean", electLeadersApi, 2, {
      ...request("d-elect", 0),
      electionType: 1,
    });
    await script.check("unknown kind", electLeadersApi, 2, {
      ...request("d-elect", 0),
      electionType: 7,
    });
    await script.check("unknown partition", electLeadersApi, 2, request("d-elect", 9));
    await script.check("unknown topic", electLeadersApi, 2, request("d-elect-none", 0));
    await script.check("bad name", electLeadersApi, 2, request("a b", 0));
    await script.check("all", electLeadersApi, 2, { ...request(""), topicPartitions: null });
    await script.check("none", electLeadersApi, 2, { ...request(""), topicPartitions: [] });
    await script.check("partition twice", electLeadersApi, 2, request("d-elect", 0, 0));
  },
};

const reassign: Scenario = {
  name: "reassign partitions",
  needs: [45],
  async run(script) {
    await script.topic("d-move");
    const request = (name: string, replicas: readonly number[] | null, partitionIndex = 0) => ({
      timeoutMs: 5000,
      topics: [{ name, partitions: [{ partitionIndex, replicas }] }],
    });
    await script.versions("to the same", alterPartitionReassignmentsApi, request("d-move", [1]));
    const call = (label: string, ...of: Parameters<typeof request>) =>
      script.check(label, alterPartitionReassignmentsApi, 1, request(...of));
    await call("cancel what does not run", "d-move", null);
    await call("to an unknown broker", "d-move", [99]);
    await call("twice to one broker", "d-move", [1, 1]);
    await call("to nobody", "d-move", []);
    await call("negative broker", "d-move", [-1]);
    await call("unknown topic", "d-move-none", [1]);
    await call("unknown partition", "d-move", [1], 9);
    await script.check("nothing", alterPartitionReassignmentsApi, 1, {
      timeoutMs: 5000,
      topics: [],
    });
  },
};

const offsetDelete: Scenario = {
  name: "delete offsets",
  needs: [47],
  async run(script) {
    await ready(script, "group");
    await script.topic("d-forget", { partitions: 2 });
    const groupId = "d-forget-group";
    await script.check("commit", offsetCommitApi, 7, {
      groupId,
      memberId: "",
      topics: [{
        name: "d-forget",
        partitions: [0, 1].map((partitionIndex) => ({
          partitionIndex,
          committedOffset: 5,
          committedMetadata: "",
        })),
      }],
    });
    const request = (partitionIndex: number, name = "d-forget", group = groupId) => ({
      groupId: group,
      topics: [{ name, partitions: [{ partitionIndex }] }],
    });
    const call = (label: string, ...of: Parameters<typeof request>) =>
      script.check(label, offsetDeleteApi, 0, request(...of));
    const now = (label: string) =>
      script.check(label, offsetFetchApi, 7, {
        groupId,
        topics: [{ name: "d-forget", partitionIndexes: [0, 1] }],
      });
    await call("one", 0);
    await now("after one");
    await call("one again", 0);
    await call("unknown partition", 9);
    await call("unknown topic", 0, "d-forget-none");
    await call("unknown group", 0, "d-forget", "d-forget-none");
    await call("empty group", 0, "d-forget", "");
    await script.check("nothing", offsetDeleteApi, 0, { groupId, topics: [] });
    const metadata = (...topics: readonly string[]) =>
      encodeVersioned(consumerProtocolSubscription, 0, {
        topics,
        userData: null,
        ownedPartitions: [],
      });
    const joining = (type: string, bytes: Uint8Array) => ({
      groupId,
      sessionTimeoutMs: 30_000,
      rebalanceTimeoutMs: 30_000,
      memberId: "",
      protocolType: type,
      protocols: [{ name: "range", metadata: bytes }],
    });
    for (
      const [label, type, bytes] of [
        ["subscribed", "consumer", metadata("d-forget")],
        ["not subscribed", "consumer", metadata("d-other")],
        ["not readable", "consumer", new Uint8Array([1])],
        ["another protocol", "connect", metadata("d-forget")],
      ] as const
    ) {
      const { memberId, generationId } = await script.call(
        `${label}: join`,
        joinGroupApi,
        3,
        joining(type, bytes),
      );
      await script.check(`${label}: sync`, syncGroupApi, 3, {
        groupId,
        generationId,
        memberId,
        assignments: [],
      });
      await call(`${label}: delete`, 1);
      await script.check(`${label}: leave`, leaveGroupApi, 3, { groupId, members: [{ memberId }] });
    }
    await now("in the end");
  },
};

interface QuotaEntity {
  readonly user?: string | null;
  readonly "client-id"?: string | null;
  readonly ip?: string | null;
}

const quotas: Scenario = {
  name: "client quotas",
  needs: [48, 49],
  async run(script) {
    const entity = (of: QuotaEntity) =>
      Object.entries(of).map(([entityType, entityName]) => ({ entityType, entityName }));
    const alter = (
      label: string,
      of: QuotaEntity,
      key: string,
      value: number,
      { remove = false, validateOnly = false, version = 1 } = {},
    ) =>
      script.check(label, alterClientQuotasApi, version, {
        entries: [{ entity: entity(of), ops: [{ key, value, remove }] }],
        validateOnly,
      });
    const describe = (
      label: string,
      components: readonly (readonly [string, number, string | null])[],
      strict = false,
      version = 1,
    ) =>
      script.check(label, describeClientQuotasApi, version, {
        components: components.map(([entityType, matchType, match]) => ({
          entityType,
          matchType,
          match,
        })),
        strict,
      });
    await describe("none yet", []);
    await describe("none yet v0", [], false, 0);
    await alter("user", { user: "alice" }, "producer_byte_rate", 1000);
    await alter("user v0", { user: "bob" }, "consumer_byte_rate", 2000.5, { version: 0 });
    await alter("default user", { user: null }, "request_percentage", 50);
    await alter("client", { "client-id": "c" }, "producer_byte_rate", 3000);
    await alter("user and client", { user: "alice", "client-id": "c" }, "producer_byte_rate", 4000);
    await alter(
      "user and default client",
      { user: "alice", "client-id": null },
      "controller_mutation_rate",
      5,
    );
    await alter("ip", { ip: "127.0.0.2" }, "connection_creation_rate", 10);
    await alter("validate only", { user: "carol" }, "producer_byte_rate", 1, {
      validateOnly: true,
    });
    await alter("unknown key", { user: "alice" }, "no_such_rate", 1);
    await alter("key of ips for a user", { user: "alice" }, "connection_creation_rate", 1);
    await alter("negative", { user: "alice" }, "producer_byte_rate", -1);
    await alter("zero", { user: "zero" }, "producer_byte_rate", 0);
    await alter("fraction of a byte", { user: "alice" }, "producer_byte_rate", 1.5);
    await alter("not an address", { ip: "not an address" }, "connection_creation_rate", 1);
    await alter("empty name", { user: "" }, "producer_byte_rate", 1);
    await alter("no entity", {}, "producer_byte_rate", 1);
    await alter("ip and user", { ip: "127.0.0.2", user: "alice" }, "connection_creation_rate", 1);
    await script.check("unknown entity", alterClientQuotasApi, 1, {
      entries: [{
        entity: [{ entityType: "planet", entityName: "earth" }],
        ops: [{ key: "producer_byte_rate", value: 1, remove: false }],
      }],
      validateOnly: false,
    });
    await describe("all", []);
    await describe("all v0", [], false, 0);
    await describe("all, strictly", [], true);
    await describe("user by name", [["user", 0, "alice"]]);
    await describe("user by name, strictly", [["user", 0, "alice"]], true);
    await describe("default user", [["user", 1, null]]);
    await describe("any user", [["user", 2, null]]);
    await describe("any user, strictly", [["user", 2, null]], true);
    await describe("any client", [["client-id", 2, null]]);
    await describe("user and client", [["user", 0, "alice"], ["client-id", 0, "c"]]);
    await describe("ip", [["ip", 2, null]]);
    await describe("unknown entity, described", [["planet", 2, null]]);
    await describe("unknown match", [["user", 7, null]]);
    await describe("exact without a name", [["user", 0, null]]);
    await describe("default with a name", [["user", 1, "alice"]]);
    await describe("same entity twice", [["user", 0, "alice"], ["user", 0, "bob"]]);
    await describe("ip with user", [["ip", 2, null], ["user", 2, null]]);
    await alter("remove", { user: "alice" }, "producer_byte_rate", 0, { remove: true });
    await alter("remove again", { user: "alice" }, "producer_byte_rate", 0, { remove: true });
    await describe("after remove", [["user", 0, "alice"]]);
  },
};

const features: Scenario = {
  name: "features",
  needs: [57],
  async run(script) {
    const update = (label: string, feature: string, maxVersionLevel: number, {
      version = 1,
      upgradeType = 1,
      validateOnly = true,
      allowDowngrade = false,
    } = {}) =>
      script.check(label, updateFeaturesApi, version, {
        timeoutMs: 5000,
        featureUpdates: [{ feature, maxVersionLevel, upgradeType, allowDowngrade }],
        validateOnly,
      });
    await update("same level", "transaction.version", 2);
    await update("same level v2", "transaction.version", 2, { version: 2 });
    await update("same level v0", "transaction.version", 2, { version: 0, validateOnly: false });
    await update("above", "transaction.version", 99);
    await update("above v2", "transaction.version", 99, { version: 2 });
    await update("lower, as an upgrade", "transaction.version", 1);
    await update("unknown feature", "no.such.feature", 1);
    await update("negative level", "transaction.version", -1);
    await update("unknown type", "transaction.version", 2, { upgradeType: 9 });
    await update("empty name", "", 1);
    await script.check("nothing", updateFeaturesApi, 1, { featureUpdates: [], validateOnly: true });
    await script.check("feature twice", updateFeaturesApi, 1, {
      featureUpdates: [1, 2].map((maxVersionLevel) => ({
        feature: "transaction.version",
        maxVersionLevel,
      })),
      validateOnly: true,
    });
  },
};

const resources: Scenario = {
  name: "config resources",
  needs: [74],
  async run(script) {
    await script.check("v0", listConfigResourcesApi, 0, {});
    for (const kind of [4, 8, 16, 32, 0, 99, -1]) {
      await script.check(`type ${kind}`, listConfigResourcesApi, 1, { resourceTypes: [kind] });
    }
  },
};

const partitions: Scenario = {
  name: "describe topic partitions",
  needs: [75],
  async run(script) {
    await script.topic("d-parts-a", { partitions: 3 });
    await script.topic("d-parts-b", { partitions: 2 });
    const request = (
      names: readonly string[],
      limit = 2000,
      cursor: readonly [string, number] | null = null,
    ) => ({
      topics: names.map((name) => ({ name })),
      responsePartitionLimit: limit,
      cursor: cursor === null ? null : { topicName: cursor[0], partitionIndex: cursor[1] },
    });
    const call = (label: string, ...of: Parameters<typeof request>) =>
      script.check(label, describeTopicPartitionsApi, 0, request(...of));
    const both = ["d-parts-b", "d-parts-a"];
    await call("both", both);
    await call("twice", ["d-parts-a", "d-parts-a"]);
    await call("unknown", ["d-parts-none"]);
    await call("unknown among known", ["d-parts-none", "d-parts-a"]);
    await call("bad name", ["a b"]);
    await call("empty name", [""]);
    for (const limit of [1, 3, 4, 5, 0, -1, 2001]) await call(`limit ${limit}`, both, limit);
    await call("cursor", both, 2000, ["d-parts-a", 1]);
    await call("cursor and limit", both, 3, ["d-parts-a", 1]);
    await call("cursor at the second", both, 2000, ["d-parts-b", 0]);
    await call("cursor past the partitions", both, 2000, ["d-parts-a", 9]);
    await call("cursor of a topic that is gone", both, 2000, ["d-parts-aa", 0]);
    await call("cursor behind all", both, 2000, ["d-parts-z", 0]);
    await call("cursor of an unknown topic", both, 2000, ["d-a", 0]);
    await call("negative cursor", both, 2000, ["d-parts-a", -1]);
  },
};

export const ADMIN = [
  deleteRecords,
  alterConfigs,
  directories,
  leaders,
  reassign,
  offsetDelete,
  quotas,
  features,
  resources,
  partitions,
];
