/**
 * kill -9 at any moment: producers write numbered records while the broker is killed and started again.
 * Every acknowledged record is there, in order; an idempotent producer's records are there once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Kafka, logLevel, type Producer } from "kafkajs";
import { seededRandom } from "../../src/env/random.ts";
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";

const ROUNDS = 5;
const TOPIC = "crash";

interface Writer {
  readonly name: string;
  readonly acknowledged: number[];
  stop(): Promise<void>;
}

/** Sends 0, 1, 2, ... one after the other; a number counts once it is acknowledged. */
async function startWriter(kafka: Kafka, name: string, idempotent: boolean): Promise<Writer> {
  const producer: Producer = kafka.producer({
    idempotent,
    maxInFlightRequests: 1,
    retry: { initialRetryTime: 50, maxRetryTime: 200, retries: 100 },
  });
  await producer.connect();
  const acknowledged: number[] = [];
  let stopped = false;
  const done = (async () => {
    for (let i = 0; !stopped; i++) {
      await producer.send({ topic: TOPIC, acks: -1, messages: [{ key: name, value: String(i) }] });
      acknowledged.push(i);
    }
  })();
  return {
    name,
    acknowledged,
    async stop() {
      stopped = true;
      await done;
      await producer.disconnect();
    },
  };
}

async function readAll(broker: BrokerProcess): Promise<Map<string, number[]>> {
  const seen = new Map<string, number[]>();
  for (let offset = 0;;) {
    const response = await fetch(
      `${broker.http}/v1/topics/${TOPIC}/partitions/0/records?offset=${offset}&limit=5000`,
    );
    const page = await response.json() as {
      records: { key: string; value: string; offset: number }[];
      next: number;
    };
    if (page.records.length === 0) return seen;
    for (const { key, value } of page.records) {
      seen.set(key, [...(seen.get(key) ?? []), Number(value)]);
    }
    offset = page.next;
  }
}

function withoutRepeats(numbers: readonly number[]): number[] {
  return numbers.filter((number, i) => numbers.indexOf(number) === i);
}

test("every acknowledged record survives kill -9", async () => {
  const dir = tempDir();
  const random = seededRandom(Number.parseInt("5eed", 16));
  let broker = await startBroker({ args: ["--store", `dir:${dir.path}`] });
  const args = ["--store", `dir:${dir.path}`, "--kafka-listen", broker.kafka];
  const kafka = new Kafka({
    brokers: [broker.kafka],
    logLevel: logLevel.NOTHING,
    requestTimeout: 5000,
    retry: { initialRetryTime: 50, maxRetryTime: 200, retries: 100 },
  });
  const writers = [
    await startWriter(kafka, "idempotent-a", true),
    await startWriter(kafka, "idempotent-b", true),
    await startWriter(kafka, "plain", false),
  ];
  for (let round = 0; round < ROUNDS; round++) {
    await new Promise((resolve) => setTimeout(resolve, 100 + random.float() * 400));
    await broker.kill9();
    broker = await startBroker({ args });
  }
  await new Promise((resolve) => setTimeout(resolve, 300));
  await Promise.all(writers.map((writer) => writer.stop()));
  const seen = await readAll(broker);
  for (const { name, acknowledged } of writers) {
    const stored = seen.get(name) ?? [];
    const once = withoutRepeats(stored);
    assert.ok(acknowledged.length > 20, `${name} wrote too little: ${acknowledged.length}`);
    assert.deepEqual(
      once.slice(0, acknowledged.length),
      acknowledged,
      `${name}: a record is missing or out of order`,
    );
    if (name.startsWith("idempotent")) {
      assert.deepEqual(stored, once, `${name}: a record is there twice`);
    }
  }
  assert.equal(await broker.stop(), 0, broker.output());
  dir.remove();
});
