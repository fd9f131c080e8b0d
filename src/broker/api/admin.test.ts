/** The handlers that look at and change topics, configs and the cluster, each as a table. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FaultError } from "../../lib/errors.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorName } from "../../protocol/error_code.ts";
import { listOffsetsApi } from "../../protocol/message/02_list_offsets.ts";
import { metadataApi } from "../../protocol/message/03_metadata.ts";
import { apiVersionsApi } from "../../protocol/message/18_api_versions.ts";
import { createTopicsApi } from "../../protocol/message/19_create_topics.ts";
import { deleteTopicsApi } from "../../protocol/message/20_delete_topics.ts";
import { initProducerIdApi } from "../../protocol/message/22_init_producer_id.ts";
import { offsetForLeaderEpochApi } from "../../protocol/message/23_offset_for_leader_epoch.ts";
import { describeConfigsApi } from "../../protocol/message/32_describe_configs.ts";
import { createPartitionsApi } from "../../protocol/message/37_create_partitions.ts";
import { incrementalAlterConfigsApi } from "../../protocol/message/44_incremental_alter_configs.ts";
import { listPartitionReassignmentsApi } from "../../protocol/message/46_list_partition_reassignments.ts";
import { describeClusterApi } from "../../protocol/message/60_describe_cluster.ts";
import { type BrokerWorld, createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { bind } from "../broker.ts";
import { listOffsetsHandler } from "./02_list_offsets.ts";
import { produceHandler } from "./00_produce.ts";
import { metadataHandler } from "./03_metadata.ts";
import { createTopicsHandler } from "./19_create_topics.ts";
import { deleteTopicsHandler } from "./20_delete_topics.ts";
import { initProducerIdHandler } from "./22_init_producer_id.ts";
import { offsetForLeaderEpochHandler } from "./23_offset_for_leader_epoch.ts";
import { describeConfigsHandler } from "./32_describe_configs.ts";
import { createPartitionsHandler } from "./37_create_partitions.ts";
import { incrementalAlterConfigsHandler } from "./44_incremental_alter_configs.ts";
import { listPartitionReassignmentsHandler } from "./46_list_partition_reassignments.ts";
import { describeClusterHandler } from "./60_describe_cluster.ts";

function world(properties: Record<string, string> = {}): Promise<BrokerWorld> {
  return createBrokerWorld({
    properties,
    routes: (services) => [
      bind(produceHandler(services)),
      bind(listOffsetsHandler(services)),
      bind(metadataHandler(services)),
      bind(createTopicsHandler(services)),
      bind(deleteTopicsHandler(services)),
      bind(initProducerIdHandler(services)),
      bind(offsetForLeaderEpochHandler(services)),
      bind(describeConfigsHandler(services)),
      bind(createPartitionsHandler(services)),
      bind(incrementalAlterConfigsHandler(services)),
      bind(listPartitionReassignmentsHandler()),
      bind(describeClusterHandler(services)),
    ],
  });
}

const UNAVAILABLE = new FaultError("store-unavailable", "gone", { retriable: true });

function names(codes: readonly { readonly errorCode: number }[]): string[] {
  return codes.map(({ errorCode }) => errorName(errorCode));
}

interface NewTopic {
  readonly name: string;
  readonly numPartitions?: number;
  readonly replicationFactor?: number;
  readonly assignments?: readonly { partitionIndex: number; brokerIds: readonly number[] }[];
  readonly configs?: Readonly<Record<string, string | null>>;
}

function create(
  broker: BrokerWorld,
  topics: readonly NewTopic[],
  { version = 7, validateOnly = false } = {},
) {
  return broker.call(createTopicsApi, version, {
    validateOnly,
    topics: topics.map(({ name, configs = {}, ...over }) => ({
      name,
      numPartitions: over.numPartitions ?? 1,
      replicationFactor: over.replicationFactor ?? 1,
      assignments: over.assignments ?? [],
      configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
    })),
  });
}

test("CreateTopics: the table of refusals", async () => {
  const broker = await world();
  await broker.createTopic("taken.name");
  const manual = { numPartitions: -1, replicationFactor: -1 };
  const cases: [string, NewTopic][] = [
    ["INVALID_TOPIC_EXCEPTION", { name: "" }],
    ["INVALID_TOPIC_EXCEPTION", { name: ".." }],
    ["INVALID_TOPIC_EXCEPTION", { name: "x".repeat(250) }],
    ["INVALID_TOPIC_EXCEPTION", { name: "a b" }],
    ["INVALID_TOPIC_EXCEPTION", { name: "taken_name" }],
    ["INVALID_TOPIC_EXCEPTION", { name: "__consumer_offsets" }],
    ["TOPIC_ALREADY_EXISTS", { name: "taken.name" }],
    ["INVALID_PARTITIONS", { name: "a", numPartitions: 0 }],
    ["INVALID_PARTITIONS", { name: "a", numPartitions: -2 }],
    ["INVALID_PARTITIONS", { name: "a", numPartitions: 10_001 }],
    ["INVALID_REPLICATION_FACTOR", { name: "a", replicationFactor: 0 }],
    ["INVALID_REPLICATION_FACTOR", { name: "a", replicationFactor: -2 }],
    ["INVALID_CONFIG", { name: "a", configs: { "no.such.key": "1" } }],
    ["INVALID_CONFIG", { name: "a", configs: { "retention.ms": "soon" } }],
    ["INVALID_CONFIG", { name: "a", configs: { "retention.ms": null } }],
    ["INVALID_CONFIG", { name: "a", configs: { "max.message.bytes": "67108808" } }],
    ["INVALID_REQUEST", { name: "a", assignments: [{ partitionIndex: 0, brokerIds: [1] }] }],
    ["INVALID_REPLICA_ASSIGNMENT", {
      name: "a",
      ...manual,
      assignments: [{ partitionIndex: 1, brokerIds: [1] }],
    }],
    ["INVALID_REPLICA_ASSIGNMENT", {
      name: "a",
      ...manual,
      assignments: [{ partitionIndex: 0, brokerIds: [9] }],
    }],
    ["INVALID_REPLICA_ASSIGNMENT", {
      name: "a",
      ...manual,
      assignments: [{ partitionIndex: 0, brokerIds: [1, 1] }],
    }],
    ["NONE", { name: "b", ...manual, assignments: [{ partitionIndex: 0, brokerIds: [1] }] }],
    ["NONE", { name: "c", replicationFactor: 3, configs: { "message.format.version": "2.8" } }],
  ];
  for (const [expected, topic] of cases) {
    assert.deepEqual(names((await create(broker, [topic])).topics), [expected], topic.name);
  }
  assert.deepEqual(broker.services.topics.find("c")!.configs, {});
});

test("CreateTopics: twice in one request, validate only, defaults, answered settings, faults", async () => {
  const broker = await world({ "num.partitions": "4", "log.retention.hours": "1" });
  const twice = await create(broker, [{ name: "a" }, { name: "a" }, { name: "b" }]);
  assert.deepEqual(names(twice.topics), ["INVALID_REQUEST", "NONE"]);
  const dry = await create(broker, [{ name: "c" }], { validateOnly: true });
  assert.deepEqual([names(dry.topics), dry.topics[0]!.topicId], [["NONE"], ZERO_UUID]);
  assert.equal(broker.services.topics.find("c"), undefined);
  const defaults = { name: "d", numPartitions: -1, replicationFactor: -1 };
  // kafkajs 2.2 knows versions up to 3 only and sends -1 there; Kafka takes it.
  const old = await create(broker, [{ ...defaults, name: "old" }], { version: 3 });
  assert.deepEqual(names(old.topics), ["NONE"]);
  const [made] = (await create(broker, [{ ...defaults, configs: { "retention.ms": "5" } }])).topics;
  assert.deepEqual([made!.numPartitions, made!.replicationFactor], [4, 1]);
  assert.equal(made!.topicId, broker.services.topics.find("d")!.topicId);
  const retention = made!.configs!.find(({ name }) => name === "retention.ms")!;
  assert.deepEqual([retention.value, retention.configSource], ["5", 1]);
  const echoed = (await create(broker, [{ name: "e", replicationFactor: 3 }])).topics[0]!;
  assert.equal(echoed.replicationFactor, 3, "any factor is accepted and echoed");
  broker.metadata.fault = UNAVAILABLE;
  assert.deepEqual(names((await create(broker, [{ name: "f" }])).topics), ["REQUEST_TIMED_OUT"]);
});

test("DeleteTopics: by name, by id, twice, disabled", async () => {
  const broker = await world();
  const first = await broker.createTopic("a");
  await broker.createTopic("b");
  const remove = async (topics: readonly { name: string | null; topicId: string }[]) =>
    names((await broker.call(deleteTopicsApi, 6, { topics, timeoutMs: 1 })).responses);
  const byName = (name: string) => ({ name, topicId: ZERO_UUID });
  assert.deepEqual(await remove([byName("x")]), ["UNKNOWN_TOPIC_OR_PARTITION"]);
  assert.deepEqual(await remove([{ name: null, topicId: "a".repeat(32) }]), ["UNKNOWN_TOPIC_ID"]);
  assert.deepEqual(await remove([{ name: null, topicId: ZERO_UUID }]), ["INVALID_REQUEST"]);
  assert.deepEqual(await remove([{ name: "a", topicId: first }]), ["INVALID_REQUEST"]);
  const same = [byName("a"), { name: null, topicId: first }, byName("b")];
  assert.deepEqual(await remove(same), ["INVALID_REQUEST", "NONE"]);
  assert.deepEqual(await remove([{ name: null, topicId: first }]), ["NONE"]);
  assert.notEqual(await broker.createTopic("a"), first, "a new topic has a new id");
  const old = await broker.call(deleteTopicsApi, 1, { topicNames: ["a", "b"], timeoutMs: 1 });
  assert.deepEqual(names(old.responses), ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]);
  const closed = await world({ "delete.topic.enable": "false" });
  await closed.createTopic("a");
  const ask = async (version: number) =>
    names(
      (await closed.call(deleteTopicsApi, version, { topicNames: ["a"], timeoutMs: 1 })).responses,
    );
  assert.deepEqual(await ask(5), ["TOPIC_DELETION_DISABLED"]);
  assert.deepEqual(await ask(2), ["INVALID_REQUEST"]);
});

test("CreatePartitions", async () => {
  const broker = await world();
  await broker.createTopic("a", 2);
  const grow = async (name: string, count: number, over: object = {}) =>
    names(
      (await broker.call(createPartitionsApi, 3, {
        topics: [{ name, count, assignments: null, ...over }],
        timeoutMs: 1,
        validateOnly: "validateOnly" in over,
      })).results,
    );
  assert.deepEqual(await grow("x", 3), ["UNKNOWN_TOPIC_OR_PARTITION"]);
  assert.deepEqual(await grow("a", 2), ["INVALID_PARTITIONS"]);
  assert.deepEqual(await grow("a", 4, { assignments: [{ brokerIds: [1] }] }), [
    "INVALID_REPLICA_ASSIGNMENT",
  ]);
  assert.deepEqual(await grow("a", 4, { validateOnly: true }), ["NONE"]);
  assert.equal(broker.services.topics.find("a")!.partitions, 2);
  assert.deepEqual(await grow("a", 4), ["NONE"]);
  assert.ok(await broker.log("a", 3));
});

test("Metadata: null, empty, by name, by id, created on first use", async () => {
  const broker = await world();
  const topicId = await broker.createTopic("a", 2);
  const ask = (
    version: number,
    topics: readonly { name: string | null; topicId?: string }[] | null,
    allow = true,
  ) =>
    broker.call(metadataApi, version, {
      topics: topics?.map((one) => ({ topicId: ZERO_UUID, ...one })) ?? null,
      allowAutoTopicCreation: allow,
      includeTopicAuthorizedOperations: false,
    });
  for (let version = 0; version <= 13; version++) {
    const empty = await ask(version, []);
    assert.equal(empty.topics.length, version === 0 ? 1 : 0, `version ${version}`);
    assert.equal(empty.brokers[0]!.host, "broker.test");
    const found = await ask(version, [{ name: "a" }]);
    assert.deepEqual(found.topics[0]!.partitions.map((one) => one.leaderId), [1, 1]);
    assert.deepEqual(found.topics[0]!.partitions[1]!.isrNodes, [1]);
  }
  assert.equal((await ask(12, null)).topics.length, 1);
  assert.equal((await ask(12, [{ name: null, topicId }])).topics[0]!.name, "a");
  assert.deepEqual(names((await ask(12, [{ name: null, topicId: "b".repeat(32) }])).topics), [
    "UNKNOWN_TOPIC_ID",
  ]);
  assert.deepEqual(names((await ask(10, [{ name: "a", topicId }])).topics), ["INVALID_REQUEST"]);
  assert.deepEqual(names((await ask(9, [{ name: "new" }], false)).topics), [
    "UNKNOWN_TOPIC_OR_PARTITION",
  ]);
  assert.deepEqual(names((await ask(9, [{ name: "not/legal" }])).topics), [
    "INVALID_TOPIC_EXCEPTION",
  ]);
  const made = (await ask(9, [{ name: "new" }])).topics[0]!;
  assert.deepEqual([made.errorCode, made.partitions.length], [0, 1]);
  broker.metadata.fault = UNAVAILABLE;
  assert.deepEqual(names((await ask(9, [{ name: "newer" }])).topics), ["LEADER_NOT_AVAILABLE"]);
  const closed = await world({ "auto.create.topics.enable": "false" });
  const refused = await closed.call(metadataApi, 0, {
    topics: [{ topicId: ZERO_UUID, name: "a" }],
    includeTopicAuthorizedOperations: false,
  });
  assert.deepEqual(names(refused.topics), ["UNKNOWN_TOPIC_OR_PARTITION"]);
});

test("ListOffsets: targets, versions, epochs, duplicates, faults", async () => {
  const broker = await world();
  await broker.createTopic("a");
  const log = await broker.log("a");
  log.append(broker.batch("x"));
  await broker.clock.advance(1000);
  log.append(broker.batch("y", "z"));
  log.setStart(1);
  const now = broker.clock.nowMs();
  const ask = async (version: number, timestamp: number, currentLeaderEpoch = -1) => {
    const response = await broker.call(listOffsetsApi, version, {
      replicaId: -1,
      topics: [{ name: "a", partitions: [{ partitionIndex: 0, timestamp, currentLeaderEpoch }] }],
    });
    const only = response.topics[0]!.partitions[0]!;
    return only.errorCode === 0 ? only.offset : errorName(only.errorCode);
  };
  const cases: [number | string, number, number, number?][] = [
    [3, 1, -1],
    [1, 1, -2],
    [1, 7, -3],
    [1, 8, -4],
    [2, 9, -5],
    [3, 11, -6],
    ["UNSUPPORTED_VERSION", 6, -3],
    ["UNSUPPORTED_VERSION", 7, -4],
    ["UNSUPPORTED_VERSION", 8, -5],
    ["UNSUPPORTED_VERSION", 10, -6],
    ["UNSUPPORTED_VERSION", 11, -7],
    [1, 5, now],
    [-1, 5, now + 1],
    [0, 5, 0],
    ["UNKNOWN_LEADER_EPOCH", 5, -1, 3],
  ];
  for (const [expected, version, timestamp, epoch] of cases) {
    assert.equal(await ask(version, timestamp, epoch), expected, `v${version} ${timestamp}`);
  }
  const twice = { partitionIndex: 0, timestamp: -1 };
  const same = await broker.call(listOffsetsApi, 5, {
    replicaId: -1,
    topics: [{ name: "a", partitions: [twice, twice] }, { name: "b", partitions: [twice] }],
  });
  assert.deepEqual(same.topics.map(({ partitions }) => names(partitions)), [
    ["INVALID_REQUEST", "INVALID_REQUEST"],
    ["UNKNOWN_TOPIC_OR_PARTITION"],
  ]);
  await broker.createTopic("c");
  broker.openFault = UNAVAILABLE;
  for (
    const [version, expected] of [[4, "LEADER_NOT_AVAILABLE"], [5, "KAFKA_STORAGE_ERROR"]] as const
  ) {
    const failed = await broker.call(listOffsetsApi, version, {
      replicaId: -1,
      topics: [{ name: "c", partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
    });
    assert.deepEqual(names(failed.topics[0]!.partitions), [expected]);
  }
});

test("OffsetForLeaderEpoch", async () => {
  const broker = await world();
  await broker.createTopic("a");
  (await broker.log("a")).append(broker.batch("x"));
  const ask = async (topic: string, leaderEpoch: number, currentLeaderEpoch = -1) => {
    const response = await broker.call(offsetForLeaderEpochApi, 4, {
      topics: [{ topic, partitions: [{ partition: 0, leaderEpoch, currentLeaderEpoch }] }],
    });
    const only = response.topics[0]!.partitions[0]!;
    return only.errorCode === 0 ? [only.leaderEpoch, only.endOffset] : errorName(only.errorCode);
  };
  assert.deepEqual(await ask("a", 0), [0, 1]);
  assert.equal(await ask("a", 0, 7), "UNKNOWN_LEADER_EPOCH");
  assert.equal(await ask("b", 0), "UNKNOWN_TOPIC_OR_PARTITION");
});

test("InitProducerId: one block for a thousand ids, none twice, also when many ask at once", async () => {
  const broker = await world();
  const ask = (transactionalId: string | null = null) =>
    broker.call(initProducerIdApi, 4, { transactionalId, transactionTimeoutMs: 1 });
  const answers = await Promise.all(Array.from({ length: 2500 }, () => ask()));
  const ids = new Set(answers.map(({ producerId }) => producerId));
  assert.equal(ids.size, 2500);
  assert.ok(
    answers.every(({ producerEpoch, errorCode }) => producerEpoch === 0 && errorCode === 0),
  );
  const blocks = broker.metadata.submitted.filter((type) => type === "alloc-producer-ids");
  assert.equal(blocks.length, 3);
  assert.deepEqual(names([await ask("mine")]), ["COORDINATOR_NOT_AVAILABLE"]);
  assert.deepEqual(names([await ask("")]), ["INVALID_REQUEST"]);
  for (let i = 0; i < 500; i++) await ask();
  broker.metadata.fault = UNAVAILABLE;
  assert.deepEqual(names([await ask()]), ["COORDINATOR_NOT_AVAILABLE"]);
});

test("InitProducerId: a new process takes a new block", async () => {
  const broker = await world();
  const first = await broker.call(initProducerIdApi, 0, {
    transactionalId: null,
    transactionTimeoutMs: 1,
  });
  const restarted = initProducerIdHandler(broker.services);
  const second = await restarted.handle({
    transactionalId: null,
    transactionTimeoutMs: 1,
    producerId: -1,
    producerEpoch: -1,
  }, {
    version: 0,
    clientId: "",
    session: {
      connectionId: 1,
      principal: "User:ANONYMOUS",
      clientHost: "",
      listener: { host: "", port: 0 },
      ended: new AbortController().signal,
    },
    signal: new AbortController().signal,
    admitted: () => {},
    afterAnswer: () => {},
  });
  assert.ok(typeof second === "object" && second !== null);
  assert.equal(second.producerId, first.producerId + 1000);
});

test("DescribeConfigs: topics, this broker, sources, keys, errors", async () => {
  const broker = await world({ "log.retention.hours": "1" });
  await broker.createTopic("a", 1, { "cleanup.policy": "compact" });
  const ask = async (resourceType: number, resourceName: string, keys: string[] | null = null) =>
    (await broker.call(describeConfigsApi, 4, {
      resources: [{ resourceType, resourceName, configurationKeys: keys }],
      includeSynonyms: true,
      includeDocumentation: true,
    })).results[0]!;
  const topic = await ask(2, "a");
  assert.equal(topic.configs.length, 41);
  const policy = topic.configs.find(({ name }) => name === "cleanup.policy")!;
  assert.deepEqual([policy.value, policy.configSource, policy.configType], ["compact", 1, 7]);
  const [retention] = (await ask(2, "a", ["retention.ms"])).configs;
  assert.deepEqual([retention!.value, retention!.configSource], ["3600000", 4]);
  assert.equal(retention!.synonyms.length, 1);
  const own = await ask(4, "1");
  const value = (key: string) => own.configs.find(({ name }) => name === key)?.value;
  assert.deepEqual(["node.id", "advertised.listeners", "num.partitions"].map(value), [
    "1",
    "PLAINTEXT://broker.test:9092",
    "1",
  ]);
  assert.deepEqual((await ask(4, "")).configs, []);
  const cases: [number, string, string][] = [
    [2, "x", "UNKNOWN_TOPIC_OR_PARTITION"],
    [2, "x y", "INVALID_TOPIC_EXCEPTION"],
    [4, "2", "INVALID_REQUEST"],
    [8, "1", "INVALID_REQUEST"],
  ];
  for (const [type, name, expected] of cases) {
    assert.equal(errorName((await ask(type, name)).errorCode), expected, `${type} ${name}`);
  }
});

test("IncrementalAlterConfigs: operations, refusals, all or nothing", async () => {
  const broker = await world();
  await broker.createTopic("a");
  const log = await broker.log("a");
  const alter = async (configs: [string, number, string | null][], over: object = {}) =>
    names(
      (await broker.call(incrementalAlterConfigsApi, 1, {
        resources: [{
          resourceType: 2,
          resourceName: "a",
          configs: configs.map(([name, configOperation, value]) => ({
            name,
            configOperation,
            value,
          })),
          ...over,
        }],
        validateOnly: "validateOnly" in over,
      })).responses,
    )[0];
  const configs = () => broker.services.topics.find("a")!.configs;
  assert.equal(await alter([["retention.ms", 0, "5"], ["cleanup.policy", 2, "compact"]]), "NONE");
  assert.deepEqual(configs(), { "retention.ms": "5", "cleanup.policy": "delete,compact" });
  assert.deepEqual([log.config.retentionMs, log.config.cleanup.compact], [5, true]);
  assert.equal(await alter([["cleanup.policy", 3, "delete"]]), "NONE");
  assert.equal(await alter([["cleanup.policy", 2, "compact"]]), "NONE");
  assert.equal(configs()["cleanup.policy"], "compact");
  assert.equal(await alter([["retention.ms", 1, null]]), "NONE");
  assert.equal(await alter([["retention.ms", 0, "9"]], { validateOnly: true }), "NONE");
  const before = configs();
  const cases: [string, [string, number, string | null][], object?][] = [
    ["INVALID_CONFIG", [["retention.ms", 0, "7"], ["no.such", 0, "1"]]],
    ["INVALID_CONFIG", [["retention.ms", 0, "soon"]]],
    ["INVALID_CONFIG", [["retention.ms", 2, "1"]]],
    ["INVALID_REQUEST", [["retention.ms", 0, null]]],
    ["INVALID_REQUEST", [["retention.ms", 4, "1"]]],
    ["INVALID_REQUEST", [["retention.ms", 0, "1"], ["retention.ms", 0, "2"]]],
    ["UNKNOWN_TOPIC_OR_PARTITION", [["retention.ms", 0, "1"]], { resourceName: "b" }],
    ["INVALID_REQUEST", [["num.partitions", 0, "1"]], { resourceType: 4, resourceName: "1" }],
  ];
  for (const [expected, changes, over] of cases) {
    assert.equal(await alter(changes, over), expected, JSON.stringify(changes));
  }
  assert.deepEqual(configs(), before);
});

test("of changes that come at the same time none is lost, and none goes together that may not", async () => {
  const broker = await world();
  const alter = (resourceType: number, name: string, operation: number, value: string) =>
    broker.call(incrementalAlterConfigsApi, 1, {
      resources: [{
        resourceType,
        resourceName: resourceType === 2 ? "a" : "1",
        configs: [{ name, configOperation: operation, value }],
      }],
      validateOnly: false,
    });
  /** All of them are decided before the first is stored. */
  const together = async (...changes: Parameters<typeof alter>[]) => {
    const held = Promise.withResolvers<void>();
    broker.metadata.gate = held.promise;
    const running = changes.map((change) => alter(...change));
    for (let i = 0; i < 20; i++) await Promise.resolve();
    broker.metadata.gate = null;
    held.resolve();
    return (await Promise.all(running)).flatMap(({ responses }) => names(responses));
  };
  await broker.createTopic("a", 1, { "follower.replication.throttled.replicas": "9:9" });
  const replicas = "follower.replication.throttled.replicas";
  const settings = () => broker.services.topics.find("a")!.configs;
  const appends = Array.from({ length: 12 }, (_, n) => [2, replicas, 2, `${n}:1`] as const);
  const done = await together(...appends.map((one) => [...one] as Parameters<typeof alter>), [
    2,
    replicas,
    3,
    "9:9",
  ]);
  assert.deepEqual(new Set(done), new Set(["NONE"]));
  const expected = appends.map(([, , , value]) => value).toSorted();
  assert.deepEqual(settings()[replicas]!.split(",").toSorted(), expected);
  // Each alone is fine beside the other's default.
  const lags = await together(
    [2, "min.compaction.lag.ms", 0, "100"],
    [2, "max.compaction.lag.ms", 0, "50"],
  );
  assert.deepEqual(lags.toSorted(), ["INVALID_CONFIG", "NONE"]);
  const policies = await together(
    [4, "log.cleanup.policy", 2, "compact"],
    [4, "log.cleanup.policy", 3, "delete"],
  );
  assert.deepEqual(policies, ["NONE", "NONE"]);
  assert.equal(broker.services.config.text("log.cleanup.policy"), "compact");
});

