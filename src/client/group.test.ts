import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Asked,
  type Broker,
  createClientHost,
  json,
  problem,
} from "../../tests/support/client_host.ts";
import { SkerryError } from "./errors.ts";
import { Group } from "./group.ts";
import { Topics } from "./topics.ts";

function setUp(broker: Broker) {
  const world = createClientHost(broker);
  return { ...world, group: new Group(world.http, "mailer", { member: "m" }) };
}

function bodyOf({ body }: Asked): Record<string, unknown> {
  return JSON.parse(body) as Record<string, unknown>;
}

function record(offset: number, more: Record<string, unknown> = {}) {
  const value = `v${offset}`;
  return { topic: "t", partition: 0, offset, timestamp: 1, key: null, value, headers: [], ...more };
}

function polled(ack: string | null, ...records: unknown[]): Response {
  return json({ member: "m", ack, records });
}

const done = () => json({ offsets: [], lost: [] });

test("a poll says what it wants, and shows how often records were delivered", async () => {
  const { group, asked } = setUp(() =>
    polled("A", record(0), record(1, { deliveryCount: 3, value: { $base64: "/w==" } }))
  );
  const batch = await group.poll({ topics: ["t"], max: 5, waitMs: 1_000, leaseMs: 60_000 });
  assert.equal(asked[0]!.url.pathname, "/v1/groups/mailer/poll");
  assert.deepEqual(bodyOf(asked[0]!), {
    topics: ["t"],
    max: 5,
    wait: 1_000,
    lease: 60_000,
    member: "m",
    retry: "token-1",
  });
  assert.equal(batch.token, "A");
  assert.deepEqual(batch.records.map(({ deliveryCount }) => deliveryCount), [1, 3]);
  assert.deepEqual(batch.records[1]!.value, new Uint8Array([255]));
});

test("a poll whose answer was lost is sent again as the same poll, and waits as long", async () => {
  const { group, asked, clock } = setUp((_, count) => {
    if (count === 1) return new Promise<Response>(() => {});
    if (count === 2) throw new TypeError("reset");
    return polled("A", record(0));
  });
  const batch = group.poll({ topics: ["t"], waitMs: 30_000 });
  await clock.advance(74_999);
  assert.equal(asked.length, 1);
  await clock.advance(1 + 50 + 100);
  assert.equal((await batch).records.length, 1);
  assert.equal(new Set(asked.map(({ body }) => body)).size, 1);
});

test("with autoCommit a lost answer is not asked for again: its records would be passed over", async () => {
  const lost = setUp(() => Promise.reject(new TypeError("reset")));
  const error: unknown = await lost.group.poll({ topics: ["t"], autoCommit: true })
    .catch((reason: unknown) => reason);
  assert.ok(error instanceof SkerryError && error.sideEffects === "unknown");
  assert.equal(lost.asked.length, 1);
  assert.ok(!("retry" in bodyOf(lost.asked[0]!)));
  const busy = setUp((_, count) => count === 1 ? problem(429) : polled(null));
  const polling = busy.group.poll({ topics: ["t"], autoCommit: true });
  await busy.clock.advance(100);
  assert.deepEqual((await polling).records, []);
});

test("acknowledging, giving back and extending", async () => {
  const lost = [{ topic: "t", partition: 0, from: 1, to: 1 }];
  const { group, asked } = setUp(({ url }) =>
    url.pathname.endsWith("/poll") ? polled("A", record(0), record(1)) : json({ offsets: [], lost })
  );
  const batch = await group.poll({ topics: ["t"] });
  assert.deepEqual(await batch.ack(), lost);
  await batch.ack({ upTo: [batch.records[0]!], nack: [{ ...batch.records[1]!, delayMs: 5 }] });
  await batch.nack();
  await batch.nack([batch.records[1]!], 1_000);
  await batch.extend(90_000);
  const at = (offset: number) => ({ topic: "t", partition: 0, offset });
  assert.deepEqual(asked.slice(1).map(bodyOf), [
    { ack: "A", nack: [] },
    { ack: "A", upTo: [at(0)], nack: [{ ...at(1), delay: 5 }] },
    { ack: "A", upTo: [], nack: [{ ...at(0), delay: 0 }, { ...at(1), delay: 0 }] },
    { ack: "A", upTo: [], nack: [{ ...at(1), delay: 1_000 }] },
    { ack: "A", extend: 90_000 },
  ]);
  assert.ok(asked.slice(1).every(({ url }) => url.pathname === "/v1/groups/mailer/ack"));
});

