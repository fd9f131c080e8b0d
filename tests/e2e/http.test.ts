/** The HTTP gateway of the broker as a process, with fetch: every body, every answer, and the same offsets as over TCP. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CompressionTypes, Kafka, logLevel } from "kafkajs";
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";
import { activeRequests, until } from "./until.ts";

const JSON_TYPE = { "content-type": "application/json" };
const LINES_TYPE = { "content-type": "application/x-ndjson" };
const MIB = 1 << 20;

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
  assert.equal(await broker.stop(), 0, broker.output());
  dir.remove();
});

interface Result {
  readonly partition: number;
  readonly offset: number;
  readonly timestamp: number;
}

interface Shown extends Result {
  readonly key: unknown;
  readonly value: unknown;
  readonly headers: readonly (readonly [string, unknown])[];
}

interface Page {
  readonly records: readonly Shown[];
  readonly next: number;
  readonly highWatermark: number;
  readonly logStart: number;
}

interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly earliest?: number;
  readonly latest?: number;
}

function post(path: string, body: BodyInit, headers: Record<string, string> = {}) {
  return fetch(`${broker.http}${path}`, { method: "POST", body, headers });
}

async function produce(path: string, body: BodyInit, headers: Record<string, string> = {}) {
  const response = await post(path, body, headers);
  assert.equal(response.status, 200, await response.clone().text());
  return ((await response.json()) as { results: Result[] }).results;
}

async function read(topic: string, query = "", partition = 0): Promise<Page> {
  const response = await fetch(
    `${broker.http}/v1/topics/${topic}/partitions/${partition}/records${query}`,
  );
  assert.equal(response.status, 200, await response.clone().text());
  return await response.json() as Page;
}

async function problem(response: Response, status: number): Promise<Problem> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assert.match(response.headers.get("content-type") ?? "", /^application\/problem\+json/);
  const body = JSON.parse(text) as Problem;
  assert.equal(body.status, status);
  for (const word of [body.type, body.title, body.detail]) assert.equal(typeof word, "string");
  return body;
}

/** Until so many requests wait for their answer. */
async function untilActive(count: number): Promise<void> {
  const isSo = async () => await activeRequests(broker.http) === count;
  await until(`${count} active requests`, isSo);
}

async function createTopic(name: string, partitions = 1): Promise<void> {
  const response = await post("/v1/topics", JSON.stringify({ name, partitions }), JSON_TYPE);
  assert.equal(response.status, 201, await response.text());
}

test("every JSON form, each with the offset and the timestamp that a read shows", async () => {
  const results = [
    ...await produce("/v1/topics/forms/records", '{"key":"k","value":"object"}', JSON_TYPE),
    ...await produce("/v1/topics/forms/records", '[{"value":"a"},{"value":"b"}]', JSON_TYPE),
    ...await produce(
      "/v1/topics/forms/records",
      '{"records":[{"value":"c","headers":[["h","1"],["h","2"]],"timestamp":1700000000123}]}',
      JSON_TYPE,
    ),
    ...await produce("/v1/topics/forms/records", '{"value":"d"}\n{"value":"e"}\n', LINES_TYPE),
    ...await produce("/v1/topics/forms/partitions/0/records", '{"value":"path"}', JSON_TYPE),
  ];
  const { records, next, highWatermark, logStart } = await read("forms");
  assert.deepEqual(records.map(({ value }) => value), ["object", "a", "b", "c", "d", "e", "path"]);
  assert.deepEqual(
    records.map(({ partition, offset, timestamp }) => ({ partition, offset, timestamp })),
    results,
  );
  assert.deepEqual([next, highWatermark, logStart], [7, 7, 0]);
  assert.equal(records[0]!.key, "k");
  assert.equal(records[1]!.key, null);
  assert.deepEqual(records[3]!.headers, [["h", "1"], ["h", "2"]]);
  assert.equal(records[3]!.timestamp, 1700000000123);
});

