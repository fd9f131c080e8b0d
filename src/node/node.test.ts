import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { drive } from "../../tests/faults/world.ts";
import { faultyStore } from "../../tests/support/faulty_store.ts";
import { createMemoryConnection } from "../../tests/support/memory_connection.ts";
import { nodeOptions } from "../../tests/support/node_options.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { FaultError, isFault } from "../lib/errors.ts";
import { capturingLogger } from "../env/logger.ts";
import { CONNECTIONS_WAITING_MAX, STORE_START_WAIT_MS } from "../lib/limits.ts";
import type { Listener } from "../env/listener.ts";
import { createMemoryStore } from "../object/memory.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { type NodeOptions, type ServeHttp, startNode } from "./node.ts";

const denied = new FaultError("store-denied", "Cannot write", { retriable: false });
/** What the executable allows for a stop; a close of the library must end sooner. */
const STOP_MS_MAX = 30_000;
const ADDRESS = { host: "127.0.0.1", port: 0 };

/** Counts how often a store was closed. */
function watched(store: ObjectStore): () => number {
  const close = store.close.bind(store);
  let closes = 0;
  store.close = () => {
    closes += 1;
    return close();
  };
  return () => closes;
}

test("a start that is refused closes the store, waiting connections and waiting requests", async () => {
  const store = createMemoryStore(createFakeClock());
  const closes = watched(store);
  const connection = createMemoryConnection();
  const listener: Listener = {
    listen(at, accept) {
      accept(connection);
      return Promise.resolve({ ...at, close: () => Promise.resolve() });
    },
  };
  let request: Promise<Response> | null = null;
  const serveHttp: ServeHttp = async (handler) => {
    request = Promise.resolve(handler(new Request("http://node/v1/topics")));
    // What comes after the ports fails.
    store.put = () => Promise.reject(denied);
    store.get = () => Promise.reject(denied);
    store.putParts = () => Promise.reject(denied);
    return { url: "http://node", close: () => Promise.resolve() };
  };
  const base = nodeOptions(store);
  const settings = { ...base.settings, kafkaListen: ADDRESS, httpListen: ADDRESS };
  await assert.rejects(
    startNode({ ...base, listener, serveHttp, settings }),
    (error) => isFault(error, "store-denied"),
  );
  const answer: Response = await request!;
  assert.equal(answer.status, 503);
  assert.ok(connection.closed);
  assert.equal(closes(), 1);
});

test("connections that wait for a node that starts are bounded", async () => {
  const connections = Array.from({ length: CONNECTIONS_WAITING_MAX + 1 }, createMemoryConnection);
  const listener: Listener = {
    listen(at, accept) {
      for (const connection of connections) accept(connection);
      return Promise.resolve({ ...at, close: () => Promise.resolve() });
    },
  };
  const base = nodeOptions(createMemoryStore(createFakeClock()));
  const settings = { ...base.settings, kafkaListen: ADDRESS };
  const node = await startNode({ ...base, listener, settings });
  assert.deepEqual(connections.filter(({ closed }) => closed), connections.slice(-1));
  await node.close();
});

test("health is answered while the node starts, other requests once it has", async () => {
  const store = createMemoryStore(createFakeClock());
  const answers: Promise<Response>[] = [];
  const serveHttp: ServeHttp = async (handler) => {
    for (const path of ["/livez", "/readyz", "/v1/topics"]) {
      answers.push(Promise.resolve(handler(new Request(`http://node${path}`))));
    }
    const [live, ready] = await Promise.all(answers.slice(0, 2));
    assert.deepEqual([live?.status, ready?.status], [200, 503]);
    return { url: "http://node", close: () => Promise.resolve() };
  };
  const base = nodeOptions(store);
  const node = await startNode({
    ...base,
    serveHttp,
    settings: { ...base.settings, httpListen: ADDRESS },
  });
  assert.equal((await answers[2]!).status, 200);
  await node.close();
});

test("bad properties are refused before anything starts, and the store is closed", async () => {
  const store = createMemoryStore(createFakeClock());
  const closes = watched(store);
  const base = nodeOptions(store);
  const settings = { ...base.settings, kafka: { "no.such.property": "1" } };
  await assert.rejects(startNode({ ...base, settings }), (error) => isFault(error, "config"));
  assert.equal(closes(), 1);
});

/** A node on a store of its own, with the log lines that it writes. */
function onFaulty(kind: NodeOptions["storeKind"] = "s3") {
  const clock = createFakeClock();
  const store = faultyStore(createMemoryStore(clock), clock);
  const log = capturingLogger();
  const start = () =>
    startNode(nodeOptions(store, {
      env: testEnv({ clock, log }),
      storeKind: kind,
      storeName: "s3://bucket/prefix",
    }));
  return {
    clock,
    store,
    log,
    start,
    waits: () => log.lines.filter(({ event }) => event === "store-waited-for"),
  };
}

