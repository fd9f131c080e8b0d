/** DescribeConfigs and IncrementalAlterConfigs: sheet sections 3.9, 2.12, 2.13 and the configs row of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { describeConfigsApi } from "../../src/protocol/message/32_describe_configs.ts";
import { incrementalAlterConfigsApi } from "../../src/protocol/message/44_incremental_alter_configs.ts";
import { batch, named, type Quirks, restarted, startQuirks, TIME } from "./quirks.ts";

const TOPIC = 2;
const BROKER = 4;
const SOURCE = { topic: 1, staticBroker: 4, default: 5 } as const;
const SET = 0;
const DELETE = 1;
const APPEND = 2;
const SUBTRACT = 3;

interface Asked {
  readonly type?: number;
  readonly name?: string;
  readonly keys?: readonly string[] | null;
  readonly version?: number;
  readonly includeSynonyms?: boolean;
  readonly includeDocumentation?: boolean;
}

async function describe(q: Quirks, asked: Asked = {}) {
  const { type = TOPIC, name = "t", keys = null, version = 4, ...flags } = asked;
  const resources = [{ resourceType: type, resourceName: name, configurationKeys: keys }];
  const answer = await q.call(describeConfigsApi, version, { resources, ...flags });
  return named(answer.results[0]!);
}

async function entry(q: Quirks, key: string, asked: Asked = {}) {
  const { configs } = await describe(q, { ...asked, keys: [key] });
  assert.equal(configs.length, 1, key);
  return configs[0]!;
}

async function valueOf(q: Quirks, key: string): Promise<string | null> {
  return (await entry(q, key)).value;
}

type Change = readonly [name: string, operation: number, value: string | null];

async function alter(
  q: Quirks,
  changes: readonly Change[],
  { validateOnly = false, type = TOPIC, name = "t", version = 1 } = {},
) {
  const configs = changes.map(([key, configOperation, value]) => ({
    name: key,
    configOperation,
    value,
  }));
  const answer = await q.call(incrementalAlterConfigsApi, version, {
    resources: [{ resourceType: type, resourceName: name, configs }],
    validateOnly,
  });
  return named(answer.responses[0]!).error;
}

async function withTopic(configs: Record<string, string> = {}): Promise<Quirks> {
  const q = await startQuirks();
  await q.topic("t", 1, configs);
  return q;
}

const LONG_MAX = "9223372036854775807";

/** The sheet's table of topic configs. */
const TOPIC_DEFAULTS: Readonly<Record<string, string>> = {
  "cleanup.policy": "delete",
  "compression.type": "producer",
  "compression.gzip.level": "-1",
  "compression.lz4.level": "9",
  "compression.zstd.level": "3",
  "delete.retention.ms": "86400000",
  "file.delete.delay.ms": "60000",
  "flush.messages": LONG_MAX,
  "flush.ms": LONG_MAX,
  "index.interval.bytes": "4096",
  "max.message.bytes": "1048588",
  "message.timestamp.type": "CreateTime",
  "message.timestamp.before.max.ms": LONG_MAX,
  "message.timestamp.after.max.ms": "3600000",
  "leader.replication.throttled.replicas": "",
  "follower.replication.throttled.replicas": "",
  "local.retention.ms": "-2",
  "local.retention.bytes": "-2",
  "min.cleanable.dirty.ratio": "0.5",
  "min.compaction.lag.ms": "0",
  "max.compaction.lag.ms": LONG_MAX,
  "min.insync.replicas": "1",
  "preallocate": "false",
  "retention.bytes": "-1",
  "retention.ms": "604800000",
  "segment.bytes": "1073741824",
  "segment.index.bytes": "10485760",
  "segment.jitter.ms": "0",
  "segment.ms": "604800000",
  "unclean.leader.election.enable": "false",
  "remote.storage.enable": "false",
  "remote.log.copy.disable": "false",
  "remote.log.delete.on.disable": "false",
  // Ours.
  "skerry.produce.validate": "header",
  "skerry.stream.content.type": "application/octet-stream",
  "skerry.stream.deleted": "false",
  "skerry.stream.expires.ms": "-1",
  "skerry.stream.fork.offset": "0",
  "skerry.stream.fork.part": "0",
  "skerry.stream.fork.source": "",
  "skerry.stream.ttl.seconds": "-1",
};

