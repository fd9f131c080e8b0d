/** Durable streams on a whole node, with a clock that stands still. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock, type FakeClock } from "../../tests/support/fake_clock.ts";
import { nodeOptions } from "../../tests/support/node_options.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { seededRandom } from "../env/random.ts";
import {
  STREAM_EVENTS_MS,
  STREAM_FORKS_DEEP_MAX,
  STREAM_POLL_MS,
  STREAM_SWEEP_MS,
} from "../lib/limits.ts";
import { createMemoryStore } from "../object/memory.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { type RunningNode, startNode } from "./node.ts";

class World {
  readonly clock: FakeClock;
  readonly store: ObjectStore;
  node!: RunningNode;
  #lives = 0;

  private constructor() {
    this.clock = createFakeClock();
    this.store = createMemoryStore(this.clock);
  }

  static async start(): Promise<World> {
    const world = new World();
    await world.begin();
    return world;
  }

  async begin(): Promise<void> {
    // Each life draws ids of its own.
    const random = seededRandom(++this.#lives);
    const options = nodeOptions(this.store, { env: testEnv({ clock: this.clock, random }) });
    this.node = await startNode(options);
  }

  /** Uploads let others run in between. */
  async close(): Promise<void> {
    let isDone = false;
    const closing = this.node.close().finally(() => void (isDone = true));
    while (!isDone) await this.clock.advance(1);
    await closing;
  }

  async restart(): Promise<void> {
    await this.close();
    await this.begin();
  }

  /** A partition that opens again takes a moment. */
  async send(
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body?: string,
  ): Promise<Response> {
    const init = { method, headers, ...(body === undefined ? {} : { body }) };
    let isDone = false;
    const answer = this.node.fetch(new Request(`http://node${path}`, init))
      .finally(() => void (isDone = true));
    await this.clock.settle();
    for (let i = 0; !isDone && i < 20; i++) await this.clock.advance(1);
    return await answer;
  }

  put(name: string, headers: Record<string, string> = {}, body?: string) {
    return this.send("PUT", `/streams/${name}`, { "content-type": "text/plain", ...headers }, body);
  }

  post(name: string, body?: string, headers: Record<string, string> = {}) {
    const type = body === undefined ? {} : { "content-type": "text/plain" };
    return this.send("POST", `/streams/${name}`, { ...type, ...headers }, body);
  }

  get(name: string, query = "", headers: Record<string, string> = {}) {
    return this.send("GET", `/streams/${name}${query}`, headers);
  }

  async text(name: string, query = ""): Promise<string> {
    return await (await this.get(name, query)).text();
  }
}

function next(answer: Response): string {
  return answer.headers.get("stream-next-offset") ?? "";
}

function numbered(sequence: number, epoch = 0) {
  return { "producer-id": "w", "producer-epoch": `${epoch}`, "producer-seq": `${sequence}` };
}

test("a stream, its writers and its end are the same after a restart", async () => {
  const world = await World.start();
  assert.equal((await world.put("s", { "stream-ttl": "600" })).status, 201);
  assert.equal((await world.post("s", "a", { ...numbered(0), "stream-seq": "1" })).status, 200);
  await world.restart();
  const repeat = await world.post("s", "a", { ...numbered(0), "stream-seq": "1" });
  assert.equal(repeat.status, 204);
  assert.equal((await world.post("s", "b", { "stream-seq": "1" })).status, 409);
  const gap = await world.post("s", "c", numbered(2));
  assert.deepEqual(
    [
      gap.status,
      gap.headers.get("producer-expected-seq"),
      gap.headers.get("producer-received-seq"),
    ],
    [409, "1", "2"],
  );
  assert.equal((await world.post("s", "z", { "stream-closed": "true" })).status, 204);
  await world.restart();
  const head = await world.send("HEAD", "/streams/s");
  assert.deepEqual(
    ["stream-closed", "stream-ttl", "content-type", "cache-control"].map((name) =>
      head.headers.get(name)
    ),
    ["true", "600", "text/plain", "no-store"],
  );
  const refused = await world.post("s", "x");
  assert.deepEqual([refused.status, refused.headers.get("stream-closed"), next(refused)], [
    409,
    "true",
    next(head),
  ]);
  assert.equal(await world.text("s"), "az");
  await world.close();
});

