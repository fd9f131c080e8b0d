/** The handlers that show or refuse what one object store has instead of replicas, and time limits of admins. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FaultError } from "../../lib/errors.ts";
import { DESCRIBED_PARTITIONS_MAX } from "../../lib/limits.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorName } from "../../protocol/error_code.ts";
import { createTopicsApi } from "../../protocol/message/19_create_topics.ts";
import { deleteTopicsApi } from "../../protocol/message/20_delete_topics.ts";
import { deleteRecordsApi } from "../../protocol/message/21_delete_records.ts";
import { describeLogDirsApi } from "../../protocol/message/35_describe_log_dirs.ts";
import { createPartitionsApi } from "../../protocol/message/37_create_partitions.ts";
import { electLeadersApi } from "../../protocol/message/43_elect_leaders.ts";
import { alterPartitionReassignmentsApi } from "../../protocol/message/45_alter_partition_reassignments.ts";
import { alterConfigsApi } from "../../protocol/message/33_alter_configs.ts";
import { incrementalAlterConfigsApi } from "../../protocol/message/44_incremental_alter_configs.ts";
import { alterClientQuotasApi } from "../../protocol/message/49_alter_client_quotas.ts";
import { updateFeaturesApi } from "../../protocol/message/57_update_features.ts";
import { listConfigResourcesApi } from "../../protocol/message/74_list_config_resources.ts";
import { describeTopicPartitionsApi } from "../../protocol/message/75_describe_topic_partitions.ts";
import { type BrokerWorld, createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { bind } from "../broker.ts";
import { createTopicsHandler } from "./19_create_topics.ts";
import { deleteTopicsHandler } from "./20_delete_topics.ts";
import { deleteRecordsHandler } from "./21_delete_records.ts";
import { describeLogDirsHandler } from "./35_describe_log_dirs.ts";
import { alterConfigsHandler } from "./33_alter_configs.ts";
import { createPartitionsHandler } from "./37_create_partitions.ts";
import { electLeadersHandler } from "./43_elect_leaders.ts";
import { incrementalAlterConfigsHandler } from "./44_incremental_alter_configs.ts";
import { alterPartitionReassignmentsHandler } from "./45_alter_partition_reassignments.ts";
import { alterClientQuotasHandler } from "./49_alter_client_quotas.ts";
import { updateFeaturesHandler } from "./57_update_features.ts";
import { listConfigResourcesHandler } from "./74_list_config_resources.ts";
import { describeTopicPartitionsHandler } from "./75_describe_topic_partitions.ts";

function world(properties: Record<string, string> = {}): Promise<BrokerWorld> {
  return createBrokerWorld({
    properties,
    routes: (services) => [
      bind(createTopicsHandler(services)),
      bind(deleteTopicsHandler(services)),
      bind(deleteRecordsHandler(services)),
      bind(alterConfigsHandler(services)),
      bind(describeLogDirsHandler(services)),
      bind(createPartitionsHandler(services)),
      bind(electLeadersHandler(services)),
      bind(incrementalAlterConfigsHandler(services)),
      bind(alterPartitionReassignmentsHandler(services)),
      bind(alterClientQuotasHandler(services)),
      bind(updateFeaturesHandler(services)),
      bind(listConfigResourcesHandler(services)),
      bind(describeTopicPartitionsHandler(services)),
    ],
  });
}

const UNAVAILABLE = new FaultError("store-unavailable", "gone", { retriable: true });

/** The partitions of this node have no leader afterwards. */
async function leaderless(broker: BrokerWorld): Promise<void> {
  const row = broker.metadata.view().nodes.get(broker.services.nodeId)!;
  await broker.metadata.submit({ type: "register-node", ...row, incarnation: "1".repeat(32) });
}

/** A log that somebody has had open, and that is not open now. */
async function usedBefore(broker: BrokerWorld, name: string): Promise<void> {
  const { topicId } = broker.services.topics.find(name)!;
  const { leaderEpoch } = broker.services.partitions.leaderOf(topicId, 0)!;
  const by = broker.services.requester();
  const made = await broker.metadata.submit({ type: "create-stream", by, epoch: leaderEpoch });
  assert.ok(made.ok);
  const { streamId } = made;
  const row = { by, topicId, partition: 0, leaderEpoch, streamId };
  assert.ok((await broker.metadata.submit({ type: "set-meta-stream", ...row })).ok);
}

