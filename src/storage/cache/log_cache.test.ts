import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { bases, record } from "../../../tests/support/records.ts";
import { streamId } from "../../lib/brand.ts";
import {
  LOG_CACHE_BLOCKS_MAX,
  LOG_CACHE_CURSORS_MAX,
  LOG_CACHE_MERGED_BYTES_MAX,
  LOG_CACHE_RECORD_OVERHEAD_BYTES,
  LOG_CACHE_STREAM_OVERHEAD_BYTES,
} from "../../lib/limits.ts";
import { OwnMemory } from "../record_list.ts";
import type { StreamRecord } from "../stream_record.ts";
import { LogCache } from "./log_cache.ts";
import { LogCacheBlock } from "./log_cache_block.ts";

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

  test("isDiscontinuous: 233@10 then 233@13 is a gap; 233@10 and 234@10 then 233@11 is none", () => {
    const cache = new LogCache(1e9);
    cache.put(record(233, 10), 0);
    cache.put(record(234, 10), 0);
    const continues = (one: StreamRecord) => {
      const { memory, at } = new OwnMemory().copy(one);
      return cache.open?.continuesWith(memory, at);
    };
    assert.equal(continues(record(233, 13)), false);
    assert.equal(continues(record(233, 11)), true);
    assert.equal(continues(record(235, 77)), true);
    assert.throws(() => cache.put(record(233, 13), 0));
  });

  test("refuses a slot that goes back", () => {
    const cache = new LogCache(1e9);
    cache.put(record(1, 0), 5);
    assert.throws(() => cache.put(record(1, 1), 4));
  });

  test("counts what tiny records cost (AutoMQ 3512)", () => {
    const cache = new LogCache(1e9);
    for (let i = 0; i < 1000; i++) cache.put(record(1, i, 1, 1), 0);
    const each = 34 + LOG_CACHE_RECORD_OVERHEAD_BYTES;
    assert.equal(cache.bytes, 1000 * each + LOG_CACHE_STREAM_OVERHEAD_BYTES);
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
      // A gap, so that the blocks do not merge.
      cache.put(record(2, 2 * i), i);
      cache.markCommitted(cache.archive()!);
    }
    assert.equal(cache.blocks, LOG_CACHE_BLOCKS_MAX);
    assert.equal(cache.uncommittedBytes, 0);
    assert.equal(cache.get(streamId(1), 10, LOG_CACHE_BLOCKS_MAX + 10, 1e9)?.full, true);
    assert.equal(cache.get(streamId(1), 9, LOG_CACHE_BLOCKS_MAX + 10, 1e9)?.from, 10);
  });
});

function blockOf(...records: readonly StreamRecord[]): LogCacheBlock {
  const block = new LogCacheBlock(0);
  for (const one of records) block.put(one, 0);
  block.markCommitted();
  return block;
}

function runsOf(block: LogCacheBlock) {
  return block.runs().map(({ streamId: id, start, end, length }) => [id, start, end, length]);
}

