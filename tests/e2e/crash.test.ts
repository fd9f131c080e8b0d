/**
 * kill -9 at any moment: producers write numbered records while the broker is killed and started again.
 * Every acknowledged record is there, in order; an idempotent producer's records are there once; and
 * nothing that a reader has seen disappears.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { seededRandom } from "../../src/env/random.ts";
import { type BrokerProcess, crashStart, startBroker, tempDir } from "../support/broker_process.ts";
import { PipelinedProducer } from "./pipelined_producer.ts";
import { until } from "./until.ts";

const ROUNDS = 8;
const TOPIC = "crash";
const PARTITIONS = 2;
const TIMEOUT = { timeout: 120_000 };

interface Writer {
  readonly name: string;
  readonly acknowledged: number[];
  stop(): Promise<void>;
}

interface Row {
  readonly key: string;
  readonly value: string;
  readonly offset: number;
}

/** Sends 0, 1, 2, ... one after the other; a number counts once it is acknowledged. */
async function startWriter(
  kafka: Kafka,
  name: string,
  idempotent: boolean,
  acks: number,
): Promise<Writer> {
  const producer = kafka.producer({
    idempotent,
    maxInFlightRequests: 1,
    retry: { initialRetryTime: 50, maxRetryTime: 200, retries: 100 },
  });
  await producer.connect();
  const acknowledged: number[] = [];
  let stopped = false;
  const done = (async () => {
    for (let i = 0; !stopped; i++) {
      const messages = [{ key: name, value: String(i), partition: i % PARTITIONS }];
      await producer.send({ topic: TOPIC, acks, messages });
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

async function page(http: string, partition: number, query: string) {
  const response = await fetch(
    `${http}/v1/topics/${TOPIC}/partitions/${partition}/records?${query}`,
  );
  if (response.status !== 200) throw new Error(await response.text());
  return await response.json() as { records: Row[]; next: number };
}

async function readAll({ http }: BrokerProcess, partition: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (let offset = 0;;) {
    const { records, next } = await page(http, partition, `offset=${offset}&limit=5000`);
    if (records.length === 0) return rows;
    rows.push(...records);
    offset = next;
  }
}

/** Follows a partition through all crashes and remembers what it was shown. */
function startReader(http: string, partition: number) {
  const shown: Row[] = [];
  let stopped = false;
  const done = (async () => {
    for (let offset = 0; !stopped;) {
      try {
        const { records, next } = await page(http, partition, `offset=${offset}&wait=100`);
        shown.push(...records);
        offset = next;
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  })();
  return {
    shown,
    async stop(): Promise<readonly Row[]> {
      stopped = true;
      await done;
      return shown;
    },
  };
}

function withoutRepeats(numbers: readonly number[]): number[] {
  return [...new Set(numbers)];
}

function numbersOf(rows: readonly Row[], name: string): number[] {
  return rows.filter(({ key }) => key === name).map(({ value }) => Number(value));
}

function checkWriter({ name, acknowledged }: Writer, logs: readonly (readonly Row[])[]): void {
  assert.ok(acknowledged.length > 20, `${name} wrote too little: ${acknowledged.length}`);
  for (const [partition, rows] of logs.entries()) {
    const mine = acknowledged.filter((number) => number % PARTITIONS === partition);
    const stored = numbersOf(rows, name);
    const once = withoutRepeats(stored);
    assert.deepEqual(once.slice(0, mine.length), mine, `${name}: missing or out of order`);
    if (name.startsWith("idempotent")) assert.deepEqual(stored, once, `${name}: there twice`);
  }
}

function checkPipelined(producer: PipelinedProducer, logs: readonly (readonly Row[])[]): void {
  const { name, sent, partition, acknowledged } = producer;
  const rows = logs[partition]!;
  assert.ok(sent > 100, `${name} wrote too little: ${sent}`);
  assert.ok(producer.resentBatches > 0, `${name} never had to send again`);
  assert.deepEqual(numbersOf(rows, name), Array.from({ length: sent }, (_, i) => i), name);
  for (const [sequence, offset] of acknowledged) {
    assert.equal(rows[offset]!.value, String(sequence), `${name}: not at its offset ${offset}`);
  }
}

test("every acknowledged record survives kill -9, once and in order", TIMEOUT, async () => {
  const dir = tempDir();
  const random = seededRandom(Number.parseInt("5eed", 16));
  const args = ["--store", `dir:${dir.path}`];
  let broker = await startBroker({ args });
  const { kafka: address, http } = broker;
  const created = await fetch(`${http}/v1/topics`, {
    method: "POST",
    body: JSON.stringify({ name: TOPIC, partitions: PARTITIONS }),
  });
  assert.equal(created.status, 201, await created.text());
  const kafka = new Kafka({
    brokers: [address],
    logLevel: logLevel.NOTHING,
    requestTimeout: 5000,
    retry: { initialRetryTime: 50, maxRetryTime: 200, retries: 100 },
  });
  const writers = [
    await startWriter(kafka, "idempotent", true, -1),
    await startWriter(kafka, "plain", false, -1),
    await startWriter(kafka, "plain-leader", false, 1),
  ];
  const pipelined = [0, 0, 1].map((partition, i) =>
    new PipelinedProducer({ address, topic: TOPIC, partition, name: `pipelined-${i}` })
  );
  const readers = [0, 1].map((partition) => startReader(http, partition));
  const count = () =>
    [...writers.map((one) => one.acknowledged.length), ...pipelined.map((one) => one.sent)]
      .reduce((sum, one) => sum + one, 0);
  for (let round = 0; round < ROUNDS; round++) {
    const enough = count() + 50 + Math.floor(random.float() * 500);
    await until(`${enough} records`, () => count() >= enough);
    await broker.kill9();
    if (round % 3 === 2) {
      const place = ["--kafka-listen", address, "--http-listen", new URL(http).host];
      await crashStart({ args: [...args, ...place] }, 20 + random.float() * 180);
    }
    broker = await broker.restart();
  }
  await until(
    "everybody goes on after the last crash",
    () =>
      writers.every(({ acknowledged }) => acknowledged.length > 20) &&
      pipelined.every(({ sent, resentBatches }) => sent > 100 && resentBatches > 0) &&
      readers.every(({ shown }) => shown.length > 50),
  );
  await Promise.all([...writers, ...pipelined].map((writer) => writer.stop()));
  const shown = await Promise.all(readers.map((reader) => reader.stop()));
  const logs = [await readAll(broker, 0), await readAll(broker, 1)];
  for (const writer of writers) checkWriter(writer, logs);
  for (const producer of pipelined) checkPipelined(producer, logs);
  for (const [partition, rows] of shown.entries()) {
    assert.ok(rows.length > 50, `a reader saw too little: ${rows.length}`);
    assert.deepEqual(rows, logs[partition]!.slice(0, rows.length), "what was shown has changed");
  }
  assert.equal(await broker.stop(), 0, broker.output());
  dir.remove();
});
