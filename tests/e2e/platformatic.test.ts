/** @platformatic/kafka, unmodified, over TCP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  Admin,
  Consumer,
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
  for (const compression of ["none", "gzip", "snappy", "lz4"] as const) {
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