test("what somebody else has by now is told, all of it too; other conflicts are errors", async () => {
  const lost = [{ topic: "t", partition: 0, from: 0, to: 3 }];
  const all = setUp(() => problem(409, { lost }));
  assert.deepEqual(await all.group.ack("A"), lost);
  const taken = setUp(() => problem(409, { kafka: { code: 68, name: "NON_EMPTY_GROUP" } }));
  await assert.rejects(taken.group.ack("A"), { code: "NON_EMPTY_GROUP", status: 409 });
  await assert.rejects(taken.group.poll({ topics: ["t"] }), { code: "NON_EMPTY_GROUP" });
});

test("nothing leased, nothing to acknowledge", async () => {
  const { group, asked } = setUp(() => polled(null));
  const batch = await group.poll({ topics: ["t"] });
  assert.deepEqual([await batch.ack(), await batch.nack(), await batch.extend(1)], [[], [], []]);
  assert.equal(asked.length, 1);
});

test("each step of the loop acknowledges the batch before, with the next poll", async () => {
  const { group, asked } = setUp((_, count) =>
    count === 2 ? polled(null) : polled(`A${count}`, record(count))
  );
  const offsets: number[] = [];
  for await (const { records } of group.consume({ topics: ["t"] })) {
    offsets.push(records[0]!.offset);
    if (offsets.length === 3) break;
  }
  assert.deepEqual(offsets, [1, 3, 4]);
  const bodies = asked.map(bodyOf);
  assert.deepEqual(bodies.slice(0, 4).map(({ ack, wait }) => [ack, wait]), [
    [undefined, 20_000],
    ["A1", 20_000],
    [undefined, 20_000],
    ["A3", 20_000],
  ]);
  assert.deepEqual(bodies.slice(4), [{ ack: "A4", extend: 1_000 }], "what it left is given back");
  assert.equal(new Set(bodies.slice(0, 4).map(({ retry }) => retry)).size, 4);
});

test("a batch that was acknowledged is neither acknowledged again nor given back", async () => {
  const { group, asked } = setUp(({ url }, count) =>
    url.pathname.endsWith("/ack") ? done() : polled(`A${count}`, record(count))
  );
  let isFirst = true;
  for await (const batch of group.consume({ topics: ["t"] })) {
    await batch.ack();
    if (!isFirst) break;
    isFirst = false;
  }
  assert.deepEqual(asked.map((one) => [one.url.pathname.slice(-4), bodyOf(one)["ack"]]), [
    ["poll", undefined],
    ["/ack", "A1"],
    ["poll", undefined],
    ["/ack", "A3"],
  ]);
});

test("a failure of the loop's own gives back, and is what the caller sees", async () => {
  const { group, asked } = setUp((_, count) => {
    if (count > 1) throw new TypeError("reset");
    return polled("A", record(0));
  });
  const run = async () => {
    for await (const _ of group.consume({ topics: ["t"] })) throw new Error("cannot send mail");
  };
  await assert.rejects(run(), /cannot send mail/);
  assert.equal(asked.length, 2, "tried once");
});

