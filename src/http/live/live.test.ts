import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createHttpTopic, type HttpTopic, TOPIC_ID } from "../../../tests/support/http_topic.ts";
import {
  HTTP_HEARTBEAT_MS,
  HTTP_RECORD_BYTES_MAX,
  HTTP_STREAM_HOLD_MS,
  WRITE_STALL_MS,
} from "../../lib/limits.ts";
import { encodeCursor } from "../read/cursor.ts";

function cursor(turn: number, ...positions: readonly (readonly [number, number])[]): string {
  return encodeCursor("t", { topicId: TOPIC_ID, turn, positions: new Map(positions) });
}

function opening(at: string): string {
  return `retry: 1000\nevent: cursor\ndata: {"cursor":"${at}"}\nid: ${at}\n\n`;
}

function recordText(partition: number, offset: number, value: string): string {
  return `{"partition":${partition},"offset":${offset},"timestamp":1700000000000,"key":null,` +
    `"value":"${value}","headers":[]}`;
}

test("the text of a stream of events, byte by byte", async () => {
  const topic = createHttpTopic();
  topic.append(0, { key: "k", value: 'a"\n', headers: [["h", "v"]] }, { value: null });
  const stream = await topic.open();
  assert.deepEqual(Object.fromEntries(stream.response.headers), {
    "cache-control": "no-cache, no-transform",
    "content-type": "text/event-stream",
    "vary": "Accept",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-accel-buffering": "no",
  });
  assert.equal(await stream.readOnce(), opening(cursor(0)), "a first byte at once");
  assert.equal(
    await stream.read(),
    opening(cursor(0)) +
      'data: {"partition":0,"offset":0,"timestamp":1700000000000,"key":"k","value":"a\\"\\n",' +
      `"headers":[["h","v"]]}\nid: ${cursor(1, [0, 1])}\n\n` +
      'data: {"partition":0,"offset":1,"timestamp":1700000000000,"key":null,"value":null,' +
      `"headers":[]}\nid: ${cursor(1, [0, 2])}\n\n`,
  );
  await topic.clock.advance(HTTP_HEARTBEAT_MS);
  assert.ok(stream.text.endsWith("\n\n:\n"), "a sign of life is a comment without an id");
  topic.streams.close();
  await topic.clock.settle();
  assert.ok(stream.text.endsWith(':\nevent: end\ndata: {"reason":"server-stop"}\n\n'));
  assert.ok(stream.isOver);
  assert.equal(stream.error, null);
});

test("the text of a stream of lines: records with cursors, empty lines, and an end", async () => {
  const topic = createHttpTopic();
  topic.append(0, { value: "a" });
  const stream = await topic.open("", { accept: "application/x-ndjson" });
  assert.equal(stream.response.headers.get("content-type"), "application/x-ndjson");
  await stream.read();
  await topic.clock.advance(HTTP_HEARTBEAT_MS);
  topic.setTopic(null);
  await topic.clock.settle();
  assert.equal(
    stream.text,
    `{"cursor":"${cursor(0)}"}\n` +
      `{"cursor":"${cursor(1, [0, 1])}",${recordText(0, 0, "a").slice(1)}\n` +
      "\n" +
      '{"end":{"reason":"topic-deleted"}}\n',
  );
  assert.ok(stream.isOver);
});

test("from=latest has an id before the first record, so that a cut loses nothing", async () => {
  const topic = createHttpTopic(2);
  topic.append(0, { value: "old" });
  const first = await topic.open("?from=latest");
  assert.equal(await first.readOnce(), opening(cursor(0, [0, 1], [1, 0])));
  await first.cancel();
  topic.append(0, { value: "new" });
  const again = await topic.open("?from=latest", { "last-event-id": cursor(0, [0, 1], [1, 0]) });
  assert.ok((await again.read()).includes('"value":"new"'));
  assert.ok(!again.text.includes('"value":"old"'));
});

test("Last-Event-ID beats cursor, and cursor beats from", async () => {
  const topic = createHttpTopic();
  topic.append(0, { value: "v0" }, { value: "v1" }, { value: "v2" });
  const shows = async (query: string, headers: Record<string, string> = {}) => {
    const stream = await topic.open(query, headers);
    const text = await stream.read();
    await stream.cancel();
    return ["v0", "v1", "v2"].filter((value) => text.includes(`"${value}"`));
  };
  const [at1, at2] = [cursor(0, [0, 1]), cursor(0, [0, 2])];
  assert.deepEqual(await shows("?from=earliest"), ["v0", "v1", "v2"]);
  assert.deepEqual(await shows("?from=latest"), []);
  assert.deepEqual(await shows(`?from=latest&cursor=${at1}`), ["v1", "v2"]);
  assert.deepEqual(await shows(`?cursor=${at1}`, { "last-event-id": at2 }), ["v2"]);
});

