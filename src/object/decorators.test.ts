/** The wrappers around a store: retrying, limited, metered, prefixed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMetrics } from "../env/metrics.ts";
import { seededRandom } from "../env/random.ts";
import { FaultError, isFault } from "../lib/errors.ts";
import { STORE_ATTEMPTS_MAX } from "../lib/limits.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { faultOnCall, faultyStore } from "../../tests/support/faulty_store.ts";
import type { FaultPlan } from "../../tests/support/faulty_store.ts";
import { keysOf } from "../../tests/support/keys_of.ts";
import { limitedStore, storePermits } from "./limited.ts";
import { createMemoryStore } from "./memory.ts";
import { meteredStore } from "./metered.ts";
import type { ObjectStore } from "./object_store.ts";
import { prefixedStore } from "./prefixed.ts";
import { requestClass } from "./request_class.ts";
import { retryingStore } from "./retrying.ts";

const BODY = Uint8Array.of(1, 2, 3);

function setUp(plan?: FaultPlan) {
  const clock = createFakeClock();
  const inner = createMemoryStore(clock);
  const faulty = faultyStore(inner, clock, plan);
  return { clock, inner, faulty };
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

test("a listing in any order reaches the store as one, and is not begun anew behind a key", async () => {
  const { clock, inner } = setUp();
  const asked: unknown[] = [];
  const breaking: ObjectStore = {
    ...inner,
    async *list(prefix, options) {
      asked.push([prefix, options]);
      yield* inner.list(prefix, options);
      throw new FaultError("store-unavailable", "cut", { retriable: true });
    },
  };
  const permits = { readsMax: 1, logReadsMax: 1, writesMax: 1, uploadsMax: 1 };
  const metered = meteredStore(breaking, { clock, metrics: createMetrics() });
  const store = retryingStore(
    limitedStore(prefixedStore(metered, "p"), storePermits(permits)),
    { clock, random: seededRandom(1) },
  );
  const listing = async () => {
    for await (const _ of store.list("", { anyOrder: true, startAfter: "a" }));
  };
  await assert.rejects(listing(), (error) => isFault(error, "store-unavailable"));
  assert.deepEqual(asked, [["p/", { anyOrder: true, startAfter: "p/a" }]]);
});

test("metered: what its reader does between two keys is no time of the store", async () => {
  const { clock, inner } = setUp();
  for (const key of ["a", "b", "c"]) await inner.put(key, BODY);
  const metrics = createMetrics();
  const store = meteredStore(inner, { clock, metrics });
  const seconds = () =>
    Number(
      /^skerry_object_store_request_seconds_sum\{.*op="list".*\} (.*)$/m.exec(metrics.render())
        ?.[1],
    );
  for await (const _ of store.list("")) await clock.advance(60_000);
  assert.equal(seconds(), 0);
  for await (const _ of store.list("")) {
    await clock.advance(60_000);
    break;
  }
  assert.equal(seconds(), 0, "nor when it stops");
});

test("limited lets a bounded number through, reads apart from writes", async () => {
  const { clock, faulty } = setUp(() => ({ kind: "delay", delayMs: 100 }));
  const store = limitedStore(
    faulty,
    storePermits({ readsMax: 2, logReadsMax: 2, writesMax: 1, uploadsMax: 1 }),
  );
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

test("limited: reads of metadata and of WAL slots do not wait for reads of data", async () => {
  const { inner } = setUp();
  const data = "51000000/_kafka_c/21";
  const slot = "AB/_kafka_c/1/7/wal/0-67108864";
  for (const key of [data, slot, "meta/cluster"]) await inner.put(key, BODY);
  const stuck: ObjectStore = {
    ...inner,
    get: (key, options) => key === data ? new Promise(() => {}) : inner.get(key, options),
  };
  const permits = storePermits({ readsMax: 1, logReadsMax: 1, writesMax: 1, uploadsMax: 1 });
  const store = limitedStore(stuck, permits);
  for (let i = 0; i < 3; i++) void store.get(data);
  for (const key of [slot, "meta/cluster"]) {
    assert.deepEqual((await store.get(key))?.bytes, BODY);
    assert.equal((await store.head(key))?.size, BODY.length);
  }
  assert.deepEqual(await keysOf(store, "meta/"), ["meta/cluster"]);
  assert.deepEqual([permits.reads.used, permits.logReads.used], [1, 0]);
});

test("limited holds no permit while a listing's reader is busy", async () => {
  const { inner } = setUp();
  await inner.put("a", BODY);
  await inner.put("b", BODY);
  const store = limitedStore(
    inner,
    storePermits({ readsMax: 1, logReadsMax: 1, writesMax: 1, uploadsMax: 1 }),
  );
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
      'skerry_object_store_requests_total{class="upload",op="put",outcome="ok"} 1',
      'skerry_object_store_requests_total{class="upload",op="put",outcome="exists"} 1',
      'skerry_object_store_requests_total{class="upload",op="put",outcome="store-full"} 1',
      'skerry_object_store_requests_total{class="cold_read",op="get",outcome="ok"} 1',
      'skerry_object_store_requests_total{class="cold_read",op="get",outcome="missing"} 1',
      'skerry_object_store_requests_total{class="cold_read",op="head",outcome="ok"} 1',
      'skerry_object_store_requests_total{class="garbage",op="list",outcome="ok"} 1',
      'skerry_object_store_requests_total{class="garbage",op="delete",outcome="ok"} 1',
      'skerry_object_store_requests_total{class="upload",op="put_parts",outcome="ok"} 4',
      'skerry_object_store_bytes_total{class="upload",op="put"} 3',
      'skerry_object_store_bytes_total{class="cold_read",op="get"} 2',
      'skerry_object_store_request_seconds_count{class="upload",op="put"} 3',
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

test("a key and who asks tell what a request is for", () => {
  const serve = requestClass("serve");
  const data = "51000000/_kafka_c/21";
  const slot = "AB/_kafka_c/1/7/wal/0-67108864";
  assert.equal(serve("put", slot), "wal");
  assert.equal(serve("delete", slot), "wal");
  assert.equal(serve("put", "meta/_kafka_c/log/00000000000000000001"), "metadata");
  assert.equal(serve("get", "meta/cluster"), "metadata");
  assert.equal(serve("put", "meta/probe/x/y"), "probe");
  assert.equal(serve("put_parts", data), "upload");
  assert.equal(serve("get", data), "cold_read");
  assert.equal(serve("delete", data), "garbage");
  assert.equal(requestClass("compaction")("get", data), "compaction");
  assert.equal(requestClass("recovery")("get", slot), "recovery");
  assert.equal(
    requestClass("recovery")("put", "meta/_kafka_c/log/00000000000000000001"),
    "metadata",
  );
});

test("a store that asks to slow down is counted as that, and what is sent again as well", async () => {
  const { clock, inner } = setUp();
  const metrics = createMetrics();
  await inner.put("k", BODY);
  let calls = 0;
  const busy = {
    ...inner,
    get: (key: string) => {
      if (++calls > 2) return inner.get(key);
      const options = { retriable: true, isThrottled: true };
      return Promise.reject(new FaultError("store-unavailable", "Slow down", options));
    },
  };
  const again: string[] = [];
  const store = retryingStore(meteredStore(busy, { clock, metrics }), {
    clock,
    random: seededRandom(1),
    onRetry: (op, key) => void again.push(`${op} ${key}`),
  });
  const got = store.get("k");
  await clock.advance(10_000);
  assert.deepEqual((await got)?.bytes, BODY);
  assert.deepEqual(again, ["get k", "get k"]);
  assert.match(
    metrics.render(),
    /requests_total\{class="cold_read",op="get",outcome="throttled"\} 2/,
  );
});