test("values: text, bytes, tombstone, any other JSON; bare values", async () => {
  const values = [
    { value: "täxt" },
    { key: { $base64: "AP8=" }, value: { $base64: "/wA=" } },
    { key: "gone", value: null },
    { value: { state: "paid" } },
    { value: 17 },
  ];
  await produce("/v1/topics/values/records", JSON.stringify(values), JSON_TYPE);
  await produce("/v1/topics/values/records?bare=1", '[{"value":1},"x",null]', JSON_TYPE);
  await produce("/v1/topics/values/records?bare=1", '"y"\n[1,2]\n', LINES_TYPE);
  const { records } = await read("values");
  assert.deepEqual(records.map(({ value }) => value), [
    "täxt",
    { $base64: "/wA=" },
    null,
    '{"state":"paid"}',
    "17",
    '{"value":1}',
    "x",
    null,
    "y",
    "[1,2]",
  ]);
  assert.deepEqual(records[1]!.key, { $base64: "AP8=" });
});

test("raw bodies with their key, partition, timestamp and headers, read back as they came", async () => {
  await createTopic("raw", 3);
  const bytes = Uint8Array.of(0, 255, 10, 13, 128);
  const [byHeader] = await produce("/v1/topics/raw/records?partition=2", bytes, {
    "content-type": "image/png",
    "Kafka-Key": "key",
    "Kafka-Timestamp": "1700000000001",
    "Kafka-Header-Trace": "abc",
  });
  assert.deepEqual(byHeader, { partition: 2, offset: 0, timestamp: 1700000000001 });
  const [byQuery] = await produce("/v1/topics/raw/partitions/2/records?key=k2", "text");
  assert.equal(byQuery!.offset, 1);
  const one = await fetch(`${broker.http}/v1/topics/raw/partitions/2/records/0`);
  assert.equal(one.status, 200);
  assert.deepEqual(new Uint8Array(await one.arrayBuffer()), bytes);
  assert.equal(one.headers.get("kafka-header-trace"), "abc");
  assert.equal(one.headers.get("kafka-key"), "key");
  assert.equal(one.headers.get("kafka-timestamp"), "1700000000001");
  assert.equal((await read("raw", "?offset=1", 2)).records[0]!.key, "k2");
  const keyed = await Promise.all(
    ["a", "a", "a"].map((key) => produce(`/v1/topics/raw/records?key=${key}`, "v")),
  );
  assert.equal(new Set(keyed.map(([result]) => result!.partition)).size, 1, "a key has one place");
});

test("a produce that fits in part is 207, and says which", async () => {
  await createTopic("mixed", 1);
  const body = '[{"value":"good","partition":0},{"value":"bad","partition":7}]';
  const response = await post("/v1/topics/mixed/records", body, JSON_TYPE);
  const text = await response.text();
  assert.equal(response.status, 207, text);
  const { results } = JSON.parse(text) as {
    results: [Result, { error: { name: string; message: string } }];
  };
  assert.equal(results[0].offset, 0);
  assert.match(JSON.stringify(results[1].error), /UNKNOWN_TOPIC_OR_PARTITION/);
});

test("reads: earliest, latest, a number, limit, maxBytes, lines, the end", async () => {
  const values = Array.from({ length: 40 }, (_, i) => ({ value: `${i} ${"x".repeat(1000)}` }));
  for (let i = 0; i < 4; i++) {
    const part = values.slice(i * 10, i * 10 + 10);
    await produce("/v1/topics/reads/records", JSON.stringify(part), JSON_TYPE);
  }
  const offsets = async (query: string) =>
    (await read("reads", query)).records.map(({ offset }) => offset);
  assert.deepEqual(await offsets("?offset=earliest&limit=3"), [0, 1, 2]);
  assert.deepEqual(await offsets("?offset=37"), [37, 38, 39]);
  assert.deepEqual(await offsets("?offset=13&limit=2"), [13, 14], "from the middle of a batch");
  assert.equal((await read("reads", "?offset=13&limit=2")).next, 15);
  const few = await offsets("?maxBytes=1");
  assert.ok(few.length > 0 && few.length <= 10, `one batch at the least: ${few.length}`);
  for (const query of ["?offset=latest", "?offset=40"]) {
    assert.deepEqual(await read("reads", query), {
      records: [],
      next: 40,
      highWatermark: 40,
      logStart: 0,
    });
  }
  const lines = await fetch(
    `${broker.http}/v1/topics/reads/partitions/0/records?offset=38`,
    { headers: { accept: "application/x-ndjson" } },
  );
  assert.match(lines.headers.get("content-type") ?? "", /application\/x-ndjson/);
  assert.equal(lines.headers.get("kafka-next-offset"), "40");
  const shown = (await lines.text()).trim().split("\n").map((line) => JSON.parse(line) as Shown);
  assert.deepEqual(shown.map(({ offset }) => offset), [38, 39]);
});

