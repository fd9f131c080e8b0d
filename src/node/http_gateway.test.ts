import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../tests/support/broker_world.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { nodeOptions } from "../../tests/support/node_options.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { toUtf8, utf8 } from "../lib/bytes.ts";
import { FaultError } from "../lib/errors.ts";
import { HTTP_BATCH_BYTES } from "../lib/limits.ts";
import { createMemoryStore } from "../object/memory.ts";
import { HttpGateway } from "./http_gateway.ts";
import { type RunningNode, startNode } from "./node.ts";

async function node(
  kafka: Record<string, string> = {},
): Promise<{ node: RunningNode; advance(ms: number): Promise<void> }> {
  const clock = createFakeClock();
  const base = nodeOptions(createMemoryStore(clock), { env: testEnv({ clock }) });
  const started = await startNode({ ...base, settings: { ...base.settings, kafka } });
  return { node: started, advance: (ms) => clock.advance(ms) };
}

function post(broker: RunningNode, path: string, body: unknown): Promise<Response> {
  return broker.fetch(
    new Request(`http://node${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  );
}

function get(broker: RunningNode, path: string): Promise<Response> {
  return broker.fetch(new Request(`http://node${path}`));
}

interface Page {
  readonly records: readonly { readonly offset: number; readonly value: string }[];
  readonly next: number;
  readonly highWatermark: number;
}

test("records of one key go where Kafka's clients put them", async () => {
  const { node: broker } = await node();
  await post(broker, "/v1/topics", { name: "t", partitions: 10 });
  const answer = await (await post(broker, "/v1/topics/t/records", { key: "abc", value: "v" }))
    .json() as {
      results: { partition: number }[];
    };
  // murmur2("abc") & 0x7fffffff is 479470107.
  assert.equal(answer.results[0]!.partition, 7);
  await broker.close();
});

test("results stand in the order of the records, whatever their partitions", async () => {
  const { node: broker } = await node();
  await post(broker, "/v1/topics", { name: "t", partitions: 2 });
  const records = [1, 0, 1, 7].map((partition, i) => ({ value: `${i}`, partition }));
  const answer = await (await post(broker, "/v1/topics/t/records", records)).json() as {
    results: { partition?: number; offset?: number; error?: { name: string } }[];
  };
  assert.deepEqual(answer.results.map(({ partition, offset }) => [partition, offset]), [
    [1, 0],
    [0, 0],
    [1, 1],
    [undefined, undefined],
  ]);
  assert.equal(answer.results[3]!.error!.name, "UNKNOWN_TOPIC_OR_PARTITION");
  await broker.close();
});

test("more than a batch holds is cut, and read back in order", async () => {
  const { node: broker, advance } = await node();
  const value = "x".repeat(10_000);
  const records = Array.from({ length: 300 }, (_, i) => ({ value: `${i}:${value}` }));
  assert.equal((await post(broker, "/v1/topics/t/records", records)).status, 200);
  const seen: number[] = [];
  for (let offset = 0; offset < 300;) {
    const page = await (await get(broker, `/v1/topics/t/partitions/0/records?offset=${offset}`))
      .json() as Page;
    seen.push(...page.records.map((record) => Number(record.value.split(":")[0])));
    offset = page.next;
  }
  assert.deepEqual(seen, records.map((_, i) => i));
  const closing = broker.close();
  // The upload of so much lets others run in between.
  await advance(1);
  await closing;
});

test("a batch that has no room is refused alone: the one before it is in the log", async () => {
  const world = await createBrokerWorld({ routes: () => [] });
  await world.createTopic("t", 1);
  const log = await world.log("t");
  const append = log.append.bind(log);
  let appends = 0;
  log.append = (batch) => {
    appends += 1;
    if (appends === 1) return append(batch);
    throw new FaultError("overloaded", "WAL is full", { retriable: true });
  };
  const value = new Uint8Array(HTTP_BATCH_BYTES * 0.6);
  const record = { key: null, value, headers: [], timestampMs: null, partition: 0 };
  const written = await new HttpGateway(world.services).produce("t", [record, record]);
  assert.deepEqual(written.map((one) => one.ok ? one.offset : one.error), [
    0,
    "NOT_ENOUGH_REPLICAS",
  ]);
});

test("a record above max.message.bytes is 413 and nothing else is lost", async () => {
  const { node: broker } = await node();
  const answer = await post(broker, "/v1/topics/t/records", { value: "x".repeat(1_100_000) });
  assert.equal(answer.status, 413);
  assert.equal((await post(broker, "/v1/topics/t/records", { value: "small" })).status, 200);
  await broker.close();
});

test("a long poll wakes up on a record and ends empty at its time", async () => {
  const { node: broker, advance } = await node();
  await post(broker, "/v1/topics/t/records", { value: "first" });
  const waiting = get(broker, "/v1/topics/t/partitions/0/records?offset=1&wait=5000");
  await advance(1000);
  await post(broker, "/v1/topics/t/records", { value: "second" });
  const page = await (await waiting).json() as Page;
  assert.deepEqual(page.records.map(({ value }) => value), ["second"]);
  const empty = get(broker, "/v1/topics/t/partitions/0/records?offset=2&wait=5000");
  await advance(5000);
  assert.deepEqual((await (await empty).json() as Page).records, []);
  await broker.close();
});

test("a read never creates a topic; a produce follows auto.create.topics.enable", async () => {
  const { node: broker } = await node({ "auto.create.topics.enable": "false" });
  assert.equal((await get(broker, "/v1/topics/t/partitions/0/records")).status, 404);
  assert.equal((await post(broker, "/v1/topics/t/records", { value: "v" })).status, 404);
  assert.deepEqual(await (await get(broker, "/v1/topics")).json(), { topics: [] });
  await broker.close();
});

test("a raw record comes back byte for byte", async () => {
  const { node: broker } = await node();
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  await broker.fetch(
    new Request("http://node/v1/topics/t/records", {
      method: "POST",
      body: bytes,
      headers: { "content-type": "application/octet-stream", "kafka-key": utf8(toUtf8("k")) },
    }),
  );
  const back = await get(broker, "/v1/topics/t/partitions/0/records/0");
  assert.deepEqual(new Uint8Array(await back.arrayBuffer()), bytes);
  await broker.close();
});

test("metrics name the requests of the store", async () => {
  const { node: broker } = await node();
  await post(broker, "/v1/topics/t/records", { value: "v" });
  const text = await (await get(broker, "/metrics")).text();
  assert.match(text, /skerry_object_store_requests_total\{class="wal",op="put",outcome="ok"\} \d+/);
  await broker.close();
});

test("a long poll ends when its topic is deleted, and when the broker closes", async () => {
  const { node: broker, advance } = await node();
  for (const topic of ["t", "u"]) await post(broker, `/v1/topics/${topic}/records`, { value: "v" });
  const deleted = get(broker, "/v1/topics/t/partitions/0/records?offset=1&wait=30000");
  const closing = get(broker, "/v1/topics/u/partitions/0/records?offset=1&wait=30000");
  await advance(1);
  await broker.fetch(new Request("http://node/v1/topics/t", { method: "DELETE" }));
  assert.equal((await deleted).status, 404);
  await broker.close();
  assert.equal((await closing).status, 503);
});

test("the topic of the groups is neither made nor written by clients", async () => {
  const { node: broker } = await node();
  const path = "/v1/topics/__consumer_offsets/records";
  assert.equal((await post(broker, path, { value: "v" })).status, 400);
  assert.equal((await get(broker, "/v1/topics/__consumer_offsets")).status, 404);
  await broker.close();
});