async function elect(
  broker: BrokerWorld,
  topicPartitions: readonly { topic: string; partitions: readonly number[] }[] | null,
  electionType = 0,
) {
  const answer = await broker.call(electLeadersApi, 2, { electionType, topicPartitions });
  const results = answer.replicaElectionResults.flatMap(({ topic, partitionResult }) =>
    partitionResult.map((one) => [topic, one.partitionId, errorName(one.errorCode)])
  );
  return [errorName(answer.errorCode), ...results];
}

test("ElectLeaders: not needed for partitions that are named, and silence about all others", async () => {
  const broker = await world();
  await broker.createTopic("a", 2);
  assert.deepEqual(
    await elect(broker, [{ topic: "a", partitions: [1, 2] }, { topic: "b", partitions: [0] }]),
    [
      "NONE",
      ["a", 1, "ELECTION_NOT_NEEDED"],
      ["a", 2, "UNKNOWN_TOPIC_OR_PARTITION"],
      ["b", 0, "UNKNOWN_TOPIC_OR_PARTITION"],
    ],
  );
  assert.deepEqual(await elect(broker, null), ["NONE"]);
  assert.deepEqual(await elect(broker, null, 7), ["INVALID_REQUEST"]);
  assert.deepEqual(await elect(broker, [{ topic: "a", partitions: [0] }], 7), [
    "INVALID_REQUEST",
    ["a", 0, "INVALID_REQUEST"],
  ]);
  const old = await broker.call(electLeadersApi, 0, {
    topicPartitions: [{ topic: "a", partitions: [0] }],
  });
  const [first] = old.replicaElectionResults;
  assert.equal(errorName(first!.partitionResult[0]!.errorCode), "ELECTION_NOT_NEEDED");
});

test("ElectLeaders: a partition without a leader is not said to have one", async () => {
  const broker = await world();
  await broker.createTopic("a");
  await leaderless(broker);
  assert.deepEqual(await elect(broker, null), [
    "NONE",
    ["a", 0, "PREFERRED_LEADER_NOT_AVAILABLE"],
  ]);
  assert.deepEqual(await elect(broker, [{ topic: "a", partitions: [0] }], 1), [
    "NONE",
    ["a", 0, "ELIGIBLE_LEADERS_NOT_AVAILABLE"],
  ]);
});

test("AlterPartitionReassignments: only to the leader, which is where it is", async () => {
  const broker = await world();
  await broker.createTopic("a");
  const ask = async (name: string, replicas: number[] | null, partitionIndex = 0) => {
    const answer = await broker.call(alterPartitionReassignmentsApi, 1, {
      allowReplicationFactorChange: false,
      topics: [{ name, partitions: [{ partitionIndex, replicas }] }],
    });
    assert.deepEqual([answer.errorCode, answer.allowReplicationFactorChange], [0, false]);
    return errorName(answer.responses[0]!.partitions[0]!.errorCode);
  };
  assert.equal(await ask("a", [1]), "NONE");
  assert.equal(await ask("a", null), "NO_REASSIGNMENT_IN_PROGRESS");
  for (const replicas of [[], [2], [1, 2], [1, 1], [-1]]) {
    assert.equal(await ask("a", replicas), "INVALID_REPLICA_ASSIGNMENT", String(replicas));
  }
  assert.equal(await ask("a", [1], 1), "UNKNOWN_TOPIC_OR_PARTITION");
  assert.equal(await ask("b", null), "UNKNOWN_TOPIC_OR_PARTITION");
});

test("ListConfigResources: topics and brokers, by type; unknown types are UNSUPPORTED_VERSION", async () => {
  const broker = await world();
  await broker.createTopic("a");
  const list = async (resourceTypes: number[], version = 1) => {
    const answer = await broker.call(listConfigResourcesApi, version, { resourceTypes });
    return [
      errorName(answer.errorCode),
      ...answer.configResources.map((one) => [one.resourceType, one.resourceName]),
    ];
  };
  assert.deepEqual(await list([]), ["NONE", [2, "a"], [4, "1"]]);
  assert.deepEqual(await list([2]), ["NONE", [2, "a"]]);
  assert.deepEqual(await list([4, 16, 32]), ["NONE", [4, "1"]]);
  assert.deepEqual(await list([2, 3]), ["UNSUPPORTED_VERSION"]);
  assert.deepEqual(await list([], 0), ["NONE"], "version 0 means client metrics");
});

