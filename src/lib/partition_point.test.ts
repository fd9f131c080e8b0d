import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { partitionPoint } from "./partition_point.ts";

test("partition point: as many as a walk from the front counts", () => {
  fc.assert(fc.property(fc.array(fc.nat(20)), fc.nat(20), (numbers, wanted) => {
    const sorted = numbers.toSorted((a, b) => a - b);
    const walked = sorted.filter((number) => number < wanted).length;
    assert.equal(partitionPoint(sorted.length, (at) => sorted[at]! < wanted), walked);
  }));
});

test("partition point: a million places are looked at twenty times", () => {
  let looks = 0;
  const at = partitionPoint(1_000_000, (place) => {
    looks += 1;
    return place < 777_777;
  });
  assert.deepEqual([at, looks], [777_777, 20]);
});
