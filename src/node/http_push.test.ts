import assert from "node:assert/strict";
import { test } from "node:test";
import { cryptoUnderWay } from "../../tests/support/crypto_under_way.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { nodeOptions } from "../../tests/support/node_options.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import type { OutboundAnswer, OutboundRequest } from "../env/outbound_http.ts";
import { toHex, utf8 } from "../lib/bytes.ts";
import { createMemoryStore } from "../object/memory.ts";
import { type RunningNode, startNode } from "./node.ts";

const STEP_MS = 50;
const STEPS_MAX = 2_000;
const URL_OK = "https://hooks.example/in";

type Respond = (request: OutboundRequest) => OutboundAnswer | Promise<OutboundAnswer>;

const taken: Respond = () => ({ ok: true, status: 204, retryAfter: null });

async function world(kafka: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock(undefined, cryptoUnderWay);
  const env = testEnv({ clock });
  const store = createMemoryStore(clock);
  const got: OutboundRequest[] = [];
  const state: { respond: Respond } = { respond: taken };
  const outbound = {
    send: async (request: OutboundRequest) => {
      got.push(request);
      return await state.respond(request);
    },
    close: () => {},
  };
  const base = nodeOptions(store, { env, outbound });
  const settings = { ...base.settings, kafka };
  const start = (nodeId = 1) => startNode({ ...base, settings: { ...settings, nodeId } });
  let node: RunningNode = await start();

  async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
    for (let step = 0; step < STEPS_MAX; step++) {
      if (await condition()) return;
      await clock.advance(STEP_MS);
    }
    assert.fail("it did not come to it");
  }

  async function settled<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    work.finally(() => (isOver = true)).catch(() => {});
    await until(() => isOver);
    return await work;
  }

  async function ask(
    path: string,
    { method, body, headers = {} }: {
      readonly method?: string;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    } = {},
  ) {
    const text = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body);
    const answer = await settled(node.fetch(
      new Request(`http://node${path}`, {
        method: method ?? (text === null ? "GET" : "POST"),
        headers: { ...(text === null ? {} : { "content-type": "application/json" }), ...headers },
        body: text,
      }),
    ));
    const read = await settled(answer.text());
    let json: Record<string, unknown> = {};
    try {
      json = JSON.parse(read) as Record<string, unknown>;
    } catch {
      // Not all answers are JSON.
    }
    return { status: answer.status, headers: answer.headers, text: read, json };
  }

  return {
    clock,
    env,
    got,
    state,
    until,
    ask,
    /** Values that arrived, in order. */
    values: () =>
      got.flatMap(({ body }) => {
        const { records = [] } = JSON.parse(utf8(body)) as { records?: { value: string }[] };
        return records.map(({ value }) => value);
      }),
    put: (id: string, body: Readonly<Record<string, unknown>>) =>
      ask(`/v1/subscriptions/${id}`, { method: "PUT", body }),
    produce: (topic: string, values: readonly string[]) =>
      ask(`/v1/topics/${topic}/records`, { body: values.map((value) => ({ key: "k", value })) }),
    committed: async (group: string) => {
      const { json } = await ask(`/v1/groups/${group}/offsets`);
      return (json["offsets"] as { offset: number }[] | undefined)?.[0]?.offset ?? null;
    },
    /** The process is gone; the next one has only the store. */
    async crash(nodeId?: number): Promise<void> {
      node = await settled(start(nodeId));
    },
    close: async () => await settled(node.close()),
  };
}

const SUBSCRIPTION = { topics: ["t"], url: URL_OK, from: "earliest" };

test("records reach a handler, signed, and the group's offsets follow", async () => {
  const { ask, put, produce, until, values, committed, got, close } = await world();
  await ask("/v1/topics", { body: { name: "t", partitions: 1 } });
  const created = await put("s", SUBSCRIPTION);
  assert.equal(created.status, 201);
  assert.equal(created.json["group"], "s");
  await produce("t", ["a", "b", "c"]);
  await until(() => values().length === 3);
  assert.deepEqual(values(), ["a", "b", "c"]);
  await until(async () => (await committed("s")) === 3);
  assert.match(got[0]!.headers["skerry-signature"]!, /^[\w-]+\.\.[\w-]+$/);
  const { json } = await ask("/v1/jwks.json");
  assert.equal((json["keys"] as unknown[]).length, 2);
  const shown = await ask("/v1/subscriptions/s");
  assert.equal(shown.json["state"], "delivering");
  assert.equal((shown.json["status"] as { delivered: number }).delivered, 3);
  await close();
});

