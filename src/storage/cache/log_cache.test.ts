import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bases, record } from "../../../tests/support/records.ts";
import { streamId } from "../../lib/brand.ts";
import { LOG_CACHE_BLOCKS_MAX } from "../../lib/limits.ts";
import { LogCache } from "./log_cache.ts";

const STREAM = streamId(233);

/** [10,13) and [13,15) in two blocks, then, after a gap, [20,22). */
function sample(): LogCache {
  const cache = new LogCache(1e9);
  cache.put(record(233, 10), 0);
  cache.put(record(233, 11, 2), 0);
  cache.archive();
  cache.put(record(233, 13, 2), 1);
  cache.archive();
  cache.put(record(233, 20), 2);
  cache.put(record(233, 21), 3);
  return cache;
}

describe("log cache", () => {
  test("answers over blocks when it has the whole range", () => {
    const hit = sample().get(STREAM, 10, 15, 1e9);
    assert.equal(hit?.full, true);
    assert.deepEqual(bases(hit?.records), [10, 11, 13]);
  });

  test("gives the young part when the old one is not here", () => {
    const hit = sample().get(STREAM, 10, 21, 1e9);
    assert.equal(hit?.full, false);
    assert.equal(hit?.from, 20);
    assert.deepEqual(bases(hit?.records), [20]);
  });

  for (const [start, end] of [[0, 9], [10, 16], [12, 16], [22, 30]] as const) {
    test(`has nothing for [${start}, ${end})`, () => {
      assert.equal(sample().get(STREAM, start, end, 1e9), null);
    });
  }

  test("the first record may begin before the range", () => {
    assert.deepEqual(bases(sample().get(STREAM, 12, 14, 1e9)?.records), [11, 13]);
  });

  test("stops at the byte budget, but never before one record", () => {
    const cache = new LogCache(1e9);
    for (let i = 0; i < 4; i++) cache.put(record(1, i, 1, 100), 0);
    for (const [bytesMax, count] of [[0, 1], [90, 1], [199, 1], [200, 2], [399, 3]] as const) {
      const hit = cache.get(streamId(1), 0, 4, bytesMax);
      assert.equal(hit?.full, true);
      assert.equal(hit?.records.length, count, `${bytesMax} bytes`);
    }
  });

  test("notices a record that leaves a gap", () => {
    const cache = new LogCache(1e9);
    cache.put(record(233, 10), 0);
    assert.equal(cache.open?.continues(record(233, 13)), false);
    assert.equal(cache.open?.continues(record(233, 11)), true);
    assert.equal(cache.open?.continues(record(234, 77)), true);
    assert.throws(() => cache.put(record(233, 13), 0));
  });

  test("refuses a slot that goes back", () => {
    const cache = new LogCache(1e9);
    cache.put(record(1, 0), 5);
    assert.throws(() => cache.put(record(1, 1), 4));
  });

  test("counts what tiny records cost", () => {
    const cache = new LogCache(1e9);
    for (let i = 0; i < 1000; i++) cache.put(record(1, i, 1, 1), 0);
    assert.ok(cache.bytes > 200_000);
  });

  test("frees committed blocks from the oldest, and never others", () => {
    const cache = new LogCache(1000);
    cache.put(record(1, 0, 1, 400), 0);
    const first = cache.archive()!;
    cache.put(record(1, 1, 1, 400), 1);
    const second = cache.archive()!;
    cache.put(record(1, 2, 1, 400), 2);
    assert.equal(cache.blocks, 3);
    cache.markCommitted(second);
    assert.equal(cache.blocks, 3, "an older block is not committed");
    assert.equal(cache.firstSlotNeededAfter(first), 2);
    cache.markCommitted(first);
    assert.equal(cache.blocks, 1);
    assert.equal(cache.bytes, cache.uncommittedBytes);
    assert.equal(cache.firstSlotNeededAfter(first), 2);
  });

  test("keeps committed blocks for readers while there is room, up to a number", () => {
    const cache = new LogCache(1e9);
    for (let i = 0; i < LOG_CACHE_BLOCKS_MAX + 10; i++) {
      cache.put(record(1, i), i);
      cache.markCommitted(cache.archive()!);
    }
    assert.equal(cache.blocks, LOG_CACHE_BLOCKS_MAX);
    assert.equal(cache.uncommittedBytes, 0);
    assert.equal(cache.get(streamId(1), 10, LOG_CACHE_BLOCKS_MAX + 10, 1e9)?.full, true);
    assert.equal(cache.get(streamId(1), 9, LOG_CACHE_BLOCKS_MAX + 10, 1e9)?.from, 10);
  });
});