for (const bad of [1, 6, 40]) {
  test(`a store that fails its first ${bad} requests is waited for`, async () => {
    const { clock, store, start, waits } = onFaulty();
    store.setPlan(({ number }) => number <= bad ? { kind: "fail" } : undefined);
    const node = await drive(clock, start());
    assert.ok(waits().length <= 1);
    await drive(clock, node.close());
  });
}

test("a store that fails in the middle of a start is waited for, whatever the start is at", async () => {
  const whole = onFaulty();
  await drive(whole.clock, whole.start());
  for (let at = 1; at <= whole.store.calls.length; at++) {
    const { clock, store, start } = onFaulty();
    const until = clock.monotonicMs() + 10_000;
    store.setPlan(({ number }) =>
      number >= at && clock.monotonicMs() < until ? { kind: "fail" } : undefined
    );
    const node = await drive(clock, start());
    await drive(clock, node.close());
  }
});

for (const fault of ["fail", "hang"] as const) {
  test(`a store that is away (${fault}) ends the start after a while, in one line that names it`, async () => {
    const { clock, store, start, waits } = onFaulty();
    store.setPlan(() => fault === "fail" ? { kind: "fail" } : { kind: "hang", happens: false });
    const startedMs = clock.monotonicMs();
    await assert.rejects(drive(clock, start()), (error) => {
      assert.ok(isFault(error, "config"));
      assert.match(error.message, /^The object store cannot be used: .*s3:\/\/bucket\/prefix/);
      return true;
    });
    const waitedMs = clock.monotonicMs() - startedMs;
    assert.ok(waitedMs >= STORE_START_WAIT_MS && waitedMs < STORE_START_WAIT_MS + 3_000);
    assert.equal(waits().length, 1);
  });
}

test("an answer that comes after the start was given up makes no cluster", async () => {
  const { clock, store, start } = onFaulty();
  store.setPlan(({ number }) =>
    number === 1 ? { kind: "delay", delayMs: STORE_START_WAIT_MS + 5_000 } : undefined
  );
  await assert.rejects(drive(clock, start()), (error) => isFault(error, "config"));
  await clock.advance(STORE_START_WAIT_MS);
  assert.ok(store.calls.length > 1, "the probe goes on");
  assert.deepEqual(store.calls.filter(({ key }) => key === "meta/cluster"), []);
});

test("what no waiting mends ends the start at once", async () => {
  const { clock, store, start } = onFaulty();
  store.setPlan(() => ({ kind: "fail", code: "store-denied" }));
  await assert.rejects(start(), (error) => isFault(error, "config"));
  assert.equal(clock.monotonicMs(), 0);
});

for (const fault of ["fail", "hang"] as const) {
  test(`closing ends although the store is away (${fault}), and says what was not uploaded`, async () => {
    const { clock, store, start } = onFaulty();
    const closes = watched(store);
    const node = await drive(clock, start());
    const post = (value: string) =>
      node.fetch(new Request("http://n/v1/topics/t/records", { method: "POST", body: value }));
    assert.equal((await drive(clock, post("acknowledged"))).status, 200);
    store.setPlan(() => fault === "fail" ? { kind: "fail" } : { kind: "hang", happens: false });
    const pending = post("pending");
    await clock.settle();
    const startedMs = clock.monotonicMs();
    await assert.rejects(drive(clock, node.close()), (error) => {
      assert.ok(isFault(error, "timeout"));
      assert.match(error.message, /without uploading [1-9]\d* acknowledged bytes in \d+ WAL slots/);
      assert.match(error.message, /[1-9]\d* bytes were not acknowledged/);
      return true;
    });
    assert.ok(clock.monotonicMs() - startedMs < STOP_MS_MAX);
    assert.notEqual((await drive(clock, pending)).status, 200);
    assert.equal(closes(), 1);

    store.setPlan();
    const again = await drive(clock, start());
    const read = await drive(
      clock,
      again.fetch(new Request("http://n/v1/topics/t/partitions/0/records")),
    );
    const { records } = await read.json() as { records: { value: string }[] };
    assert.equal(records[0]?.value, "acknowledged");
    await drive(clock, again.close());
  });
}

test("closing twice is closing once, in order", async () => {
  const store = createMemoryStore(createFakeClock());
  const closes = watched(store);
  const node = await startNode(nodeOptions(store));
  const first = node.close();
  assert.equal(node.close(), first);
  await first;
  assert.equal(closes(), 1);
});