test("the signal ends the loop, and what was done is acknowledged", async () => {
  const stop = new AbortController();
  const { group, asked, clock } = setUp((one, count) => {
    if (count === 1) return polled("A", record(0));
    return one.url.pathname.endsWith("/ack") ? done() : new Promise(() => {});
  });
  const run = (async () => {
    for await (const _ of group.consume({ topics: ["t"], signal: stop.signal }));
  })();
  await clock.settle();
  assert.equal(bodyOf(asked[1]!)["ack"], "A");
  stop.abort();
  await run;
  assert.deepEqual(asked.slice(2).map(bodyOf), [{ ack: "A", nack: [] }]);
  const again = new AbortController();
  const early = setUp(({ url }) => url.pathname.endsWith("/ack") ? done() : polled("B", record(0)));
  for await (const _ of early.group.consume({ topics: ["t"], signal: again.signal })) again.abort();
  assert.deepEqual(early.asked.slice(1).map(bodyOf), [{ ack: "B", nack: [] }]);
});

test("polling goes on for ever through failures, and tells of them", async () => {
  const told: string[] = [];
  const { group, clock } = setUp((_, count) => count < 60 ? problem(503) : polled("A", record(0)));
  const batches = group.consume({ topics: ["t"], onRetry: ({ code }) => told.push(code) });
  const first = batches.next();
  await clock.advance(600_000);
  assert.equal((await first).value!.records.length, 1);
  assert.equal(told.length, 59);
});

test("a record that JSON is too small for is no tombstone: it is told of, or an error", async () => {
  const shown = { topic: "t", partition: 0, offset: 0, omitted: 20_000_000, raw: "/v1/x" };
  const broker = (_: Asked, count: number) =>
    count === 1 ? polled("A", shown) : polled("B", record(1));
  const polling = setUp(broker);
  const batch = await polling.group.poll({ topics: ["t"] });
  assert.deepEqual(batch.records, []);
  assert.deepEqual(batch.skipped, [{ reason: "problem", details: shown, cursor: null }]);
  const strict = setUp(broker);
  await assert.rejects(strict.group.consume({ topics: ["t"] }).next(), { code: "problem" });
  assert.deepEqual(bodyOf(strict.asked[1]!), { ack: "A", extend: 1_000 });
  const told: unknown[] = [];
  const { group, asked } = setUp(broker);
  const batches = group.consume({ topics: ["t"], onSkip: (one) => told.push(one.details) });
  assert.equal((await batches.next()).value!.records[0]!.offset, 1);
  assert.deepEqual(told, [shown]);
  assert.equal(bodyOf(asked[1]!)["ack"], "A");
  assert.ok(!("onSkip" in bodyOf(asked[1]!)));
});

test("topics are listed, described, made and deleted", async () => {
  const info = { name: "a b", topicId: "x", partitions: 3 };
  const { http, asked } = createClientHost(({ method, url }) => {
    if (method === "DELETE") return new Response(null, { status: 204 });
    if (method === "POST") return json(info, 201);
    if (url.pathname.endsWith("/none")) return problem(404);
    return url.pathname === "/v1/topics" ? json({ topics: [info] }) : json(info);
  });
  const topics = new Topics(http);
  assert.deepEqual(await topics.list(), [info]);
  assert.deepEqual(await topics.describe("a b"), info);
  assert.equal(await topics.describe("none"), null);
  assert.deepEqual(await topics.create({ name: "a b", partitions: 3 }), info);
  await topics.delete("a b");
  assert.deepEqual(asked.map(({ method, url, body }) => `${method} ${url.pathname} ${body}`), [
    "GET /v1/topics ",
    "GET /v1/topics/a%20b ",
    "GET /v1/topics/none ",
    'POST /v1/topics {"name":"a b","partitions":3}',
    "DELETE /v1/topics/a%20b ",
  ]);
});

test("a topic that may have been made is not made again, a look is repeated", async () => {
  const { http, asked, clock } = createClientHost(() => problem(503));
  const topics = new Topics(http);
  await assert.rejects(topics.create({ name: "a" }), { status: 503, sideEffects: "unknown" });
  assert.equal(asked.length, 1);
  const listed = assert.rejects(topics.list(), { status: 503 });
  await clock.advance(120_000);
  await listed;
  assert.ok(asked.length > 5);
});
