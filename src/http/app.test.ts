import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { NO_ADMIN } from "../../tests/support/no_admin.ts";
import { NO_GROUPS } from "../../tests/support/no_groups.ts";
import { noPush } from "../../tests/support/no_push.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { fromHex, toUtf8, utf8 } from "../lib/bytes.ts";
import {
  HTTP_BODY_BYTES_MAX,
  HTTP_JSON_DEPTH_MAX,
  HTTP_PERMIT_WAIT_MS,
  HTTP_RECORD_BYTES_MAX,
  HTTP_RECORDS_MAX,
  HTTP_RENDERED_BYTES_MAX,
  HTTP_SMALL_BODY_BYTES,
  PRODUCE_PERMIT_BYTES,
} from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { OpenSockets } from "./sockets/open_sockets.ts";
import { LiveStreams } from "./live/live_streams.ts";
import { createBodyRooms } from "./read_body.ts";
import { NO_STREAMS } from "../../tests/support/no_streams.ts";
import { createHttpApp } from "./app.ts";
import type { Gateway, ReadQuery, RecordInput, RecordOutput } from "./port.ts";

const NOW = 1_700_000_000_000;

/** A gateway over arrays: one topic `t` of two partitions, creation on produce allowed. */
function memoryGateway() {
  const logs = new Map<string, RecordOutput[][]>([["t", [[], []]]]);
  const queries: ReadQuery[] = [];
  const configs: (readonly [string, string])[] = [];
  let held = 0;
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
        : Number(query.offset);
      if (start > log.length) {
        return Promise.resolve({
          ok: false,
          error: "OFFSET_OUT_OF_RANGE",
          logStart: 0,
          highWatermark: log.length,
        });
      }
      const all = log.slice(start, start + query.recordsMax);
      const large = all.findIndex(({ value }) => (value?.length ?? 0) > query.recordBytesMax);
      const records = large < 0 ? all : all.slice(0, large);
      const next = start + records.length;
      const bytes = all[large]?.value?.length ?? 0;
      held += 1;
      return Promise.resolve({
        ok: true,
        records,
        next,
        oversized: large < 0 ? null : { offset: next, bytes },
        highWatermark: log.length,
        logStart: 0,
        topicId: "0",
        fixedBelow: log.length,
        release: () => void (held -= 1),
      });
    },
    readBatches: () => Promise.resolve({ ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" }),
    findTopic: (name) => {
      const log = logs.get(name);
      return log === undefined ? null : { name, topicId: "0", partitions: log.length };
    },
    bounds: () => Promise.resolve({ ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" }),
    peekEnd: () => null,
    watch: () => () => {},
    produceBatch: () => Promise.resolve({ ok: false, error: "CORRUPT_MESSAGE" }),
    createProducer: () => Promise.resolve({ ok: false, error: "COORDINATOR_NOT_AVAILABLE" }),
    listTopics: () =>
      [...logs].map(([name, log]) => ({ name, topicId: "0", partitions: log.length })),
    describeTopic: (name) => {
      const log = logs.get(name);
      return Promise.resolve(
        log === undefined
          ? null
          : { name, topicId: "0", partitions: log.length, leaders: [], configs: {} },
      );
    },
    createTopic({ name, partitions, configs: given }) {
      configs.push(...given);
      if (logs.has(name)) return Promise.resolve({ ok: false, error: "TOPIC_ALREADY_EXISTS" });
      logs.set(name, Array.from({ length: partitions ?? 1 }, () => []));
      return Promise.resolve({ ok: true, name, topicId: "0", partitions: partitions ?? 1 });
    },
    ...NO_STREAMS,
    deleteTopic: (name) =>
      Promise.resolve(
        logs.delete(name) ? { ok: true } : { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" },
      ),
  };
  /** Pages that were not released. */
  const heldPages = () => held;
  return { gateway, logs, queries, configs, heldPages };
}

function setup(corsOrigins: readonly string[] = []) {
  const memory = memoryGateway();
  let notReady: string | null = null;
  const env = testEnv();
  const producePermits = new Semaphore(PRODUCE_PERMIT_BYTES);
  const app = createHttpApp({
    gateway: memory.gateway,
    admin: NO_ADMIN,
    groups: NO_GROUPS,
    ...noPush(memory.gateway),
    env,
    sockets: new OpenSockets(env),
    serveKafka: () => {},
    producePermits,
    rooms: createBodyRooms(env.clock),
    streams: new LiveStreams(env),
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
  return { app, env, json, ...memory, setNotReady, producePermits };
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
  const { signal: _, recordBytesMax, ...defaults } = queries[0]!;
  assert.deepEqual(defaults, {
    offset: "earliest",
    recordsMax: 500,
    bytesMax: 1 << 20,
    waitMs: 0,
    isolation: "uncommitted",
  });
  assert.equal(recordBytesMax, HTTP_RECORD_BYTES_MAX);
  await app.request(
    "/v1/topics/t/partitions/0/records?offset=latest&limit=5&maxBytes=10&wait=30000" +
      "&isolation=read_committed",
  );
  const { signal: __, recordBytesMax: ___, ...asked } = queries[1]!;
  assert.deepEqual(asked, {
    offset: "latest",
    recordsMax: 5,
    bytesMax: 10,
    waitMs: 30_000,
    isolation: "committed",
  });
  for (
    const bad of [
      "offset=abc",
      "offset=-1",
      "offset=1e3",
      "limit=0",
      "limit=x",
      "wait=30001",
      "maxBytes=0",
      "limit=1&limit=2",
      "offset=1&offset=latest",
      "isolation=committed",
      "isolation=",
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
  assert.match(String((await problemOf(unready))["detail"]), /recovering/);
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
  for (const method of ["GET", "PROPFIND", "LINK"]) await app.request("/livez", { method });
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

test("what says $base64 and is not bytes is refused with its place, never stored as text", async () => {
  const { json, app, logs } = setup();
  const cases: [string, RegExp][] = [
    ['{"value":{"$base64":"!!"}}', /record 0: value\.\$base64: not a string of standard base64/],
    ['{"value":{"$base64":7}}', /value\.\$base64/],
    ['{"value":{"$base64":null}}', /value\.\$base64/],
    ['{"value":{"$base64":"AQ"}}', /value\.\$base64/],
    ['{"value":{"$base64":"A Q="}}', /value\.\$base64/],
    ['{"value":{"$base64":"-_8="}}', /value\.\$base64/],
    ['{"value":{"$base64":"A==="}}', /value\.\$base64/],
    ['{"value":{"$base64":"AQ==","x":1}}', /value: x beside \$base64/],
    ['{"value":{"__proto__":1,"$base64":"AQ=="}}', /value: __proto__ beside/],
    ['{"value":1,"key":{"$base64":"!!"}}', /key\.\$base64/],
    ['{"value":1,"headers":[["a","b"],["c",{"$base64":"!!"}]]}', /headers\.1\.1\.\$base64/],
  ];
  for (const [body, detail] of cases) {
    const response = await app.request("/v1/topics/t/records", {
      method: "POST",
      body,
      headers: { "content-type": "application/json" },
    });
    assert.equal(response.status, 400, body);
    const problem = await problemOf(response);
    assert.match(String(problem["detail"]), detail);
    assert.ok(Array.isArray(problem["errors"]), body);
  }
  const bare = await json("/v1/topics/t/records?bare=1", ["a", { $base64: "!!" }]);
  assert.equal(bare.status, 400);
  assert.match(String((await problemOf(bare))["detail"]), /record 1: \$base64/);
  assert.deepEqual(logs.get("t"), [[], []]);
  assert.equal((await json("/v1/topics/t/records", { value: { $base64: "" } })).status, 200);
  assert.deepEqual(logs.get("t")![0]![0]!.value, new Uint8Array(0));
});

test("names that every object inherits are unknown fields and unknown settings", async () => {
  const { app, configs } = setup();
  for (const name of ["__proto__", "constructor", "prototype", "toString"]) {
    for (
      const [path, body] of [
        ["/v1/topics/t/records", `{"value":1,"${name}":{}}`],
        ["/v1/topics/t/records", `{"records":[{"value":1}],"${name}":{}}`],
        ["/v1/topics", `{"name":"n","${name}":{}}`],
        ["/v1/topics", `{"name":"n","configs":{"${name}":{}}}`],
      ] as const
    ) {
      const headers = { "content-type": "application/json" };
      const response = await app.request(path, { method: "POST", body, headers });
      assert.equal(response.status, 400, body);
      assert.ok(String((await problemOf(response))["detail"]).includes(name), body);
    }
    // The broker judges the name: it has to hear of it.
    const body = `{"name":"${name}","configs":{"${name}":"1"}}`;
    await app.request("/v1/topics", { method: "POST", body });
    assert.deepEqual(configs.at(-1), [name, "1"]);
  }
  const array = await app.request("/v1/topics", {
    method: "POST",
    body: '{"name":"n","configs":[]}',
  });
  assert.equal(array.status, 400);
});

test("what is nested too deeply is refused before it is parsed; brackets in text are text", async () => {
  const { app, json } = setup();
  const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const post = (body: string, type: string) =>
    app.request("/v1/topics/t/records", {
      method: "POST",
      body,
      headers: { "content-type": type },
    });
  for (const type of ["application/json", "application/x-ndjson"]) {
    assert.equal((await post(`{"value":${nested(HTTP_JSON_DEPTH_MAX - 1)}}`, type)).status, 200);
    const deep = await post(`{"value":${nested(1_000_000)}}`, type);
    assert.equal(deep.status, 400);
    assert.match(String((await problemOf(deep))["detail"]), /nested more than/);
  }
  const text = `\\"${"[".repeat(1000)}\\`;
  assert.equal((await json("/v1/topics/t/records", { value: text })).status, 200);
});

test("more records than a request may have are refused, lines before they are parsed", async () => {
  const { app } = setup();
  const lines = `${'{"value":1}\n'.repeat(HTTP_RECORDS_MAX)}{"value":1}\nbroken`;
  const array = `[${"1,".repeat(HTTP_RECORDS_MAX)}1]`;
  for (
    const [body, type] of [[lines, "application/x-ndjson"], [array, "application/json"]] as const
  ) {
    const response = await app.request("/v1/topics/t/records?bare=0", {
      method: "POST",
      body,
      headers: { "content-type": type },
    });
    assert.equal(response.status, 413);
    await problemOf(response);
  }
  assert.equal(
    (await app.request("/v1/topics/t/records?bare=maybe", { method: "POST", body: "x" })).status,
    400,
  );
});

test("an empty line between millions is no record, and no memory", async () => {
  const { app, logs } = setup();
  const body = `${"\n".repeat(2_000_000)}{"value":"a"}\r\n\r\n{"value":"b"}`;
  const headers = { "content-type": "application/x-ndjson" };
  assert.equal(
    (await app.request("/v1/topics/t/records", { method: "POST", body, headers })).status,
    200,
  );
  assert.equal(logs.get("t")![0]!.length, 2);
});

test("produce permits are held from the parser to the answer, and given back after problems", async () => {
  const { app, json, gateway, producePermits } = setup();
  let free = -1;
  const produce = gateway.produce.bind(gateway);
  gateway.produce = (topic, records) => {
    free = producePermits.free;
    return produce(topic, records);
  };
  await json("/v1/topics/t/records", { value: "x".repeat(1_000_000) });
  assert.ok(free <= PRODUCE_PERMIT_BYTES - 1_000_000, String(free));
  await json("/v1/topics/t/records", { valeu: 1 });
  gateway.produce = () => Promise.reject(new Error("a bug"));
  assert.equal((await json("/v1/topics/t/records", { value: 1 })).status, 500);
  assert.equal(
    (await app.request("/v1/topics/t/records", { method: "POST", body: "x" })).status,
    500,
  );
  assert.equal(producePermits.free, PRODUCE_PERMIT_BYTES);
});

test("a produce that finds no permits is told to come again, and leaves no trace when it is aborted", async () => {
  const { app, env, producePermits } = setup();
  await producePermits.acquire(PRODUCE_PERMIT_BYTES);
  const clock = env.clock as ReturnType<typeof createFakeClock>;
  const post = (signal?: AbortSignal) =>
    app.request("/v1/topics/t/records", { method: "POST", body: "x", ...(signal && { signal }) });
  const late = post();
  await clock.settle();
  assert.equal(producePermits.waiting, 1);
  await clock.advance(HTTP_PERMIT_WAIT_MS);
  const response = await late;
  assert.equal(response.status, 503);
  assert.equal(response.headers.get("retry-after"), "1");
  const gone = new AbortController();
  const aborted = post(gone.signal);
  await clock.settle();
  gone.abort();
  await aborted;
  assert.equal(producePermits.waiting, 0);
  assert.equal(clock.timers, 0);
});

const record = (value: Uint8Array) => ({
  offset: 0,
  timestampMs: 1,
  key: null,
  value,
  headers: [],
});

function fill(log: RecordOutput[], ...values: Uint8Array[]): void {
  for (const value of values) log.push({ ...record(value), offset: log.length });
}

test("a large page is held until its reader has taken it or gives up, a small one is not", async () => {
  const { app, logs, heldPages } = setup();
  const path = "/v1/topics/t/partitions/0/records";
  fill(logs.get("t")![0]!, new Uint8Array(1000).fill(97));
  await app.request(path);
  assert.equal(heldPages(), 0);
  fill(logs.get("t")![0]!, ...Array.from({ length: 10 }, () => new Uint8Array(200_000).fill(98)));
  for (const accept of ["application/json", "application/x-ndjson"]) {
    const taken = await app.request(path, { headers: { accept } });
    assert.equal(heldPages(), 1);
    const text = await taken.text();
    assert.ok(text.length > 2_000_000);
    assert.equal(heldPages(), 0);
    const left = await app.request(path, { headers: { accept } });
    assert.equal(heldPages(), 1);
    await left.body!.cancel();
    assert.equal(heldPages(), 0);
  }
  const raw = await app.request(`${path}/3`);
  assert.equal(heldPages(), 1);
  assert.equal((await raw.arrayBuffer()).byteLength, 200_000);
  assert.equal(heldPages(), 0);
});

test("HEAD holds nothing, whatever it asks about", async () => {
  const { app, logs, heldPages } = setup();
  fill(logs.get("t")![0]!, new Uint8Array(500_000).fill(97));
  for (const suffix of ["", "/0", "/9"]) {
    const path = `/v1/topics/t/partitions/0/records${suffix}`;
    const response = await app.request(path, { method: "HEAD" });
    assert.equal(response.status, suffix === "/9" ? 416 : 200);
    assert.equal(await response.text(), "");
  }
  assert.equal(heldPages(), 0);
});

test("a record above the limit ends a page; at its start it is 422 with its raw route", async () => {
  const { app, logs, heldPages } = setup();
  fill(logs.get("t")![0]!, toUtf8("a"), new Uint8Array(HTTP_RECORD_BYTES_MAX + 1), toUtf8("b"));
  const path = "/v1/topics/t/partitions/0/records";
  const page = await (await app.request(path)).json() as { records: unknown[]; next: number };
  assert.deepEqual([page.records.length, page.next], [1, 1]);
  const response = await app.request(`${path}?offset=1`);
  assert.equal(response.status, 422);
  const problem = await problemOf(response);
  assert.deepEqual([problem["raw"], problem["next"]], [`${path}/1`, 2]);
  assert.match(String(problem["detail"]), /GET \/v1\/topics\/t\/partitions\/0\/records\/1 /);
  const raw = await app.request(`${path}/1`);
  assert.equal((await raw.arrayBuffer()).byteLength, HTTP_RECORD_BYTES_MAX + 1);
  assert.equal(heldPages(), 0);
});

test("a page ends where its text becomes too large: escapes make six bytes of one", async () => {
  const { app, logs, heldPages } = setup();
  const value = new Uint8Array(4 << 20).fill(1);
  fill(logs.get("t")![0]!, value, value);
  const path = "/v1/topics/t/partitions/0/records";
  for (const accept of ["application/json", "application/x-ndjson"]) {
    const response = await app.request(path, { headers: { accept } });
    assert.equal(response.headers.get("kafka-next-offset"), "1");
    const text = await response.text();
    assert.ok(text.length < HTTP_RENDERED_BYTES_MAX, String(text.length));
  }
  fill(logs.get("t")![1]!, new Uint8Array(8 << 20).fill(1));
  const first = await app.request("/v1/topics/t/partitions/1/records");
  assert.equal(first.status, 422);
  assert.equal((await problemOf(first))["next"], 1);
  assert.equal(heldPages(), 0);
});

test("keys and headers that HTTP cannot hold stand as base64, or are named as left out", async () => {
  const { app, logs } = setup();
  const headers = [
    { name: "plain", value: toUtf8("a b") },
    { name: "spaced", value: toUtf8(" a") },
    { name: "marked", value: toUtf8("base64:AQ==") },
    { name: "no token", value: toUtf8("x") },
    { name: "large", value: new Uint8Array(10_000) },
  ];
  logs.get("t")![0]!.push({ ...record(toUtf8("v")), key: new Uint8Array(10_000), headers });
  const response = await app.request("/v1/topics/t/partitions/0/records/0");
  assert.equal(response.headers.get("kafka-header-plain"), "a b");
  assert.equal(response.headers.get("kafka-header-spaced"), "base64:IGE=");
  assert.equal(response.headers.get("kafka-header-marked"), "base64:YmFzZTY0OkFRPT0=");
  assert.equal(response.headers.get("kafka-omitted"), "key, headers;count=2");
});

test("header text is UTF-8 as it came over the wire, and Latin-1 only where it is no UTF-8", async () => {
  const { app, logs } = setup();
  const wire = String.fromCharCode(...toUtf8("\u00e9\u20ac"));
  for (const key of [wire, "\u00e9"]) {
    const headers = { "kafka-key": key };
    await app.request("/v1/topics/t/records", { method: "POST", body: "v", headers });
  }
  assert.deepEqual(logs.get("t")![0]!.map(({ key }) => utf8(key!)), ["\u00e9\u20ac", "\u00e9"]);
});

test("a topic of more than a small body is refused", async () => {
  const { app } = setup();
  const body = `{"name":"${"n".repeat(HTTP_SMALL_BODY_BYTES)}"}`;
  assert.equal((await app.request("/v1/topics", { method: "POST", body })).status, 413);
});

test("a request without a host is answered, one whose Host is no host is refused", async () => {
  const { app } = setup();
  const answer = async (url: string, host: string | null) => {
    const request = new Request("http://localhost/", host === null ? {} : { headers: { host } });
    // Hosts join the two by themselves, also to what is no URL.
    Object.defineProperty(request, "url", { value: url });
    return (await app.fetch(request)).status;
  };
  for (const host of [null, "", "x", "x:99999", "[::1]:80", "my_host:80", "x%zz", "[::1"]) {
    for (const url of [`http://${host ?? "localhost:1"}/readyz?a=/b`, "/readyz?a=b"]) {
      if (host !== "" || url.startsWith("/")) assert.equal(await answer(url, host), 200, url);
    }
  }
  for (const host of ["x/v1/topics/t?", "x/livez#", "u:p@x", "a b", "a, b", "x\\y", "x?"]) {
    assert.equal(await answer(`http://${host}/livez`, host), 400, host);
    assert.equal(await answer("/livez", host), 400, host);
  }
  assert.equal(await answer("http://x//livez", "x"), 404);
  assert.equal(await answer("http://x", "x"), 404);
});

test("another method on a known path is 405 with what is allowed, on every route", async () => {
  const { app } = setup();
  const allowed: Record<string, string> = {
    "/v1/topics": "GET, HEAD, POST",
    "/v1/topics/t": "GET, HEAD, PATCH, DELETE",
    "/v1/topics/t/records": "POST, GET, HEAD",
    "/v1/topics/t/stream": "GET, HEAD",
    "/v1/fetch": "POST",
    "/v1/kafka/fetch": "POST, GET, HEAD",
    "/v1/topics/t/partitions/0/records": "POST, GET, HEAD",
    "/v1/topics/t/partitions/0/records/0": "GET, HEAD",
    "/livez": "GET, HEAD",
    "/readyz": "GET, HEAD",
    "/metrics": "GET, HEAD",
    "/version": "GET, HEAD",
  };
  for (const [path, allow] of Object.entries(allowed)) {
    for (const method of ["PUT", "PROPFIND", "OPTIONS"]) {
      const answer = await app.request(path, { method });
      assert.equal(answer.status, 405, `${method} ${path}`);
      assert.equal(answer.headers.get("allow"), allow);
      await problemOf(answer);
    }
  }
  assert.equal((await app.request("/v1/fetch")).status, 405);
  assert.equal((await app.request("/v1/nothing", { method: "PUT" })).status, 404);
});

test("lines are for those who ask for them, not for those who refuse them", async () => {
  const { app } = setup();
  const isLines = async (accept: string) => {
    const answer = await app.request("/v1/topics/t/partitions/0/records", { headers: { accept } });
    return answer.headers.get("content-type") === "application/x-ndjson";
  };
  for (
    const accept of [
      "application/x-ndjson",
      "APPLICATION/X-NDJSON; q=0.5",
      "text/html, application/jsonl",
      "application/json;q=0.1, application/x-ndjson;q=0.9",
      "application/json, application/x-ndjson",
    ]
  ) assert.ok(await isLines(accept), accept);
  for (
    const accept of [
      "application/x-ndjson;q=0",
      "application/x-ndjson; charset=utf-8 ; q=0.000",
      "application/json, application/x-ndjson;q=0.1",
      "*/*",
      "application/json",
      "",
    ]
  ) assert.ok(!await isLines(accept), accept);
});

test("a query that is no UTF-8 is refused, never stored as replacement characters", async () => {
  const { app, logs } = setup();
  for (const query of ["key=%ff%fe", "key=a%", "key=%zz", "key=%ed%a0%80"]) {
    const answer = await app.request(`/v1/topics/t/records?${query}`, {
      method: "POST",
      body: "a",
    });
    assert.equal(answer.status, 400, query);
  }
  assert.deepEqual(logs.get("t"), [[], []]);
  const path = "/v1/topics/t/records?key=%C3%A9+%25%F0%9F%98%80";
  assert.equal((await app.request(path, { method: "POST", body: "a" })).status, 200);
  assert.equal(utf8(logs.get("t")![0]![0]!.key!), "é %\u{1f600}");
});

test("a setting that is no number of its own any more is refused", async () => {
  const { app, configs } = setup();
  const create = (ms: string) =>
    app.request("/v1/topics", {
      method: "POST",
      body: `{"name":"n","configs":{"retention.ms":${ms}}}`,
    });
  for (const ms of ["9007199254740993", "-1e300", "12345678901234567890"]) {
    assert.equal((await create(ms)).status, 400, ms);
  }
  assert.equal((await create("9007199254740991")).status, 201);
  assert.deepEqual(configs, [["retention.ms", "9007199254740991"]]);
});

test("a record header is a name and a value, no less and no more", async () => {
  const { json, logs } = setup();
  for (const headers of [[["a"]], [["a", "b", "c"]], [[]], [["", "b"]], ["a"], { a: "b" }]) {
    const answer = await json("/v1/topics/t/records", { value: "v", headers });
    assert.equal(answer.status, 400, JSON.stringify(headers));
  }
  assert.deepEqual(logs.get("t"), [[], []]);
});

test("a page of another origin writes nothing, whatever route it finds", async () => {
  const { app } = setup();
  const foreign = { method: "POST", headers: { origin: "https://evil.example" }, body: "x" };
  for (const path of ["/v1/topics/t/records", "/webhook/t", "/streams/t", "/v1/groups/g/poll"]) {
    assert.equal((await app.request(path, foreign)).status, 403, path);
  }
  const { headers: _, ...own } = foreign;
  assert.equal((await app.request("/v1/topics/t/records", own)).status, 200);
});