test("after a crash the next node goes on at the offsets, under the same ids and keys", async () => {
  const { ask, put, produce, until, values, got, state, committed, crash, close } = await world();
  await ask("/v1/topics", { body: { name: "t", partitions: 1 } });
  await put("s", { ...SUBSCRIPTION, batch: { records: 1 }, maxInFlight: 1 });
  const keys = (await ask("/v1/jwks.json")).text;
  await produce("t", ["a", "b"]);
  await until(async () => (await committed("s")) === 2);
  state.respond = () => ({ ok: false, kind: "failed", reason: "could not be reached" });
  await produce("t", ["c", "d"]);
  await until(() => values().includes("c"));
  const before = got.at(-1)!.headers["skerry-delivery"];
  await crash(2);
  state.respond = taken;
  const from = got.length;
  await until(() => values().includes("d"));
  const after = got.slice(from).filter(({ body }) => utf8(body).includes('"c"'));
  assert.equal(after[0]!.headers["skerry-delivery"], before);
  assert.deepEqual(values().slice(from), ["c", "d"]);
  assert.equal((await ask("/v1/jwks.json")).text, keys);
  await close();
});

test("an idle subscription writes nothing in hours", async () => {
  const { ask, put, produce, until, committed, clock, env, close } = await world();
  await ask("/v1/topics", { body: { name: "t", partitions: 3 } });
  await put("s", SUBSCRIPTION);
  await produce("t", ["a", "b"]);
  const { json } = await ask("/v1/topics/t/partitions");
  assert.equal((json["partitions"] as unknown[]).length, 3);
  await until(async () => (await ask("/v1/groups/s/lag")).json["lag"] === 0);
  assert.notEqual(await committed("s"), null);
  await clock.advance(900_000);
  const writes = () => /^skerry_object_store_requests_total\{.*op="put".*$/gm;
  const before = env.metrics.render().match(writes());
  assert.ok(before !== null);
  await clock.advance(3 * 3_600_000);
  assert.deepEqual(env.metrics.render().match(writes()), before);
  await close();
});

test("what a handler never takes ends in the dead-letter topic, with the reason", async () => {
  const { ask, put, produce, until, state, close } = await world();
  await ask("/v1/topics", { body: { name: "t", partitions: 1 } });
  await ask("/v1/topics", { body: { name: "dead", partitions: 1 } });
  state.respond = () => ({ ok: true, status: 418, retryAfter: null });
  const retry = { attempts: 2, minMs: 100, maxMs: 100 };
  await put("s", { ...SUBSCRIPTION, retry, deadLetter: "dead" });
  await produce("t", ["bad"]);
  const letters = async () =>
    (await ask("/v1/topics/dead/partitions/0/records")).json["records"] as {
      value: string;
      headers: [string, string][];
    }[];
  await until(async () => (await letters()).length === 1);
  const [letter] = await letters();
  assert.equal(letter!.value, "bad");
  const headers = new Map(letter!.headers);
  assert.equal(headers.get("skerry-dead-letter-reason"), "answered 418");
  assert.equal(headers.get("skerry-dead-letter-attempts"), "2");
  assert.equal(headers.get("skerry-dead-letter-offset"), "0");
  await close();
});

test("a subscription is what it was put as; what it cannot be is refused", async () => {
  const { ask, put, close } = await world();
  const refused: readonly (readonly [Readonly<Record<string, unknown>>, RegExp])[] = [
    [{ ...SUBSCRIPTION, url: "http://hooks.example/" }, /not https/],
    [{ ...SUBSCRIPTION, url: "https://169.254.169.254/latest" }, /not a public address/],
    [{ ...SUBSCRIPTION, url: "https://[::ffff:10.0.0.1]/" }, /not a public address/],
    [{ ...SUBSCRIPTION, topics: [] }, /topics/],
    [{ ...SUBSCRIPTION, topics: ["t", "t"] }, /twice/],
    [{ ...SUBSCRIPTION, topics: ["a/b"] }, /topic/],
    [{ ...SUBSCRIPTION, topics: ["t", "__consumer_offsets"] }, /internal/],
    [{ ...SUBSCRIPTION, deadLetter: "t" }, /dead-letter/],
    [{ ...SUBSCRIPTION, retry: { minMs: 1_000, maxMs: 500 } }, /minMs/],
    [{ ...SUBSCRIPTION, nonsense: 1 }, /nonsense/],
    [{ topics: ["t"] }, /url/],
  ];
  for (const [body, why] of refused) {
    const answer = await put("s", body);
    assert.equal(answer.status, 400, JSON.stringify(body));
    assert.match(answer.text, why);
  }
  assert.equal((await put("s%20s", SUBSCRIPTION)).status, 400);
  assert.equal((await put("s", { ...SUBSCRIPTION, group: "g" })).status, 201);
  assert.equal((await put("s", { ...SUBSCRIPTION, group: "g" })).status, 200);
  const other = await put("other", { ...SUBSCRIPTION, group: "g" });
  assert.equal(other.status, 409);
  assert.match(other.text, /subscription s moves its offsets/);
  for (const [action, state] of [["pause", "paused"], ["resume", "delivering"]] as const) {
    const answer = await ask(`/v1/subscriptions/s/${action}`, { method: "POST" });
    assert.deepEqual([answer.status, answer.json["paused"]], [200, state === "paused"]);
  }
  const { json } = await ask("/v1/subscriptions");
  assert.deepEqual((json["subscriptions"] as { id: string }[]).map(({ id }) => id), ["s"]);
  assert.equal((await ask("/v1/subscriptions/s", { method: "DELETE" })).status, 204);
  for (const path of ["s", "s/pause", "s/resume", "s/test", "a%2Fb"]) {
    const method = path.includes("/") ? "POST" : "GET";
    assert.equal((await ask(`/v1/subscriptions/${path}`, { method })).status, 404, path);
  }
  assert.equal((await ask("/v1/subscriptions/s", { method: "DELETE" })).status, 404);
  await close();
});

test("a test delivery shows what the handler answers, also while it is paused", async () => {
  const { ask, put, got, state, close } = await world();
  await put("s", { ...SUBSCRIPTION, paused: true });
  const good = await ask("/v1/subscriptions/s/test", { method: "POST" });
  assert.deepEqual(good.json, { ok: true, status: 204, reason: null });
  assert.deepEqual(JSON.parse(utf8(got[0]!.body)), { subscription: "s", test: true });
  state.respond = () => ({ ok: true, status: 302, retryAfter: null });
  const moved = await ask("/v1/subscriptions/s/test", { method: "POST" });
  assert.deepEqual(moved.json, { ok: false, status: 302, reason: "answered 302" });
  state.respond = () => ({ ok: false, kind: "refused", reason: "it has no address" });
  const closed = await ask("/v1/subscriptions/s/test", { method: "POST" });
  assert.deepEqual(closed.json, { ok: false, status: null, reason: "it has no address" });
  await close();
});

test("loopback is for those who allow it", async () => {
  const { put, close } = await world({ "skerry.push.loopback": "true" });
  assert.equal((await put("s", { ...SUBSCRIPTION, url: "http://127.0.0.1:9/in" })).status, 201);
  await close();
});

test("an embedded broker without outbound HTTP says so", async () => {
  const clock = createFakeClock();
  const node = await startNode(
    nodeOptions(createMemoryStore(clock), { env: testEnv({ clock }) }),
  );
  const answer = await node.fetch(
    new Request("http://node/v1/subscriptions/s", {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(SUBSCRIPTION),
    }),
  );
  assert.equal(answer.status, 501);
  await node.close();
});

async function signed(secret: string, text: string): Promise<string> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const bytes = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), algorithm, false, [
    "sign",
  ]);
  return toHex(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes.encode(text))));
}