test("a closed stream is closed to every other way of writing, too", async () => {
  const world = await World.start();
  await world.put("s", { "stream-closed": "true" }, "all");
  const answer = await world.send("POST", "/v1/topics/s/records", {}, "more");
  assert.equal(answer.status, 403);
  assert.equal(
    (await answer.json() as { kafka: { name: string } }).kafka.name,
    "POLICY_VIOLATION",
  );
  assert.equal(await world.text("s"), "all");
  await world.close();
});

test("any topic is a stream for each partition, and what Kafka's clients wrote is in it", async () => {
  const world = await World.start();
  const json = { "content-type": "application/json" };
  await world.send("POST", "/v1/topics", json, '{"name":"t","partitions":2}');
  await world.send(
    "POST",
    "/v1/topics/t/partitions/1/records",
    json,
    '[{"value":"a"},{"value":null}]',
  );
  const bytes = { "content-type": "application/octet-stream" };
  assert.equal((await world.send("POST", "/streams/t/1", bytes, "b")).status, 204);
  const read = await world.send("GET", "/streams/t/1");
  assert.equal(await read.text(), "ab");
  assert.equal(read.headers.get("content-type"), "application/octet-stream");
  assert.equal(await world.text("t/0"), "");
  assert.equal((await world.get("t")).status, 400, "which partition?");
  assert.equal((await world.get("t/2")).status, 404);
  assert.equal((await world.send("DELETE", "/streams/t/1")).status, 409);
  assert.equal((await world.put("other/0")).status, 404);
  await world.close();
});

test("streams outlive the retention of topics", async () => {
  const world = await World.start();
  await world.put("s");
  const topic = await (await world.send("GET", "/v1/topics/s")).json() as {
    configs: Record<string, string>;
  };
  assert.equal(topic.configs["retention.ms"], "-1");
  assert.equal(topic.configs["retention.bytes"], "-1");
  await world.close();
});

test("a creation that was cut off behind its topic is finished by its repeat", async () => {
  const world = await World.start();
  await world.put("s");
  assert.equal((await world.put("s", { "stream-closed": "true" }, "all")).status, 200);
  assert.equal(await world.text("s"), "all");
  assert.equal((await world.put("s", { "stream-closed": "true" }, "all")).status, 200);
  assert.equal(await world.text("s"), "all", "once");
  assert.equal((await world.put("s", {}, "all")).status, 409, "it is closed");
  await world.close();
});

test("an offset of a stream that was deleted is gone in the next one of its name", async () => {
  const world = await World.start();
  await world.put("s", {}, "old");
  const old = next(await world.get("s"));
  assert.equal((await world.send("DELETE", "/streams/s")).status, 204);
  await world.put("s", {}, "new and longer");
  assert.equal((await world.get("s", `?offset=${old}`)).status, 410);
  assert.equal((await world.get("s", `?offset=${old}&live=sse`)).status, 410);
  assert.equal((await world.get("s", `?offset=${old}&live=long-poll`)).status, 410);
  await world.close();
});

test("trimmed offsets are gone, later ones than the end are no offsets", async () => {
  const world = await World.start();
  const created = await world.put("s", {}, "a");
  await world.post("s", "b");
  const far = next(created).replace(/^\d+/, "0".repeat(15) + "9");
  for (const live of ["", "&live=long-poll", "&live=sse"]) {
    assert.equal((await world.get("s", `?offset=${far}${live}`)).status, 400);
  }
  await world.close();
});

