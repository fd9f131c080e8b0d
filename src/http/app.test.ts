import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../tests/support/test_env.ts";
import { fromHex, toUtf8, utf8 } from "../lib/bytes.ts";
import { HTTP_BODY_BYTES_MAX } from "../lib/limits.ts";
import { createHttpApp } from "./app.ts";
import type { Gateway, ReadQuery, RecordInput, RecordOutput } from "./port.ts";

const NOW = 1_700_000_000_000;

/** A gateway over arrays: one topic `t` of two partitions, creation on produce allowed. */
function memoryGateway() {
  const logs = new Map<string, RecordOutput[][]>([["t", [[], []]]]);
  const queries: ReadQuery[] = [];
  const write = (topic: string, record: RecordInput) => {
    const partition = record.partition ?? 0;
    const log = logs.get(topic)![partition];
    if (log === undefined) return { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" } as const;
    const timestampMs = record.timestampMs ?? NOW;
    log.push({ ...record, offset: log.length, timestampMs });
    return { ok: true, partition, offset: log.length - 1, timestampMs } as const;
  };
  const gateway: Gateway = {
    produce(topic, records) {
      if (!logs.has(topic)) logs.set(topic, [[]]);
      return Promise.resolve(records.map((record) => write(topic, record)));
    },
    read(topic, partition, query) {
      queries.push(query);
      const log = logs.get(topic)?.[partition];
      if (log === undefined) {
        return Promise.resolve({ ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" });
      }
      const start = query.offset === "earliest"
        ? 0
        : query.offset === "latest"
        ? log.length
        : query.offset;
      if (start > log.length) {
        return Promise.resolve({
          ok: false,
          error: "OFFSET_OUT_OF_RANGE",
          logStart: 0,
          highWatermark: log.length,
        });
      }
      const records = log.slice(start, start + query.recordsMax);
      return Promise.resolve({
        ok: true,
        records,
        next: start + records.length,
        highWatermark: log.length,
        logStart: 0,
      });
    },
    listTopics: () =>
      [...logs].map(([name, log]) => ({ name, topicId: "0", partitions: log.length })),
    describeTopic: (name) => {
      const log = logs.get(name);
      return log === undefined
        ? null
        : { name, topicId: "0", partitions: log.length, leaders: [], configs: {} };
    },
    createTopic({ name, partitions }) {
      if (logs.has(name)) return Promise.resolve({ ok: false, error: "TOPIC_ALREADY_EXISTS" });
      logs.set(name, Array.from({ length: partitions ?? 1 }, () => []));
      return Promise.resolve({ ok: true, name, topicId: "0", partitions: partitions ?? 1 });
    },
    deleteTopic: (name) =>
      Promise.resolve(
        logs.delete(name) ? { ok: true } : { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" },
      ),
  };
  return { gateway, logs, queries };
}

function setup(corsOrigins: readonly string[] = []) {
  const memory = memoryGateway();
  let notReady: string | null = null;
  const env = testEnv();
  const app = createHttpApp({
    gateway: memory.gateway,
    env,
    corsOrigins,
    status: {
      notReady: () => notReady,
      renderMetrics: () => "# metrics\n",
      version: "1.2.3",
      clusterId: "c",
      nodeId: 1,
    },
  });
  const json = (path: string, body: unknown) =>
    app.request(path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });
  const setNotReady = (reason: string | null) => void (notReady = reason);
  return { app, env, json, ...memory, setNotReady };
}

async function problemOf(response: Response): Promise<Record<string, unknown>> {
  assert.equal(response.headers.get("content-type"), "application/problem+json");
  const body = await response.json() as Record<string, unknown>;
  for (const member of ["type", "title", "status", "detail"]) assert.ok(member in body, member);
  assert.equal(body["status"], response.status);
  return body;
}

test("an object, an array and {records} are the same records", async () => {
  const { json, logs } = setup();
  for (const body of [{ value: "a" }, [{ value: "a" }], { records: [{ value: "a" }] }]) {
    const response = await json("/v1/topics/t/records", body);
    assert.equal(response.status, 200);
  }
  assert.deepEqual(logs.get("t")![0]!.map(({ value }) => utf8(value!)), ["a", "a", "a"]);
});

test("the answer has an offset and the timestamp that a read shows", async () => {
  const { json, app } = setup();
  const produced =
    await (await json("/v1/topics/t/records", [{ value: "a" }, { value: "b", timestamp: 5 }]))
      .json();
  assert.deepEqual(produced, {
    results: [{ partition: 0, offset: 0, timestamp: NOW }, {
      partition: 0,
      offset: 1,
      timestamp: 5,
    }],
  });
  const read = await (await app.request("/v1/topics/t/partitions/0/records")).json();
  assert.deepEqual(read, {
    records: [
      { partition: 0, offset: 0, timestamp: NOW, key: null, value: "a", headers: [] },
      { partition: 0, offset: 1, timestamp: 5, key: null, value: "b", headers: [] },
    ],
    next: 2,
    highWatermark: 2,
    logStart: 0,
  });
});

test("JSON values: text, bytes, null, and any other JSON as its text", async () => {
  const { json, app, logs } = setup();
  await json("/v1/topics/t/records", [
    {
      key: "k",
      value: { $base64: "/wA=" },
      headers: [["h", "v"], ["n", null], ["b", { $base64: "AQ==" }]],
    },
    { key: { $base64: "/wA=" }, value: null },
    { value: { nested: [1, true] } },
    { value: 12 },
  ]);
  const [first, second, third, fourth] = logs.get("t")![0]!;
  assert.deepEqual(first!.value, fromHex("ff00"));
  assert.deepEqual(first!.headers.map(({ name, value }) => [name, value]), [
    ["h", toUtf8("v")],
    ["n", null],
    ["b", fromHex("01")],
  ]);
  assert.equal(second!.value, null);
  assert.equal(utf8(third!.value!), '{"nested":[1,true]}');
  assert.equal(utf8(fourth!.value!), "12");
  const { records } = await (await app.request("/v1/topics/t/partitions/0/records?limit=2"))
    .json() as {
      records: { key: unknown; value: unknown }[];
    };
  assert.deepEqual(records.map(({ key, value }) => [key, value]), [
    ["k", { $base64: "/wA=" }],
    [{ $base64: "/wA=" }, null],
  ]);
});

test("NDJSON in and out", async () => {
  const { app } = setup();
  const produced = await app.request("/v1/topics/t/records", {
    method: "POST",
    body: '{"value":"a"}\n\n{"value":"b"}\n',
    headers: { "content-type": "application/x-ndjson" },
  });
  assert.equal(produced.status, 200);
  const read = await app.request("/v1/topics/t/partitions/0/records?offset=1", {
    headers: { accept: "application/x-ndjson" },
  });
  assert.equal(read.headers.get("content-type"), "application/x-ndjson");
  assert.equal(read.headers.get("kafka-next-offset"), "2");
  const lines = (await read.text()).trimEnd().split("\n").map((line) =>
    JSON.parse(line) as { value: string }
  );
  assert.deepEqual(lines.map(({ value }) => value), ["b"]);
});

test("a raw body is one record; key, partition, time and headers stand beside it", async () => {
  const { app, logs } = setup();
  const response = await app.request("/v1/topics/t/records?partition=1", {
    method: "POST",
    body: fromHex("00ff") as Uint8Array<ArrayBuffer>,
    headers: {
      "content-type": "application/octet-stream",
      "Kafka-Key": "k",
      "Kafka-Timestamp": "7",
      "Kafka-Header-Trace": "x",
    },
  });
  assert.deepEqual(await response.json(), { results: [{ partition: 1, offset: 0, timestamp: 7 }] });
  const [record] = logs.get("t")![1]!;
  assert.deepEqual(record!.value, fromHex("00ff"));
  assert.equal(utf8(record!.key!), "k");
  assert.deepEqual(record!.headers, [{ name: "trace", value: toUtf8("x") }]);
  const back = await app.request("/v1/topics/t/partitions/1/records/0");
  assert.deepEqual(new Uint8Array(await back.arrayBuffer()), fromHex("00ff"));
  assert.equal(back.headers.get("kafka-header-trace"), "x");
  assert.equal(back.headers.get("kafka-key"), "k");
  assert.equal(back.headers.get("kafka-timestamp"), "7");
});

test("bare values need ?bare=1", async () => {
  const { json, logs } = setup();
  assert.equal((await json("/v1/topics/t/records", ["a", 1])).status, 400);
  assert.equal((await json("/v1/topics/t/records?bare=1", ["a", { value: 1 }])).status, 200);
  assert.deepEqual(logs.get("t")![0]!.map(({ value }) => utf8(value!)), ["a", '{"value":1}']);
});

test("bad requests are problems that name the place", async () => {
  const { app, logs } = setup();
  const ndjson = "application/x-ndjson";
  const cases: [string, string, string, number, RegExp][] = [
    ["/v1/topics/t/records", "application/json", "", 400, /empty/],
    ["/v1/topics/t/records", "application/json", "{", 400, /JSON/],
    ["/v1/topics/t/records", "application/json", "[]", 400, /no record/],
    ["/v1/topics/t/records", "application/json", '{"value":1,"vlaue":2}', 400, /vlaue/],
    ["/v1/topics/t/records", "application/json", '{"key":"k"}', 400, /value/],
    [
      "/v1/topics/t/records",
      "application/json",
      '[{"value":1},{"value":1,"partition":-1}]',
      400,
      /record 1/,
    ],
    ["/v1/topics/t/records", "application/json", '{"value":1,"timestamp":"x"}', 400, /timestamp/],
    ["/v1/topics/t/records", "application/json", '{"records":1}', 400, /not an array/],
    ["/v1/topics/t/records", ndjson, '{"value":1}\n{', 400, /line 2/],
    ["/v1/topics/t/records", ndjson, "", 400, /no record/],
    ["/v1/topics/t/records?partition=x", "text/plain", "a", 400, /partition/],
    [
      "/v1/topics/t/partitions/1/records",
      "application/json",
      '{"value":1,"partition":0}',
      400,
      /path names 1/,
    ],
    ["/v1/topics/t/partitions/9/records", "application/json", '{"value":1}', 404, /./],
    ["/v1/topics/t/partitions/x/records", "application/json", '{"value":1}', 400, /partition/],
    ["/v1/topics", "application/json", '{"name":"n","partitions":"x"}', 400, /partitions/],
    ["/v1/topics", "application/json", '{"nam":"n"}', 400, /na/],
  ];
  for (const [path, type, body, status, detail] of cases) {
    const response = await app.request(path, {
      method: "POST",
      body,
      headers: { "content-type": type },
    });
    assert.equal(response.status, status, `${path} ${body}`);
    assert.match(String((await problemOf(response))["detail"]), detail);
  }
  assert.deepEqual(logs.get("t"), [[], []], "a broken request writes nothing");
});

test("a body above the limit is 413, with and without a declared length", async () => {
  const { app } = setup();
  const declared = await app.request("/v1/topics/t/records", {
    method: "POST",
    body: "x",
    headers: { "content-type": "text/plain", "content-length": String(HTTP_BODY_BYTES_MAX + 1) },
  });
  assert.equal(declared.status, 413);
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1 << 20;
      controller.enqueue(new Uint8Array(1 << 20));
    },
  });
  const streamed = await app.request(
    new Request(
      "http://x/v1/topics/t/records",
      { method: "POST", body, duplex: "half" },
    ),
  );
  assert.equal(streamed.status, 413);
  assert.ok(sent <= HTTP_BODY_BYTES_MAX + (4 << 20), "the rest was not read");
});