test("a cursor that is broken, of an earlier topic or behind the end is refused before the stream", async () => {
  const topic = createHttpTopic();
  topic.append(0, { value: "a" });
  const refused = async (text: string) => (await topic.open(`?cursor=${text}`)).response;
  assert.equal((await refused("AAAA")).status, 400);
  const earlier = encodeCursor("t", { topicId: "f".repeat(32), turn: 0, positions: new Map() });
  const gone = await refused(earlier);
  assert.equal(gone.status, 410);
  assert.match((await gone.json() as { detail: string }).detail, /from=earliest/);
  const behind = await refused(cursor(0, [0, 2]));
  assert.equal(behind.status, 416);
  assert.deepEqual(
    await behind.json().then(({ partition, earliest, latest }) => [partition, earliest, latest]),
    [0, 0, 1],
  );
  assert.equal((await topic.open("?partitions=7")).response.status, 404);
  assert.equal((await topic.open("?nope=7")).response.status, 400);
  assert.equal(topic.streams.size, 0);
});

test("trimmed records are a gap, and reading goes on", async () => {
  const topic = createHttpTopic();
  topic.append(0, ...["a", "b", "c"].map((value) => ({ value })));
  topic.trim(0, 2);
  const stream = await topic.open(`?cursor=${cursor(0, [0, 1])}`);
  const text = await stream.read();
  assert.ok(
    text.includes(
      `event: gap\ndata: {"partition":0,"from":1,"to":2}\nid: ${cursor(1, [0, 2])}\n\n` +
        `data: ${recordText(0, 2, "c")}\nid: ${cursor(1, [0, 3])}\n\n`,
    ),
    text,
  );
});

test("a partition that fails is told once, tried again, and holds up no other", async () => {
  const topic = createHttpTopic(2);
  topic.fail(0, "KAFKA_STORAGE_ERROR");
  topic.append(0, { value: "a" });
  topic.append(1, { value: "b" });
  const stream = await topic.open();
  await stream.read();
  await topic.clock.advance(60_000);
  assert.equal(stream.text.split("event: problem").length, 2);
  assert.ok(stream.text.includes('"name":"KAFKA_STORAGE_ERROR"'));
  assert.ok(stream.text.includes(recordText(1, 0, "b")));
  const tries = topic.reads.filter(({ partition }) => partition === 0).length;
  assert.ok(tries > 3 && tries < 12, `${tries} tries in a minute`);
  topic.fail(0, null);
  await topic.clock.advance(20_000);
  assert.ok(stream.text.includes(recordText(0, 0, "a")));
});

test("a record that is too large for JSON is named with its raw route", async () => {
  const topic = createHttpTopic();
  topic.append(0, { value: new Uint8Array(HTTP_RECORD_BYTES_MAX + 1) }, { value: "b" });
  const text = await (await topic.open()).read();
  assert.ok(text.includes('"raw":"/v1/topics/t/partitions/0/records/0","next":1}'));
  assert.ok(text.includes(recordText(0, 1, "b")));
});

test("what does not match moves the id on with the next sign of life", async () => {
  const topic = createHttpTopic();
  topic.append(0, { key: "a", value: "no" }, { key: "b", value: "yes" }, { value: "no" });
  const stream = await topic.open("?keys=b");
  await stream.read();
  assert.deepEqual([...stream.text.matchAll(/"value":"(\w+)"/g)].map(([, value]) => value), [
    "yes",
  ]);
  await topic.clock.advance(HTTP_HEARTBEAT_MS);
  assert.ok(stream.text.endsWith(
    `event: cursor\ndata: {"cursor":"${cursor(1, [0, 3])}"}\nid: ${cursor(1, [0, 3])}\n\n`,
  ));
  await topic.clock.advance(HTTP_HEARTBEAT_MS);
  assert.ok(stream.text.endsWith("\n\n:\n"));
  topic.append(0, { key: "a", value: "no" });
  await topic.clock.advance(HTTP_HEARTBEAT_MS);
  assert.ok(stream.text.endsWith(`\nid: ${cursor(1, [0, 4])}\n\n`), "nothing matched at all");
});