test("pages behind a place and before the end may be cached; the rest is asked for", async () => {
  const world = await World.start();
  const start = next(await world.put("s"));
  await world.post("s", "a");
  const open = await world.get("s", `?offset=${start}`);
  assert.equal(open.headers.get("cache-control"), "no-cache");
  const etag = open.headers.get("etag")!;
  assert.equal((await world.get("s", `?offset=${start}`, { "if-none-match": etag })).status, 304);
  await world.post("s", undefined, { "stream-closed": "true" });
  const closed = await world.get("s", `?offset=${start}`, { "if-none-match": etag });
  assert.equal(closed.status, 200);
  assert.match(closed.headers.get("cache-control")!, /max-age=60/);
  assert.equal((await world.get("s")).headers.get("cache-control"), "no-cache", "of any stream");
  await world.put("ends", { "stream-ttl": "60", "stream-closed": "true" }, "a");
  const from = start.replace(/_.*/, next(await world.get("ends")).replace(/^\d+/, ""));
  assert.equal(
    (await world.get("ends", `?offset=${from}`)).headers.get("cache-control"),
    "no-cache",
  );
  await world.close();
});

test("a stream ends when it was not used for its time, and its topic goes with the next sweep", async () => {
  const world = await World.start();
  await world.put("s", { "stream-ttl": "3" }, "a");
  for (
    const use of [
      () => world.post("s", "b"),
      () => world.get("s"),
      () => world.put("s", { "stream-ttl": "3" }),
    ]
  ) {
    await world.clock.advance(2_000);
    assert.ok((await use()).ok);
  }
  await world.clock.advance(1_500);
  await world.send("HEAD", "/streams/s");
  assert.equal((await world.send("HEAD", "/streams/s")).status, 404, "PUT and HEAD are no use");
  assert.equal((await world.post("s", "c")).status, 404);
  assert.equal((await world.send("GET", "/v1/topics/s")).status, 200);
  await world.clock.advance(STREAM_SWEEP_MS);
  assert.equal((await world.send("GET", "/v1/topics/s")).status, 404);
  await world.close();
});

test("one that is over makes room for another one at once", async () => {
  const world = await World.start();
  const expires = new Date(world.clock.nowMs() + 1_000).toISOString();
  await world.put("s", { "stream-expires-at": expires }, "old");
  assert.equal(await world.text("s"), "old");
  await world.clock.advance(1_000);
  assert.equal((await world.put("s", { "stream-ttl": "9" }, "new")).status, 201);
  assert.equal(await world.text("s"), "new");
  await world.close();
});

test("a restart gives a stream its whole time again, but moves no date", async () => {
  const world = await World.start();
  await world.put("ttl", { "stream-ttl": "10" });
  const expires = new Date(world.clock.nowMs() + 12_000).toISOString();
  await world.put("date", { "stream-expires-at": expires });
  await world.clock.advance(8_000);
  await world.restart();
  await world.clock.advance(5_000);
  assert.equal((await world.send("HEAD", "/streams/ttl")).status, 200);
  assert.equal((await world.send("HEAD", "/streams/date")).status, 404);
  await world.clock.advance(5_000);
  assert.equal((await world.send("HEAD", "/streams/ttl")).status, 404);
  await world.close();
});

test("a long poll wakes on data and on the end, and answers 204 in time otherwise", async () => {
  const world = await World.start();
  await world.put("s");
  const poll = () => world.get("s", "?offset=now&live=long-poll");
  const waiting = poll();
  await world.clock.advance(1_000);
  await world.post("s", "a");
  const woken = await waiting;
  assert.equal(await woken.text(), "a");
  assert.match(woken.headers.get("stream-cursor")!, /^\d+$/);
  const idle = poll();
  await world.clock.advance(STREAM_POLL_MS);
  const empty = await idle;
  assert.deepEqual([empty.status, empty.headers.get("stream-up-to-date"), next(empty)], [
    204,
    "true",
    next(woken),
  ]);
  const ending = poll();
  await world.clock.advance(1_000);
  await world.post("s", undefined, { "stream-closed": "true" });
  const over = await ending;
  assert.deepEqual([over.status, over.headers.get("stream-closed")], [204, "true"]);
  assert.equal((await poll()).headers.get("stream-closed"), "true", "at once");
  await world.close();
});

