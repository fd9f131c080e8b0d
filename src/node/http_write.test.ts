import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { nodeOptions } from "../../tests/support/node_options.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { toUtf8 } from "../lib/bytes.ts";
import { REQUEST_WINDOW_MS } from "../lib/limits.ts";
import { createMemoryStore } from "../object/memory.ts";
import { buildBatch } from "../protocol/record_batch.ts";
import { type RunningNode, startNode } from "./node.ts";

interface Result {
  readonly partition?: number;
  readonly offset?: number;
  readonly timestamp?: number;
  readonly duplicate?: boolean;
  readonly topic?: string;
  readonly error?: { readonly name: string };
}

type Headers = Readonly<Record<string, string>>;

/** A node on a store of its own. */
async function world(kafka: Record<string, string> = {}) {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const base = nodeOptions(createMemoryStore(clock), { env });
  const node: RunningNode = await startNode({ ...base, settings: { ...base.settings, kafka } });
  const send = (path: string, body: RequestInit["body"], headers: Headers = {}) =>
    node.fetch(new Request(`http://node${path}`, { method: "POST", body: body ?? null, headers }));
  const json = (path: string, body: unknown, headers: Headers = {}) =>
    send(path, JSON.stringify(body), { "content-type": "application/json", ...headers });
  const get = async (path: string) =>
    await (await node.fetch(new Request(`http://node${path}`))).json() as {
      records: { offset: number; value: string; key: string; headers: [string, unknown][] }[];
      next: number;
    };
  const values = async (topic: string, partition = 0) =>
    (await get(`/v1/topics/${topic}/partitions/${partition}/records?limit=10000`)).records
      .map(({ value }) => value);
  return { node, clock, env, send, json, get, values };
}

async function resultsOf(response: Response): Promise<readonly Result[]> {
  return (await response.json() as { results: readonly Result[] }).results;
}

const RECORDS = "/v1/topics/t/records";
const PARTITION = "/v1/topics/t/partitions/0/records";

