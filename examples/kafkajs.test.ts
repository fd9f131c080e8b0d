/** A test that uses a stock Kafka client against a broker inside the test's own process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { type Broker, createBroker } from "../mod.ts";

let broker: Broker;
let kafka: Kafka;

before(async () => {
  broker = await createBroker({
    store: "memory:",
    // No need to wait for late group members in a test.
    kafka: { "group.initial.rebalance.delay.ms": "0" },
  });
  kafka = new Kafka({
    brokers: [`${broker.kafka.host}:${broker.kafka.port}`],
    logLevel: logLevel.NOTHING,
  });
});
after(() => broker.close());

test("what a service sends, its consumer gets", async () => {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ key: "4711", value: "paid" }] });
  await producer.disconnect();

  const consumer = kafka.consumer({ groupId: "billing" });
  await consumer.connect();
  await consumer.subscribe({ topic: "orders", fromBeginning: true });
  const got = await new Promise<string>((resolve, reject) => {
    consumer.run({
      eachMessage: ({ message }) => {
        resolve(`${message.key?.toString()}=${message.value?.toString()}`);
        return Promise.resolve();
      },
    }).catch(reject);
  });
  await consumer.disconnect();
  assert.equal(got, "4711=paid");
});