async function readAll(answer: Response, onText: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of answer.body!) onText(decoder.decode(chunk));
}

test("events end with the stream, after their time, and with the topic", async () => {
  const world = await World.start();
  await world.put("s", {}, "a");
  const open = async (query: string) => {
    const seen = { text: "", isOver: false };
    const answer = await world.get("s", query);
    void readAll(answer, (text) => void (seen.text += text)).then(() => void (seen.isOver = true));
    await world.clock.settle();
    return seen;
  };
  const old = await open("?offset=-1&live=sse");
  assert.match(
    old.text,
    /^:\nevent: data\ndata:a\n\nevent: control\ndata:\{.*"upToDate":true\}\n\n$/,
  );
  await world.clock.advance(STREAM_EVENTS_MS + 16_000);
  assert.ok(old.isOver && !old.text.includes("streamClosed"));
  const ending = await open("?offset=now&live=sse");
  assert.match(ending.text, /^event: control\n/);
  await world.post("s", "b", { "stream-closed": "true" });
  await world.clock.settle();
  assert.match(
    ending.text,
    /event: data\ndata:b\n\nevent: control\ndata:\{.*"streamClosed":true.*\}\n\n$/,
  );
  assert.ok(!ending.text.slice(ending.text.indexOf("data:b")).includes("streamCursor"));
  assert.ok(ending.isOver);
  const late = await open("?offset=now&live=sse");
  assert.ok(late.isOver && late.text.includes("streamClosed"));
  await world.put("s2");
  const gone = await world.get("s2", "?offset=now&live=sse");
  const reading = readAll(gone, () => {});
  await world.clock.settle();
  await world.send("DELETE", "/streams/s2");
  await world.clock.settle();
  await reading;
  await world.close();
});

test("who listens uses the stream, and who left does not", async () => {
  const world = await World.start();
  await world.put("s", { "stream-ttl": "40" });
  const answer = await world.get("s", "?offset=now&live=sse");
  const reader = answer.body!.getReader();
  const reading = (async () => {
    while (!(await reader.read()).done);
  })();
  for (let i = 0; i < 3; i++) await world.clock.advance(17_000);
  assert.equal((await world.send("HEAD", "/streams/s")).status, 200);
  await reader.cancel();
  await reading;
  assert.match(await (await world.send("GET", "/metrics")).text(), /skerry_http_streams_open 0/);
  await world.clock.advance(41_000);
  assert.equal((await world.send("HEAD", "/streams/s")).status, 404);
  await world.close();
});

test("JSON is kept as it was written, message by message", async () => {
  const world = await World.start();
  const json = { "content-type": "application/json" };
  await world.send("PUT", "/streams/j", json, '[1.0, {"a":1,"a":2}]');
  await world.send("POST", "/streams/j", json, ' "x" ');
  await world.send("POST", "/v1/topics/j/records", {}, "not JSON");
  const answer = await world.get("j");
  assert.equal(await answer.text(), '[1.0,{"a":1,"a":2},"x",{"$base64":"bm90IEpTT04="}]');
  for (const body of ["[]", "", "{", "[1,]"]) {
    assert.equal((await world.send("POST", "/streams/j", json, body)).status, 400, body);
  }
  await world.close();
});

