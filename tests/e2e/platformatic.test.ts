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
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";

const dir = tempDir();
let broker: BrokerProcess;
before(async () => {
  broker = await startBroker({
    args: ["--store", `dir:${dir.path}`, "--set", "group.initial.rebalance.delay.ms=0"],
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
