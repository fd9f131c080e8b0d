/** kafkajs, unmodified, over TCP against the broker as a process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, logLevel } from "kafkajs";
import { createCodecs } from "../../src/adapters/codecs.ts";
import type { CodecName } from "../../src/env/codecs.ts";
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";

const codecs = createCodecs();
const INFLATED_BYTES_MAX = 1 << 26;

/** kafkajs brings gzip only; the others are plugged in, as its documentation says. */
function plug(type: CompressionTypes, codec: CodecName): void {
  (CompressionCodecs as Record<number, () => unknown>)[type] = () => ({
    compress: ({ buffer }: { buffer: Uint8Array }) =>
      Promise.resolve(Buffer.from(codecs.compress(codec, buffer))),
    decompress: (buffer: Uint8Array) =>
      Promise.resolve(Buffer.from(codecs.decompress(codec, buffer, INFLATED_BYTES_MAX))),
  });
}
plug(CompressionTypes.Snappy, "snappy");
plug(CompressionTypes.LZ4, "lz4");
plug(CompressionTypes.ZSTD, "zstd");

const dir = tempDir();
let broker: BrokerProcess;
let kafka: Kafka;

before(async () => {
  broker = await startBroker({
    args: ["--store", `dir:${dir.path}`, "--set", "group.initial.rebalance.delay.ms=0"],
  });
  kafka = new Kafka({
    brokers: [broker.kafka],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 20, maxRetryTime: 500 },
  });
});
after(async () => {
  await broker.stop();
  dir.remove();
});

interface Got {
  readonly partition: number;
  readonly offset: string;
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Consumes as a member of a group until there are `count` messages. */
async function consume(
  topic: string,
  groupId: string,
  count: number,
  fromBeginning = true,
): Promise<Got[]> {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning });
  const got: Got[] = [];
  await new Promise<void>((resolve, reject) => {
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        const headers = Object.entries(message.headers ?? {}).map((
          [name, value],
        ) => [name, String(value)]);
        got.push({
          partition,
          offset: message.offset,
          key: message.key?.toString() ?? null,
          value: message.value?.toString() ?? null,
          headers: Object.fromEntries(headers) as Record<string, string>,
        });
        if (got.length < count) return;
        const offset = String(Number(message.offset) + 1);
        await consumer.commitOffsets([{ topic, partition, offset }]);
        resolve();
      },
    }).catch(reject);
  });
  await consumer.disconnect();
  return got;
}

async function send(
  topic: string,
  values: readonly (string | null)[],
  options: object = {},
): Promise<void> {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: values.map((value) => ({ value })), ...options });
  await producer.disconnect();
}

test("keys, headers, null values and order", async () => {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({
    topic: "plain",
    messages: [
      { key: "a", value: "1", headers: { trace: "x", other: "y" } },
      { key: null, value: "2" },
      { key: "b", value: null },
    ],
  });
  await producer.disconnect();
  assert.deepEqual(await consume("plain", "plain-group", 3), [
    { partition: 0, offset: "0", key: "a", value: "1", headers: { trace: "x", other: "y" } },
    { partition: 0, offset: "1", key: null, value: "2", headers: {} },
    { partition: 0, offset: "2", key: "b", value: null, headers: {} },
  ]);
});

test("acks 0, 1 and all", async () => {
  for (const acks of [0, 1, -1]) await send("acks", [`acks ${acks}`], { acks });
  const got = await consume("acks", "acks-group", 3);
  assert.deepEqual(got.map(({ value }) => value).toSorted(), ["acks -1", "acks 0", "acks 1"]);
});

test("all codecs, stored as they came", async () => {
  const types = [
    CompressionTypes.GZIP,
    CompressionTypes.Snappy,
    CompressionTypes.LZ4,
    CompressionTypes.ZSTD,
  ];
  const values = Array.from({ length: 200 }, (_, i) => `${i} ${"text ".repeat(20)}`);
  for (const compression of types) await send("codecs", values, { compression });
  const got = await consume("codecs", "codecs-group", 800);
  assert.deepEqual(got.map(({ value }) => value), types.flatMap(() => values));
});

test("an idempotent producer", async () => {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  for (let i = 0; i < 20; i++) {
    await producer.send({ topic: "idempotent", messages: [{ value: String(i) }] });
  }
  await producer.disconnect();
  const got = await consume("idempotent", "idempotent-group", 20);
  assert.deepEqual(got.map(({ value }) => value), Array.from({ length: 20 }, (_, i) => String(i)));
});

test("offsets by time, earliest and latest", async () => {
  const admin = kafka.admin();
  await admin.connect();
  await send("times", ["old"], {
    messages: [{ value: "old", timestamp: "1000" }, { value: "new", timestamp: "2000" }],
  });
  assert.deepEqual(await admin.fetchTopicOffsetsByTimestamp("times", 1500), [{
    partition: 0,
    offset: "1",
  }]);
  const [offsets] = await admin.fetchTopicOffsets("times");
  assert.deepEqual([offsets!.low, offsets!.high], ["0", "2"]);
  await admin.disconnect();
});