test("DescribeCluster, ListPartitionReassignments, ApiVersions", async () => {
  const broker = await world();
  const cluster = await broker.call(describeClusterApi, 2, {
    includeClusterAuthorizedOperations: false,
  });
  assert.deepEqual([cluster.clusterId, cluster.controllerId], ["test-cluster", 1]);
  assert.deepEqual(cluster.brokers.map(({ brokerId, host }) => [brokerId, host]), [[
    1,
    "broker.test",
  ]]);
  for (
    const [endpointType, expected] of [[2, "MISMATCHED_ENDPOINT_TYPE"], [
      3,
      "UNSUPPORTED_ENDPOINT_TYPE",
    ]] as const
  ) {
    const refused = await broker.call(describeClusterApi, 1, {
      includeClusterAuthorizedOperations: false,
      endpointType,
    });
    assert.deepEqual(names([refused]), [expected]);
  }
  const moving = await broker.call(listPartitionReassignmentsApi, 0, {});
  assert.deepEqual([moving.errorCode, moving.topics], [0, []]);
  const software = { clientSoftwareName: "kafka.js-2", clientSoftwareVersion: "1.0" };
  const listed = await broker.call(apiVersionsApi, 3, software);
  const range = (key: number) => listed.apiKeys.find(({ apiKey }) => apiKey === key);
  assert.deepEqual(range(0), { apiKey: 0, minVersion: 0, maxVersion: 13 });
  assert.deepEqual(range(18), { apiKey: 18, minVersion: 0, maxVersion: 4 });
  assert.equal(range(1), undefined, "only what is served is listed");
  assert.equal(listed.finalizedFeaturesEpoch, 0);
  assert.deepEqual(listed.finalizedFeatures, []);
  for (const clientSoftwareName of ["", "-x", "a b", "x."]) {
    assert.deepEqual(
      names([await broker.call(apiVersionsApi, 3, { ...software, clientSoftwareName })]),
      [
        "INVALID_REQUEST",
      ],
    );
  }
  assert.equal((await broker.call(apiVersionsApi, 0, {})).errorCode, 0);
});

test("Metadata of a partition without a leader: an error that is tried again, and its real epoch", async () => {
  // An epoch of -1 would make Java clients forget the one they know.
  const broker = await world();
  await broker.createTopic("a");
  const row = broker.metadata.view().nodes.get(broker.services.nodeId)!;
  await broker.metadata.submit({ type: "register-node", ...row, incarnation: "1".repeat(32) });
  const { topics } = await broker.call(metadataApi, 9, { topics: [{ name: "a" }] });
  const [only] = topics[0]!.partitions;
  assert.equal(errorName(only!.errorCode), "LEADER_NOT_AVAILABLE");
  assert.deepEqual([only!.leaderId, only!.replicaNodes, only!.isrNodes], [-1, [], []]);
  assert.ok(only!.leaderEpoch >= 0);
});