test("a long poll wakes up with the record, and ends empty when none comes", async () => {
  await createTopic("poll");
  assert.deepEqual((await read("poll", "?wait=200")).records, []);
  const waiting = read("poll", "?offset=latest&wait=30000");
  const also = read("poll", "?offset=0&wait=30000");
  await untilActive(2);
  await produce("/v1/topics/poll/records", "wake up");
  for (const page of await Promise.all([waiting, also])) {
    assert.deepEqual(page.records.map(({ offset, value }) => [offset, value]), [[0, "wake up"]]);
  }
});

test("long polls that are given up cost nothing afterwards", async () => {
  await createTopic("given-up");
  await untilActive(0);
  for (let round = 0; round < 5; round++) {
    const stop = new AbortController();
    const polls = Array.from(
      { length: 20 },
      () =>
        fetch(`${broker.http}/v1/topics/given-up/partitions/0/records?wait=30000`, {
          signal: stop.signal,
        }).catch(() => null),
    );
    await untilActive(polls.length);
    stop.abort();
    await Promise.all(polls);
    // Before their 30 s are over: `until` gives up earlier.
    await untilActive(0);
  }
  await produce("/v1/topics/given-up/records", "still here");
  assert.equal((await read("given-up")).records.length, 1);
});

test("topics: created once, listed, shown, deleted", async () => {
  await createTopic("managed", 4);
  await problem(await post("/v1/topics", '{"name":"managed","partitions":4}', JSON_TYPE), 409);
  await problem(await post("/v1/topics", '{"name":"a b"}', JSON_TYPE), 400);
  await problem(await post("/v1/topics", '{"name":"zero","partitions":0}', JSON_TYPE), 400);
  await problem(await post("/v1/topics", '{"name":"x","what":1}', JSON_TYPE), 400);
  const listed = await (await fetch(`${broker.http}/v1/topics`)).json() as {
    topics: { name: string }[];
  };
  assert.match(JSON.stringify(listed.topics), /"managed"/);
  const shown = await (await fetch(`${broker.http}/v1/topics/managed`)).json() as {
    partitions: unknown;
  };
  assert.equal(shown.partitions, 4);
  const deleted = await fetch(`${broker.http}/v1/topics/managed`, { method: "DELETE" });
  assert.equal(deleted.status, 204);
  await problem(await fetch(`${broker.http}/v1/topics/managed`), 404);
  await problem(await fetch(`${broker.http}/v1/topics/managed`, { method: "DELETE" }), 404);
});

