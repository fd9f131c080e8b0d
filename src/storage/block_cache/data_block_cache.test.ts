/** Expected values from the reference's DataBlockCacheTest and its tests of merged range reads. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { bases, record } from "../../../tests/support/records.ts";
import { objectId } from "../../lib/brand.ts";
import { createMemoryStore } from "../../object/memory.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ByteRange, ObjectStore } from "../../object/object_store.ts";
import { ObjectWriter } from "../format/object_writer.ts";
import { BlockStore } from "./block_store.ts";
import { ByteGate } from "./byte_gate.ts";
import { DataBlockCache } from "./data_block_cache.ts";
import { groupRanges, RangeReads } from "./range_reads.ts";

function block(bytes: number) {
  return { records: [], bytes };
}

describe("DataBlockCacheTest", () => {
  test("of 1,024 bytes: 100, 200 and 1,500 are admitted, 500 waits for most of them", async () => {
    const gate = new ByteGate(1024);
    const ends: (() => void)[] = [];
    const begun: number[] = [];
    const runs = [100, 200, 1_500, 500].map((bytes) =>
      gate.run(bytes, () => {
        begun.push(bytes);
        return new Promise<void>((end) => ends.push(end));
      })
    );
    await Promise.resolve();
    assert.deepEqual([begun, gate.free, gate.waiting], [[100, 200, 1_500], -776, 1]);
    ends[0]!();
    await runs[0];
    assert.deepEqual([gate.free, gate.waiting], [-676, 1]);
    ends[1]!();
    ends[2]!();
    await Promise.all([runs[1], runs[2]]);
    await Promise.resolve();
    assert.deepEqual([begun.at(-1), gate.free, gate.waiting], [500, 524, 0]);
    ends[3]!();
    await runs[3];
    assert.equal(gate.free, 1024);
  });

  test("a failure gives its bytes back", async () => {
    const gate = new ByteGate(10);
    await assert.rejects(gate.run(50, () => Promise.reject(new Error("no"))), /no/);
    assert.equal(gate.free, 10);
  });

  test("100 unread and 900 read: 100 more free the read one, the two of 100 remain", () => {
    const blocks = new BlockStore(1024);
    const dropped: string[] = [];
    const unread = (key: string) => ({
      block: block(100),
      sinceMs: 0,
      onDropped: () => void dropped.push(key),
    });
    blocks.addUnread("a", unread("a"));
    blocks.add("b", block(900));
    blocks.addUnread("c", unread("c"));
    assert.deepEqual([blocks.has("a"), blocks.has("b"), blocks.has("c")], [true, false, true]);
    assert.deepEqual([1024 - blocks.bytes, dropped], [824, []]);
  });

  test("unread ones go last, and their reader hears of it", () => {
    const blocks = new BlockStore(250);
    const dropped: string[] = [];
    for (const key of ["a", "b", "c"]) {
      blocks.addUnread(key, {
        block: block(100),
        sinceMs: 0,
        onDropped: () => void dropped.push(key),
      });
    }
    assert.deepEqual([dropped, blocks.unreadBytes], [["a"], 200]);
    assert.equal(blocks.take("b")?.bytes, 100);
    assert.equal(blocks.unreadBytes, 100);
    blocks.add("d", block(100));
    assert.deepEqual([dropped, blocks.has("b"), blocks.bytes], [["a"], false, 200]);
  });

  test("an unread block is kept for 60 s", () => {
    const blocks = new BlockStore(1024);
    let dropped = 0;
    blocks.addUnread("a", { block: block(100), sinceMs: 500, onDropped: () => void dropped++ });
    blocks.expire(60_500 - 1);
    assert.equal(dropped, 0);
    blocks.expire(60_500 + 2);
    assert.deepEqual([dropped, blocks.bytes], [1, 0]);
  });

  test("the least recently read one goes first", () => {
    const blocks = new BlockStore(300);
    for (const key of ["a", "b", "c"]) blocks.add(key, block(100));
    blocks.take("a");
    blocks.add("d", block(100));
    assert.deepEqual(["a", "b", "c", "d"].filter((key) => blocks.has(key)), ["a", "c", "d"]);
    blocks.add("e", block(400));
    assert.equal(blocks.bytes, 0, "larger than all: not kept");
  });
});

test("a block that a reader waits for is not read ahead any more, whoever asked first", async () => {
  const clock = createFakeClock();
  const memory = createMemoryStore(clock);
  const writer = new ObjectWriter(1);
  for (let i = 0; i < 2; i++) writer.add(record(1, i, 1, 100));
  const layout = writer.finish();
  const id = objectId(7);
  await memory.put(dataKey("X", id), layout.encode());
  let gets = 0;
  const get: ObjectStore["get"] = (key, options) => {
    gets += 1;
    return memory.get(key, options);
  };
  const cache = new DataBlockCache({
    store: { ...memory, get },
    clusterId: "X",
    clock,
    blocks: new BlockStore(1e6),
    bytesMax: 1e6,
    inFlightMax: 1e6,
  });
  const entries = [layout.indexBlock.entry(0), layout.indexBlock.entry(1)];
  let dropped = 0;
  const ahead = cache.readAhead(id, entries, () => void dropped++);
  const read = await cache.get(id, entries.slice(0, 1));
  await ahead;
  assert.deepEqual([gets, read.misses, bases(read.records.flat())], [1, 1, [0]]);
  await clock.advance(60_001);
  await cache.get(id, entries.slice(0, 1));
  assert.equal(dropped, 1, "only the other one");
  assert.equal((await cache.get(id, entries)).misses, 1);
});

function grouped(ranges: readonly (readonly [number, number])[], spanMax: number, holes: number) {
  return groupRanges(ranges.map(([start, end]) => ({ start, end })), spanMax, holes)
    .map(({ start, end }) => [start, end]);
}

describe("merged range reads", () => {
  const SPAN = 4 * 1024 * 1024;

  test("without holes only neighbours share a read", () => {
    assert.deepEqual(grouped([[0, 1024], [1024, 2048]], SPAN, 0), [[0, 2048]]);
    assert.deepEqual(grouped([[0, 2048], [2049, 3000]], SPAN, 0), [[0, 2048], [2049, 3000]]);
  });

  test("with half of holes allowed: a quarter, then an eighth", () => {
    assert.deepEqual(grouped([[0, 1024], [2048, 4096]], SPAN, 0.25), [[0, 4096]]);
    assert.deepEqual(grouped([[0, 1024], [2048, 4096]], SPAN, 0.24), [[0, 1024], [2048, 4096]]);
    const three = [[0, 1024], [2048, 4096], [1024, 1536]] as const;
    assert.deepEqual(grouped(three, SPAN, 0.125), [[0, 4096]]);
    assert.deepEqual(grouped([[0, 10], [21, 30]], SPAN, 0.5), [[0, 30]]);
    assert.deepEqual(grouped([[0, 10], [31, 41]], SPAN, 0.5), [[0, 10], [31, 41]]);
  });

  test("a read spans no more than its limit, unless one range does", () => {
    assert.deepEqual(grouped([[0, 10], [10, 20], [20, 60], [60, 65]], 25, 0.5), [
      [0, 20],
      [20, 60],
      [60, 65],
    ]);
  });

  function recording(): { store: ObjectStore; asked: string[] } {
    const store = createMemoryStore(createFakeClock());
    const asked: string[] = [];
    const get: ObjectStore["get"] = (key, options) => {
      asked.push(`${key} ${options?.range?.start}-${options?.range?.end}`);
      return store.get(key, options);
    };
    return { store: { ...store, get }, asked };
  }

  test("five pending reads of two objects: two merged calls, the two far ones alone", async () => {
    const { store, asked } = recording();
    const reads = new RangeReads(store, 1e9);
    const pending: readonly (readonly [string, number, number])[] = [
      ["o1", 0, 1024],
      ["o2", 1024, 3072],
      ["o1", 31_457_280, 31_461_376],
      ["o1", 2048, 4096],
      ["o1", 33_554_432, 33_554_944],
    ];
    await Promise.all(pending.map(([key, start, end]) => reads.read(key, { start, end })));
    assert.deepEqual(asked.toSorted(), [
      "o1 0-4096",
      "o1 31457280-31461376",
      "o1 33554432-33554944",
      "o2 1024-3072",
    ]);
  });

  test("what is kept of a shared read keeps none of its neighbours in memory", async () => {
    const { store, asked } = recording();
    await store.put("o", new Uint8Array(1_000_000).fill(7));
    const reads = new RangeReads(store, 1e9);
    const blocks = await Promise.all(
      Array.from(
        { length: 100 },
        (_, i) => reads.read("o", { start: i * 1e4, end: (i + 1) * 1e4 }),
      ),
    );
    assert.deepEqual(asked, ["o 0-1000000"]);
    assert.deepEqual(blocks.map((block) => block?.length), Array.from({ length: 100 }, () => 1e4));
    const held = new Set(blocks.slice(0, 3).map((block) => block?.buffer));
    const heldBytes = [...held].reduce((sum, buffer) => sum + (buffer?.byteLength ?? 0), 0);
    assert.equal(heldBytes, 3e4, "three of a hundred blocks");
  });

  test("each gets its own bytes; those of a hole stay in no memory", async () => {
    const { store, asked } = recording();
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    await store.put("o", bytes);
    const reads = new RangeReads(store, 1e9);
    const read = (start: number, end: number) => reads.read("o", { start, end } as ByteRange);
    const [a, b, gone] = await Promise.all([
      read(10, 20),
      read(25, 40),
      reads.read("p", {
        start: 0,
        end: 1,
      }),
    ]);
    assert.deepEqual(asked, ["o 10-40", "p 0-1"]);
    assert.deepEqual([a, b, gone], [bytes.slice(10, 20), bytes.slice(25, 40), null]);
    assert.equal(a!.buffer.byteLength, 10);
  });

  test("a failure reaches exactly those who shared the read", async () => {
    const { store } = recording();
    await store.put("o", new Uint8Array(100));
    const reads = new RangeReads(store, 1e9);
    const settled = await Promise.allSettled([
      reads.read("o", { start: 0, end: 10 }),
      reads.read("o", { start: 95, end: 101 }),
    ]);
    assert.deepEqual(settled.map(({ status }) => status), ["fulfilled", "rejected"]);
  });
});