interface Page {
  readonly topics?: readonly string[];
  readonly limit?: number;
  readonly cursor?: { readonly topicName: string; readonly partitionIndex: number } | null;
}

async function page(broker: BrokerWorld, { topics = [], limit = 2000, cursor = null }: Page = {}) {
  const answer = await broker.call(describeTopicPartitionsApi, 0, {
    topics: topics.map((name) => ({ name })),
    responsePartitionLimit: limit,
    cursor,
  });
  const found = answer.topics.map((one) => [
    one.name,
    errorName(one.errorCode),
    one.partitions.map(({ partitionIndex }) => partitionIndex),
  ]);
  return { found, next: answer.nextCursor };
}

test("DescribeTopicPartitions: topics by name, and pages that go on at the cursor", async () => {
  const broker = await world();
  await broker.createTopic("b", 3);
  await broker.createTopic("a", 2);
  assert.deepEqual(await page(broker), {
    found: [["a", "NONE", [0, 1]], ["b", "NONE", [0, 1, 2]]],
    next: null,
  });
  const first = await page(broker, { limit: 3 });
  assert.deepEqual(first, {
    found: [["a", "NONE", [0, 1]], ["b", "NONE", [0]]],
    next: { topicName: "b", partitionIndex: 1 },
  });
  const second = await page(broker, { limit: 2, cursor: first.next! });
  assert.deepEqual(second, { found: [["b", "NONE", [1, 2]]], next: null });
  assert.deepEqual(await page(broker, { limit: 2 }), {
    found: [["a", "NONE", [0, 1]]],
    next: { topicName: "b", partitionIndex: 0 },
  });
  assert.deepEqual((await page(broker, { limit: 0 })).found, [["a", "NONE", [0]]]);
});

test("DescribeTopicPartitions: named, unknown and vanished topics", async () => {
  const broker = await world();
  await broker.createTopic("b");
  await broker.createTopic("d");
  const { found } = await page(broker, { topics: ["d", "c", "b", "d"] });
  assert.deepEqual(found, [
    ["b", "NONE", [0]],
    ["c", "UNKNOWN_TOPIC_OR_PARTITION", []],
    ["d", "NONE", [0]],
  ]);
  const gone = { topicName: "c", partitionIndex: 5 };
  assert.deepEqual((await page(broker, { cursor: gone })).found, [["d", "NONE", [0]]]);
  const past = { topicName: "b", partitionIndex: 9 };
  assert.deepEqual(await page(broker, { topics: ["b"], cursor: past }), {
    found: [["b", "NONE", []]],
    next: null,
  });
  const refused = [["b", "INVALID_REQUEST", []], ["d", "INVALID_REQUEST", []]];
  for (const cursor of [gone, { topicName: "b", partitionIndex: -1 }]) {
    assert.deepEqual((await page(broker, { topics: ["b", "d"], cursor })).found, refused);
  }
  assert.deepEqual((await page(broker, { topics: ["a b"] })).found, [
    ["a b", "INVALID_TOPIC_EXCEPTION", []],
  ]);
});

test("DescribeTopicPartitions: leaders, ids, and never more than the limit", async () => {
  const broker = await world();
  const topicId = await broker.createTopic("a", DESCRIBED_PARTITIONS_MAX + 1);
  const answer = await broker.call(describeTopicPartitionsApi, 0, {
    topics: [],
    responsePartitionLimit: 2 ** 31 - 1,
  });
  const [topic] = answer.topics;
  assert.deepEqual([topic!.topicId, topic!.isInternal], [topicId, false]);
  assert.equal(topic!.partitions.length, DESCRIBED_PARTITIONS_MAX);
  const [one] = topic!.partitions;
  assert.deepEqual([one!.leaderId, one!.replicaNodes, one!.isrNodes], [1, [1], [1]]);
  assert.equal(topic!.topicAuthorizedOperations, 3576);
  assert.deepEqual([one!.eligibleLeaderReplicas, one!.lastKnownElr], [[], []]);
  await leaderless(broker);
  const after = await broker.call(describeTopicPartitionsApi, 0, { topics: [{ name: "a" }] });
  assert.equal(errorName(after.topics[0]!.partitions[0]!.errorCode), "LEADER_NOT_AVAILABLE");
});

