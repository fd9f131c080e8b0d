/** Reads of the gateway over a real node: cursors, caches, batches, fetch, streams that meet real logs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { nodeOptions } from "../../tests/support/node_options.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { utf8 } from "../lib/bytes.ts";
import { createMemoryStore } from "../object/memory.ts";
import { readRecords } from "../protocol/record.ts";
import { lastOffset, readBatchHeader } from "../protocol/record_batch.ts";
import { startNode } from "./node.ts";

async function rig() {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const node = await startNode(nodeOptions(createMemoryStore(clock), { env }));
  const drive = async <T>(work: Promise<T>): Promise<T> => {
    let isOver = false;
    const settled = work.finally(() => void (isOver = true));
    settled.catch(() => {});
    while (!isOver) await clock.advance(20);
    return await settled;
  };
  const get = (path: string, headers: Record<string, string> = {}) =>
    drive(node.fetch(new Request(`http://node${path}`, { headers })));
  const send = (method: string, path: string, body?: unknown) =>
    drive(node.fetch(
      new Request(`http://node${path}`, {
        method,
        headers: { "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    ));
  const post = (path: string, body: unknown) => send("POST", path, body);
  const json = async <T>(response: Promise<Response>): Promise<T> =>
    await (await response).json() as T;
  return { node, env, clock, drive, get, post, send, json };
}

interface Merged {
  readonly records: readonly {
    readonly partition: number;
    readonly offset: number;
    readonly value: string;
  }[];
  readonly cursor: string;
  readonly upToDate: boolean;
}

test("pages over all partitions: each record once, in the order of its partition, no partition behind", async () => {
  const { node, get, post, json, drive } = await rig();
  await post("/v1/topics", { name: "t", partitions: 4 });
  const records = Array.from({ length: 60 }, (_, i) => ({ value: `${i}`, partition: i % 4 }));
  await post("/v1/topics/t/records", records);
  const seen: string[] = [];
  let page = await json<Merged>(get("/v1/topics/t/records?limit=8"));
  assert.deepEqual([0, 1, 2, 3].map((p) => page.records.filter((r) => r.partition === p).length), [
    2,
    2,
    2,
    2,
  ]);
  for (let pages = 0; pages < 20; pages++) {
    seen.push(...page.records.map(({ value }) => value));
    if (page.upToDate) break;
    page = await json<Merged>(get(`/v1/topics/t/records?limit=8&cursor=${page.cursor}`));
  }
  assert.deepEqual(seen.map(Number).toSorted((a, b) => a - b), records.map((_, i) => i));
  for (const p of [0, 1, 2, 3]) {
    const inPartition = seen.map(Number).filter((value) => value % 4 === p);
    assert.deepEqual(inPartition, inPartition.toSorted((a, b) => a - b));
  }
  const lines = await get("/v1/topics/t/records?limit=3", { accept: "application/x-ndjson" });
  assert.equal((await lines.text()).trimEnd().split("\n").length, 3);
  assert.ok(lines.headers.get("kafka-cursor"));
  await drive(node.close());
});

test("a small page begins with another partition each time", async () => {
  const { node, get, post, json, drive } = await rig();
  await post("/v1/topics", { name: "t", partitions: 3 });
  const records = Array.from({ length: 9 }, (_, i) => ({ value: `${i}`, partition: i % 3 }));
  await post("/v1/topics/t/records", records);
  const order: number[] = [];
  let cursor = "";
  for (let i = 0; i < 9; i++) {
    const page: Merged = await json(get(`/v1/topics/t/records?limit=1${cursor}`));
    order.push(page.records[0]!.partition);
    cursor = `&cursor=${page.cursor}`;
  }
  assert.deepEqual(order, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
  await drive(node.close());
});

test("a merged read waits for a record of any partition", async () => {
  const { node, get, post, json, drive, clock } = await rig();
  await post("/v1/topics", { name: "t", partitions: 3 });
  const { cursor } = await json<Merged>(get("/v1/topics/t/records"));
  const path = `http://node/v1/topics/t/records?wait=20000&cursor=${cursor}`;
  const waiting = node.fetch(new Request(path));
  await clock.advance(5_000);
  await post("/v1/topics/t/records", { value: "late", partition: 2 });
  const page = await json<Merged>(drive(waiting));
  assert.deepEqual(page.records.map(({ partition, value }) => [partition, value]), [[2, "late"]]);
  const empty = await json<Merged>(get(`/v1/topics/t/records?wait=1000&cursor=${page.cursor}`));
  assert.deepEqual(empty.records, []);
  assert.equal(empty.upToDate, true);
  await drive(node.close());
});

test("a topic that was deleted and created again is told from the one of the cursor", async () => {
  const { node, get, post, send, json, drive } = await rig();
  await post("/v1/topics", { name: "t", partitions: 1 });
  await post("/v1/topics", { name: "u", partitions: 1 });
  await post("/v1/topics/t/records", { value: "a" });
  const { cursor } = await json<Merged>(get("/v1/topics/t/records"));
  const { topicId } = await json<{ topicId: string }>(get("/v1/topics/t"));
  assert.equal((await get(`/v1/topics/u/records?cursor=${cursor}`)).status, 400);
  assert.equal(
    (await get(`/v1/topics/t/partitions/0/records?topicId=${topicId}`)).status,
    200,
  );
  await send("DELETE", "/v1/topics/t");
  assert.equal((await get(`/v1/topics/t/records?cursor=${cursor}`)).status, 404);
  await post("/v1/topics", { name: "t", partitions: 1 });
  assert.equal((await get(`/v1/topics/t/records?cursor=${cursor}`)).status, 410);
  assert.equal((await get(`/v1/topics/t/stream?cursor=${cursor}`)).status, 410);
  const byId = await get(`/v1/topics/t/partitions/0/records?topicId=${topicId}`);
  assert.equal(byId.status, 410);
  assert.equal((await byId.json() as { kafka: { name: string } }).kafka.name, "UNKNOWN_TOPIC_ID");
  await drive(node.close());
});

test("a full page under the topic's id is the same bytes for ever; without it, it is revalidated", async () => {
  const { node, get, post, json, drive } = await rig();
  await post("/v1/topics", { name: "t", partitions: 1 });
  await post("/v1/topics", { name: "c", partitions: 1, configs: { "cleanup.policy": "compact" } });
  const { topicId } = await json<{ topicId: string }>(get("/v1/topics/t"));
  await post("/v1/topics/t/records", ["a", "b", "c"].map((value) => ({ value })));
  await post("/v1/topics/c/records", ["a", "b"].map((value) => ({ key: "k", value })));
  const path = `/v1/topics/t/partitions/0/records?offset=0&limit=2&topicId=${topicId}`;
  const first = await get(path);
  assert.match(first.headers.get("cache-control")!, /immutable/);
  const text = await first.text();
  await post("/v1/topics/t/records", { value: "d" });
  const second = await get(path);
  assert.equal(await second.text(), text);
  const etag = first.headers.get("etag")!;
  assert.equal(second.headers.get("etag"), etag);
  const known = await get(path, { "if-none-match": etag });
  assert.equal(known.status, 304);
  assert.equal(await known.text(), "");
  assert.equal(known.headers.get("etag"), etag);
  assert.notEqual((await get(path + "&encoding=base64")).headers.get("etag"), etag);
  const byName = await get("/v1/topics/t/partitions/0/records?offset=0&limit=2");
  assert.equal(byName.headers.get("cache-control"), "no-cache");
  const open = await get("/v1/topics/t/partitions/0/records?offset=0");
  assert.equal(open.headers.get("cache-control"), "no-store");
  const compacted = await get("/v1/topics/c/partitions/0/records?offset=0&limit=1");
  assert.equal(compacted.headers.get("cache-control"), "no-store");
  await drive(node.close());
});

test("raw batches are what was stored, with their offsets in headers", async () => {
  const { node, env, get, post, drive } = await rig();
  await post("/v1/topics", { name: "t", partitions: 1 });
  await post("/v1/topics/t/records", [{ value: "a" }, { value: "b" }]);
  await post("/v1/topics/t/records", { value: "c" });
  const accept = { accept: "application/vnd.kafka.batch" };
  const answer = await get("/v1/topics/t/partitions/0/records?offset=1&maxBytes=1", accept);
  assert.equal(answer.headers.get("content-type"), "application/vnd.kafka.batch");
  assert.equal(answer.headers.get("kafka-next-offset"), "2");
  assert.equal(answer.headers.get("kafka-high-watermark"), "3");
  assert.match(answer.headers.get("etag")!, /^"/);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  assert.equal(lastOffset(readBatchHeader(bytes)), 1, "whole batches, the first from before");
  const values = [...readRecords(bytes, env.codecs)].map(({ value }) => utf8(value!));
  assert.deepEqual(values, ["a", "b"]);
  const rest = await get("/v1/topics/t/partitions/0/records?offset=2", accept);
  assert.equal(readBatchHeader(new Uint8Array(await rest.arrayBuffer())).baseOffset, 2);
  const end = await get("/v1/topics/t/partitions/0/records?offset=3", accept);
  assert.equal((await end.arrayBuffer()).byteLength, 0);
  await drive(node.close());
});

test("a read begins at a time, or so many records before the end", async () => {
  const { node, get, post, json, drive } = await rig();
  await post("/v1/topics", { name: "t", partitions: 1 });
  const records = [1_000, 2_000, 3_000].map((timestamp) => ({ value: `${timestamp}`, timestamp }));
  for (const record of records) await post("/v1/topics/t/records", record);
  const values = async (query: string) => {
    const page = await json<Merged>(get(`/v1/topics/t/partitions/0/records?${query}`));
    return page.records.map(({ value }) => value);
  };
  assert.deepEqual(await values("timestamp=1500"), ["2000", "3000"]);
  assert.deepEqual(await values("timestamp=3000"), ["3000"]);
  assert.deepEqual(await values("timestamp=3001"), []);
  assert.deepEqual(await values("tail=1"), ["3000"]);
  assert.deepEqual(await values("tail=99"), ["1000", "2000", "3000"]);
  assert.deepEqual(await values("tail=0"), []);
  assert.equal((await get("/v1/topics/t/partitions/0/records?tail=1&offset=0")).status, 400);
  await drive(node.close());
});

test("a fetch of many partitions has the records or the error of each", async () => {
  const { node, get, post, json, drive } = await rig();
  await post("/v1/topics", { name: "a", partitions: 2 });
  await post("/v1/topics", { name: "b", partitions: 1 });
  await post("/v1/topics/a/records", [{ value: "a0", partition: 0 }, {
    value: "a1",
    partition: 1,
  }]);
  const asked = {
    topics: [
      { topic: "a", partitions: [{ partition: 0 }, { partition: 1, offset: 5 }] },
      { topic: "b", partitions: [{ partition: 0, offset: "latest" }] },
      { topic: "none", partitions: [{ partition: 0 }] },
    ],
    encoding: "base64",
  };
  interface Answer {
    readonly topics: readonly {
      readonly topic: string;
      readonly partitions: readonly {
        readonly partition: number;
        readonly records?: readonly { readonly value: string }[];
        readonly next?: number;
        readonly error?: { readonly name: string; readonly latest?: number };
      }[];
    }[];
  }
  const { topics } = await json<Answer>(post("/v1/fetch", asked));
  assert.deepEqual(topics.map(({ topic }) => topic), ["a", "b", "none"]);
  assert.equal(topics[0]!.partitions[0]!.records![0]!.value, btoa("a0"));
  assert.equal(topics[0]!.partitions[0]!.next, 1);
  assert.equal(topics[0]!.partitions[1]!.error!.name, "OFFSET_OUT_OF_RANGE");
  assert.equal(topics[0]!.partitions[1]!.error!.latest, 1);
  assert.deepEqual(topics[1]!.partitions[0]!.records, []);
  assert.equal(topics[2]!.partitions[0]!.error!.name, "UNKNOWN_TOPIC_OR_PARTITION");
  for (const body of [{ topics: 1 }, { topics: [], extra: 1 }, { topics: [{ topic: "a" }] }]) {
    assert.equal((await post("/v1/fetch", body)).status, 400);
  }
  assert.equal((await get("/v1/fetch")).status, 405);
  await drive(node.close());
});

test("WarpStream's fetch, as a body and in the query", async () => {
  const { node, get, post, json, drive } = await rig();
  await post("/v1/topics", { name: "a", partitions: 1 });
  await post("/v1/topics/a/records", { key: "k", value: "v", headers: [["h", "w"]], timestamp: 7 });
  await post("/v1/topics/a/records", { key: "k", value: null });
  const asked = {
    max_bytes: 50_000_000,
    max_wait_ms: 500,
    topics: [{
      topic: "a",
      partitions: [
        { partition: 0, fetch_offset: 0, partition_max_bytes: 1_048_576 },
        { partition: 1, fetch_offset: 0 },
      ],
    }],
  };
  const expected = {
    topics: [{
      topic: "a",
      partitions: [
        {
          partition: 0,
          error_code: 0,
          high_watermark: 2,
          records: [
            {
              offset: 0,
              timestamp: 7,
              key: btoa("k"),
              value: btoa("v"),
              headers: [{ key: "h", value: btoa("w") }],
            },
            { offset: 1, key: btoa("k"), value: null, headers: [] },
          ],
        },
        { partition: 1, error_code: 3, high_watermark: -1, records: [] },
      ],
    }],
  };
  const strip = (answer: typeof expected) => {
    const second = answer.topics[0]!.partitions[0]!.records[1] as { timestamp?: number };
    delete second.timestamp;
    return answer;
  };
  assert.deepEqual(strip(await json(post("/v1/kafka/fetch", asked))), expected);
  const query = encodeURIComponent(JSON.stringify(asked));
  assert.deepEqual(strip(await json(get(`/v1/kafka/fetch?request=${query}`))), expected);
  assert.equal((await get("/v1/kafka/fetch")).status, 400);
  await drive(node.close());
});

test("a live stream over real logs: records, a trimmed start, new partitions, the end of the topic", async () => {
  const { node, env, post, send, drive, clock } = await rig();
  await post("/v1/topics", { name: "t", partitions: 2 });
  const response = await drive(node.fetch(new Request("http://node/v1/topics/t/stream")));
  let text = "";
  const pump = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body!) text += decoder.decode(chunk, { stream: true });
  })();
  for (let i = 0; i < 5; i++) {
    await post("/v1/topics/t/records", { value: `v${i}`, partition: i % 2 });
  }
  await clock.advance(100);
  assert.deepEqual([...text.matchAll(/"value":"(v\d)"/g)].map(([, value]) => value), [
    "v0",
    "v1",
    "v2",
    "v3",
    "v4",
  ]);
  assert.match(env.metrics.render(), /^skerry_http_streams_open 1$/m);
  await send("DELETE", "/v1/topics/t");
  await drive(pump);
  assert.ok(text.endsWith('event: end\ndata: {"reason":"topic-deleted"}\n\n'), text);
  assert.match(env.metrics.render(), /^skerry_http_streams_bytes 0$/m);
  await drive(node.close());
});

test("a node that stops ends its streams and its waiting reads at once", async () => {
  const { node, post, drive } = await rig();
  await post("/v1/topics", { name: "t", partitions: 1 });
  const response = await drive(node.fetch(new Request("http://node/v1/topics/t/stream")));
  const waiting = node.fetch(new Request("http://node/v1/topics/t/records?wait=30000"));
  await drive(node.close());
  assert.match(await response.text(), /"reason":"server-stop"/);
  assert.ok((await drive(waiting)).status >= 200);
});

test("the values of a page are shown as the reader asks", async () => {
  const { node, get, post, drive } = await rig();
  await post("/v1/topics", { name: "t", partitions: 1 });
  const values = ['{"a" : 1.0}', "plain", { $base64: btoa("\xff") }];
  await post("/v1/topics/t/records", values.map((value) => ({ value })));
  const shown = async (encoding: string) => {
    const answer = await get(`/v1/topics/t/partitions/0/records?encoding=${encoding}`);
    return [...(await answer.text()).matchAll(/"value":(.*?),"headers"/g)].map(([, text]) => text);
  };
  const ff = '{"$base64":"/w=="}';
  assert.deepEqual(await shown("auto"), ['"{\\"a\\" : 1.0}"', '"plain"', ff]);
  assert.deepEqual(await shown("text"), ['"{\\"a\\" : 1.0}"', '"plain"', '"\ufffd"']);
  assert.deepEqual(await shown("base64"), [
    `"${btoa('{"a" : 1.0}')}"`,
    `"${btoa("plain")}"`,
    '"/w=="',
  ]);
  assert.deepEqual(await shown("json"), ['{"a" : 1.0}', `{"$base64":"${btoa("plain")}"}`, ff]);
  assert.equal((await get("/v1/topics/t/partitions/0/records?encoding=x")).status, 400);
  await drive(node.close());
});
