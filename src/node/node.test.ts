import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { createMemoryConnection } from "../../tests/support/memory_connection.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { FaultError, isFault } from "../lib/errors.ts";
import type { Listener } from "../env/listener.ts";
import { createMemoryStore } from "../object/memory.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { type NodeOptions, type ServeHttp, startNode } from "./node.ts";

const denied = new FaultError("store-denied", "Cannot write", { retriable: false });
const ADDRESS = { host: "127.0.0.1", port: 0 };

function optionsOf(store: ObjectStore, over: Partial<NodeOptions> = {}): NodeOptions {
  const clock = createFakeClock();
  return {
    env: testEnv({ clock }),
    store,
    storeKind: "memory",
    storeHasPrices: false,
    listener: { listen: () => Promise.reject(new Error("no listener")) },
    serveHttp: () => Promise.reject(new Error("no server")),
    settings: {
      nodeId: 1,
      clusterId: null,
      kafkaListen: null,
      advertise: null,
      httpListen: null,
      kafka: {},
    },
    ...over,
  };
}

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
    request = Promise.resolve(handler(new Request("http://node/livez")));
    request.catch(() => {});
    // What comes after the ports fails.
    store.put = () => Promise.reject(denied);
    store.get = () => Promise.reject(denied);
    store.putParts = () => Promise.reject(denied);
    return { url: "http://node", close: () => Promise.resolve() };
  };
  const base = optionsOf(store);
  const settings = { ...base.settings, kafkaListen: ADDRESS, httpListen: ADDRESS };
  await assert.rejects(
    startNode({ ...base, listener, serveHttp, settings }),
    (error) => isFault(error, "store-denied"),
  );
  await assert.rejects(request!);
  assert.ok(connection.closed);
  assert.equal(closes(), 1);
});

test("bad properties are refused before anything starts, and the store is closed", async () => {
  const store = createMemoryStore(createFakeClock());
  const closes = watched(store);
  const base = optionsOf(store);
  const settings = { ...base.settings, kafka: { "no.such.property": "1" } };
  await assert.rejects(startNode({ ...base, settings }), (error) => isFault(error, "config"));
  assert.equal(closes(), 1);
});

test("closing twice is closing once, in order", async () => {
  const store = createMemoryStore(createFakeClock());
  const closes = watched(store);
  const node = await startNode(optionsOf(store));
  const first = node.close();
  assert.equal(node.close(), first);
  await first;
  assert.equal(closes(), 1);
});