test("errors: 404 without creating, 400, 413, 416 with both ends", async () => {
  const records = "/v1/topics/errors/partitions/0/records";
  await problem(await fetch(`${broker.http}${records}`), 404);
  await problem(await fetch(`${broker.http}/v1/topics/errors`), 404);
  await produce("/v1/topics/errors/records", "0");
  await problem(await fetch(`${broker.http}/v1/topics/errors/partitions/9/records`), 404);
  await problem(await post("/v1/topics/errors/partitions/9/records", "x"), 404);
  await problem(await fetch(`${broker.http}/v1/nothing`), 404);
  const refused: [BodyInit, Record<string, string>][] = [
    ["{", JSON_TYPE],
    ["", JSON_TYPE],
    ["[]", JSON_TYPE],
    ["17", JSON_TYPE],
    ['{"value":1,"extra":2}', JSON_TYPE],
    ['{"records":{}}', JSON_TYPE],
    ['{"value":{}, "headers":{"a":"b"}}', JSON_TYPE],
    ['{"value":"a"}\n{"value"\n', LINES_TYPE],
    [Uint8Array.of(0x22, 0xff, 0x22), JSON_TYPE],
  ];
  for (const [body, headers] of refused) {
    await problem(await post("/v1/topics/errors/records", body, headers), 400);
  }
  for (
    const query of ["offset=abc", "offset=-1", "offset=1e3", "limit=0", "wait=x", "wait=30001"]
  ) {
    await problem(await fetch(`${broker.http}${records}?${query}`), 400);
  }
  await problem(await fetch(`${broker.http}/v1/topics/errors/partitions/x/records`), 400);
  const outside = await problem(await fetch(`${broker.http}${records}?offset=99`), 416);
  assert.deepEqual([outside.earliest, outside.latest], [0, 1]);
  await problem(await fetch(`${broker.http}${records}/99`), 416);
  await problem(await post("/v1/topics/errors/records", new Uint8Array(2 * MIB)), 413);
  await problem(await post("/v1/topics/errors/records", new Uint8Array(33 * MIB)), 413);
  assert.equal((await read("errors")).records.length, 1, "what was refused left nothing");
});

test("an unknown topic is not made when the broker is told not to", async () => {
  const args = ["--store", "memory:", "--set", "auto.create.topics.enable=false"];
  const strict = await startBroker({ args });
  const response = await fetch(`${strict.http}/v1/topics/none/records`, {
    method: "POST",
    body: "x",
  });
  await problem(response, 404);
  assert.equal(await strict.stop(), 0);
});

test("health, metrics and version", async () => {
  for (const path of ["/livez", "/readyz"]) {
    assert.equal((await fetch(`${broker.http}${path}`)).status, 200, path);
  }
  const metrics = await (await fetch(`${broker.http}/metrics`)).text();
  assert.match(metrics, /^skerry_object_store_requests_total\{.*op="put".*\} \d+$/m);
  for (const line of metrics.trim().split("\n")) {
    assert.match(line, /^(# (HELP|TYPE) |[a-zA-Z_:][\w:]*(\{.*\})? [-+.\deEINaf]+$)/);
  }
  const version = await (await fetch(`${broker.http}/version`)).json() as { name: string };
  assert.equal(version.name, "skerry");
});

test("produced over HTTP, read by a Kafka client, and the other way round", async () => {
  await createTopic("both");
  await produce(
    "/v1/topics/both/records",
    '[{"key":"k","value":"http","headers":[["h","1"]]},{"key":"t","value":null}]',
    JSON_TYPE,
  );
  const producer = kafka.producer();
  await producer.connect();
  const [sent] = await producer.send({
    topic: "both",
    compression: CompressionTypes.GZIP,
    messages: [{ key: "k", value: "tcp", headers: { h: "2" } }, { key: "t", value: null }],
  });
  await producer.disconnect();
  assert.equal(sent!.baseOffset, "2");
  const { records } = await read("both");
  assert.deepEqual(
    records.map(({ offset, key, value, headers }) => [offset, key, value, headers]),
    [
      [0, "k", "http", [["h", "1"]]],
      [1, "t", null, []],
      [2, "k", "tcp", [["h", "2"]]],
      [3, "t", null, []],
    ],
  );
  const consumer = kafka.consumer({ groupId: "both" });
  await consumer.connect();
  await consumer.subscribe({ topic: "both", fromBeginning: true });
  const got: unknown[] = [];
  await new Promise<void>((resolve, reject) => {
    consumer.run({
      eachMessage: ({ message: { offset, key, value, headers, timestamp } }) => {
        const header = headers?.["h"] === undefined ? [] : [["h", String(headers["h"])]];
        got.push([Number(offset), String(key), value?.toString() ?? null, header]);
        assert.equal(Number(timestamp), records[Number(offset)]!.timestamp);
        if (got.length === 4) resolve();
        return Promise.resolve();
      },
    }).catch(reject);
  });
  await consumer.disconnect();
  assert.deepEqual(
    got,
    records.map(({ offset, key, value, headers }) => [
      offset,
      key,
      value,
      headers,
    ]),
  );
});
