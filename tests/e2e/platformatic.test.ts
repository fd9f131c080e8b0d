/** @platformatic/kafka, unmodified, over TCP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  Admin,
  ConfigResourceTypes,
  Consumer,
  ListOffsetTimestamps,
  ProduceAcks,
  Producer,
  stringDeserializers,
  stringSerializers,
} from "@platformatic/kafka";
import { until } from "./until.ts";
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";

const dir = tempDir();
let broker: BrokerProcess;
before(async () => {
  broker = await startBroker({
    args: [
      "--store",
      `dir:${dir.path}`,
      "--set",
      "group.initial.rebalance.delay.ms=0",
      "--set",
      "group.consumer.heartbeat.interval.ms=100",
    ],
  });
});
after(async () => {
  await broker.stop();
  dir.remove();
});

function base() {
  return { clientId: "test", bootstrapBrokers: [broker.kafka] };
}

test("creates a topic, produces with every ack and codec, consumes in a group", async () => {
  const admin = new Admin(base());
  await admin.createTopics({ topics: ["t"], partitions: 1, replicas: 1 });
  const sent: string[] = [];
  for (const compression of ["none", "gzip", "snappy", "lz4", "zstd"] as const) {
    const producer = new Producer({ ...base(), serializers: stringSerializers, compression });
    const values = Array.from({ length: 20 }, (_, i) => `${compression} ${i}`);
    await producer.send({
      acks: compression === "gzip" ? ProduceAcks.LEADER : ProduceAcks.ALL,
      messages: values.map((value) => ({ topic: "t", key: "k", value, headers: { h: "1" } })),
    });
    await producer.close();
    sent.push(...values);
  }
  const consumer = new Consumer({ ...base(), groupId: "g", deserializers: stringDeserializers });
  const stream = await consumer.consume({
    topics: ["t"],
    mode: "earliest",
    autocommit: true,
    sessionTimeout: 10_000,
  });
  const got: string[] = [];
  for await (const message of stream) {
    got.push(String(message.value));
    if (got.length === sent.length) break;
  }
  await stream.close();
  await consumer.close(true);
  assert.deepEqual(got, sent);
  await admin.deleteTopics({ topics: ["t"] });
  await admin.close();
});

test("an idempotent producer", async () => {
  const producer = new Producer({
    ...base(),
    serializers: stringSerializers,
    idempotent: true,
    autocreateTopics: true,
  });
  const results: unknown[] = [];
  for (let i = 0; i < 10; i++) {
    results.push(await producer.send({ messages: [{ topic: "once", value: `${i}` }] }));
  }
  await producer.close();
  assert.equal(results.length, 10);
  const page = await (await fetch(`${broker.http}/v1/topics/once/partitions/0/records`)).json() as {
    records: { value: string }[];
  };
  assert.deepEqual(
    page.records.map(({ value }) => value),
    Array.from({ length: 10 }, (_, i) => `${i}`),
  );
});

/** Values from a group's place, committed as they are read. */
async function consume(
  topic: string,
  groupId: string,
  count: number,
  mode: "committed" | "latest",
) {
  const consumer = new Consumer({ ...base(), groupId, deserializers: stringDeserializers });
  const stream = await consumer.consume({
    topics: [topic],
    mode,
    fallbackMode: "earliest",
    autocommit: false,
    sessionTimeout: 10_000,
    maxWaitTime: 200,
  });
  const got: string[] = [];
  for await (const message of stream) {
    got.push(String(message.value));
    await message.commit();
    if (got.length === count) break;
  }
  await stream.close();
  await consumer.close(true);
  return got;
}

async function send(topic: string, values: readonly (string | null)[], acks: number) {
  const producer = new Producer({
    ...base(),
    serializers: stringSerializers,
    autocreateTopics: true,
  });
  const messages = values.map((value) => ({
    topic,
    key: "k",
    ...(value === null ? {} : { value }),
    headers: { h: "1" },
  }));
  const sent = await producer.send({ acks, messages });
  await producer.close();
  return sent;
}

test("without an answer, null values and headers, seen the same over HTTP", async () => {
  await send("shapes", ["first"], ProduceAcks.ALL);
  await send("shapes", ["no answer"], ProduceAcks.NO_RESPONSE);
  await send("shapes", [null], ProduceAcks.LEADER);
  const page = await (await fetch(`${broker.http}/v1/topics/shapes/partitions/0/records?wait=5000`))
    .json() as { records: { key: string; value: string | null; headers: string[][] }[] };
  assert.deepEqual(page.records.map(({ value }) => value).toSorted(), ["first", "no answer", null]);
  assert.ok(page.records.every(({ key }) => key === "k"));
  assert.deepEqual(page.records[0]!.headers, [["h", "1"]]);
});