test("what is asked for wrongly is refused in words", async () => {
  const world = await World.start();
  await world.put("s");
  const refused = async (headers: Record<string, string>, status: number) => {
    const answer = await world.put("n", headers);
    assert.equal(answer.status, status, JSON.stringify(headers));
    assert.match(answer.headers.get("content-type")!, /problem\+json/);
    assert.equal(answer.headers.get("cache-control"), "no-store");
  };
  await refused({ "stream-ttl": "01" }, 400);
  await refused({ "stream-ttl": "1", "stream-expires-at": "2030-01-01T00:00:00Z" }, 400);
  await refused({ "stream-expires-at": "2030-13-01T00:00:00Z" }, 400);
  await refused({ "stream-expires-at": "tomorrow" }, 400);
  await refused({ "content-type": "nothing" }, 400);
  for (
    const headers of [{ "producer-id": "w" }, { ...numbered(0), "producer-id": "" }, {
      ...numbered(0),
      "producer-seq": "9".repeat(17),
    }, { "stream-seq": "x".repeat(256) }]
  ) {
    assert.equal((await world.post("s", "a", headers)).status, 400, JSON.stringify(headers));
  }
  assert.equal((await world.post("s", "a", { "content-type": "text/html" })).status, 409);
  assert.equal((await world.post("s", "x".repeat(1_100_000))).status, 413);
  assert.equal((await world.get("s", "?offset=now&live=yes")).status, 400);
  assert.equal((await world.get("s", "?live=sse")).status, 400);
  assert.equal((await world.put("a.b")).status, 201);
  assert.equal((await world.put("a_b")).status, 400, "collides");
  assert.equal((await world.send("PATCH", "/streams/s")).status, 405);
  await world.close();
});

/** The topic's name as it stands in a fork's header. */
function forkOf(name: string, more: Record<string, string> = {}) {
  return { "stream-forked-from": `/streams/${name}`, ...more };
}

test("a fork is its source up to its place, and then its own, at rising offsets", async () => {
  const world = await World.start();
  await world.put("s", {}, "a");
  const place = next(await world.post("s", "b"));
  await world.post("s", "c");
  assert.equal((await world.put("f", forkOf("s", { "stream-fork-offset": place }))).status, 201);
  await world.post("s", "d");
  const appended = await world.post("f", "x");
  assert.ok(next(appended) > place);
  assert.equal(await world.text("f"), "abx");
  assert.equal(await world.text("f", `?offset=${place}`), "x", "an offset of both");
  const later = next(await world.get("s"));
  assert.equal((await world.get("f", `?offset=${later}`)).status, 410, "one of the source alone");
  await world.put("g", forkOf("f"));
  await world.post("g", "y");
  assert.equal(await world.text("g"), "abxy");
  await world.restart();
  assert.deepEqual([await world.text("s"), await world.text("f"), await world.text("g")], [
    "abcd",
    "abx",
    "abxy",
  ]);
  assert.equal(next(await world.send("HEAD", "/streams/f")), next(appended));
  await world.post("f", undefined, { "stream-closed": "true" });
  await world.restart();
  assert.equal((await world.get("f")).headers.get("stream-closed"), "true");
  assert.equal((await world.post("s", "e")).status, 204, "its source goes on");
  await world.close();
});

test("events of a fork go over the place where it left, and are not those of its topic", async () => {
  const world = await World.start();
  await world.put("s", {}, "a");
  await world.put("f", forkOf("s"));
  await world.post("f", "b");
  const texts: string[] = [];
  const readers = [
    await world.get("f", "?offset=-1&live=sse"),
    await world.send("GET", "/v1/topics/f/stream?from=earliest"),
  ].map((answer, i) => {
    texts.push("");
    return readAll(answer, (text) => void (texts[i] += text));
  });
  await world.clock.settle();
  await world.post("f", "c", { "stream-closed": "true" });
  await world.clock.settle();
  const [events = "", native = ""] = texts;
  assert.deepEqual([...events.matchAll(/^data:([a-z])$/gm)].map(([, data]) => data), [
    "a",
    "b",
    "c",
  ]);
  assert.deepEqual([...native.matchAll(/"offset":(\d).*?"value":"(.)"/g)].map(([, ...at]) => at), [
    ["0", "b"],
    ["1", "c"],
  ]);
  await world.send("DELETE", "/v1/topics/f");
  await world.clock.settle();
  await Promise.all(readers);
  await world.close();
});