test("a topic shows every config of the table with its default, and nothing that Kafka 4 dropped", async () => {
  const q = await withTopic();
  for (let version = 1; version <= 4; version++) {
    const { error, configs } = await describe(q, { version });
    assert.equal(error, "NONE");
    const shown = Object.fromEntries(configs.map(({ name, value }) => [name, value]));
    assert.deepEqual(shown, TOPIC_DEFAULTS);
    assert.ok(configs.every(({ configSource }) => configSource === SOURCE.default));
  }
});

test("a null and an empty key list mean all, names choose, unknown names are left out", async () => {
  const q = await withTopic();
  const all = Object.keys(TOPIC_DEFAULTS).length;
  assert.equal((await describe(q, { keys: null })).configs.length, all);
  assert.equal((await describe(q, { keys: [] })).configs.length, all);
  const chosen = await describe(q, { keys: ["retention.ms", "no.such.key"] });
  assert.deepEqual(chosen.configs.map(({ name }) => name), ["retention.ms"]);
});

test("the source says where a value comes from: topic, broker, default", async () => {
  const q = await startQuirks({ "log.retention.hours": "1", "message.max.bytes": "2000000" });
  await q.topic("t", 1, { "cleanup.policy": "compact" });
  const at = async (key: string) => {
    const { value, configSource } = await entry(q, key);
    return [value, configSource];
  };
  assert.deepEqual(await at("cleanup.policy"), ["compact", SOURCE.topic]);
  assert.deepEqual(await at("retention.ms"), ["3600000", SOURCE.staticBroker]);
  assert.deepEqual(await at("max.message.bytes"), ["2000000", SOURCE.staticBroker]);
  assert.deepEqual(await at("segment.bytes"), ["1073741824", SOURCE.default]);
});

test("log.retention.ms goes before minutes, minutes before hours", async () => {
  const cases: [Record<string, string>, string][] = [
    [{ "log.retention.hours": "2" }, "7200000"],
    [{ "log.retention.hours": "2", "log.retention.minutes": "3" }, "180000"],
    [
      { "log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4" },
      "4",
    ],
    [{ "log.roll.hours": "1" }, "segment"],
  ];
  for (const [properties, expected] of cases) {
    const q = await startQuirks(properties);
    await q.topic("t");
    if (expected === "segment") assert.equal(await valueOf(q, "segment.ms"), "3600000");
    else assert.equal(await valueOf(q, "retention.ms"), expected);
  }
});

test("synonyms are listed if asked, most specific first", async () => {
  const q = await startQuirks({ "log.retention.hours": "1" });
  await q.topic("t", 1, { "retention.ms": "5" });
  const asked = await entry(q, "retention.ms", { includeSynonyms: true });
  assert.deepEqual(asked.synonyms.map(({ source }) => source), [
    SOURCE.topic,
    SOURCE.staticBroker,
  ]);
  const bytes = await entry(q, "retention.bytes", { includeSynonyms: true });
  assert.deepEqual(bytes.synonyms.map(({ name, source }) => [name, source]), [
    ["log.retention.bytes", SOURCE.default],
  ]);
  // Their broker properties have no default of their own, as in Kafka.
  for (const key of ["segment.ms", "flush.ms", "leader.replication.throttled.replicas"]) {
    assert.deepEqual((await entry(q, key, { includeSynonyms: true })).synonyms, [], key);
  }
  assert.deepEqual([asked.synonyms[0]!.name, asked.synonyms[0]!.value], ["retention.ms", "5"]);
  assert.deepEqual((await entry(q, "retention.ms")).synonyms, []);
});

