/** Rendezvous placement and span arithmetic. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { range } from "../../tests/support/controller_world.ts";
import { nodeId } from "../lib/brand.ts";
import { placePartition } from "./placement.ts";
import { covers, mergeSpans, overlaps, rangesDigest, sameSpans, type Span } from "./ranges.ts";

const keys = Array.from({ length: 3_000 }, (_, i) => `topic/${i}`);

test("partitions spread evenly, whatever the order of the nodes", () => {
  const nodes = [1, 2, 3].map(nodeId);
  const counts = new Map<number, number>();
  for (const key of keys) {
    const node = placePartition(key, nodes)!;
    assert.equal(placePartition(key, nodes.toReversed()), node);
    counts.set(node, (counts.get(node) ?? 0) + 1);
  }
  for (const count of counts.values()) assert.ok(count > 850 && count < 1_150, String(count));
  assert.equal(placePartition("x", []), null);
  assert.equal(placePartition("x", [nodeId(7)]), 7);
});

test("a node that leaves moves only its own partitions", () => {
  const nodes = [1, 2, 3, 4].map(nodeId);
  const left = nodes.slice(0, 3);
  for (const key of keys) {
    const before = placePartition(key, nodes);
    if (before !== 4) assert.equal(placePartition(key, left), before);
  }
});

const span = fc.tuple(fc.nat(30), fc.integer({ min: 1, max: 8 }))
  .map(([start, length]): Span => ({ start, end: start + length }));
const spans = fc.array(span, { maxLength: 8 });

function members(list: readonly Span[]): Set<number> {
  return new Set(
    list.flatMap(({ start, end }) => Array.from({ length: end - start }, (_, i) => start + i)),
  );
}

test("spans behave like the sets that they stand for", () => {
  fc.assert(fc.property(spans, spans, (a, b) => {
    const [left, right] = [members(a), members(b)];
    assert.deepEqual(members(mergeSpans(a)), new Set([...left].toSorted((x, y) => x - y)));
    assert.equal(covers(a, b), right.isSubsetOf(left));
    assert.equal(sameSpans(a, b), left.isSubsetOf(right) && right.isSubsetOf(left));
    const total = a.reduce((sum, { start, end }) => sum + end - start, 0);
    assert.equal(overlaps(a), total > left.size);
  }));
});

test("a digest depends on what is covered, not on order or cuts", () => {
  const digest = rangesDigest([range(1, 0, 10), range(2, 5, 6)]);
  assert.equal(digest, rangesDigest([range(2, 5, 6), range(1, 4, 10), range(1, 0, 4)]));
  assert.notEqual(digest, rangesDigest([range(1, 0, 10), range(2, 5, 7)]));
  assert.notEqual(digest, rangesDigest([range(1, 0, 10)]));
  assert.equal(rangesDigest([]), "d41d8cd98f00b204e9800998ecf8427e");
});
