import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Asked,
  type Broker,
  createClientHost,
  json,
  linesOf,
  problem,
} from "../../tests/support/client_host.ts";
import type { ProducerOptions } from "./batcher.ts";
import { SkerryError } from "./errors.ts";
import type { HttpOptions } from "./http.ts";
import { ProduceError, Topic } from "./topic.ts";

/** All stored in partition 0. */
function storedFrom(asked: Asked, from: number): Response {
  const results = linesOf(asked).map((_, i) => ({ partition: 0, offset: from + i, timestamp: 5 }));
  return json({ results });
}

function stored(asked: Asked): Response {
  return storedFrom(asked, 0);
}

function setUp(broker: Broker, options: ProducerOptions = {}, http: Partial<HttpOptions> = {}) {
  const world = createClientHost(broker, http);
  return { ...world, topic: new Topic(world.http, "orders", options) };
}

async function failureOf(work: Promise<unknown>): Promise<SkerryError> {
  const error: unknown = await work.then(() => null, (reason: unknown) => reason);
  assert.ok(error instanceof SkerryError, String(error));
  return error;
}

test("a record goes as a line under a quoted Idempotency-Key, and resolves with its place", async () => {
  const { topic, asked } = setUp(stored);
  const given = { key: "k", value: { a: 1 }, headers: { source: "shop" }, timestamp: new Date(7) };
  assert.deepEqual(await topic.produce(given), { partition: 0, offset: 0, timestamp: 5 });
  const [one] = asked;
  assert.equal(one!.method, "POST");
  assert.equal(one!.url.href, "http://broker/v1/topics/orders/records");
  assert.equal(one!.headers.get("content-type"), "application/x-ndjson");
  assert.equal(one!.headers.get("idempotency-key"), '"token-1"');
  assert.equal(
    one!.body,
    '{"key":"k","value":"{\\"a\\":1}","headers":[["source","shop"]],"timestamp":7}\n',
  );
});

test("values are stored as they are: text, bytes, tombstones, JSON, and what looks like bytes", async () => {
  const { topic, asked } = setUp(stored);
  const values = ["text", new Uint8Array([255, 0]), null, [1], 5, false, { $base64: "AA==" }];
  await topic.produce(values.map((value) => ({ value, headers: { h: new Uint8Array([1]) } })));
  assert.deepEqual(linesOf(asked[0]!).map(({ value }) => value), [
    "text",
    { $base64: "/wA=" },
    null,
    "[1]",
    "5",
    "false",
    '{"$base64":"AA=="}',
  ]);
  assert.deepEqual(linesOf(asked[0]!)[0]!["headers"], [["h", { $base64: "AQ==" }]]);
});

test("what is no record is refused before it can harm others", async () => {
  const { topic, asked } = setUp(stored);
  const bad = [
    { value: undefined },
    { value: "\ud800" },
    { value: 1, key: "\udc00x" },
    { value: 1, headers: { "": "x" } },
    { value: 1, partition: -1 },
    { value: 1, partition: 2 ** 31 },
    { value: 1, timestamp: 0.5 },
    { value: 1, key: 5 as unknown as string },
  ];
  for (const record of bad) await assert.rejects(topic.produce(record), TypeError);
  assert.deepEqual(await topic.produce([]), []);
  assert.equal(asked.length, 0);
  for (const name of ["", ".", ".."]) {
    assert.throws(() => new Topic(setUp(stored).http, name, {}), TypeError);
  }
});

test("calls of one turn share a request; what comes while it is under way shares the next", async () => {
  let answer = () => {};
  const waits = new Promise<void>((done) => (answer = done));
  const { topic, asked, clock } = setUp(async (one, count) => {
    if (count === 1) await waits;
    return storedFrom(one, count * 100);
  });
  const first = [topic.produce({ value: "a" }), topic.produce([{ value: "b" }, { value: "c" }])];
  await clock.settle();
  const second = [topic.produce({ value: "d" }), topic.produce({ value: "e" })];
  await clock.settle();
  assert.equal(asked.length, 1, "one at a time");
  answer();
  const offsets = (await Promise.all([...first, ...second])).flat().map(({ offset }) => offset);
  assert.deepEqual(offsets, [100, 101, 102, 200, 201]);
  assert.deepEqual(asked.map((one) => linesOf(one).map(({ value }) => value)), [
    ["a", "b", "c"],
    ["d", "e"],
  ]);
  assert.notEqual(
    asked[0]!.headers.get("idempotency-key"),
    asked[1]!.headers.get("idempotency-key"),
  );
});