test("readers of a fork and of its topic at the same number do not get each other's records", async () => {
  const world = await World.start();
  await world.put("s", {}, "1");
  await world.post("s", "2");
  const place = next(await world.put("f", forkOf("s")));
  for (const value of ["a", "b", "c"]) await world.post("f", value);
  const page = await world.send("GET", "/v1/topics/f/records?limit=2");
  const { cursor } = await page.json() as { cursor: string };
  const texts = ["", ""];
  const answers = [
    await world.get("f", `?offset=${place}&live=sse`),
    await world.send("GET", `/v1/topics/f/stream?isolation=read_committed&cursor=${cursor}`),
  ];
  const reading = answers.map((answer, i) => readAll(answer, (text) => void (texts[i] += text)));
  await world.clock.settle();
  assert.deepEqual([...texts[0]!.matchAll(/^data:([a-z])$/gm)].map(([, data]) => data), [
    "a",
    "b",
    "c",
  ]);
  assert.deepEqual([...texts[1]!.matchAll(/"value":"(.)"/g)].map(([, data]) => data), ["c"]);
  await world.send("DELETE", "/streams/f");
  await world.clock.settle();
  await Promise.all(reading);
  await world.close();
});

test("a deleted source is hidden while it has forks, over restarts, and goes with the last", async () => {
  const world = await World.start();
  await world.put("s", {}, "a");
  await world.put("f", forkOf("s"));
  await world.put("g", forkOf("f"));
  const topics = async () =>
    (await (await world.send("GET", "/v1/topics")).json() as { topics: { name: string }[] })
      .topics.map(({ name }) => name);
  for (const name of ["s", "f"]) {
    assert.equal((await world.send("DELETE", `/streams/${name}`)).status, 204);
  }
  await world.restart();
  assert.equal(await world.text("g"), "a");
  for (
    const [method, status] of [["GET", 410], ["HEAD", 410], ["DELETE", 410], ["PUT", 409]] as const
  ) {
    const headers = method === "PUT" ? { "content-type": "text/plain" } : {};
    assert.equal((await world.send(method, "/streams/s", headers)).status, status, method);
  }
  assert.equal((await world.post("s", "x")).status, 410);
  await world.clock.advance(2 * STREAM_SWEEP_MS);
  assert.deepEqual(await topics(), ["f", "g", "s"]);
  // As a crash between the two would leave it: the fork is gone, its source is not.
  await world.send("DELETE", "/v1/topics/g");
  await world.clock.advance(2 * STREAM_SWEEP_MS);
  assert.deepEqual(await topics(), []);
  await world.close();
});

test("a source that ends keeps its forks, which may live longer", async () => {
  const world = await World.start();
  await world.put("s", { "stream-ttl": "5" }, "a");
  await world.put("f", forkOf("s", { "stream-ttl": "60" }));
  await world.put("same", forkOf("s"));
  assert.equal((await world.send("HEAD", "/streams/same")).headers.get("stream-ttl"), "5");
  await world.clock.advance(STREAM_SWEEP_MS + 6_000);
  assert.equal((await world.send("HEAD", "/streams/same")).status, 404);
  assert.equal((await world.send("HEAD", "/streams/s")).status, 410);
  assert.equal(await world.text("f"), "a");
  await world.close();
});

test("a fork whose source was deleted as a topic says so, and still takes appends", async () => {
  const world = await World.start();
  await world.put("s", {}, "a");
  await world.put("f", forkOf("s"));
  const place = next(await world.send("HEAD", "/streams/f"));
  await world.send("DELETE", "/v1/topics/s");
  assert.equal((await world.get("f")).status, 410);
  assert.equal((await world.post("f", "b")).status, 204);
  assert.equal(await world.text("f", `?offset=${place}`), "b");
  await world.close();
});