test("a webhook becomes a record: its body, its sender's headers, its key", async () => {
  const { ask, close } = await world();
  await ask("/v1/topics", { body: { name: "t", partitions: 1 } });
  const headers = {
    "content-type": "text/plain",
    "x-event": "push",
    "authorization": "Bearer secret",
    "cookie": "a=b",
    "x-forwarded-for": "10.0.0.1",
  };
  const answer = await ask("/webhook/t?key=k", { body: "raw body", headers });
  assert.equal(answer.status, 200);
  assert.equal((answer.json["results"] as { offset: number }[])[0]!.offset, 0);
  const { json } = await ask("/v1/topics/t/partitions/0/records");
  const [record] = json["records"] as { key: string; value: string; headers: string[][] }[];
  assert.deepEqual([record!.key, record!.value], ["k", "raw body"]);
  assert.deepEqual(record!.headers, [["x-event", "push"], ["content-type", "text/plain"]]);
  assert.equal((await ask("/webhook/t?nonsense=1", { body: "x" })).status, 400);
  await close();
});

test("with a secret set only what is signed is taken, and the secret is never shown", async () => {
  const { ask, crash, close } = await world();
  const secret = "the shared secret";
  const settings = { provider: "github", secrets: [secret, "the next secret"] };
  const put = await ask("/v1/topics/t/webhook", { method: "PUT", body: settings });
  assert.deepEqual([put.status, put.json], [
    200,
    { provider: "github", secrets: 2, toleranceS: 300 },
  ]);
  assert.deepEqual((await ask("/v1/topics/t/webhook")).json, put.json);
  await ask("/v1/topics", { body: { name: "t", partitions: 1 } });
  const take = async (body: string, signature: string | null) => {
    const headers = signature === null ? {} : { "x-hub-signature-256": `sha256=${signature}` };
    return (await ask("/webhook/t", { body, headers })).status;
  };
  assert.equal(await take("one", null), 401);
  assert.equal(await take("one", await signed("another secret", "one")), 401);
  assert.equal(await take("one", await signed(secret, "two")), 401);
  assert.equal(await take("one", await signed(secret, "one")), 200);
  assert.equal(await take("two", await signed("the next secret", "two")), 200);
  await crash();
  assert.equal(await take("three", null), 401, "also on the next node");
  const { json } = await ask("/v1/topics/t/partitions/0/records");
  assert.deepEqual((json["records"] as { value: string }[]).map(({ value }) => value), [
    "one",
    "two",
  ]);
  for (const path of ["/v1/topics/t", "/v1/topics/t/configs", "/v1/cluster", "/metrics"]) {
    assert.doesNotMatch((await ask(path)).text, /the (shared|next) secret/, path);
  }
  assert.equal((await ask("/v1/topics/t/webhook", { method: "DELETE" })).status, 204);
  assert.equal((await ask("/v1/topics/t/webhook")).status, 404);
  assert.equal(await take("four", null), 200);
  await close();
});