test("linger waits for more, a full batch does not, and flush sends what there is", async () => {
  const { topic, asked, clock } = setUp(stored, { lingerMs: 50, batchBytesMax: 200 });
  void topic.produce({ value: "a" });
  await clock.advance(49);
  assert.equal(asked.length, 0);
  void topic.produce({ value: "b" });
  await clock.advance(1);
  assert.equal(asked.length, 1);
  const many = topic.produce(Array.from({ length: 10 }, () => ({ value: "x".repeat(30) })));
  await clock.settle();
  assert.deepEqual(asked.slice(1).map((one) => linesOf(one).length), [3, 3, 3]);
  await clock.advance(49);
  assert.equal(asked.length, 4, "what is left waits for more");
  await clock.advance(1);
  assert.equal((await many).length, 10);
  void topic.produce({ value: "last" });
  await topic.flush();
  assert.equal(asked.length, 6);
});

test("the same key and body go out again after lost answers, 503s and conflicts, once in all", async () => {
  const { topic, asked, clock } = setUp((one, count) => {
    if (count === 1) throw new TypeError("connection reset");
    if (count === 2) return problem(503, {}, { "retry-after": "2" });
    if (count === 3) return problem(409, {}, { "retry-after": "1" });
    if (count === 4) return new Response('{"results":[{"part', { status: 200 });
    return stored(one);
  });
  const produced = topic.produce({ value: "a" });
  // 100 ms doubled each time, half of it by chance (here none), and what the broker asks for.
  for (const [pauseMs, count] of [[50, 2], [2_100, 3], [1_200, 4], [400, 5]] as const) {
    await clock.advance(pauseMs - 1);
    assert.equal(asked.length, count - 1);
    await clock.advance(1);
    assert.equal(asked.length, count);
  }
  assert.equal((await produced).offset, 0);
  assert.equal(new Set(asked.map((one) => one.headers.get("idempotency-key"))).size, 1);
  assert.equal(new Set(asked.map(({ body }) => body)).size, 1);
});

test("an attempt that is not answered in time is left and tried again", async () => {
  const { topic, asked, clock } = setUp(
    (one, count) => count === 1 ? new Promise<Response>(() => {}) : stored(one),
    {},
    { requestTimeoutMs: 1_000 },
  );
  const produced = topic.produce({ value: "a" });
  await clock.advance(999);
  assert.equal(asked[0]!.signal.aborted, false);
  await clock.advance(1);
  assert.equal(asked[0]!.signal.aborted, true);
  await clock.advance(50);
  assert.equal((await produced).offset, 0);
  assert.equal(clock.timers, 0, "no timer is left");
});

test("records that are not in for now are sent again with the others of their request", async () => {
  const busy = {
    error: { code: 6, name: "NOT_LEADER_OR_FOLLOWER", retriable: true, message: "m" },
  };
  const at = (offset: number) => ({ partition: 0, offset, timestamp: 1 });
  const { topic, asked, clock } = setUp((_, count) =>
    count === 1
      ? json({ results: [at(0), busy] }, 207)
      : json({ results: [{ ...at(0), duplicate: true }, at(1)] })
  );
  const produced = topic.produce([{ value: "a" }, { value: "b" }]);
  await clock.advance(100);
  assert.deepEqual(await produced, [{ ...at(0), duplicate: true }, at(1)]);
  assert.equal(asked[0]!.headers.get("idempotency-key"), asked[1]!.headers.get("idempotency-key"));
});

test("a record that is refused harms no other call: those that stood behind it are sent by themselves", async () => {
  const large = {
    error: { code: 10, name: "MESSAGE_TOO_LARGE", retriable: false, message: "big" },
  };
  const { topic, asked } = setUp((one, count) => {
    const lines = linesOf(one);
    const bad = lines.findIndex(({ value }) => value === "large");
    if (bad < 0) return storedFrom(one, count * 10);
    const results = lines.map((_, i) =>
      i < bad ? { partition: 0, offset: i, timestamp: 1 } : large
    );
    return bad === 0
      ? problem(413, { results, kafka: { code: 10, name: "MESSAGE_TOO_LARGE", retriable: false } })
      : json({ results }, 207);
  });
  const calls = ["a", "large", "b", "c"].map((value) => topic.produce({ value }));
  const [a, refused, b, c] = await Promise.allSettled(calls);
  assert.deepEqual([a, b, c].map((one) => one!.status), ["fulfilled", "fulfilled", "fulfilled"]);
  assert.equal(refused!.status, "rejected");
  const error = await failureOf(calls[1]!);
  assert.deepEqual([error.code, error.sideEffects, error.retriable], [
    "MESSAGE_TOO_LARGE",
    "none",
    false,
  ]);
  assert.deepEqual(asked.map((one) => linesOf(one).map(({ value }) => value)), [
    ["a", "large", "b", "c"],
    ["large"],
    ["b"],
    ["c"],
  ]);
  const keys = new Set(asked.map((one) => one.headers.get("idempotency-key")));
  assert.equal(keys.size, 4, "other records, other keys");
});