describe("Idempotency-Key", () => {
  test("the same request again is answered from what is stored", async () => {
    const { node, clock, json, values } = await world({ "num.partitions": "3" });
    const records = [
      { key: "a", value: "1" },
      { key: "b", value: "2", timestamp: 5 },
      { value: "3" },
      { value: "4", partition: 1 },
    ];
    const key = { "idempotency-key": '"4f-\\"1\\""' };
    const first = await json(RECORDS, records, key);
    assert.equal(first.status, 200);
    assert.equal(first.headers.get("idempotency-window"), "seconds=600, keys=65536");
    assert.equal(first.headers.get("idempotent-replayed"), null);
    const results = await resultsOf(first);
    assert.equal(results[1]!.timestamp, 5);
    await clock.advance(10);
    for (const again of [key, { "idempotency-key": '4f-"1"' }]) {
      const answer = await json(RECORDS, records, again);
      // A quote is no part of a bare key: that one is another key, or none.
      if (again !== key) {
        assert.equal(answer.status, 400);
        continue;
      }
      assert.equal(answer.headers.get("idempotent-replayed"), "true");
      assert.deepEqual(
        await resultsOf(answer),
        results.map((result) => ({ ...result, duplicate: true })),
      );
    }
    const stored = await Promise.all([0, 1, 2].map((partition) => values("t", partition)));
    assert.deepEqual(stored.flat().toSorted(), ["1", "2", "3", "4"]);
    await node.close();
  });

  test("with other records it is refused, wherever they would go", async () => {
    const { node, json, values } = await world({ "num.partitions": "8" });
    const key = { "idempotency-key": "k" };
    assert.equal((await json(RECORDS, { key: "a", value: "1" }, key)).status, 200);
    for (let i = 0; i < 8; i++) {
      const other = await json(RECORDS, { value: "1", partition: i }, key);
      assert.equal(other.status, 422);
    }
    assert.equal((await json(PARTITION, { key: "a", value: "1" }, key)).status, 422);
    assert.equal((await json(RECORDS, { key: "a", value: "1" }, key)).status, 200);
    // Another topic has keys of its own.
    assert.equal((await json("/v1/topics/u/records", { value: "9" }, key)).status, 200);
    const stored = await Promise.all(Array.from({ length: 8 }, (_, i) => values("t", i)));
    assert.deepEqual(stored.flat(), ["1"]);
    await node.close();
  });

  test("a request that is cut into many batches is one", async () => {
    const { node, clock, json, values } = await world();
    const value = "x".repeat(10_000);
    const records = Array.from({ length: 300 }, (_, i) => ({ value: `${i}:${value}` }));
    const key = { "idempotency-key": "large" };
    const first = await resultsOf(await json(RECORDS, records, key));
    const again = await json(RECORDS, records, key);
    assert.equal(again.headers.get("idempotent-replayed"), "true");
    assert.deepEqual(
      (await resultsOf(again)).map(({ offset }) => offset),
      first.map((r) => r.offset),
    );
    assert.equal((await values("t")).length > 0, true);
    const closing = node.close();
    await clock.advance(1);
    await closing;
  });

  test("records behind one that is refused are refused, and come in by a later retry", async () => {
    const { node, clock, json } = await world({ "message.max.bytes": "4000" });
    const records = ["a", "b".repeat(5_000), "c"].map((value) => ({ value }));
    const key = { "idempotency-key": "k" };
    for (const isAgain of [false, true]) {
      const answer = await json(RECORDS, records, key);
      assert.equal(answer.status, 207);
      const [a, b, c] = await resultsOf(answer);
      assert.deepEqual([a!.offset, a!.duplicate ?? false], [0, isAgain]);
      assert.deepEqual([b!.error!.name, c!.error!.name], [
        "MESSAGE_TOO_LARGE",
        "MESSAGE_TOO_LARGE",
      ]);
    }
    await clock.advance(1);
    await node.close();
  });

  test("past the window the key is free again", async () => {
    const { node, clock, json, values } = await world();
    const key = { "idempotency-key": "k" };
    await json(RECORDS, { value: "a" }, key);
    await clock.advance(REQUEST_WINDOW_MS - 60_000);
    assert.equal((await json(RECORDS, { value: "b" }, key)).status, 422);
    await clock.advance(120_000);
    assert.equal((await json(RECORDS, { value: "b" }, key)).status, 200);
    assert.deepEqual(await values("t"), ["a", "b"]);
    await node.close();
  });

  test("what is no key is refused", async () => {
    const { node, json } = await world();
    for (const text of ['""', '"a', "a b", '"ä"', "x".repeat(256), "one, two"]) {
      const answer = await json(RECORDS, { value: "a" }, { "idempotency-key": text });
      assert.equal(answer.status, 400, text);
    }
    await node.close();
  });
});

describe("Producer-Id", () => {
  const stamp = (id: number, epoch: number, seq: number): Headers => ({
    "producer-id": String(id),
    "producer-epoch": String(epoch),
    "producer-seq": String(seq),
  });

  test("numbers are checked as Kafka's, and a repeat is answered with the first offsets", async () => {
    const { node, clock, json, send, values } = await world();
    const created = await send("/v1/producers", null);
    assert.equal(created.status, 201);
    const { producerId, producerEpoch } = await created.json() as Record<string, number>;
    assert.equal(created.headers.get("producer-id"), String(producerId));
    assert.equal(producerEpoch, 0);
    const two = [{ value: "a" }, { value: "b" }];
    const first = await json(PARTITION, two, stamp(producerId!, 0, 0));
    const results = await resultsOf(first);
    assert.deepEqual(results.map(({ offset }) => offset), [0, 1]);
    await clock.advance(7);
    const again = await resultsOf(await json(PARTITION, two, stamp(producerId!, 0, 0)));
    assert.deepEqual(again, results.map((result) => ({ ...result, duplicate: true })));
    assert.equal((await json(PARTITION, { value: "c" }, stamp(producerId!, 0, 2))).status, 200);

    const gap = await json(PARTITION, { value: "x" }, stamp(producerId!, 0, 7));
    assert.equal(gap.status, 409);
    assert.equal(gap.headers.get("producer-expected-seq"), "3");
    assert.equal(gap.headers.get("producer-received-seq"), "7");
    assert.equal((await gap.json() as { expectedSeq: number }).expectedSeq, 3);

    assert.equal((await json(PARTITION, { value: "d" }, stamp(producerId!, 1, 0))).status, 200);
    const stale = await json(PARTITION, { value: "x" }, stamp(producerId!, 0, 3));
    assert.equal(stale.status, 409);
    assert.equal(stale.headers.get("producer-epoch"), "1");
    const bumped = await json(PARTITION, { value: "x" }, stamp(producerId!, 2, 4));
    assert.equal(bumped.headers.get("producer-expected-seq"), "0");
    assert.deepEqual(await values("t"), ["a", "b", "c", "d"]);
    await node.close();
  });

  test("all or none, for one partition, and nothing beside them", async () => {
    const { node, json } = await world();
    const all = stamp(1, 0, 0);
    const cases: (readonly [string, unknown, Headers])[] = [
      [PARTITION, { value: "a" }, { "producer-id": "1" }],
      [PARTITION, { value: "a" }, { ...all, "producer-seq": "x" }],
      [PARTITION, { value: "a" }, { ...all, "producer-epoch": "32768" }],
      [PARTITION, { value: "a" }, { ...all, "idempotency-key": "k" }],
      [PARTITION, { value: "a" }, { ...all, "if-match": '"0"' }],
      [RECORDS, { value: "a" }, all],
      [RECORDS, [{ key: "a", value: "a" }, { key: "b", value: "a" }], all],
      [`${PARTITION}?acks=0`, { value: "a" }, all],
      ["/v1/records", { topic: "t", value: "a" }, all],
    ];
    for (const [path, body, headers] of cases) {
      assert.equal((await json(path, body, headers)).status, 400, JSON.stringify([path, headers]));
    }
    const sameKey = [{ key: "a", value: "1" }, { key: "a", value: "2" }];
    assert.equal((await json(RECORDS, sameKey, all)).status, 200);
    await node.close();
  });
});