test("types from v3 on, documentation if asked, nothing sensitive", async () => {
  const q = await withTopic();
  const types: Record<string, number> = {
    "preallocate": 1,
    "compression.type": 2,
    "max.message.bytes": 3,
    "retention.ms": 5,
    "min.cleanable.dirty.ratio": 6,
    "cleanup.policy": 7,
  };
  for (const [key, type] of Object.entries(types)) {
    const { configType, isSensitive, readOnly, documentation } = await entry(q, key, {
      version: 3,
      includeDocumentation: true,
    });
    assert.deepEqual([configType, isSensitive, readOnly], [type, false, false], key);
    assert.ok((documentation ?? "").length > 0, key);
  }
  assert.equal((await entry(q, "retention.ms")).documentation, null);
});

test("an unknown topic, a bad name and other resource types are errors of the resource", async () => {
  const q = await withTopic();
  assert.equal((await describe(q, { name: "u" })).error, "UNKNOWN_TOPIC_OR_PARTITION");
  assert.equal((await describe(q, { name: "a b" })).error, "INVALID_TOPIC_EXCEPTION");
  for (const type of [0, 1, 3, 8, 16]) {
    assert.equal((await describe(q, { type, name: "1" })).error, "INVALID_REQUEST", `${type}`);
  }
});

test("a broker resource must name this broker or be empty", async () => {
  const q = await withTopic();
  for (const name of ["2", "x", "-1"]) {
    assert.equal((await describe(q, { type: BROKER, name })).error, "INVALID_REQUEST", name);
  }
  const cluster = await describe(q, { type: BROKER, name: "" });
  assert.deepEqual([cluster.error, cluster.configs], ["NONE", []]);
  assert.ok((await describe(q, { type: BROKER, name: "1" })).configs.length > 50);
});

/** Those of the sheet's table that this broker has; the others would be settings that set nothing. */
const BROKER_VALUES: Readonly<Record<string, string>> = {
  "broker.id": "1",
  "node.id": "1",
  "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
  "num.partitions": "1",
  "default.replication.factor": "1",
  "auto.create.topics.enable": "true",
  "delete.topic.enable": "true",
  "message.max.bytes": "1048588",
  "fetch.max.bytes": "57671680",
  "socket.request.max.bytes": "104857600",
  "connections.max.idle.ms": "600000",
  "log.retention.hours": "168",
  "log.retention.bytes": "-1",
  "log.retention.check.interval.ms": "300000",
  "log.segment.bytes": "1073741824",
  "min.insync.replicas": "1",
  "offsets.retention.minutes": "10080",
  "offsets.retention.check.interval.ms": "600000",
  "offset.metadata.max.bytes": "4096",
  "group.min.session.timeout.ms": "6000",
  "group.max.session.timeout.ms": "1800000",
  "group.max.size": "2147483647",
  "producer.id.expiration.ms": "86400000",
  "max.incremental.fetch.session.cache.slots": "1000",
};

test("the broker shows the configs that tools read, with Kafka's defaults", async () => {
  const q = await startQuirks();
  for (const [key, value] of Object.entries(BROKER_VALUES)) {
    assert.equal((await entry(q, key, { type: BROKER, name: "1" })).value, value, key);
  }
});

test("by design settings that would set nothing here are not shown", async () => {
  const q = await startQuirks();
  const { configs } = await describe(q, { type: BROKER, name: "1" });
  const names = configs.map(({ name }) => name);
  const absent = /^(quota|sasl|inter\.broker|log\.cleaner\.(backoff|threads))/;
  assert.deepEqual(names.filter((name) => absent.test(name)), []);
});

test("numbers of the broker are never empty texts, which clients could not parse", async () => {
  const q = await startQuirks();
  const { configs } = await describe(q, { type: BROKER, name: "1" });
  for (const { name, value, configType } of configs) {
    if ([3, 4, 5, 6].includes(configType)) assert.notEqual(value, "", name);
  }
});

test("Connect: a compacted topic reads back exactly compact", async () => {
  const q = await withTopic({ "cleanup.policy": "compact" });
  assert.equal(await valueOf(q, "cleanup.policy"), "compact");
});