test("a fork takes a part of a message with it, once", async () => {
  const world = await World.start();
  await world.put("s", {}, "hello");
  const part = forkOf("s", {
    "stream-fork-offset": `${"0".repeat(16)}_${"0".repeat(16)}`,
    "stream-fork-sub-offset": "3",
  });
  await world.put("f", part, "p!");
  await world.put("f", part, "p!");
  await world.restart();
  assert.equal((await world.put("f", part, "p!")).status, 200);
  assert.equal(await world.text("f"), "help!");
  const other = { ...part, "stream-fork-sub-offset": "2" };
  assert.equal((await world.put("f", other)).status, 409);
  assert.equal((await world.put("f")).status, 409, "it is a fork");
  for (
    const headers of [
      forkOf("nothing"),
      forkOf("s?x"),
      forkOf("s", { "stream-fork-sub-offset": "01" }),
      { "stream-fork-offset": "-1" },
    ]
  ) assert.ok([400, 404].includes((await world.put("n", headers)).status), JSON.stringify(headers));
  await world.close();
});

test("forks of forks end somewhere", async () => {
  const world = await World.start();
  await world.put("s0", {}, "a");
  let refused = 0;
  for (let i = 1; i <= STREAM_FORKS_DEEP_MAX && refused === 0; i++) {
    const { status } = await world.put(`s${i}`, forkOf(`s${i - 1}`));
    if (status === 409) refused = i;
    else assert.equal(await world.text(`s${i}`), "a");
  }
  assert.equal(refused, STREAM_FORKS_DEEP_MAX);
  await world.close();
});

test("what a fork is made of is the broker's own: clients neither set nor remove it", async () => {
  const world = await World.start();
  await world.put("s", {}, "abc");
  await world.put("f", forkOf("s"));
  const json = { "content-type": "application/json" };
  const change = (configs: Record<string, string | null>) =>
    world.send("PATCH", "/v1/topics/f/configs", json, JSON.stringify(configs));
  // It would be swept with all that is in it.
  assert.equal((await change({ "skerry.stream.deleted": "true" })).status, 400);
  assert.equal((await change({ "skerry.stream.fork.offset": "0" })).status, 400);
  const forged = { name: "x", configs: { "skerry.stream.fork.source": `${"0".repeat(32)}/0` } };
  const made = await world.send("POST", "/v1/topics", json, JSON.stringify(forged));
  assert.equal(made.status, 400);
  // As AlterConfigs asks for all that it does not name.
  const removed = { "skerry.stream.fork.source": null, "skerry.stream.fork.offset": null };
  assert.equal((await change(removed)).status, 200);
  assert.equal(await (await world.send("GET", "/streams/f?offset=-1")).text(), "abc");
  await world.close();
});

test("a type that is no header and a date that has no text are no settings of a topic", async () => {
  const world = await World.start();
  await world.put("s", {}, "abc");
  const json = { "content-type": "application/json" };
  const change = (name: string, value: string) =>
    world.send("PATCH", "/v1/topics/s/configs", json, JSON.stringify({ [name]: value }));
  for (const type of ["text/html\r\nset-cookie: a=b", "text/\u20ac", "", "text"]) {
    assert.equal((await change("skerry.stream.content.type", type)).status, 400, type);
  }
  for (const ms of ["253402300800000", "9223372036854775807"]) {
    assert.equal((await change("skerry.stream.expires.ms", ms)).status, 400, ms);
  }
  const type = "text/plain; charset=utf-8";
  assert.equal((await change("skerry.stream.content.type", type)).status, 200);
  assert.equal((await change("skerry.stream.expires.ms", "253402300799999")).status, 200);
  const { status, headers } = await world.send("HEAD", "/streams/s");
  assert.equal(status, 200);
  assert.equal(headers.get("content-type"), type);
  assert.equal(headers.get("stream-expires-at"), "9999-12-31T23:59:59.999Z");
  await world.close();
});