describe("If-Match", () => {
  test("appends only where the log ends", async () => {
    const { node, json, values } = await world();
    assert.equal((await json(PARTITION, { value: "a" }, { "if-match": '"0"' })).status, 200);
    const late = await json(PARTITION, { value: "b" }, { "if-match": '"0"' });
    assert.equal(late.status, 412);
    assert.equal(late.headers.get("kafka-next-offset"), "1");
    assert.equal((await late.json() as { next: number }).next, 1);
    assert.equal((await json(PARTITION, { value: "c" }, { "if-match": "1" })).status, 200);
    assert.equal((await json(PARTITION, { value: "d" }, { "if-match": "*" })).status, 200);
    assert.equal((await json(RECORDS, { value: "x" }, { "if-match": '"3"' })).status, 400);
    for (const text of ['W/"3"', '"2", "3"', "-1", ""]) {
      const answer = await json(PARTITION, { value: "x" }, { "if-match": text });
      assert.equal(answer.status, 400, text);
    }
    assert.deepEqual(await values("t"), ["a", "c", "d"]);
    const missing = await json("/v1/topics/u/partitions/0/records", { value: "x" }, {
      "if-match": "*",
    });
    assert.equal(missing.status, 404);
    await node.close();
  });

  test("of many that race for an offset one wins", async () => {
    const { node, json, values } = await world();
    const answers = await Promise.all(
      Array.from(
        { length: 20 },
        (_, i) => json(PARTITION, { value: `${i}` }, { "if-match": '"0"' }),
      ),
    );
    assert.equal(answers.filter(({ status }) => status === 200).length, 1);
    assert.equal(answers.filter(({ status }) => status === 412).length, 19);
    assert.equal((await values("t")).length, 1);
    await node.close();
  });

  test("a request that is in already is answered, whatever the condition", async () => {
    const { node, json, values } = await world();
    const headers = { "if-match": '"0"', "idempotency-key": "k" };
    for (const status of [200, 200]) {
      assert.equal((await json(PARTITION, { value: "a" }, headers)).status, status);
    }
    const other = { ...headers, "idempotency-key": "other" };
    assert.equal((await json(PARTITION, { value: "a" }, other)).status, 412);
    assert.deepEqual(await values("t"), ["a"]);
    await node.close();
  });
});