test("compact,delete is valid in either order and with spaces, and reads back without them", async () => {
  const q = await withTopic({ "cleanup.policy": "compact,delete" });
  assert.equal(await valueOf(q, "cleanup.policy"), "compact,delete");
  assert.equal(await alter(q, [["cleanup.policy", SET, "delete, compact"]]), "NONE");
  assert.equal(await valueOf(q, "cleanup.policy"), "delete,compact");
});

test("Schema Registry starts twice: exists, one partition, compact", async () => {
  const q = await startQuirks();
  const wanted = {
    topics: [{
      name: "_schemas",
      numPartitions: 1,
      replicationFactor: 3,
      assignments: [],
      configs: [{ name: "cleanup.policy", value: "compact" }],
    }],
  };
  const start = async () => named((await q.call(createTopicsApi, 7, wanted)).topics[0]!).error;
  assert.equal(await start(), "NONE");
  assert.equal(await start(), "TOPIC_ALREADY_EXISTS");
  assert.equal((await q.metadata(["_schemas"])).topics[0]!.partitions.length, 1);
  assert.equal((await entry(q, "cleanup.policy", { name: "_schemas" })).value, "compact");
});

// IncrementalAlterConfigs.

test("set and delete change one key and leave the others", async () => {
  const q = await withTopic({ "retention.ms": "5000", "retention.bytes": "7" });
  for (const version of [0, 1]) {
    assert.equal(await alter(q, [["retention.ms", SET, "6000"]], { version }), "NONE");
    assert.equal(await valueOf(q, "retention.ms"), "6000");
    assert.equal(await alter(q, [["retention.ms", DELETE, null]], { version }), "NONE");
    assert.equal(await valueOf(q, "retention.ms"), "604800000");
    assert.equal(await valueOf(q, "retention.bytes"), "7");
  }
});

test("append and subtract work on lists; a present item is no change", async () => {
  const q = await withTopic();
  const policy = () => valueOf(q, "cleanup.policy");
  assert.equal(await alter(q, [["cleanup.policy", APPEND, "compact"]]), "NONE");
  assert.equal(await policy(), "delete,compact");
  assert.equal(await alter(q, [["cleanup.policy", APPEND, "compact"]]), "NONE");
  assert.equal(await policy(), "delete,compact");
  assert.equal(await alter(q, [["cleanup.policy", SUBTRACT, "delete"]]), "NONE");
  assert.equal(await policy(), "compact");
});

test("append and subtract on anything else are INVALID_CONFIG", async () => {
  const q = await withTopic();
  for (const operation of [APPEND, SUBTRACT]) {
    assert.equal(await alter(q, [["retention.ms", operation, "5"]]), "INVALID_CONFIG");
  }
});

test("a key twice, a resource twice and null with SET are INVALID_REQUEST", async () => {
  const q = await withTopic();
  const twice: Change[] = [["retention.ms", SET, "5"], ["retention.ms", SET, "6"]];
  assert.equal(await alter(q, twice), "INVALID_REQUEST");
  assert.equal(await alter(q, [["retention.ms", SET, null]]), "INVALID_REQUEST");
  assert.equal(await alter(q, [["retention.ms", 9, "5"]]), "INVALID_REQUEST");
  const configs = [{ name: "retention.ms", configOperation: SET, value: "5" }];
  const resource = { resourceType: TOPIC, resourceName: "t", configs };
  const answer = await q.call(incrementalAlterConfigsApi, 1, {
    resources: [resource, resource],
    validateOnly: false,
  });
  assert.ok(answer.responses.every((one) => named(one).error === "INVALID_REQUEST"));
  assert.equal(await valueOf(q, "retention.ms"), "604800000");
});

test("a key that nobody knows is not set, so that deleting it is done", async () => {
  const q = await withTopic();
  const changes: Change[] = [["no.such.key", DELETE, null], ["retention.ms", SET, "5"]];
  assert.equal(await alter(q, changes), "NONE");
  assert.equal(await valueOf(q, "retention.ms"), "5");
});

