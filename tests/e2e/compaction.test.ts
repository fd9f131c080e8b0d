/** A compacted topic in a running broker: kafkajs reads what is left of it from every offset, also after a restart. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { runBroker, startBroker, tempDir } from "../support/broker_process.ts";
import { until } from "./until.ts";

const dir = tempDir();
after(() => dir.remove());

const KEYS = ["a", "b", "c"];
const ROUNDS = 20;

function start() {
  const settings = {
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.check.interval.ms": "1000",
  };
  const args = Object.entries(settings).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
  return startBroker({ args: ["--store", `dir:${dir.path}`, ...args] });
}

function clientOf(address: string): Kafka {
  const retry = { initialRetryTime: 50, retries: 20, maxRetryTime: 500 };
  return new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, retry });
}

/** `offset key=value` from an offset up to the last record. */
async function readFrom(kafka: Kafka, from: number, last: number): Promise<string[]> {
  const groupId = `reader-${crypto.randomUUID()}`;
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, maxWaitTimeInMs: 100 });
  const found: string[] = [];
  await consumer.connect();
  await consumer.subscribe({ topic: "t", fromBeginning: true });
  const joined = new Promise<void>((resolve) =>
    void consumer.on(consumer.events.GROUP_JOIN, () => resolve())
  );
  let isDone = false;
  let isSought = false;
  await consumer.run({
    eachMessage: ({ message: { offset, key, value } }) => {
      if (isSought && !isDone) found.push(`${offset} ${key}=${value}`);
      isDone ||= isSought && Number(offset) >= last;
      return Promise.resolve();
    },
  });
  await joined;
  found.length = 0;
  isSought = true;
  consumer.seek({ topic: "t", partition: 0, offset: String(from) });
  await until("the last record is read", () => isDone);
  await consumer.disconnect();
  return [...new Set(found)].filter((one) => Number(one.split(" ")[0]) >= from)
    .toSorted((a, b) => Number(a.split(" ")[0]) - Number(b.split(" ")[0]));
}

async function produce(kafka: Kafka, from: number, rounds: number): Promise<void> {
  const producer = kafka.producer({ idempotent: true });
  await producer.connect();
  for (let round = from; round < from + rounds; round++) {
    const messages = KEYS.map((key) => ({ key, value: `${round}` }));
    await producer.send({ topic: "t", messages });
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  await producer.disconnect();
}

async function passes(http: string): Promise<number> {
  const page = await (await fetch(`${http}/metrics`)).text();
  assert.doesNotMatch(page, /skerry_log_cleaner_runs_total\{outcome="failed"\}/);
  return Number(/skerry_log_cleaner_runs_total\{outcome="done"\} (\d+)/.exec(page)?.[1] ?? 0);
}

test("a consumer of a compacted topic finds the newest of each key, from any offset", async () => {
  let broker = await start();
  try {
    let kafka = clientOf(broker.kafka);
    const admin = kafka.admin();
    await admin.connect();
    await admin.createTopics({
      topics: [{
        topic: "t",
        numPartitions: 1,
        configEntries: [
          { name: "cleanup.policy", value: "compact" },
          { name: "segment.ms", value: "1" },
          { name: "min.cleanable.dirty.ratio", value: "0.01" },
        ],
      }],
    });
    await admin.disconnect();
    const last = ROUNDS * KEYS.length - 1;
    // Two producers that both stay known: of the first one's last batch only the header is left.
    for (const half of [0, 1]) {
      await produce(kafka, half * ROUNDS / 2, ROUNDS / 2);
      await until("a pass is done", async () => await passes(broker.http) > half);
    }
    assert.ok((await readFrom(kafka, 0, last)).length <= 2 * KEYS.length);
    const all = await readFrom(kafka, 0, last);
    const newest = KEYS.map((key, i) => `${last - 2 + i} ${key}=${ROUNDS - 1}`);
    assert.deepEqual(all.slice(-KEYS.length), newest);
    for (const from of [1, 10, last - 5, last - 1]) {
      const expected = all.filter((one) => Number(one.split(" ")[0]) >= from);
      assert.deepEqual(await readFrom(kafka, from, last), expected);
    }
    await broker.stop();
    broker = await start();
    kafka = clientOf(broker.kafka);
    assert.deepEqual((await readFrom(kafka, 0, last)).slice(-KEYS.length), newest);
  } finally {
    await broker.stop();
  }
  const { code, output } = await runBroker(["fsck", "--store", `dir:${dir.path}`]);
  assert.equal(code, 0, output);
});