test("two members share the partitions, and give them back", async () => {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic: "shared", numPartitions: 4 }] });
  const assigned = new Map<number, number>();
  const members = [0, 1].map(() =>
    kafka.consumer({
      groupId: "shared-group",
      sessionTimeout: 6000,
      rebalanceTimeout: 6000,
      // It heartbeats between its fetches only.
      heartbeatInterval: 200,
      maxWaitTimeInMs: 200,
    })
  );
  for (const [i, member] of members.entries()) {
    await member.connect();
    await member.subscribe({ topic: "shared" });
    member.on("consumer.group_join", ({ payload }) => {
      assigned.set(i, (payload.memberAssignment["shared"] ?? []).length);
    });
    await member.run({ eachMessage: () => Promise.resolve() });
  }
  await until(() => assigned.get(0) === 2 && assigned.get(1) === 2);
  const [group] = (await admin.describeGroups(["shared-group"])).groups;
  assert.equal(group!.state, "Stable");
  assert.equal(group!.members.length, 2);
  await members[1]!.disconnect();
  await until(() => assigned.get(0) === 4);
  await members[0]!.disconnect();
  await admin.deleteGroups(["shared-group"]);
  assert.ok(!(await admin.listGroups()).groups.some(({ groupId }) => groupId === "shared-group"));
  await admin.disconnect();
});

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("it did not become true");
}

test("topic administration", async () => {
  const admin = kafka.admin();
  await admin.connect();
  const created = await admin.createTopics({
    topics: [{
      topic: "managed",
      numPartitions: 2,
      configEntries: [{ name: "retention.ms", value: "1000000" }],
    }],
  });
  assert.equal(created, true);
  await admin.createPartitions({ topicPartitions: [{ topic: "managed", count: 5 }] });
  const [described] = (await admin.fetchTopicMetadata({ topics: ["managed"] })).topics;
  assert.equal(described!.partitions.length, 5);
  const configs = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{
      type: ConfigResourceTypes.TOPIC,
      name: "managed",
      configNames: ["retention.ms"],
    }],
  });
  assert.equal(configs.resources[0]!.configEntries[0]!.configValue, "1000000");
  const cluster = await admin.describeCluster();
  assert.deepEqual([cluster.brokers.length, cluster.controller], [1, cluster.brokers[0]!.nodeId]);
  assert.equal(await admin.createTopics({ topics: [{ topic: "managed" }] }), false, "it exists");
  await admin.deleteTopics({ topics: ["managed"] });
  assert.ok(!(await admin.listTopics()).includes("managed"));
  await admin.disconnect();
});

test("records deleted, settings replaced", async () => {
  const admin = kafka.admin();
  await admin.connect();
  await send("trimmed", ["0", "1", "2", "3"]);
  // It looks up the leader in the metadata that it happens to have.
  await admin.fetchTopicOffsets("trimmed");
  await admin.deleteTopicRecords({
    topic: "trimmed",
    partitions: [{ partition: 0, offset: "2" }],
  });
  const [offsets] = await admin.fetchTopicOffsets("trimmed");
  assert.deepEqual([offsets!.low, offsets!.high], ["2", "4"]);
  const got = await consume("trimmed", "trimmed-group", 2);
  assert.deepEqual(got.map(({ value }) => value), ["2", "3"]);
  const type = ConfigResourceTypes.TOPIC;
  const name = "trimmed";
  const set = (configEntries: { name: string; value: string }[]) =>
    admin.alterConfigs({ validateOnly: false, resources: [{ type, name, configEntries }] });
  const shown = async () => {
    const configNames = ["retention.ms", "max.message.bytes"];
    const { resources } = await admin.describeConfigs({
      includeSynonyms: false,
      resources: [{ type, name, configNames }],
    });
    const entries = resources[0]!.configEntries;
    return Object.fromEntries(entries.map((one) => [one.configName, one.configValue]));
  };
  await set([{ name: "retention.ms", value: "1000000" }]);
  await set([{ name: "max.message.bytes", value: "2000" }]);
  assert.deepEqual(await shown(), { "retention.ms": "604800000", "max.message.bytes": "2000" });
  await assert.rejects(set([{ name: "no.such.key", value: "1" }]), /config/i);
  await assert.rejects(
    admin.deleteTopicRecords({ topic: "trimmed", partitions: [{ partition: 0, offset: "9" }] }),
  );
  await admin.disconnect();
});

test("a topic that was deleted and made again is empty", async () => {
  const admin = kafka.admin();
  await admin.connect();
  await send("twice", ["old"]);
  await admin.deleteTopics({ topics: ["twice"] });
  await admin.createTopics({ topics: [{ topic: "twice" }] });
  assert.deepEqual((await admin.fetchTopicOffsets("twice")).map(({ high }) => high), ["0"]);
  await send("twice", ["new"]);
  assert.deepEqual((await consume("twice", "twice-group", 1)).map(({ value }) => value), ["new"]);
  await admin.disconnect();
});

