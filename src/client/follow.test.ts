import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createClientHost, problem } from "../../tests/support/client_host.ts";
import { createHttpTopic, type HttpTopic } from "../../tests/support/http_topic.ts";
import { SkerryError } from "./errors.ts";
import type { ConsumedRecord, ConsumeOptions } from "./follow.ts";
import type { Host } from "./host.ts";
import { Http } from "./http.ts";
import { Topic } from "./topic.ts";

const encoder = new TextEncoder();

/** A body of these pieces that then ends, breaks or stays silent. */
function bodyOf(
  pieces: readonly (string | Uint8Array<ArrayBuffer>)[],
  then: "end" | "break" | "silence" = "end",
  signal?: AbortSignal,
): Response {
  let at = 0;
  return new Response(
    new ReadableStream<Uint8Array>({
      start(controller) {
        signal?.addEventListener("abort", () => {
          try {
            controller.error(signal.reason);
          } catch {
            // It is over.
          }
        });
      },
      async pull(controller) {
        const piece = pieces[at++];
        if (piece !== undefined) {
          controller.enqueue(typeof piece === "string" ? encoder.encode(piece) : piece);
        } else if (then === "end") controller.close();
        else if (then === "break") controller.error(new TypeError("reset"));
        else await new Promise(() => {});
      },
    }, { highWaterMark: 0 }),
  );
}

function line(offset: number, more: Record<string, unknown> = {}): string {
  const record = {
    partition: 0,
    offset,
    timestamp: 1,
    key: null,
    value: `v${offset}`,
    headers: [],
  };
  return `${JSON.stringify({ cursor: `c${offset}`, ...record, ...more })}\n`;
}

function setUp(broker: Parameters<typeof createClientHost>[0]) {
  const world = createClientHost(broker);
  return { ...world, topic: new Topic(world.http, "orders", {}) };
}

/** So many values, or all that come. */
async function take(
  records: AsyncIterable<ConsumedRecord>,
  count: number,
): Promise<unknown[]> {
  const got: unknown[] = [];
  if (count === 0) return got;
  for await (const { value } of records) {
    got.push(value);
    if (got.length === count) break;
  }
  return got;
}

async function failureOf(work: Promise<unknown>): Promise<SkerryError> {
  const error: unknown = await work.then(() => null, (reason: unknown) => reason);
  assert.ok(error instanceof SkerryError, String(error));
  return error;
}

test("what is asked for stands in the URL", async () => {
  const { topic, asked } = setUp(() => bodyOf([line(0)]));
  await take(
    topic.consume({
      from: "latest",
      partitions: [0, 3],
      keys: ["a&b", "base64:x", new Uint8Array([255])],
      headers: { type: "paid" },
      partitioned: "key",
      isolation: "read_committed",
      encoding: "json",
    }),
    1,
  );
  const { url, method, headers } = asked[0]!;
  assert.equal(method, "GET");
  assert.equal(url.pathname, "/v1/topics/orders/stream");
  assert.equal(headers.get("accept"), "application/x-ndjson");
  assert.deepEqual([...url.searchParams], [
    ["from", "latest"],
    ["partitions", "0,3"],
    ["partitioned", "key"],
    ["isolation", "read_committed"],
    ["encoding", "json"],
    ["keys", "a&b"],
    ["keys", "base64:YmFzZTY0Ong="],
    ["keys", "base64:/w=="],
    ["header", "type:paid"],
  ]);
});

test("records have bytes where the broker marks them, and their cursor", async () => {
  const shown = { key: { $base64: "/w==" }, value: null, headers: [["h", { $base64: "AQ==" }]] };
  const { topic } = setUp(() => bodyOf([line(5, shown)]));
  for await (const record of topic.consume()) {
    assert.deepEqual(record, {
      cursor: "c5",
      partition: 0,
      offset: 5,
      timestamp: 1,
      key: new Uint8Array([255]),
      value: null,
      headers: [["h", new Uint8Array([1])]],
    });
    break;
  }
});

test("a stream that is cut at any byte goes on behind the last whole record", async () => {
  const bytes = encoder.encode(`{"cursor":"c"}\n${line(0, { value: "ä€𝄞" })}\n${line(1)}`);
  const whole = (text: string) =>
    text.split("\n").slice(0, -1).filter((one) => one.includes("offset"));
  for (let cut = 0; cut <= bytes.length; cut++) {
    for (const then of ["end", "break"] as const) {
      const { topic, asked, clock } = setUp(({ url }, count) => {
        if (count === 1) return bodyOf([bytes.slice(0, cut)], then);
        const cursor = url.searchParams.get("cursor") ?? "c";
        const rest = { c: line(0, { value: "ä€𝄞" }) + line(1), c0: line(1), c1: "" }[cursor]!;
        return bodyOf([rest + line(2)], "silence");
      });
      const got = take(topic.consume({ from: "earliest" }), 3);
      await clock.advance(100);
      assert.deepEqual(await got, ["ä€𝄞", "v1", "v2"], `cut at ${cut}`);
      const seen = whole(new TextDecoder().decode(bytes.slice(0, cut))).length;
      const cursor = seen > 0 ? `c${seen - 1}` : cut >= 15 ? "c" : null;
      assert.equal(asked[1]!.url.searchParams.get("cursor"), cursor, `cut at ${cut}`);
    }
  }
});