test("a client that leaves in the middle of its body is no fault of the broker", async () => {
  const { app } = setup();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(toUtf8("half"));
      controller.error(new Error("The connection was closed."));
    },
  });
  const response = await app.request(
    new Request("http://x/v1/topics/t/records", { method: "POST", body, duplex: "half" }),
  );
  assert.equal(response.status, 400);
  assert.match(String((await problemOf(response))["detail"]), /ended early/);
});

test("mixed results are 207, all refused is the first error", async () => {
  const { json } = setup();
  const mixed = await json("/v1/topics/t/records", [{ value: 1 }, { value: 2, partition: 8 }]);
  assert.equal(mixed.status, 207);
  const { results } = await mixed.json() as {
    results: { error?: { name: string; code: number } }[];
  };
  assert.equal(results[0]!.error, undefined);
  assert.deepEqual([results[1]!.error!.name, results[1]!.error!.code], [
    "UNKNOWN_TOPIC_OR_PARTITION",
    3,
  ]);
  assert.equal((await json("/v1/topics/t/records", [{ value: 2, partition: 8 }])).status, 404);
});

test("read queries have defaults and bounds", async () => {
  const { app, queries } = setup();
  await app.request("/v1/topics/t/partitions/0/records");
  const { signal: _, ...defaults } = queries[0]!;
  assert.deepEqual(defaults, { offset: "earliest", recordsMax: 500, bytesMax: 1 << 20, waitMs: 0 });
  await app.request(
    "/v1/topics/t/partitions/0/records?offset=latest&limit=5&maxBytes=10&wait=30000",
  );
  const { signal: __, ...asked } = queries[1]!;
  assert.deepEqual(asked, { offset: "latest", recordsMax: 5, bytesMax: 10, waitMs: 30_000 });
  for (
    const bad of [
      "offset=abc",
      "offset=-1",
      "offset=1e3",
      "limit=0",
      "limit=x",
      "wait=30001",
      "maxBytes=0",
    ]
  ) {
    const response = await app.request(`/v1/topics/t/partitions/0/records?${bad}`);
    assert.equal(response.status, 400, bad);
    await problemOf(response);
  }
});