test("offsets of a group, fetched and set; groups described and deleted", async () => {
  const admin = kafka.admin();
  await admin.connect();
  const offsets = async (groupId: string) =>
    (await admin.fetchOffsets({ groupId, topics: ["kept-offsets"] }))[0]!.partitions
      .map(({ offset }) => offset);
  await send("kept-offsets", ["0", "1", "2"]);
  assert.deepEqual(await offsets("offsets-group"), ["-1"], "nothing is committed");
  await consume("kept-offsets", "offsets-group", 3);
  assert.deepEqual(await offsets("offsets-group"), ["3"]);
  const topic = { groupId: "offsets-group", topic: "kept-offsets" };
  await admin.setOffsets({ ...topic, partitions: [{ partition: 0, offset: "1" }] });
  const again = await consume("kept-offsets", "offsets-group", 2);
  assert.deepEqual(again.map(({ offset }) => offset), ["1", "2"]);
  const { groups } = await admin.describeGroups(["offsets-group", "no-such-group"]);
  assert.deepEqual(groups.map(({ state }) => state), ["Empty", "Dead"]);
  await admin.deleteGroups(["offsets-group"]);
  assert.deepEqual(await offsets("offsets-group"), ["-1"]);
  await assert.rejects(admin.deleteGroups(["offsets-group"]));
  await admin.disconnect();
});

test("latest, and a seek", async () => {
  await send("seek", ["0", "1", "2"]);
  const consumer = kafka.consumer({ groupId: "seek-group", maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topic: "seek" });
  const got: (string | undefined)[] = [];
  const joined = new Promise((resolve) => consumer.on("consumer.group_join", resolve));
  await consumer.run({
    eachMessage: ({ message }) => {
      got.push(message.value?.toString());
      return Promise.resolve();
    },
  });
  await joined;
  // It asks for the latest offset with its first fetch.
  await new Promise((resolve) => consumer.on("consumer.fetch", resolve));
  await send("seek", ["3"]);
  await until(() => got.length === 1);
  consumer.seek({ topic: "seek", partition: 0, offset: "1" });
  await until(() => got.length === 4);
  await consumer.disconnect();
  assert.deepEqual(got, ["3", "1", "2", "3"]);
});

test("a record that is too large is refused, and the next one is not", async () => {
  const producer = kafka.producer({ retry: { retries: 0 } });
  await producer.connect();
  const large = "x".repeat(1_100_000);
  await assert.rejects(
    producer.send({ topic: "large", messages: [{ value: large }] }),
    /larger than the max message size|MESSAGE_TOO_LARGE/i,
  );
  const [sent] = await producer.send({ topic: "large", messages: [{ value: "small" }] });
  assert.equal(sent!.baseOffset, "0");
  await producer.disconnect();
});

test("HTTP and TCP show the same offsets", async () => {
  await send("both", ["over TCP"]);
  const posted = await fetch(`${broker.http}/v1/topics/both/records`, {
    method: "POST",
    body: "over HTTP",
  });
  const { results } = await posted.json() as { results: { offset: number }[] };
  assert.equal(results[0]!.offset, 1);
  const got = await consume("both", "both-group", 2);
  assert.deepEqual(got.map(({ offset, value }) => [offset, value]), [["0", "over TCP"], [
    "1",
    "over HTTP",
  ]]);
});

test("committed offsets survive kill -9 and a restart", async () => {
  await send("kept", ["1", "2"]);
  await consume("kept", "kept-group", 2);
  await broker.kill9();
  broker = await broker.restart();
  await send("kept", ["3"]);
  const got = await consume("kept", "kept-group", 1);
  assert.deepEqual(got.map(({ value }) => value), ["3"]);
});

test("transactions: read-process-write commits records and offsets together, an abort neither", async () => {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({
    topics: [{ topic: "txn-in", numPartitions: 1 }, { topic: "txn-out", numPartitions: 2 }],
  });
  const producer = kafka.producer({
    transactionalId: "txn-e2e",
    idempotent: true,
    maxInFlightRequests: 1,
  });
  await producer.connect();
  const send = async (value: string, offset: string, commit: boolean) => {
    const transaction = await producer.transaction();
    await transaction.send({
      topic: "txn-out",
      messages: [{ partition: 0, value }, { partition: 1, value }],
    });
    await transaction.sendOffsets({
      consumerGroupId: "txn-group",
      topics: [{ topic: "txn-in", partitions: [{ partition: 0, offset }] }],
    });
    await (commit ? transaction.commit() : transaction.abort());
  };
  await send("a", "1", true);
  await send("b", "2", false);
  await send("c", "3", true);
  await producer.disconnect();
  const got = await consume("txn-out", "txn-readers", 4);
  assert.deepEqual(got.map(({ partition, value }) => `${partition} ${value}`).toSorted(), [
    "0 a",
    "0 c",
    "1 a",
    "1 c",
  ]);
  const [offsets] = await admin.fetchOffsets({ groupId: "txn-group", topics: ["txn-in"] });
  assert.equal(offsets?.partitions[0]?.offset, "3");
  await admin.disconnect();
});