test("CreatePartitions: brokers of a manual assignment are live and distinct", async () => {
  const broker = await world();
  await broker.createTopic("a");
  const ask = async (assignments: number[][]) => {
    const answer = await broker.call(createPartitionsApi, 3, {
      topics: [{
        name: "a",
        count: 3,
        assignments: assignments.map((brokerIds) => ({ brokerIds })),
      }],
      timeoutMs: 1000,
      validateOnly: true,
    });
    return errorName(answer.results[0]!.errorCode);
  };
  assert.equal(await ask([[1], [1]]), "NONE");
  for (const bad of [[[1]], [[1], []], [[1], [9]], [[1], [1, 1]], [[1], [-1]]]) {
    assert.equal(await ask(bad), "INVALID_REPLICA_ASSIGNMENT", JSON.stringify(bad));
  }
});

test("DeleteTopics while deletion is off: every topic is refused before anything is looked up", async () => {
  const broker = await world({ "delete.topic.enable": "false" });
  const ask = async (version: number, name: string | null) => {
    const answer = await broker.call(deleteTopicsApi, version, {
      topics: [{ name, topicId: ZERO_UUID }],
      topicNames: [name ?? ""],
      timeoutMs: 1000,
    });
    return errorName(answer.responses[0]!.errorCode);
  };
  assert.equal(await ask(6, "nobody"), "TOPIC_DELETION_DISABLED");
  assert.equal(await ask(6, null), "TOPIC_DELETION_DISABLED");
  assert.equal(await ask(3, "nobody"), "TOPIC_DELETION_DISABLED");
  assert.equal(await ask(2, "nobody"), "INVALID_REQUEST");
});

const TOPIC = { numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] };

/** Nothing is written to the metadata before the call of what this returns. */
function held(broker: BrokerWorld): () => void {
  const { submit } = broker.metadata;
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => void (release = resolve));
  broker.metadata.submit = async (command) => {
    await gate;
    return await submit(command);
  };
  return release;
}

test("an admin whose time is over is told so; the work goes on", async () => {
  const broker = await world();
  await broker.createTopic("a");
  await broker.createTopic("b");
  const release = held(broker);
  const timeoutMs = 1000;
  const answers = [
    broker.call(createTopicsApi, 7, { topics: [{ name: "c", ...TOPIC }], timeoutMs }),
    broker.call(deleteTopicsApi, 6, { topics: [{ name: "a", topicId: ZERO_UUID }], timeoutMs }),
    broker.call(createPartitionsApi, 3, {
      topics: [{ name: "b", count: 2, assignments: null }],
      timeoutMs,
      validateOnly: false,
    }),
  ] as const;
  await broker.clock.advance(timeoutMs);
  const [created, deleted, grown] = await Promise.all(answers);
  assert.equal(errorName(created.topics[0]!.errorCode), "REQUEST_TIMED_OUT");
  assert.equal(errorName(deleted.responses[0]!.errorCode), "REQUEST_TIMED_OUT");
  assert.equal(errorName(grown.results[0]!.errorCode), "REQUEST_TIMED_OUT");
  release();
  await broker.clock.advance(0);
  const { topics } = broker.services;
  assert.deepEqual([topics.find("c")?.name, topics.find("a")], ["c", undefined]);
  assert.equal(topics.find("b")?.partitions, 2);
});

test("a time of 0 is no limit", async () => {
  const broker = await world();
  const release = held(broker);
  const request = { topics: [{ name: "c", ...TOPIC }], timeoutMs: 0 };
  const answer = broker.call(createTopicsApi, 7, request);
  await broker.clock.advance(3_600_000);
  release();
  assert.equal((await answer).topics[0]!.errorCode, 0);
});