test("past the end is 416 with both ends; unknown topics and partitions are 404; at the end is empty", async () => {
  const { app } = setup();
  const past = await app.request("/v1/topics/t/partitions/0/records?offset=5");
  assert.equal(past.status, 416);
  const problem = await problemOf(past);
  assert.deepEqual([problem["earliest"], problem["latest"]], [0, 0]);
  assert.equal((await app.request("/v1/topics/t/partitions/0/records/3")).status, 416);
  assert.equal((await app.request("/v1/topics/none/partitions/0/records")).status, 404);
  assert.equal((await app.request("/v1/topics/t/partitions/7/records")).status, 404);
  const end = await (await app.request("/v1/topics/t/partitions/0/records?offset=0")).json();
  assert.deepEqual(end, { records: [], next: 0, highWatermark: 0, logStart: 0 });
});

test("a tombstone by offset is 204 with its key", async () => {
  const { json, app } = setup();
  await json("/v1/topics/t/records", { key: "k", value: null });
  const response = await app.request("/v1/topics/t/partitions/0/records/0");
  assert.equal(response.status, 204);
  assert.equal(response.headers.get("kafka-key"), "k");
});

test("topics: create, repeat, list, describe, delete", async () => {
  const { app, json } = setup();
  const created = await json("/v1/topics", { name: "new", partitions: 3 });
  assert.equal(created.status, 201);
  assert.equal(created.headers.get("location"), "/v1/topics/new");
  assert.equal((await json("/v1/topics", { name: "new" })).status, 409);
  const { topics } = await (await app.request("/v1/topics")).json() as {
    topics: { name: string }[];
  };
  assert.deepEqual(topics.map(({ name }) => name), ["t", "new"]);
  const detail = await (await app.request("/v1/topics/new")).json() as { partitions: number };
  assert.equal(detail.partitions, 3);
  assert.equal((await app.request("/v1/topics/new", { method: "DELETE" })).status, 204);
  assert.equal((await app.request("/v1/topics/new", { method: "DELETE" })).status, 404);
  assert.equal((await app.request("/v1/topics/new")).status, 404);
});