test("one bad change and nothing of the resource is applied", async () => {
  const q = await withTopic();
  const good: Change = ["retention.ms", SET, "5"];
  for (const bad of [["no.such.key", SET, "1"], ["segment.bytes", SET, "12"]] as Change[]) {
    assert.equal(await alter(q, [good, bad]), "INVALID_CONFIG");
  }
  const refused: Change = ["retention.ms", SET, "x"];
  assert.equal(await alter(q, [refused, ["no.such.key", DELETE, null]]), "INVALID_CONFIG");
  for (const name of ["__proto__", "constructor", "toString"]) {
    assert.equal(await alter(q, [good, [name, SET, "1"]]), "INVALID_CONFIG", name);
  }
  assert.equal(await valueOf(q, "retention.ms"), "604800000");
});

test("ValidateOnly checks and changes nothing", async () => {
  const q = await withTopic();
  const dry = { validateOnly: true };
  assert.equal(await alter(q, [["retention.ms", SET, "5"]], dry), "NONE");
  assert.equal(await alter(q, [["retention.ms", SET, "x"]], dry), "INVALID_CONFIG");
  assert.equal(await valueOf(q, "retention.ms"), "604800000");
});

test("an unknown topic and a bad name are errors; brokers cannot be changed while they run", async () => {
  const q = await withTopic();
  const change: Change[] = [["retention.ms", SET, "5"]];
  assert.equal(await alter(q, change, { name: "u" }), "UNKNOWN_TOPIC_OR_PARTITION");
  assert.equal(await alter(q, change, { name: "a b" }), "INVALID_TOPIC_EXCEPTION");
  assert.equal(await alter(q, change, { type: BROKER, name: "1" }), "INVALID_REQUEST");
});

test("a running partition obeys the change at once", async () => {
  const q = await withTopic();
  const send = (size: number, timestamp = TIME) =>
    q.produce("t", batch([{ value: "x".repeat(size), timestamp }]));
  assert.equal((await send(5000)).error, "NONE");
  await alter(q, [["max.message.bytes", SET, "1000"]]);
  assert.equal((await send(5000)).error, "MESSAGE_TOO_LARGE");
  await alter(q, [["max.message.bytes", DELETE, null]]);
  assert.equal((await send(5000)).error, "NONE");
  await alter(q, [["message.timestamp.after.max.ms", SET, "10"]]);
  assert.equal((await send(1, TIME + 5000)).error, "INVALID_TIMESTAMP");
  await alter(q, [["message.timestamp.type", SET, "LogAppendTime"]]);
  assert.equal((await send(1, 7)).logAppendTimeMs, TIME);
  await alter(q, [["cleanup.policy", SET, "compact"]]);
  assert.equal((await send(1)).error, "INVALID_RECORD", "no key");
});

test("levels have Kafka's bounds, also that of lz4, which has only one here", async () => {
  const q = await withTopic();
  assert.equal(await alter(q, [["compression.lz4.level", SET, "0"]]), "INVALID_CONFIG");
  assert.equal(await alter(q, [["compression.lz4.level", SET, "18"]]), "INVALID_CONFIG");
  assert.equal(await alter(q, [["compression.lz4.level", SET, "17"]]), "NONE");
  assert.equal(await alter(q, [["compression.gzip.level", SET, "0"]]), "INVALID_CONFIG");
  assert.equal(await alter(q, [["compression.gzip.level", SET, "9"]]), "NONE");
});

test("retention follows a change without a restart", async () => {
  const q = await withTopic({ "segment.bytes": "1048576" });
  for (let i = 0; i < 4; i++) await q.produce("t", batch(["x".repeat(700_000)]));
  assert.equal((await q.fetch("t", 0)).error, "NONE");
  await alter(q, [["retention.bytes", SET, "1000000"]]);
  await q.node.clock.advance(300_001);
  const { error, logStartOffset } = await q.fetch("t", 3);
  assert.equal(error, "NONE");
  assert.ok(logStartOffset > 0);
});

test("changes survive a crash", async () => {
  const before = await withTopic();
  await alter(before, [["retention.ms", SET, "5000"]]);
  const q = await restarted(before, { clean: false });
  assert.equal(await valueOf(q, "retention.ms"), "5000");
});