test("a request that cannot be understood is taken apart, one for an unknown topic is not", async () => {
  const refusing = setUp((one) => linesOf(one).length > 1 ? problem(400) : stored(one));
  const both = await Promise.all(
    [{ value: 1 }, { value: 2 }].map((record) => refusing.topic.produce(record)),
  );
  assert.equal(both.length, 2);
  assert.equal(refusing.asked.length, 3);
  const unknown = setUp(() =>
    problem(404, { kafka: { code: 3, name: "UNKNOWN_TOPIC_OR_PARTITION", retriable: true } })
  );
  const failures = await Promise.all(
    [1, 2].map((value) => failureOf(unknown.topic.produce({ value }))),
  );
  assert.deepEqual(failures.map(({ code, status }) => [code, status]), [
    ["UNKNOWN_TOPIC_OR_PARTITION", 404],
    ["UNKNOWN_TOPIC_OR_PARTITION", 404],
  ]);
  assert.equal(unknown.asked.length, 1);
});

test("several records that are not all stored fail with what became of each", async () => {
  const error = { code: 87, name: "INVALID_RECORD", retriable: false, message: "no key" };
  const { topic } = setUp(() =>
    json({ results: [{ partition: 0, offset: 4, timestamp: 1 }, { error }] }, 207)
  );
  const failure = await failureOf(topic.produce([{ value: "a" }, { value: "b" }]));
  assert.ok(failure instanceof ProduceError);
  assert.match(failure.message, /^1 of 2 records failed: no key$/);
  assert.deepEqual([failure.code, failure.status, failure.sideEffects], [
    "INVALID_RECORD",
    207,
    "unknown",
  ]);
  const [first, second] = failure.outcomes;
  assert.deepEqual(first, { partition: 0, offset: 4, timestamp: 1 });
  assert.ok(second instanceof SkerryError && second.code === "INVALID_RECORD");
});

test("where all are refused, each has its own reason", async () => {
  const error = (name: string) => ({ error: { code: 1, name, retriable: false, message: name } });
  const results = [error("INVALID_RECORD"), error("MESSAGE_TOO_LARGE")];
  const { topic } = setUp(() => problem(422, { results, kafka: results[0]!.error }));
  const failure = await failureOf(topic.produce([{ value: "a" }, { value: "b" }]));
  assert.ok(failure instanceof ProduceError);
  assert.equal(failure.sideEffects, "none");
  assert.deepEqual(failure.outcomes.map((one) => (one as SkerryError).code), [
    "INVALID_RECORD",
    "MESSAGE_TOO_LARGE",
  ]);
});

test("a partition that is not there is not waited for, though Kafka's clients would", async () => {
  const error = { code: 3, name: "UNKNOWN_TOPIC_OR_PARTITION", retriable: true, message: "no 7" };
  const { topic, asked } = setUp(() =>
    json({ results: [{ partition: 0, offset: 0, timestamp: 1 }, { error }] }, 207)
  );
  const [, second] = await Promise.allSettled([
    topic.produce({ value: "a" }),
    topic.produce({ value: "b", partition: 7 }),
  ]);
  assert.equal((second as PromiseRejectedResult).reason.code, "UNKNOWN_TOPIC_OR_PARTITION");
  assert.equal(asked.length, 1);
});