test("Slack's question is answered, not stored", async () => {
  const { ask, close } = await world();
  await ask("/v1/topics", { body: { name: "t", partitions: 1 } });
  const secret = "slack signing secret";
  await ask("/v1/topics/t/webhook", {
    method: "PUT",
    body: { provider: "slack", secrets: [secret] },
  });
  const body = '{"token":"x","challenge":"3eZbrw1a","type":"url_verification"}';
  const time = "1700000010";
  const headers = {
    "x-slack-request-timestamp": time,
    "x-slack-signature": `v0=${await signed(secret, `v0:${time}:${body}`)}`,
  };
  const answer = await ask("/webhook/t", { body, headers });
  assert.deepEqual([answer.status, answer.text], [200, "3eZbrw1a"]);
  assert.equal((await ask("/webhook/t", { body })).status, 401);
  const { json } = await ask("/v1/topics/t/partitions/0/records");
  assert.deepEqual(json["records"], []);
  await close();
});

test("settings of webhooks that make no sense are refused without repeating them", async () => {
  const { ask, close } = await world();
  const secret = "not base64 at all";
  for (
    const body of [
      { provider: "github", secrets: [] },
      { provider: "github", secrets: ["short"] },
      { provider: "gitlab", secrets: [secret] },
      { provider: "standard", secrets: [secret] },
      { provider: "github", secrets: [secret], toleranceS: 0 },
      { provider: "github", secrets: [secret], other: 1 },
    ]
  ) {
    const answer = await ask("/v1/topics/t/webhook", { method: "PUT", body });
    assert.equal(answer.status, 400, JSON.stringify(body));
    assert.doesNotMatch(answer.text, /base64 at all|short/);
  }
  await close();
});