describe("merge of log cache blocks", () => {
  test("mergeBlock: {233@10, 234@100} and {233@11, 235@200}", () => {
    const older = blockOf(record(233, 10), record(234, 100));
    const younger = blockOf(record(233, 11), record(235, 200));
    const sum = older.bytes + younger.bytes;
    assert.equal(older.isFollowedBy(younger), true);
    older.take(younger);
    assert.deepEqual(runsOf(older), [[233, 10, 12, 2], [234, 100, 101, 1], [235, 200, 201, 1]]);
    assert.equal(older.bytes, sum - LOG_CACHE_STREAM_OVERHEAD_BYTES, "233 is one run now");
    assert.deepEqual(
      runsOf(younger),
      [[233, 11, 12, 1], [235, 200, 201, 1]],
      "AutoMQ 3307: no alias",
    );
    assert.deepEqual(older.run(STREAM)!.at(1), record(233, 11));
    older.take(blockOf(record(233, 12, 3)));
    assert.deepEqual(older.run(STREAM)!.at(2), record(233, 12, 3));
  });

  test("a gap in any common stream forbids it", () => {
    const older = blockOf(record(233, 10), record(234, 100));
    assert.equal(older.isFollowedBy(blockOf(record(233, 12))), false);
    assert.equal(older.isFollowedBy(blockOf(record(234, 101), record(233, 11))), true);
    assert.equal(older.isFollowedBy(blockOf(record(1, 0))), true);
  });

  test("10 one-record contiguous blocks, first two committed: one block less, it has [0,2)", () => {
    const cache = new LogCache(1e9);
    const blocks = Array.from({ length: 10 }, (_, i) => {
      cache.put(record(1, i), i);
      return cache.archive()!;
    });
    const bytes = cache.bytes;
    cache.markCommitted(blocks[0]!);
    assert.equal(cache.blocks, 10);
    cache.markCommitted(blocks[1]!);
    assert.equal(cache.blocks, 9);
    assert.deepEqual(runsOf(blocks[0]!), [[1, 0, 2, 2]]);
    assert.equal(cache.bytes, bytes - LOG_CACHE_STREAM_OVERHEAD_BYTES);
    assert.deepEqual(bases(cache.get(streamId(1), 0, 10, 1e9)?.records), [...Array(10).keys()]);
    assert.equal(blocks[0]!.lastSlot, 1);
  });

  test("few blocks and large ones stay as they are", () => {
    for (const [count, bytes] of [[8, 1], [9, LOG_CACHE_MERGED_BYTES_MAX / 2]] as const) {
      const cache = new LogCache(1e9);
      for (let i = 0; i < count; i++) {
        cache.put(record(1, i, 1, bytes), i);
        cache.markCommitted(cache.archive()!);
      }
      assert.equal(cache.blocks, count);
    }
  });

  test("what is read, freed and counted is the same with merges as without (random histories)", () => {
    fc.assert(fc.property(
      fc.array(fc.tuple(fc.nat(2), fc.integer({ min: 1, max: 3 }), fc.boolean()), {
        maxLength: 120,
      }),
      fc.nat(200),
      fc.integer({ min: 1, max: 60 }),
      (steps, from, bytesMax) => {
        const cache = new LogCache(1e9);
        const ends = [0, 0, 0];
        const expected: StreamRecord[][] = [[], [], []];
        for (const [i, [stream, count, close]] of steps.entries()) {
          const one = record(stream, ends[stream]!, count, i % 7);
          ends[stream]! += count;
          expected[stream]!.push(one);
          cache.put(one, i);
          if (close) cache.markCommitted(cache.archive()!);
        }
        for (const [stream, all] of expected.entries()) {
          const start = Math.min(from, ends[stream]!);
          if (start === ends[stream]) continue;
          const hit = cache.get(streamId(stream), start, ends[stream]!, bytesMax);
          const first = all.findIndex((one) => one.baseOffset + one.count > start);
          assert.equal(hit?.full, true);
          assert.deepEqual(hit?.records, all.slice(first, first + hit!.records.length));
          const next = all[first + hit!.records.length];
          const size = hit!.records.reduce((sum, one) => sum + one.payload.length, 0);
          assert.ok(
            next === undefined || size + next.payload.length > bytesMax || size >= bytesMax,
          );
        }
        assert.ok(cache.blocks <= 8 + 1, `${cache.blocks} blocks`);
      },
    ));
  });
});

describe("sequential readers of the log cache", () => {
  const one = streamId(1);

  test("100000 sequential one-record reads leave exactly one place: 100000 at index 100000", () => {
    const cache = new LogCache(1e9);
    for (let i = 0; i < 100_000; i++) cache.put(record(1, i, 1, 0), 0);
    const run = cache.open!.run(one)!;
    for (let i = 0; i < 100_000; i++) cache.get(one, i, i + 1, 1e9);
    assert.equal(run.cursors, 1);
    assert.equal(run.indexOf(100_000), 100_000);
    assert.equal(run.cursors, 0, "used");
  });

  test("two readers at one offset both find their place, and places are bounded", () => {
    const cache = new LogCache(1e9);
    for (let i = 0; i < 1_000; i++) cache.put(record(1, 2 * i, 2), 0);
    const run = cache.open!.run(one)!;
    for (let reader = 0; reader < 2; reader++) cache.get(one, 0, 10, 1e9);
    assert.equal(run.cursors, 1);
    assert.deepEqual(bases(cache.get(one, 10, 12, 1e9)?.records), [10]);
    assert.equal(run.cursors, 2, "10 for the other reader, 12 for this one");
    assert.deepEqual(bases(cache.get(one, 10, 12, 1e9)?.records), [10]);
    assert.equal(run.cursors, 1);
    for (let i = 0; i < 500; i++) cache.get(one, 2 * i, 2 * i + 2, 1e9);
    for (let i = 0; i < 500; i += 3) cache.get(one, 2 * i + 1, 2 * i + 2, 1e9);
    assert.ok(run.cursors <= LOG_CACHE_CURSORS_MAX);
    assert.deepEqual(bases(cache.get(one, 11, 12, 1e9)?.records), [10], "inside a record");
  });
});

test("a record in the log cache is a number: none is an object until it is read", () => {
  const block = new LogCacheBlock(0);
  for (let i = 0; i < 10_000; i++) block.put(record(1, i, 1, 1), 0);
  const run = block.run(streamId(1))!;
  assert.notEqual(run.at(5), run.at(5), "made when asked for");
  assert.deepEqual(run.at(5), record(1, 5, 1, 1));
  assert.equal(Object.keys(run).includes("records"), false);
  const perRecord = block.bytes / run.length;
  assert.ok(perRecord < 34 + 41, `${perRecord} bytes per record of one byte`);
});
