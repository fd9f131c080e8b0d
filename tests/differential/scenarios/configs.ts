/** Topic and broker configurations: described, altered, and what the cluster says about itself. */
import { describeConfigsApi } from "../../../src/protocol/message/32_describe_configs.ts";
import { incrementalAlterConfigsApi } from "../../../src/protocol/message/44_incremental_alter_configs.ts";
import { findCoordinatorApi } from "../../../src/protocol/message/10_find_coordinator.ts";
import { listPartitionReassignmentsApi } from "../../../src/protocol/message/46_list_partition_reassignments.ts";
import { describeClusterApi } from "../../../src/protocol/message/60_describe_cluster.ts";
import { ready } from "./ready.ts";
import type { Scenario, Script } from "../script.ts";

const TOPIC = 2;
const BROKER = 4;

function describing(
  resourceType: number,
  resourceName: string,
  configurationKeys: readonly string[] | null = null,
) {
  return {
    resources: [{ resourceType, resourceName, configurationKeys }],
    includeSynonyms: true,
    includeDocumentation: false,
  };
}

const describe: Scenario = {
  name: "describe configs",
  async run(script) {
    await script.topic("d-desc", {
      configs: { "retention.ms": "5000", "cleanup.policy": "compact,delete" },
    });
    await script.versions("topic", describeConfigsApi, describing(TOPIC, "d-desc"));
    const call = (label: string, ...of: Parameters<typeof describing>) =>
      script.check(label, describeConfigsApi, 4, describing(...of));
    await call("two keys", TOPIC, "d-desc", ["retention.ms", "segment.bytes"]);
    await call("unknown key", TOPIC, "d-desc", ["no.such.key"]);
    await call("no keys", TOPIC, "d-desc", []);
    await call("key twice", TOPIC, "d-desc", ["retention.ms", "retention.ms"]);
    await call("unknown topic", TOPIC, "d-desc-none");
    await call("bad topic name", TOPIC, "a b");
    await call("empty topic name", TOPIC, "");
    await script.check("no synonyms", describeConfigsApi, 4, {
      ...describing(TOPIC, "d-desc", ["retention.ms"]),
      includeSynonyms: false,
    });
    await script.check("documentation", describeConfigsApi, 4, {
      ...describing(TOPIC, "d-desc", ["retention.ms"]),
      includeDocumentation: true,
    });
    const keys = [
      "log.retention.hours",
      "log.retention.ms",
      "message.max.bytes",
      "num.partitions",
      "auto.create.topics.enable",
      "default.replication.factor",
      "offset.metadata.max.bytes",
      "compression.type",
      "log.segment.bytes",
      "log.cleanup.policy",
      "min.insync.replicas",
      "group.max.session.timeout.ms",
      "group.min.session.timeout.ms",
      "fetch.max.bytes",
      "socket.request.max.bytes",
      "connections.max.idle.ms",
      "delete.topic.enable",
      "node.id",
      "broker.id",
    ];
    for (const key of keys) await call(`broker ${key}`, BROKER, "1", [key]);
    await call("cluster default", BROKER, "");
    await call("other broker", BROKER, "99", ["num.partitions"]);
    await call("broker name not a number", BROKER, "x", ["num.partitions"]);
    for (const kind of [0, 1, 3, 8, 16, 32, 99, -1]) {
      await call(`resource type ${kind}`, kind, kind === 8 ? "1" : "d-any", []);
    }
    await script.check("topic twice", describeConfigsApi, 4, {
      resources: ["retention.ms", "segment.ms"].map((key) => ({
        resourceType: TOPIC,
        resourceName: "d-desc",
        configurationKeys: [key],
      })),
      includeSynonyms: false,
      includeDocumentation: false,
    });
    await script.check("nothing", describeConfigsApi, 4, {
      resources: [],
      includeSynonyms: false,
      includeDocumentation: false,
    });
  },
};

const SET = 0;
const DELETE = 1;
const APPEND = 2;
const SUBTRACT = 3;
type Change = readonly [name: string, configOperation: number, value: string | null];

function altering(resourceType: number, resourceName: string, ...changes: readonly Change[]) {
  return {
    resources: [{
      resourceType,
      resourceName,
      configs: changes.map(([name, configOperation, value]) => ({ name, configOperation, value })),
    }],
    validateOnly: false,
  };
}

async function settings(script: Script, label: string): Promise<void> {
  await script.check(label, describeConfigsApi, 4, {
    ...describing(TOPIC, "d-alter", [
      "cleanup.policy",
      "retention.ms",
      "segment.ms",
      "leader.replication.throttled.replicas",
    ]),
  });
}