test("a store that is gone reads as an error that is tried again", async () => {
  const broker = await world();
  await broker.createTopic("a");
  broker.openFault = UNAVAILABLE;
  const trimmed = await broker.call(deleteRecordsApi, 2, {
    topics: [{ name: "a", partitions: [{ partitionIndex: 0, offset: 0 }] }],
    timeoutMs: 1000,
  });
  assert.equal(errorName(trimmed.topics[0]!.partitions[0]!.errorCode), "KAFKA_STORAGE_ERROR");
  const sizes = async () => {
    const dirs = await broker.call(describeLogDirsApi, 4, { topics: null });
    return dirs.results[0]!.topics.flatMap(({ partitions }) => partitions);
  };
  assert.deepEqual((await sizes()).map((one) => one.partitionSize), [0], "nobody ever used it");
  await usedBefore(broker, "a");
  assert.deepEqual(await sizes(), [], "its size is not known now");
  broker.metadata.fault = UNAVAILABLE;
  const features = await broker.call(updateFeaturesApi, 2, {
    featureUpdates: [{ feature: "transaction.version", maxVersionLevel: 1, upgradeType: 2 }],
  });
  const quota = await broker.call(alterClientQuotasApi, 1, {
    entries: [{
      entity: [{ entityType: "user", entityName: "a" }],
      ops: [{ key: "producer_byte_rate", value: 1, remove: false }],
    }],
    validateOnly: false,
  });
  const config = await broker.call(incrementalAlterConfigsApi, 1, {
    resources: [{
      resourceType: 4,
      resourceName: "",
      configs: [{ name: "message.max.bytes", configOperation: 0, value: "1000" }],
    }],
    validateOnly: false,
  });
  for (const { errorCode } of [features, quota.entries[0]!, config.responses[0]!]) {
    assert.equal(errorName(errorCode), "REQUEST_TIMED_OUT");
  }
});

test("two brokers that change the same setting do not undo each other", async () => {
  const broker = await world();
  const { submit } = broker.metadata;
  const key = "kafka/config/broker/";
  broker.metadata.submit = async (command) => {
    broker.metadata.submit = submit;
    const value = '{"message.max.bytes":"2000"}';
    await submit({ type: "put-kv", key, value, expectedVersion: 0 });
    return await submit(command);
  };
  const answer = await broker.call(incrementalAlterConfigsApi, 1, {
    resources: [{
      resourceType: 4,
      resourceName: "",
      configs: [{ name: "log.retention.ms", configOperation: 0, value: "7" }],
    }],
    validateOnly: false,
  });
  assert.equal(answer.responses[0]!.errorCode, 0);
  const { config } = broker.services;
  assert.deepEqual([config.text("message.max.bytes"), config.text("log.retention.ms")], [
    "2000",
    "7",
  ]);
});

test("AlterConfigs removes settings that this build does not know", async () => {
  const broker = await world();
  const key = "kafka/config/broker/1";
  const value = '{"message.max.bytes":"2000","no.such":"1"}';
  await broker.metadata.submit({ type: "put-kv", key, value, expectedVersion: 0 });
  const { responses: [answer] } = await broker.call(alterConfigsApi, 2, {
    resources: [{
      resourceType: 4,
      resourceName: "1",
      configs: [{ name: "log.retention.ms", value: "7" }],
    }],
    validateOnly: false,
  });
  assert.equal(errorName(answer!.errorCode), "NONE");
  const kept = broker.metadata.view().kv.get(key)?.value;
  assert.equal(kept, '{"log.retention.ms":"7"}');
});

test("settings that this build does not know, and texts that are none, are passed over", async () => {
  const broker = await world();
  const put = (value: string, expectedVersion: number) =>
    broker.metadata.submit({
      type: "put-kv",
      key: "kafka/config/broker/1",
      value,
      expectedVersion,
    });
  const { config } = broker.services;
  await put('{"message.max.bytes":"soon","no.such":"1","num.partitions":"9"}', 0);
  assert.deepEqual([config.text("message.max.bytes"), config.text("num.partitions")], [
    "1048588",
    "1",
  ]);
  for (const [at, bad] of ["", "[", "7", "null", '{"message.max.bytes":7}'].entries()) {
    await put(bad, at + 1);
    assert.equal(config.text("message.max.bytes"), "1048588", bad);
  }
});