test("health, metrics, version, unknown routes", async () => {
  const { app, setNotReady } = setup();
  assert.equal((await app.request("/livez")).status, 200);
  assert.equal((await app.request("/readyz")).status, 200);
  setNotReady("recovering");
  const unready = await app.request("/readyz");
  assert.equal(unready.status, 503);
  assert.match(await unready.text(), /recovering/);
  assert.match(await (await app.request("/metrics")).text(), /metrics/);
  assert.deepEqual(await (await app.request("/version")).json(), {
    name: "skerry",
    version: "1.2.3",
    clusterId: "c",
    nodeId: 1,
  });
  await problemOf(await app.request("/nothing"));
});

test("methods without a route share one label", async () => {
  const { app, env } = setup();
  for (const method of ["GET", "PUT", "PATCH"]) await app.request("/livez", { method });
  const counted = env.metrics.render().split("\n")
    .filter((line) => line.startsWith("skerry_http_requests_total{"));
  assert.deepEqual(counted.map((line) => /method="(\w+)"/.exec(line)![1]).toSorted(), [
    "GET",
    "other",
  ]);
});

test("no CORS headers unless origins are configured", async () => {
  const headers = { origin: "https://app.example" };
  assert.equal(
    (await setup().app.request("/v1/topics", { headers })).headers.get(
      "access-control-allow-origin",
    ),
    null,
  );
  const allowed = await setup(["https://app.example"]).app.request("/v1/topics", { headers });
  assert.equal(allowed.headers.get("access-control-allow-origin"), "https://app.example");
});
