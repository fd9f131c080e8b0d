/** Expected values from the reference's SparseRangeIndexTest and LocalStreamRangeIndexCacheTest. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nodeId, objectId, position, streamId } from "../../lib/brand.ts";
import { DecodeError } from "../../lib/bytes.ts";
import { SPARSE_INDEX_BYTES_MAX, SPARSE_RANGE_BYTES } from "../../lib/limits.ts";
import { encodeSparseIndex } from "../format/sparse_index.ts";
import type { StreamSetRef } from "../ports.ts";
import { searchSteps } from "./search_steps.ts";
import { SparseIndex } from "./sparse_index.ts";
import { SparseRanges } from "./sparse_ranges.ts";

const S0 = streamId(0);
const S1 = streamId(1);

function range(stream: number, start: number, end: number) {
  return { streamId: streamId(stream), start, end };
}

function ids(...numbers: readonly number[]) {
  return new Set(numbers.map(objectId));
}

/** Ten ranges of 100 from 50 on, in objects 88 to 97. */
function tenOf(...streams: readonly number[]): SparseIndex {
  const index = new SparseIndex();
  for (let i = 0; i < 10; i++) {
    index.add(objectId(88 + i), streams.map((id) => range(id, 50 + i * 100, 150 + i * 100)));
  }
  return index;
}

function search(index: SparseIndex, ...offsets: readonly number[]): (number | null)[] {
  return offsets.map((offset) => index.floor(S0, offset)?.objectId ?? null);
}

function reloaded(index: SparseIndex): SparseIndex {
  return SparseIndex.decode(index.encode());
}

describe("sparse ranges of a stream", () => {
  test("thinned one by one: [0..5] with two kept at the end", () => {
    const ranges = new SparseRanges(
      [0, 1, 2, 3, 4, 5].map((i) => ({ start: i, end: i + 1, objectId: objectId(i) })),
      2,
    );
    const left: number[][] = [];
    for (let i = 0; i < 6; i++) {
      ranges.thin();
      left.push(ranges.ranges.map(({ start }) => start));
    }
    assert.deepEqual(left, [[0, 2, 3, 4, 5], [0, 2, 4, 5], [0, 4, 5], [0, 5], [0], []]);
    ranges.thin();
    assert.deepEqual(ranges.ranges, []);
  });

  test("an older range goes to its place; what it overlaps is older knowledge", () => {
    const ranges = new SparseRanges();
    const add = (start: number, end: number, id: number) =>
      ranges.add({ start, end, objectId: objectId(id) });
    add(10, 20, 1);
    add(30, 40, 2);
    add(20, 30, 3);
    add(0, 10, 4);
    assert.deepEqual(ranges.ranges.map(({ objectId: id }) => id), [4, 1, 3, 2]);
    add(15, 35, 5);
    assert.deepEqual(ranges.ranges.map(({ start, end }) => [start, end]), [[0, 10], [15, 35]]);
  });
});

