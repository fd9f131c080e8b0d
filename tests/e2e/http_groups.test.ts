/** One group by turns: scripts over HTTP, kafkajs over TCP, and `skerry group` as the tool that looks and resets. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { type BrokerProcess, runBroker, startBroker, tempDir } from "../support/broker_process.ts";

const TOPIC = "jobs";
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

interface Polled {
  readonly ack: string | null;
  readonly records: readonly { readonly value: string; readonly deliveryCount?: number }[];
}

async function send<T>(method: string, path: string, body: unknown): Promise<[number, T]> {
  const answer = await fetch(`${broker.http}/v1${path}`, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return [answer.status, await answer.json() as T];
}

/** Polls and acknowledges until there are so many. */
async function work(group: string, count: number): Promise<string[]> {
  const values: string[] = [];
  while (values.length < count) {
    const ask = { topics: [TOPIC], max: count - values.length, wait: 5_000 };
    const [status, polled] = await send<Polled>("POST", `/groups/${group}/poll`, ask);
    assert.equal(status, 200, JSON.stringify(polled));
    values.push(...polled.records.map(({ value }) => value));
    await send("POST", `/groups/${group}/ack`, { ack: polled.ack });
  }
  return values;
}

/** Consumes as kafkajs does by itself, and leaves. */
async function consume(groupId: string, count: number, during = async () => {}): Promise<string[]> {
  const kafka = new Kafka({ brokers: [broker.kafka], logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6_000, maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topic: TOPIC, fromBeginning: true });
  const values: string[] = [];
  await new Promise<void>((resolve, reject) => {
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        if (values.length === count) return;
        values.push(String(message.value));
        if (values.length < count) return;
        await during();
        const offset = String(Number(message.offset) + 1);
        await consumer.commitOffsets([{ topic: TOPIC, partition, offset }]);
        resolve();
      },
    }).catch(reject);
  });
  await consumer.disconnect();
  return values;
}

async function tool(...words: readonly string[]): Promise<string> {
  const { code, output } = await runBroker(
    ["group", ...words, "--bootstrap", broker.kafka, "--json"],
  );
  assert.equal(code, 0, output);
  return output;
}

test("scripts, kafkajs and tools share the offsets of one group", async () => {
  const records = Array.from({ length: 12 }, (_, i) => ({ value: `v${i}` }));
  await send("POST", "/topics", { name: TOPIC, partitions: 1 });
  await send("POST", `/topics/${TOPIC}/records`, records);
  const values = records.map(({ value }) => value);
  assert.deepEqual(await work("shared", 3), values.slice(0, 3));

  const refused: number[] = [];
  const got = await consume("shared", 4, async () => {
    const [status] = await send("POST", "/groups/shared/poll", { topics: [TOPIC] });
    refused.push(status);
  });
  assert.deepEqual(got, values.slice(3, 7));
  assert.deepEqual(refused, [409]);

  assert.deepEqual(await work("shared", 2), values.slice(7, 9));
  const described = await tool("describe", "shared");
  assert.match(described, /"?[oO]ffset"?:\s*9/);
  await tool("reset", "shared", "--topic", TOPIC, "--to", "earliest");
  assert.deepEqual(await work("shared", 12), values);
});

test("after kill -9 what is leased is leased, and what was acknowledged is done", async () => {
  await send("POST", "/topics", { name: TOPIC, partitions: 1 });
  const ask = { topics: [TOPIC], max: 2, order: "none", lease: 60_000 };
  const [, leased] = await send<Polled>("POST", "/groups/killed/poll", ask);
  assert.equal(leased.records.length, 2);
  const [, next] = await send<Polled>("POST", "/groups/killed/poll", ask);
  const [status] = await send("POST", "/groups/killed/ack", { ack: next.ack });
  assert.equal(status, 200);
  await broker.kill9();
  broker = await broker.restart();
  const [, after] = await send<Polled>("POST", "/groups/killed/poll", { ...ask, max: 100 });
  assert.deepEqual(after.records.map(({ value }) => value)[0], "v4");
  const [acked, { offsets }] = await send<{ offsets: readonly { committed: number }[] }>(
    "POST",
    "/groups/killed/ack",
    { ack: leased.ack },
  );
  assert.equal(acked, 200);
  assert.equal(offsets[0]!.committed, 4);
});
