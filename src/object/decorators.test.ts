/** The wrappers around a store: retrying, limited, metered, prefixed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMetrics } from "../env/metrics.ts";
import { seededRandom } from "../env/random.ts";
import { isFault } from "../lib/errors.ts";
import { STORE_ATTEMPTS_MAX } from "../lib/limits.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { faultOnCall, faultyStore } from "../../tests/support/faulty_store.ts";
import type { FaultPlan } from "../../tests/support/faulty_store.ts";
import { limitedStore } from "./limited.ts";
import { createMemoryStore } from "./memory.ts";
import { meteredStore } from "./metered.ts";
import type { ObjectStore } from "./object_store.ts";
import { prefixedStore } from "./prefixed.ts";
import { retryingStore } from "./retrying.ts";

const BODY = Uint8Array.of(1, 2, 3);

function setUp(plan?: FaultPlan) {
  const clock = createFakeClock();
  const inner = createMemoryStore(clock);
  const faulty = faultyStore(inner, clock, plan);
  return { clock, inner, faulty };
}

async function keysOf(store: ObjectStore, prefix = "", startAfter?: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix, startAfter === undefined ? {} : { startAfter })) {
    keys.push(key);
  }
  return keys;
}

test("retrying repeats what is idempotent", async () => {
  const requests: Readonly<Record<string, (store: ObjectStore) => Promise<unknown>>> = {
    put: (store) => store.put("k", BODY),
    get: (store) => store.get("k"),
    head: (store) => store.head("k"),
    list: (store) => keysOf(store),
    delete: (store) => store.delete(["k"]),
  };
  for (const [name, request] of Object.entries(requests)) {
    for (const kind of ["fail", "lose-answer"] as const) {
      const { clock, faulty } = setUp(faultOnCall(1, { kind }));
      const done = request(retryingStore(faulty, { clock, random: seededRandom(1) }));
      await clock.advance(5_000);
      await done;
      assert.equal(faulty.calls.length, 2, name);
    }
  }
});

test("retrying never repeats a conditional put or parts", async () => {
  const { clock, faulty } = setUp(() => ({ kind: "fail" }));
  const store = retryingStore(faulty, { clock, random: seededRandom(1) });
  await assert.rejects(
    store.put("k", BODY, { ifAbsent: true }),
    (e) => isFault(e, "store-unavailable"),
  );
  await assert.rejects(store.putParts("k", (async function* () {})()));
  assert.equal(faulty.calls.length, 2);
});

test("retrying gives up after its attempts, and at once on a refusal", async () => {
  const { clock, faulty } = setUp(() => ({ kind: "fail" }));
  const store = retryingStore(faulty, { clock, random: seededRandom(1) });
  const failing = assert.rejects(store.get("k"), (e) => isFault(e, "store-unavailable"));
  await clock.advance(60_000);
  await failing;
  assert.equal(faulty.calls.length, STORE_ATTEMPTS_MAX);
  for (const code of ["store-denied", "store-full"] as const) {
    faulty.setPlan(() => ({ kind: "fail", code }));
    await assert.rejects(store.put("k", BODY), (e) => isFault(e, code));
  }
  assert.equal(faulty.calls.length, STORE_ATTEMPTS_MAX + 2);
});

test("retrying a delete sends only the keys that are left", async () => {
  const { clock, inner } = setUp();
  const sent: (readonly string[])[] = [];
  const half: ObjectStore = {
    ...inner,
    delete(keys) {
      sent.push(keys);
      return Promise.resolve({ gone: keys.slice(0, 1), failed: keys.slice(1) });
    },
  };
  const done = retryingStore(half, { clock, random: seededRandom(1) }).delete(["a", "b", "c"]);
  await clock.advance(30_000);
  assert.deepEqual(await done, { gone: ["a", "b", "c"], failed: [] });
  assert.deepEqual(sent, [["a", "b", "c"], ["b", "c"], ["c"]]);
});

test("retrying a listing goes on where it broke", async () => {
  const { clock, inner } = setUp();
  for (const key of ["a", "b", "c"]) await inner.put(key, BODY);
  let broke = false;
  const breaking: ObjectStore = {
    ...inner,
    async *list(prefix, options) {
      for await (const info of inner.list(prefix, options)) {
        if (info.key === "b" && !broke) {
          broke = true;
          const { FaultError } = await import("../lib/errors.ts");
          throw new FaultError("store-unavailable", "cut", { retriable: true });
        }
        yield info;
      }
    },
  };
  const keys = keysOf(retryingStore(breaking, { clock, random: seededRandom(1) }));
  await clock.advance(5_000);
  assert.deepEqual(await keys, ["a", "b", "c"]);
});

test("limited lets a bounded number through, reads apart from writes", async () => {
  const { clock, faulty } = setUp(() => ({ kind: "delay", delayMs: 100 }));
  const store = limitedStore(faulty, { readsMax: 2, writesMax: 1, uploadsMax: 1 });
  const all = Promise.all([
    ...["a", "b", "c"].map((key) => store.get(key)),
    ...["a", "b"].map((key) => store.put(key, BODY)),
  ]);
  await clock.settle();
  assert.equal(faulty.count("get"), 2);
  assert.equal(faulty.count("put"), 1);
  await clock.advance(100);
  assert.equal(faulty.count("get"), 3);
  assert.equal(faulty.count("put"), 2);
  await clock.advance(100);
  await all;
});

test("limited holds no permit while a listing's reader is busy", async () => {
  const { inner } = setUp();
  await inner.put("a", BODY);
  await inner.put("b", BODY);
  const store = limitedStore(inner, { readsMax: 1, writesMax: 1, uploadsMax: 1 });
  for await (const { key } of store.list("")) assert.deepEqual((await store.get(key))?.bytes, BODY);
});

test("metered counts requests by outcome, and bytes", async () => {
  const { clock, faulty } = setUp();
  const metrics = createMetrics();
  const store = meteredStore(faulty, { clock, metrics });
  await store.put("k", BODY, { ifAbsent: true });
  await store.put("k", BODY, { ifAbsent: true });
  await store.get("k", { range: { start: 0, end: 2 } });
  await store.get("missing");
  await store.head("k");
  await keysOf(store);
  await store.delete(["k"]);
  async function* parts() {
    yield BODY;
    yield BODY;
  }
  await store.putParts("p", parts());
  faulty.setPlan(() => ({ kind: "fail", code: "store-full" }));
  await assert.rejects(store.put("k", BODY));
  const text = metrics.render();
  for (
    const line of [
      'skerry_object_store_requests_total{op="put",outcome="ok"} 1',
      'skerry_object_store_requests_total{op="put",outcome="exists"} 1',
      'skerry_object_store_requests_total{op="put",outcome="store-full"} 1',
      'skerry_object_store_requests_total{op="get",outcome="ok"} 1',
      'skerry_object_store_requests_total{op="get",outcome="missing"} 1',
      'skerry_object_store_requests_total{op="head",outcome="ok"} 1',
      'skerry_object_store_requests_total{op="list",outcome="ok"} 1',
      'skerry_object_store_requests_total{op="delete",outcome="ok"} 1',
      'skerry_object_store_requests_total{op="put_parts",outcome="ok"} 4',
      'skerry_object_store_bytes_total{op="put"} 3',
      'skerry_object_store_bytes_total{op="get"} 2',
      'skerry_object_store_request_seconds_count{op="put"} 3',
    ]
  ) assert.ok(text.includes(`${line}\n`), `${line}\n${text}`);
});

test("prefixed keeps to its prefix and shows keys without it", async () => {
  const { inner } = setUp();
  await inner.put("other", BODY);
  const store = prefixedStore(inner, "/x/y/");
  await store.put("a/b", BODY);
  await store.put("c", BODY);
  assert.deepEqual(await keysOf(inner), ["other", "x/y/a/b", "x/y/c"]);
  assert.deepEqual(await keysOf(store), ["a/b", "c"]);
  assert.deepEqual(await keysOf(store, "", "a/b"), ["c"]);
  assert.equal((await store.get("a/b"))?.key, "a/b");
  assert.equal((await store.head("c"))?.key, "c");
  assert.deepEqual(await store.delete(["a/b"]), { gone: ["a/b"], failed: [] });
  assert.equal(prefixedStore(inner, "/"), inner);
});