test("partitioned=key reads only where the keys are", async () => {
  const topic = createHttpTopic(10);
  // murmur2("abc") & 0x7fffffff is 479470107.
  topic.append(7, { key: "abc", value: "yes" });
  const stream = await topic.open("?keys=abc&partitioned=key");
  assert.ok((await stream.read()).includes('"yes"'));
  assert.deepEqual([...new Set(topic.reads.map(({ partition }) => partition))], [7]);
});

test("a topic that grows is read from the beginning of its new partitions", async () => {
  const topic = createHttpTopic(1);
  const stream = await topic.open("?from=latest");
  await stream.read();
  topic.grow(2);
  topic.append(1, { value: "new" });
  await topic.clock.settle();
  assert.ok(stream.text.includes(recordText(1, 0, "new")));
});

test("a reader that stops holds a page for a while, then nothing, and gets everything later", async () => {
  const topic = createHttpTopic();
  const count = 2_000;
  const values = Array.from({ length: count }, (_, i) => ({ value: `${i}`.padStart(200, "-") }));
  topic.append(0, ...values);
  const stream = await topic.open();
  await stream.readOnce();
  await stream.readOnce();
  assert.equal(topic.held, 1);
  await topic.clock.advance(HTTP_STREAM_HOLD_MS + 1_000);
  assert.equal(topic.held, 0, "the page went back");
  await stream.read();
  const offsets = [...stream.text.matchAll(/"offset":(\d+)/g)].map(([, offset]) => Number(offset));
  assert.deepEqual(offsets, Array.from({ length: count }, (_, i) => i));
});