test("lines come whole in whatever pieces their bytes do", async () => {
  const bytes = encoder.encode(
    `{"cursor":"c"}\n\n${line(0, { value: "ä€𝄞" })}\n\n${line(1)}${line(2)}`,
  );
  for (let size = 1; size < 40; size++) {
    const pieces = Array.from(
      { length: Math.ceil(bytes.length / size) },
      (_, i) => bytes.slice(i * size, (i + 1) * size),
    );
    const { topic } = setUp(() => bodyOf(pieces, "silence"));
    assert.deepEqual(await take(topic.consume(), 3), ["ä€𝄞", "v1", "v2"], `${size} bytes`);
  }
});

test("silence counts as a cut, but not while nobody reads", async () => {
  const { topic, asked, clock } = setUp(({ signal }, count) =>
    count === 1 ? bodyOf([line(0), "\n"], "silence", signal) : bodyOf([line(1)], "silence")
  );
  const told: string[] = [];
  const onRetry = ({ code }: SkerryError) => void told.push(code);
  const records = topic.consume({ idleTimeoutMs: 20_000, onRetry });
  assert.equal((await records.next()).value!.offset, 0);
  await clock.advance(3_600_000);
  assert.equal(asked.length, 1);
  const next = records.next();
  await clock.advance(19_999);
  assert.equal(asked.length, 1);
  await clock.advance(1 + 50);
  assert.equal((await next).value!.offset, 1);
  assert.equal(asked[0]!.signal.aborted, true);
  assert.deepEqual(told, ["timeout"]);
  await records.return();
  assert.equal(clock.timers, 0);
});

test("it tries for ever, with pauses that grow and begin anew after a record", async () => {
  const told: string[] = [];
  const { topic, asked, clock } = setUp((_, count) => {
    if (count === 3) return bodyOf([line(0)], "break");
    if (count === 5) return bodyOf([line(1)], "silence");
    if (count === 2) return problem(503, {}, { "retry-after": "3" });
    throw new TypeError("refused");
  });
  const got = take(topic.consume({ onRetry: ({ code }) => told.push(code) }), 2);
  for (const [pauseMs, count] of [[50, 2], [3_100, 3], [50, 4], [100, 5]] as const) {
    await clock.advance(pauseMs - 1);
    assert.equal(asked.length, count - 1);
    await clock.advance(1);
    assert.equal(asked.length, count);
  }
  assert.deepEqual(await got, ["v0", "v1"]);
  assert.deepEqual(told, ["network", "http-503", "network", "network"]);
});

test("a broker that stops is come back to; other ends are errors", async () => {
  const stopping = setUp((_, count) =>
    count === 1
      ? bodyOf([line(0), '{"end":{"reason":"server-stop"}}\n'])
      : bodyOf([line(1)], "silence")
  );
  const got = take(stopping.topic.consume(), 2);
  await stopping.clock.advance(100);
  assert.deepEqual(await got, ["v0", "v1"]);
  for (const reason of ["topic-deleted", "topic-recreated", "offset-out-of-range"]) {
    const { topic } = setUp(() => bodyOf([line(0), `{"end":{"reason":"${reason}"}}\n`]));
    assert.equal((await failureOf(take(topic.consume(), 2))).code, reason);
  }
});

test("what the broker refuses, and what is no stream of it, is an error at once", async () => {
  const gone = setUp(() => problem(410, { reason: "recreated" }));
  const error = await failureOf(take(gone.topic.consume({ cursor: "old" }), 1));
  assert.deepEqual([error.status, error.problem["reason"]], [410, "recreated"]);
  for (const text of ["<html>\n", "5\n", '{"cursor":"c","offset":"1"}\n', "{]}\n"]) {
    const { topic, asked } = setUp(() => bodyOf([text], "silence"));
    assert.equal((await failureOf(take(topic.consume(), 1))).code, "protocol", text);
    assert.equal(asked.length, 1);
  }
});

test("lines that the client does not know are passed over", async () => {
  const { topic } = setUp(() => bodyOf(['{"cursor":"x","news":1}\n{"news":2}\n', line(0)]));
  assert.deepEqual(await take(topic.consume(), 1), ["v0"]);
});