test("it gives up when the time is over, and says whether the record may be in", async () => {
  const full = setUp(() => problem(429), { deliveryTimeoutMs: 1_000 });
  const refused = failureOf(full.topic.produce({ value: "a" }));
  await full.clock.advance(2_000);
  const { status, retriable, sideEffects } = await refused;
  assert.deepEqual([status, retriable, sideEffects], [429, true, "none"]);
  // 50 + 100 + 200 + 400 ms; another 800 would be too late.
  assert.equal(full.asked.length, 5);

  const lost = setUp((_, count) => {
    if (count === 1) throw new TypeError("reset");
    return problem(429);
  }, { deliveryTimeoutMs: 1_000 });
  const unknown = failureOf(lost.topic.produce({ value: "a" }));
  await lost.clock.advance(2_000);
  assert.equal((await unknown).sideEffects, "unknown", "the first attempt may have got in");

  const dead = setUp(() => Promise.reject(new TypeError("refused")), { deliveryTimeoutMs: 10 });
  const { code, cause, message } = await failureOf(dead.topic.produce({ value: "a" }));
  assert.equal(code, "network");
  assert.match(message, /refused/);
  assert.ok(cause instanceof TypeError);
});

test("what is no answer of a broker is an error, and not tried again", async () => {
  for (const body of ["[]", "{}", '{"results":[]}', '{"results":[5]}', '{"results":[{}]}']) {
    const { topic, asked } = setUp(() => new Response(body));
    const error = await failureOf(topic.produce({ value: "a" }));
    assert.deepEqual(
      [error.code, error.sideEffects, asked.length],
      ["protocol", "unknown", 1],
      body,
    );
  }
  const { topic } = setUp(() => new Response("<html>", { status: 403 }));
  const { code, message } = await failureOf(topic.produce({ value: "a" }));
  assert.deepEqual([code, message], ["http-403", "No reason given (403)"]);
});

test("one failure does not stop the next records", async () => {
  const { topic } = setUp((one, count) => count === 1 ? problem(403) : stored(one));
  await failureOf(topic.produce({ value: "a" }));
  assert.equal((await topic.produce({ value: "b" })).offset, 0);
});

test("memory is bounded: beyond it, records are refused until others are settled", async () => {
  let answer = () => {};
  const waits = new Promise<void>((done) => (answer = done));
  const { topic } = setUp(async (one) => {
    await waits;
    return stored(one);
  }, { bufferBytesMax: 100 });
  const first = topic.produce({ value: "x".repeat(200) });
  const error = await failureOf(topic.produce({ value: "y" }));
  assert.deepEqual([error.code, error.retriable, error.sideEffects], ["buffer-full", true, "none"]);
  answer();
  await first;
  assert.equal((await topic.produce({ value: "y" })).offset, 0);
});

test("a key of the caller's own goes with its records alone", async () => {
  const { topic, asked } = setUp(stored);
  await Promise.all([
    topic.produce({ value: "a" }),
    topic.produce([{ value: "b" }, { value: "c" }], { idempotencyKey: 'delivery "17"' }),
  ]);
  const own = asked.find((one) => linesOf(one).length === 2)!;
  assert.equal(own.headers.get("idempotency-key"), '"delivery \\"17\\""');
});

test("headers may be made for each request; what they throw is the caller's, at once", async () => {
  let count = 0;
  const headers = () => Promise.resolve({ authorization: `Bearer ${++count}` });
  const { topic, asked } = setUp(stored, {}, { headers, url: "https://edge.example/kafka//" });
  await topic.produce({ value: "a" });
  await topic.produce({ value: "b" });
  assert.deepEqual(asked.map((one) => one.headers.get("authorization")), ["Bearer 1", "Bearer 2"]);
  assert.equal(asked[0]!.url.href, "https://edge.example/kafka/v1/topics/orders/records");
  const broken = setUp(stored, {}, { headers: () => Promise.reject(new Error("no token")) });
  await assert.rejects(broken.topic.produce({ value: "a" }), /^Error: no token$/);
  const small = new Topic(broken.http, "orders", { bufferBytesMax: 20 });
  for (let i = 0; i < 3; i++) {
    await assert.rejects(small.produce({ value: "x".repeat(30) }), /^Error: no token$/);
  }
  assert.throws(() => setUp(stored, {}, { url: "broker" }), TypeError);
});

test("several requests at a time where the order does not matter", async () => {
  let answer = () => {};
  const waits = new Promise<void>((done) => (answer = done));
  const { topic, asked, clock } = setUp(async (one) => {
    await waits;
    return stored(one);
  }, { inFlightMax: 3, batchBytesMax: 1 });
  const produced = topic.produce(["a", "b", "c", "d"].map((value) => ({ value })));
  await clock.settle();
  assert.equal(asked.length, 3);
  answer();
  assert.equal((await produced).length, 4);
});