describe("record batches", () => {
  const type = { "content-type": "application/vnd.kafka.batch" };

  test("one is stored as it is, with its producer's numbers", async () => {
    const { node, env, send, values } = await world();
    const build = (over = {}) =>
      buildBatch({
        records: ["a", "b"].map((value) => ({
          key: null,
          value: toUtf8(value),
          headers: [],
          timestampMs: 9,
        })),
        codec: "gzip",
        codecs: env.codecs,
        ...over,
      }) as Uint8Array<ArrayBuffer>;
    const numbered = { producerId: 5, producerEpoch: 0, baseSequence: 0 };
    const first = await send(PARTITION, build(numbered), type);
    assert.deepEqual(await first.json(), {
      partition: 0,
      baseOffset: 0,
      lastOffset: 1,
      timestamp: 9,
    });
    const again = await (await send(PARTITION, build(numbered), type)).json();
    assert.equal((again as { duplicate: boolean }).duplicate, true);
    const gap = await send(PARTITION, build({ ...numbered, baseSequence: 9 }), type);
    assert.equal(gap.status, 409);
    const damaged = build();
    damaged[damaged.length - 1]! ^= 1;
    const statuses = [
      [PARTITION, damaged, {}, 400],
      [PARTITION, build({ control: true }), {}, 422],
      [PARTITION, build({ ...numbered, producerId: 6, transactional: true }), {}, 400],
      [PARTITION, build({ baseSequence: -2 }), {}, 422],
      [PARTITION, toUtf8("no batch"), {}, 422],
      [PARTITION, new Uint8Array(0), {}, 422],
      [RECORDS, build(), {}, 400],
      [PARTITION, build(), { "idempotency-key": "k" }, 400],
      [PARTITION, build(numbered), { "if-match": "2" }, 400],
      [PARTITION, build(), { "if-match": "1" }, 412],
      [PARTITION, build(), { "if-match": "2" }, 200],
      ["/v1/topics/t/partitions/9/records", build(), {}, 404],
    ] as const;
    for (const [i, [path, body, headers, status]] of statuses.entries()) {
      const answer = await send(path, body as Uint8Array<ArrayBuffer>, { ...type, ...headers });
      assert.equal(answer.status, status, `${i}: ${await answer.text()}`);
    }
    assert.deepEqual(await values("t"), ["a", "b", "a", "b"]);
    await node.close();
  });
});

describe("many topics, and nobody who waits", () => {
  test("each record has its result, in order, whatever its topic", async () => {
    const { node, json, send, values } = await world();
    const answer = await json("/v1/records", [
      { topic: "a", value: "1" },
      { topic: "b", value: "2" },
      { topic: "no/name", value: "x" },
      { topic: "a", value: "3" },
    ]);
    assert.equal(answer.status, 207);
    const results = await resultsOf(answer);
    assert.deepEqual(results.map(({ topic, offset }) => [topic, offset]), [
      ["a", 0],
      ["b", 0],
      ["no/name", undefined],
      ["a", 1],
    ]);
    assert.equal(results[2]!.error!.name, "INVALID_TOPIC_EXCEPTION");
    const lines = '{"topic":"a","value":"4"}\n{"topic":"b","value":"5"}\n';
    const ndjson = { "content-type": "application/x-ndjson" };
    assert.equal((await send("/v1/records", lines, ndjson)).status, 200);
    assert.deepEqual([await values("a"), await values("b")], [["1", "3", "4"], ["2", "5"]]);
    assert.equal((await send("/v1/records", "raw")).status, 415);
    assert.equal((await json("/v1/records", { value: "no topic" })).status, 400);
    assert.equal((await json("/v1/records", { topic: "a", value: "v", x: 1 })).status, 400);
    const many = Array.from({ length: 101 }, (_, i) => ({ topic: `t${i}`, value: "v" }));
    assert.equal((await json("/v1/records", many)).status, 413);
    await node.close();
  });

  test("acks=0 is answered before anything is stored", async () => {
    const { node, clock, json, values } = await world();
    for (const path of [`${RECORDS}?acks=0`, "/v1/records?acks=0"]) {
      const record = path.startsWith("/v1/records") ? { topic: "t", value: "a" } : { value: "a" };
      const answer = await json(path, record);
      assert.equal(answer.status, 202);
      assert.deepEqual(await answer.json(), { accepted: 1 });
    }
    await clock.advance(10);
    assert.deepEqual(await values("t"), ["a", "a"]);
    assert.equal((await json(`${RECORDS}?acks=1`, { value: "a" })).status, 400);
    assert.equal((await json(`${RECORDS}?acks=0`, "no envelope")).status, 400);
    await node.close();
  });
});