describe("sparse index of a node", () => {
  test("search in an empty index, with one range, with ten", () => {
    assert.deepEqual(search(new SparseIndex(), 0), [null]);
    const one = new SparseIndex();
    one.add(objectId(88), [range(0, 50, 100)]);
    assert.deepEqual(search(reloaded(one), 0, 50, 70, 100), [null, 88, 88, 88]);
    const ten = tenOf(0);
    assert.deepEqual(search(ten, 50, 100, 150, 600, 950, 1500), [88, 88, 89, 93, 97, 97]);
    assert.equal(ten.bytes, 400);
  });

  test("pruned to the live objects 94 to 97, then to none", () => {
    const index = tenOf(0);
    index.keepOnly(ids(94, 95, 96, 97));
    assert.equal(index.bytes, 160);
    for (const now of [index, reloaded(index)]) {
      assert.deepEqual(search(now, 0, 600, 700, 800, 900), [null, null, 94, 95, 96]);
    }
    index.keepOnly(ids());
    assert.deepEqual([index.bytes, index.streams, search(index, 700)], [0, 0, [null]]);
  });

  test("compaction of 88 to 93 into 256: stream 0 stays in it, stream 1 leaves", () => {
    const index = tenOf(0, 1);
    index.keepOnly(ids(94, 95, 96, 97, 256));
    index.add(objectId(256), [range(0, 50, 650)]);
    const list = (stream: typeof S0) =>
      index.ranges(stream).map(({ start, end, objectId: id }) => [start, end, id]);
    const rest = [[650, 750, 94], [750, 850, 95], [850, 950, 96], [950, 1050, 97]];
    assert.deepEqual(list(S0), [[50, 650, 256], ...rest]);
    assert.deepEqual(list(S1), rest);
    assert.equal(index.bytes, 9 * 40);
    index.keepOnly(ids());
    assert.equal(index.bytes, 0);
  });

  test("a stored one with more ranges than any of ours is none of ours: it is not thinned for a minute", () => {
    const per = Math.floor(SPARSE_INDEX_BYTES_MAX / SPARSE_RANGE_BYTES);
    const stored = (count: number) => {
      const ranges = Array.from({ length: count }, (_, i) => ({
        start: i,
        end: i + 1,
        objectId: objectId(i),
      }));
      return encodeSparseIndex([{ streamId: streamId(0), ranges }]);
    };
    assert.equal(SparseIndex.decode(stored(per)).ranges(streamId(0)).length, per);
    assert.throws(() => SparseIndex.decode(stored(per + 1)), DecodeError);
  });

  test("500 streams with up to 2,000 ranges each stay within 1 MiB, and none is lost", () => {
    const bytesMax = 1024 * 1024;
    const index = new SparseIndex(bytesMax);
    for (let i = 0; i < 2_000; i++) {
      const streams = Array.from({ length: 500 }, (_, stream) => stream)
        .filter((stream) => i < (stream + 1) * 4);
      index.add(objectId(i), streams.map((stream) => range(stream, i * 10, i * 10 + 10)));
      assert.ok(index.bytes <= bytesMax);
    }
    assert.equal(index.streams, 500);
    const last = index.ranges(streamId(499));
    assert.deepEqual([last[0]!.start, last.at(-1)!.start], [0, 19_990]);
    assert.ok(index.bytes > bytesMax * 0.9, "what there is room for is kept");
    assert.equal(reloaded(index).bytes, index.bytes);
  });

  test("more streams than there is room for", () => {
    const index = new SparseIndex(400);
    index.add(objectId(1), Array.from({ length: 25 }, (_, i) => range(i, 0, 1)));
    assert.deepEqual([index.bytes, index.streams], [400, 10]);
  });
});

describe("NodeRangeIndexCacheTest: (50,100,99), (150,250,100), (300,400,101)", () => {
  const index = new SparseIndex();
  for (const [start, end, id] of [[50, 100, 99], [150, 250, 100], [300, 400, 101]] as const) {
    index.add(objectId(id), [range(0, start, end)]);
  }

  test("search", () => {
    assert.deepEqual(search(index, 0, 50, 100, 200, 300, 500), [null, 99, 99, 100, 101, 101]);
    assert.equal(index.floor(S1, 50), null);
  });

  test("the object that it names first, then younger ones, then what lies behind the place", () => {
    const live = [97, 98, 99, 100, 101, 102, 103].map((id): StreamSetRef => ({
      objectId: objectId(id),
      kind: "stream-set",
      size: 1,
      attributes: 0,
      checksums: { bytesCrc: 0, indexCrc: 0 },
      nodeId: nodeId(32),
      order: position(id),
    }));
    const steps = (offset: number, sparse: SparseIndex | null = index) => {
      const found = searchSteps(live, sparse, S0, offset);
      return [
        found.isHinted,
        ...found.steps.map((step) => step.map((one) => Number(one.objectId))),
      ];
    };
    assert.deepEqual(steps(200), [true, [100], [102, 103, 97, 98, 101, 99]]);
    assert.deepEqual(steps(250), [false, [102, 103, 97, 98, 100, 101, 99]]);
    assert.deepEqual(steps(0, null), [false, [97, 98, 99, 100, 101, 102, 103]]);
  });
});