const alter: Scenario = {
  name: "alter configs incrementally",
  async run(script) {
    await script.topic("d-alter");
    const call = (label: string, ...changes: readonly Change[]) =>
      script.check(label, incrementalAlterConfigsApi, 1, altering(TOPIC, "d-alter", ...changes));
    await script.versions(
      "set",
      incrementalAlterConfigsApi,
      altering(TOPIC, "d-alter", ["retention.ms", SET, "5000"]),
    );
    await settings(script, "after set");
    await call("delete", ["retention.ms", DELETE, null]);
    await call("delete what is not set", ["retention.ms", DELETE, null]);
    await call("delete with a value", ["retention.ms", DELETE, "7"]);
    await call("append", ["cleanup.policy", APPEND, "compact"]);
    await settings(script, "after append");
    await call("append again", ["cleanup.policy", APPEND, "compact"]);
    await call("subtract", ["cleanup.policy", SUBTRACT, "delete"]);
    await settings(script, "after subtract");
    await call("subtract what is not there", ["cleanup.policy", SUBTRACT, "delete"]);
    await call("subtract the last", ["cleanup.policy", SUBTRACT, "compact"]);
    await settings(script, "after the last");
    await call("append to no list", ["retention.ms", APPEND, "1"]);
    await call("subtract from no list", ["retention.ms", SUBTRACT, "1"]);
    await call("append a bad value", ["cleanup.policy", APPEND, "nonsense"]);
    await call("append to an unset list", [
      "leader.replication.throttled.replicas",
      APPEND,
      "0:1,1:1",
    ]);
    await settings(script, "after append to an unset list");
    await call("append null", ["cleanup.policy", APPEND, null]);
    await call("set null", ["retention.ms", SET, null]);
    await call("set empty", ["retention.ms", SET, ""]);
    await call("set empty list", ["cleanup.policy", SET, ""]);
    await call("unknown key", ["no.such.key", SET, "1"]);
    await call("delete an unknown key", ["no.such.key", DELETE, null]);
    await call("empty key", ["", SET, "1"]);
    await call("bad value", ["retention.ms", SET, "x"]);
    await call("out of range", ["segment.ms", SET, "0"]);
    await call("unknown operation", ["retention.ms", 9, "1"]);
    await call("negative operation", ["retention.ms", -1, "1"]);
    await call("key twice", ["retention.ms", SET, "1"], ["retention.ms", SET, "2"]);
    await call("one good, one bad", ["segment.ms", SET, "9999"], ["retention.ms", SET, "x"]);
    await settings(script, "nothing of it counts");
    await call("nothing");
    await script.check("validate only", incrementalAlterConfigsApi, 1, {
      ...altering(TOPIC, "d-alter", ["segment.ms", SET, "7777"]),
      validateOnly: true,
    });
    await script.check("validate only, bad", incrementalAlterConfigsApi, 1, {
      ...altering(TOPIC, "d-alter", ["segment.ms", SET, "0"]),
      validateOnly: true,
    });
    await settings(script, "after validate only");
    const other = (label: string, kind: number, name: string, ...changes: readonly Change[]) =>
      script.check(label, incrementalAlterConfigsApi, 1, altering(kind, name, ...changes));
    await other("unknown topic", TOPIC, "d-alter-none", ["retention.ms", SET, "1"]);
    await other("bad topic name", TOPIC, "a b", ["retention.ms", SET, "1"]);
    await other("empty topic name", TOPIC, "", ["retention.ms", SET, "1"]);
    await other("read-only broker key", BROKER, "1", ["num.partitions", SET, "2"]);
    await other("other broker", BROKER, "99", ["log.retention.ms", SET, "1000"]);
    await other("broker name not a number", BROKER, "x", ["log.retention.ms", SET, "1000"]);
    for (const kind of [0, 1, 3, 99]) {
      await other(`resource type ${kind}`, kind, "d-any", ["retention.ms", SET, "1"]);
    }
    const twice = altering(TOPIC, "d-alter", ["retention.ms", SET, "1"]);
    await script.check("resource twice", incrementalAlterConfigsApi, 1, {
      ...twice,
      resources: [...twice.resources, ...twice.resources],
    });
    await script.check("no resources", incrementalAlterConfigsApi, 1, {
      resources: [],
      validateOnly: false,
    });
    await settings(script, "in the end");
  },
};

const cluster: Scenario = {
  name: "cluster",
  async run(script) {
    for (const operations of [false, true]) {
      await script.versions(`operations ${operations}`, describeClusterApi, {
        includeClusterAuthorizedOperations: operations,
      });
    }
    for (const endpointType of [0, 2, 3, -1]) {
      await script.check(`endpoint type ${endpointType}`, describeClusterApi, 1, {
        includeClusterAuthorizedOperations: false,
        endpointType,
      });
    }
    await script.check("fenced brokers", describeClusterApi, 2, {
      includeClusterAuthorizedOperations: false,
      includeFencedBrokers: true,
    });
    await script.check("reassignments", listPartitionReassignmentsApi, 0, { topics: null });
    await script.check("reassignments of none", listPartitionReassignmentsApi, 0, { topics: [] });
    await script.check("reassignments of an unknown topic", listPartitionReassignmentsApi, 0, {
      topics: [{ name: "d-none", partitionIndexes: [0] }],
    });
  },
};

const coordinators: Scenario = {
  name: "find coordinator",
  async run(script) {
    await ready(script, "group", "transaction", "producer ids");
    await script.versions("group", findCoordinatorApi, {
      key: "d-group",
      keyType: 0,
      coordinatorKeys: ["d-group"],
    });
    await script.check("empty group", findCoordinatorApi, 3, { key: "", keyType: 0 });
    await script.check("empty group v4", findCoordinatorApi, 4, {
      keyType: 0,
      coordinatorKeys: [""],
    });
    await script.check("many", findCoordinatorApi, 4, {
      keyType: 0,
      coordinatorKeys: ["d-a", "d-b", "d-a"],
    });
    await script.check("none", findCoordinatorApi, 4, { keyType: 0, coordinatorKeys: [] });
    for (const keyType of [2, 3, -1]) {
      for (const version of [3, 4, 6]) {
        await script.check(`key type ${keyType} v${version}`, findCoordinatorApi, version, {
          key: "d",
          keyType,
          coordinatorKeys: ["d"],
        });
      }
    }
  },
};

export const CONFIGS = [describe, alter, cluster, coordinators];