test("committed offsets survive kill -9 and a restart", async () => {
  await send("kept", ["1", "2"], ProduceAcks.ALL);
  assert.deepEqual(await consume("kept", "kept-group", 2, "committed"), ["1", "2"]);
  await broker.kill9();
  broker = await broker.restart();
  await send("kept", ["3"], ProduceAcks.ALL);
  assert.deepEqual(await consume("kept", "kept-group", 1, "committed"), ["3"]);
});

test("two members share the partitions", async () => {
  const admin = new Admin(base());
  await admin.createTopics({ topics: ["shared"], partitions: 4, replicas: 1 });
  const join = () =>
    new Consumer({
      ...base(),
      groupId: "shared-group",
      sessionTimeout: 6000,
      rebalanceTimeout: 6000,
      heartbeatInterval: 200,
    });
  const members = [join(), join()];
  for (const member of members) {
    member.topics.trackAll("shared");
    await member.joinGroup({});
  }
  const counts = () =>
    members.map(({ assignments }) => assignments?.[0]?.partitions.length ?? 0).toSorted();
  for (let i = 0; i < 300 && counts().join() !== "2,2"; i++) {
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.deepEqual(counts(), [2, 2]);
  const group = (await admin.describeGroups({ groups: ["shared-group"] })).get("shared-group")!;
  assert.deepEqual([group.state, group.members.size], ["Stable", 2]);
  for (const member of members) await member.close(true);
  await admin.close();
});

test("two members of the consumer protocol share the partitions, and the one that stays gets all", async () => {
  const admin = new Admin(base());
  await admin.createTopics({ topics: ["shared-848"], partitions: 4, replicas: 1 });
  const producer = new Producer({ ...base(), serializers: stringSerializers });
  await producer.send({
    messages: Array.from(
      { length: 20 },
      (_, i) => ({ topic: "shared-848", key: `${i}`, value: `${i}` }),
    ),
  });
  const begin = async () => {
    const consumer = new Consumer({
      ...base(),
      groupId: "group-848",
      groupProtocol: "consumer",
      deserializers: stringDeserializers,
    });
    const stream = await consumer.consume({
      topics: ["shared-848"],
      mode: "earliest",
      autocommit: true,
    });
    return { consumer, stream };
  };
  const members = [await begin(), await begin()];
  const seen = new Set<string>();
  for (const { stream } of members) stream.on("data", ({ value }) => void seen.add(String(value)));
  const counts = () =>
    members.map(({ consumer }) => consumer.assignments?.[0]?.partitions.length ?? 0).toSorted();
  await until("both have a half", () => counts().join() === "2,2");
  await until("all is read", () => seen.size === 20);
  const last = members.pop()!;
  await last.stream.close();
  await last.consumer.close(true);
  await until("the one that stays has all", () => counts().join() === "4");
  await members[0]!.stream.close();
  await members[0]!.consumer.close(true);
  await producer.close();
  await admin.close();
});

test("administration: partitions, configs, offsets, groups", async () => {
  const admin = new Admin(base());
  const [created] = await admin.createTopics({
    topics: ["managed"],
    partitions: 2,
    replicas: 1,
    configs: [{ name: "retention.ms", value: "1000000" }],
  });
  assert.deepEqual([created!.name, created!.partitions], ["managed", 2]);
  await assert.rejects(admin.createTopics({ topics: ["managed"], partitions: 2, replicas: 1 }));
  await admin.createPartitions({
    topics: [{ name: "managed", count: 3 }],
  });
  const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: "managed" };
  await admin.incrementalAlterConfigs({
    resources: [{
      ...resource,
      configs: [{ name: "retention.ms", configOperation: 0, value: "2000000" }],
    }],
  });
  const [described] = await admin.describeConfigs({
    resources: [{ ...resource, configurationKeys: ["retention.ms"] }],
  });
  assert.equal(described!.configs[0]!.value, "2000000");
  await send("managed", ["1", "2"], ProduceAcks.ALL);
  const partitions = [0, 1, 2].map((partitionIndex) => ({
    partitionIndex,
    timestamp: ListOffsetTimestamps.LATEST,
  }));
  const [listed] = await admin.listOffsets({ topics: [{ name: "managed", partitions }] });
  assert.equal(listed!.partitions.reduce((sum, { offset }) => sum + offset, 0n), 2n);
  await consume("managed", "managed-group", 2, "committed");
  const [group] = await admin.listConsumerGroupOffsets({ groups: ["managed-group"] });
  const committed = group!.topics[0]!.partitions;
  assert.equal(committed.reduce((sum, { committedOffset }) => sum + committedOffset, 0n), 2n);
  assert.ok((await admin.listGroups()).has("managed-group"));
  await admin.deleteGroups({ groups: ["managed-group"] });
  assert.ok(!(await admin.listGroups()).has("managed-group"));
  await admin.deleteTopics({ topics: ["managed"] });
  assert.ok(!(await admin.listTopics()).includes("managed"));
  await admin.close();
});