test("half a record is not read again: its page stays until the rest is taken", async () => {
  const topic = createHttpTopic();
  const values = ["a", "b"].map((letter) => letter.repeat(300_000));
  topic.append(0, ...values.map((value) => ({ value })));
  const stream = await topic.open();
  await stream.readOnce();
  await stream.readOnce();
  assert.ok(stream.text.endsWith("aaa"));
  await topic.clock.advance(HTTP_STREAM_HOLD_MS + 2_000);
  assert.equal(topic.held, 1);
  await stream.read();
  const shown = [...stream.text.matchAll(/^data: (\{"partition".*)$/gm)]
    .map(([, data]) => (JSON.parse(data!) as { value: string }).value);
  assert.deepEqual(shown.map(({ length }) => length), [300_000, 300_000]);
  assert.ok(shown.every((value, i) => value === values[i]));
});

test("a reader that takes nothing is cut off; one that waits for records is not", async () => {
  const topic = createHttpTopic();
  const idle = await topic.open();
  await idle.read();
  const stuck = await topic.open();
  await topic.clock.advance(WRITE_STALL_MS + HTTP_HEARTBEAT_MS + 1_000);
  assert.equal(topic.streams.size, 1);
  await stuck.read();
  assert.match(String(stuck.error), /does not read/);
  assert.equal(idle.isOver, false);
});

test("a client that goes away frees its place, its page and its waiter", async () => {
  for (const way of ["cancel", "leave"] as const) {
    const topic = createHttpTopic();
    const waiter = await topic.open();
    await waiter.read();
    assert.deepEqual([topic.streams.size, topic.waiting], [1, 1]);
    topic.append(0, ...Array.from({ length: 2_000 }, () => ({ value: "x".repeat(200) })));
    const reader = await topic.open();
    await reader.readOnce();
    await reader.readOnce();
    await topic.clock.settle();
    assert.equal(topic.held, 1);
    await reader[way]();
    if (way === "leave") waiter.leave();
    else topic.streams.close();
    await topic.clock.settle();
    assert.deepEqual([topic.streams.size, topic.waiting, topic.held], [0, 0, 0], way);
    assert.equal(topic.clock.timers, 0, "nothing is left to do");
  }
});

test("readers at the same place share a read, and the last one gives it back", async () => {
  const topic = createHttpTopic();
  const streams = [];
  for (let i = 0; i < 10; i++) streams.push(await topic.open());
  for (const stream of streams) await stream.read();
  topic.reads.splice(0);
  topic.append(0, ...Array.from({ length: 1_000 }, () => ({ value: "x".repeat(200) })));
  await topic.clock.settle();
  for (const stream of streams) assert.equal(stream.text.split('xx",').length, 1_001);
  assert.ok(topic.reads.length <= 2, `${topic.reads.length} reads`);
  const [slow, quick] = [await topic.open(), await topic.open()];
  await Promise.all([slow.readOnce(), quick.readOnce()]);
  await Promise.all([slow.readOnce(), quick.readOnce()]);
  await quick.read();
  assert.equal(topic.held, 1, "one still sends it");
  await slow.cancel();
  assert.deepEqual([topic.held, topic.streams.reads.size], [0, 0]);
});

test("a reader that leaves while others wait for the same read takes nothing from them", async () => {
  const topic = createHttpTopic();
  const [first, second] = [await topic.open(), await topic.open()];
  await first.read();
  await second.read();
  topic.append(0, { value: "a" });
  first.leave();
  await topic.clock.settle();
  assert.ok(second.text.includes('"value":"a"'));
  assert.deepEqual([topic.held, topic.streams.reads.size], [0, 0]);
});

test("streams beyond the bound are told to come again", async () => {
  const topic = createHttpTopic(1, 2);
  const [first] = [await topic.open(), await topic.open()];
  const refused = (await topic.open()).response;
  assert.equal(refused.status, 503);
  assert.equal(refused.headers.get("retry-after"), "1");
  assert.match(topic.env.metrics.render(), /^skerry_http_streams_open 2$/m);
  await first.cancel();
  assert.equal((await topic.open()).response.status, 200);
});

test("HEAD opens nothing", async () => {
  const topic = createHttpTopic();
  const request = new Request("http://node/v1/topics/t/stream", { method: "HEAD" });
  const response = await topic.app.fetch(request);
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  assert.equal(topic.streams.size, 0);
});

interface Seen {
  readonly partition: number;
  readonly offset: number;
}

function lastId(text: string): string | undefined {
  // Only what stands before an empty line was taken by a client.
  const whole = text.slice(0, text.lastIndexOf("\n\n") + 2);
  return [...whole.matchAll(/^id: (.*)$/gm)].at(-1)?.[1];
}

function seenIn(text: string): Seen[] {
  const whole = text.slice(0, text.lastIndexOf("\n\n") + 2);
  return [...whole.matchAll(/^data: (\{"partition":.*"value".*)$/gm)]
    .map(([, data]) => JSON.parse(data!) as Seen);
}

async function readSome(topic: HttpTopic, id: string | undefined, chunks: number) {
  const stream = await topic.open("", id === undefined ? {} : { "last-event-id": id });
  for (let i = 0; i < chunks; i++) await stream.readOnce();
  return stream;
}

test("each record comes exactly once and in the order of its partition, whatever is cut when", async () => {
  const step = fc.oneof(
    fc.record({
      kind: fc.constant("append" as const),
      partition: fc.nat(2),
      count: fc.integer({ min: 1, max: 40 }),
      size: fc.constantFrom(1, 300, 5_000, 90_000),
    }),
    fc.record({
      kind: fc.constant("cut" as const),
      chunks: fc.integer({ min: 1, max: 3 }),
      lost: fc.nat(200),
    }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const topic = createHttpTopic(3);
      const ends = [0, 0, 0];
      const seen: Seen[] = [];
      let id: string | undefined;
      const take = (text: string) => {
        seen.push(...seenIn(text));
        id = lastId(text) ?? id;
      };
      for (const one of steps) {
        if (one.kind === "append") {
          const count = one.size > 10_000 ? 2 : one.count;
          const value = "v".repeat(one.size);
          topic.append(one.partition, ...Array.from({ length: count }, () => ({ value })));
          ends[one.partition]! += count;
        } else {
          const hasMore = seen.length < ends.reduce((sum, end) => sum + end, 0);
          const stream = await readSome(topic, id, hasMore ? one.chunks - 1 : 1);
          // The connection breaks somewhere in what was under way.
          take(stream.text.slice(0, Math.max(0, stream.text.length - one.lost)));
          await stream.cancel();
        }
      }
      const last = await readSome(topic, id, 0);
      take(await last.read());
      await last.cancel();
      for (const [partition, end] of ends.entries()) {
        const offsets = seen.filter((one) => one.partition === partition).map((one) => one.offset);
        assert.deepEqual(offsets, Array.from({ length: end }, (_, offset) => offset));
      }
      assert.equal(topic.held, 0);
    }),
    { numRuns: 25 },
  );
});
