/** Faults of AutoMQ's object storage, by its numbers, as tests of ours. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { createMetrics } from "../env/metrics.ts";
import { seededRandom } from "../env/random.ts";
import { FaultError } from "../lib/errors.ts";
import { limitedStore, storePermits } from "./limited.ts";
import { createMemoryStore } from "./memory.ts";
import { meteredStore } from "./metered.ts";
import type { ObjectStore } from "./object_store.ts";
import { prefixedStore } from "./prefixed.ts";
import { retryingStore } from "./retrying.ts";

/** Every wrapper that a node puts around its store. */
function wrapped(change: Partial<ObjectStore> = {}) {
  const clock = createFakeClock();
  const random = seededRandom(1);
  const inner = { ...createMemoryStore(clock), ...change };
  const metered = meteredStore(inner, { clock, metrics: createMetrics() });
  const permits = storePermits({ readsMax: 4, logReadsMax: 4, writesMax: 4, uploadsMax: 4 });
  const retrying = retryingStore(limitedStore(metered, permits), { clock, random });
  return { clock, store: prefixedStore(retrying, "p") };
}

test("AutoMQ 3480: options belong to their request: nothing on the way writes to them or keeps them", async () => {
  const { store } = wrapped();
  const signal = new AbortController().signal;
  const put = Object.freeze({ ifAbsent: true, signal });
  const get = Object.freeze({ range: Object.freeze({ start: 1, end: 3 }), signal });
  const list = Object.freeze({ startAfter: "a" });
  const keys = Object.freeze(["a", "b"]);
  for (const key of keys) {
    assert.equal((await store.put(key, Uint8Array.of(0, 1, 2, 3), put)).created, true);
    assert.equal((await store.put(key, Uint8Array.of(9), put)).created, false);
    assert.deepEqual((await store.get(key, get))?.bytes, Uint8Array.of(1, 2));
    // The options of the request before have no part in this one.
    assert.equal((await store.get(key))?.bytes.length, 4);
  }
  const found: string[] = [];
  for await (const info of store.list("", list)) found.push(info.key);
  assert.deepEqual(found, ["b"]);
  assert.deepEqual((await store.delete(keys)).gone, ["a", "b"]);
});

test("AutoMQ 3198, 3392: a delete that is throttled is repeated, for the keys that are left", async () => {
  const asked: number[] = [];
  const memory = createMemoryStore(createFakeClock());
  const { clock, store } = wrapped({
    ...memory,
    async delete(keys) {
      asked.push(keys.length);
      if (asked.length === 1) {
        throw new FaultError("store-unavailable", "slow down", {
          retriable: true,
          isThrottled: true,
        });
      }
      if (asked.length > 2) return await memory.delete(keys);
      const { gone } = await memory.delete(keys.slice(0, 60));
      return { gone, failed: keys.slice(60) };
    },
  });
  const keys = Array.from({ length: 100 }, (_, i) => `k/${i}`);
  for (const key of keys) await store.put(key, Uint8Array.of(1));
  const deleted = store.delete(keys);
  for (let i = 0; i < 20; i++) await clock.advance(1_000);
  assert.deepEqual((await deleted).gone.toSorted(), keys.toSorted());
  assert.deepEqual(asked, [100, 100, 40]);
});