test("administration: records, sizes, offsets of groups, quotas, settings", async () => {
  const admin = new Admin(base());
  const topic = "administered";
  await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 });
  const producer = new Producer({ ...base(), serializers: stringSerializers });
  await producer.send({
    messages: ["0", "1", "2"].map((value) => ({ topic, value })),
  });
  await producer.close();
  const [deleted] = await admin.deleteRecords({
    topics: [{ name: topic, partitions: [{ partition: 0, offset: 2n }] }],
  });
  assert.equal(deleted!.partitions[0]!.lowWatermark, 2n);
  const [dirs] = await admin.describeLogDirs({ topics: [{ name: topic, partitions: [0] }] });
  const [size] = dirs!.results[0]!.topics[0]!.partitions;
  assert.ok(size!.partitionSize > 0n);

  const groupId = "administered-group";
  await admin.alterConsumerGroupOffsets({
    groupId,
    topics: [{ name: topic, partitionOffsets: [{ partition: 0, offset: 2n }] }],
  });
  const kept = async () =>
    (await admin.listConsumerGroupOffsets({ groups: [groupId] }))[0]!.topics
      .flatMap(({ partitions }) => partitions.map(({ committedOffset }) => committedOffset));
  assert.deepEqual(await kept(), [2n]);
  await admin.deleteConsumerGroupOffsets({
    groupId,
    topics: [{ name: topic, partitionIndexes: [0] }],
  });
  assert.deepEqual(await kept(), []);

  const entities = [{ entityType: "user" as const, entityName: "somebody" }];
  await admin.alterClientQuotas({
    entries: [{ entities, ops: [{ key: "producer_byte_rate", value: 1000, remove: false }] }],
  });
  const [quota] = await admin.describeClientQuotas({
    components: [{ entityType: "user", matchType: 0, match: "somebody" }],
  });
  assert.deepEqual(quota!.values, [{ key: "producer_byte_rate", value: 1000 }]);

  await admin.alterConfigs({
    resources: [{
      resourceType: ConfigResourceTypes.TOPIC,
      resourceName: topic,
      configs: [{ name: "retention.ms", value: "1000000" }],
    }],
  });
  const [described] = await admin.describeConfigs({
    resources: [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }],
  });
  const retention = described!.configs.find(({ name }) => name === "retention.ms");
  assert.equal(retention!.value, "1000000");
  await admin.close();
});

test("transactions: what was committed is read, what was aborted is not", async () => {
  const admin = new Admin(base());
  await admin.createTopics({ topics: ["txn"], partitions: 1, replicas: 1 });
  await admin.close();
  const producer = new Producer({
    ...base(),
    serializers: stringSerializers,
    transactionalId: "txn-platformatic",
    idempotent: true,
    retries: 20,
    retryDelay: 100,
  });
  for (const [value, commit] of [["a", true], ["b", false], ["c", true]] as const) {
    const transaction = await producer.beginTransaction();
    await transaction.send({ messages: [{ topic: "txn", key: "k", value }] });
    await (commit ? transaction.commit() : transaction.abort());
  }
  await producer.close();
  const consumer = new Consumer({ ...base(), groupId: "txn", deserializers: stringDeserializers });
  const stream = await consumer.consume({
    topics: ["txn"],
    mode: "earliest",
    autocommit: false,
    isolationLevel: 1,
  });
  const got: string[] = [];
  for await (const message of stream) {
    got.push(String(message.value));
    if (got.length === 2) break;
  }
  await stream.close();
  await consumer.close(true);
  assert.deepEqual(got, ["a", "c"]);
});