test("records that cannot be had are an error, unless somebody wants to be told", async () => {
  const gap = '{"cursor":"g","gap":{"partition":0,"from":0,"to":7}}\n';
  const large = '{"cursor":"p","problem":{"partition":0,"offset":7,"next":8,"raw":"/v1/x"}}\n';
  const waiting = '{"cursor":"p","problem":{"partition":1,"detail":"not now"}}\n';
  const strict = setUp(() => bodyOf([gap, line(8)]));
  const error = await failureOf(take(strict.topic.consume(), 1));
  assert.deepEqual([error.code, error.problem["to"], error.problem["cursor"]], ["gap", 7, "g"]);
  const told: unknown[] = [];
  const { topic } = setUp(() => bodyOf([gap, large, waiting, line(8)]));
  const got = await take(topic.consume({ onSkip: (skipped) => told.push(skipped) }), 1);
  assert.deepEqual(got, ["v8"]);
  assert.deepEqual(told, [
    { reason: "gap", details: { partition: 0, from: 0, to: 7 }, cursor: "g" },
    {
      reason: "problem",
      details: { partition: 0, offset: 7, next: 8, raw: "/v1/x" },
      cursor: "p",
    },
  ]);
});

test("the signal ends the loop wherever it stands, and nothing is left behind", async () => {
  const brokers = {
    connecting: () => new Promise<Response>(() => {}),
    reading: ({ signal }: { signal: AbortSignal }) => bodyOf([], "silence", signal),
    pausing: () => problem(503),
  };
  for (const [name, broker] of Object.entries(brokers)) {
    const { topic, clock } = setUp(broker);
    const stop = new AbortController();
    const got = take(topic.consume({ signal: stop.signal }), 1);
    await clock.settle();
    stop.abort();
    assert.deepEqual(await got, [], name);
    assert.equal(clock.timers, 0, name);
  }
  const { topic, asked } = setUp(() => bodyOf([line(0) + line(1)]));
  const stop = new AbortController();
  let count = 0;
  for await (const _ of topic.consume({ signal: stop.signal })) {
    count += 1;
    stop.abort();
  }
  assert.equal(count, 1, "what is there already does not come any more");
  assert.deepEqual(await take(topic.consume({ signal: stop.signal }), 1), []);
  assert.equal(asked.length, 1);
  assert.equal(asked[0]!.signal.aborted, true);
});

test("the body is read no further than its lines are taken", async () => {
  let pulled = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(encoder.encode(line(pulled++)));
    },
  }, { highWaterMark: 0 });
  const { topic } = setUp(() => new Response(body));
  for await (const { offset } of topic.consume()) {
    assert.ok(pulled <= offset + 2, `${pulled} chunks for ${offset}`);
    if (offset === 50) break;
  }
});

/** Reads of the gateway itself, cut after so many bytes; after the cuts it serves as it should. */
function cuttingHost(topic: HttpTopic, cuts: readonly number[]): Host {
  let next = 0;
  return {
    ...createClientHost(() => problem(500)).host,
    // Pauses are nothing, and nothing is late.
    after: (delayMs, work) => {
      if (delayMs < 20_000) setImmediate(work);
      return () => {};
    },
    async fetch(url, init) {
      const cut = cuts[next++];
      if (cut === 0) throw new TypeError("refused");
      if (cut === 1) return problem(503);
      const response = await topic.app.fetch(new Request(url, init));
      if (cut === undefined || response.body === null) return response;
      let left = cut;
      const cutting = new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          controller.enqueue(chunk.slice(0, left));
          left -= chunk.length;
          if (left <= 0) controller.error(new TypeError("reset"));
        },
      });
      return new Response(response.body.pipeThrough(cutting), { status: response.status });
    },
  };
}

test("each record comes exactly once and in the order of its partition, wherever the gateway is cut", async () => {
  const batches = fc.array(
    fc.record({ partition: fc.nat(2), count: fc.integer({ min: 1, max: 30 }) }),
    { minLength: 1, maxLength: 6 },
  );
  const cuts = fc.array(fc.oneof(fc.nat(1), fc.nat(400), fc.nat(5_000)), { maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(batches, cuts, fc.nat(5), async (appends, cutAt, late) => {
      const topic = createHttpTopic(3);
      const expected: string[][] = [[], [], []];
      const append = ({ partition, count }: { partition: number; count: number }) => {
        const values = Array.from({ length: count }, () => `ü${expected[partition]!.length}`);
        for (const value of values) {
          expected[partition]!.push(`${expected[partition]!.length} ${value}`);
        }
        topic.append(partition, ...values.map((value) => ({ value })));
      };
      const total = appends.reduce((sum, { count }) => sum + count, 0);
      for (const one of appends.slice(late)) append(one);
      const http = new Http(cuttingHost(topic, cutAt), { url: "http://node" });
      const got: string[][] = [[], [], []];
      const stop = new AbortController();
      const options: ConsumeOptions = { signal: stop.signal };
      const done = (async () => {
        let count = 0;
        for await (
          const { partition, offset, value } of new Topic(http, "t", {}).consume(options)
        ) {
          got[partition]!.push(`${offset} ${String(value)}`);
          if (++count === total) break;
        }
      })();
      for (const one of appends.slice(0, late)) {
        await topic.clock.settle();
        append(one);
      }
      await done;
      stop.abort();
      assert.deepEqual(got, expected);
      await topic.clock.settle();
      assert.equal(topic.held, 0);
    }),
    { numRuns: 40 },
  );
});
