/**
 * AutoMQ's cases of its caches and limiters, with its numbers. A load that is under way is not in the cache
 * here but in a single flight of its own, so nothing pending can be evicted.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "./errors.ts";
import { Lru } from "./lru.ts";
import { Semaphore } from "./semaphore.ts";
import { SingleFlight } from "./single_flight.ts";

const bytesLru = (max: number) => new Lru<string, number>(max, (bytes) => bytes);

describe("LRUCacheTest, ObjectReaderLRUCacheTest, AsyncLRUCacheTest", () => {
  test("the oldest is first, a value that is put again is the newest", () => {
    const cache = bytesLru(100);
    for (const [key, bytes] of [["a", 1], ["b", 2], ["c", 3]] as const) cache.set(key, bytes);
    assert.deepEqual(cache.values(), [1, 2, 3]);
    assert.deepEqual(cache.values(), [1, 2, 3], "a look changes nothing");
    cache.set("a", 4);
    assert.deepEqual([cache.values(), cache.weight], [[2, 3, 4], 9]);
    assert.equal(cache.get("b"), 2);
    assert.deepEqual(cache.values(), [3, 4, 2]);
  });

  test("indexes of 3000, 2000 and 1000 streams in 100000 bytes: only the last stays", () => {
    const cache = bytesLru(100_000);
    for (const streams of [3000, 2000, 1000]) cache.set(`index of ${streams}`, streams * 36);
    assert.deepEqual(cache.values(), [36_000]);
  });

  test("100 of 100 bytes in 5000 bytes: the 50 newest stay", () => {
    const cache = bytesLru(5000);
    for (let i = 0; i < 100; i++) cache.set(String(i), 100);
    assert.deepEqual([cache.size, cache.weight, cache.get("49"), cache.get("50")], [
      50,
      5000,
      undefined,
      100,
    ]);
  });

  test("limit 10: of 5 and 6 the newer one stays, total 6", () => {
    const cache = bytesLru(10);
    cache.set("v2", 5);
    cache.set("v3", 6);
    assert.deepEqual([cache.values(), cache.weight], [[6], 6]);
  });

  test("a load that fails leaves nothing behind, and callers share one", async () => {
    const flight = new SingleFlight<string, number>();
    let loads = 0;
    const fail = () => {
      loads += 1;
      return Promise.reject(new Error("lost"));
    };
    const both = await Promise.allSettled([flight.run("k", fail), flight.run("k", fail)]);
    assert.deepEqual(both.map(({ status }) => status), ["rejected", "rejected"]);
    assert.equal(loads, 1);
    assert.equal(await flight.run("k", () => Promise.resolve(7)), 7);
  });
});

describe("permits", () => {
  /** Notes in which order the waiters are served. */
  function queue(semaphore: Semaphore, ...counts: readonly number[]): number[] {
    const served: number[] = [];
    for (const [i, count] of counts.entries()) {
      void semaphore.acquire(count).then(() => void served.push(i));
    }
    return served;
  }
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  test("AbstractObjectStorageTest: of 6 writes and 5 permits the sixth starts when one ends", async () => {
    const semaphore = new Semaphore(5);
    const served = queue(semaphore, 1, 1, 1, 1, 1, 1);
    await settle();
    assert.deepEqual([served, semaphore.waiting], [[0, 1, 2, 3, 4], 1]);
    semaphore.release();
    await settle();
    assert.deepEqual([served, semaphore.waiting], [[0, 1, 2, 3, 4, 5], 0]);
  });

  test("AutoMQ 2294: a request for more than there is, is served when all of it is free, in its turn", async () => {
    const semaphore = new Semaphore(10);
    const served = queue(semaphore, 4, 25, 1);
    await settle();
    assert.deepEqual(served, [0], "1 does not pass the large one");
    semaphore.release(4);
    await settle();
    assert.deepEqual([served, semaphore.used], [[0, 1], 25]);
    semaphore.release(25);
    await settle();
    assert.deepEqual([served, semaphore.used], [[0, 1, 2], 1]);
  });

  test("who gives up waiting leaves the queue, and those behind go on", async () => {
    const semaphore = new Semaphore(2);
    const abort = new AbortController();
    await semaphore.acquire();
    const large = semaphore.acquire(2, abort.signal);
    const served = queue(semaphore, 1);
    abort.abort();
    await assert.rejects(large, (error) => isFault(error, "aborted"));
    await settle();
    assert.deepEqual([served, semaphore.used], [[0], 2]);
  });
});
