import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Assignment, holds, sizeOf } from "../consumer/assignment.ts";
import { assignSimple, type SimpleMember } from "./assign_simple.ts";

function topicsOf(counts: Record<string, number>) {
  return new Map(
    Object.entries(counts).map(([topicId, count]) => [
      topicId,
      new Set(Array.from({ length: count }, (_, at) => at)),
    ]),
  );
}

function membersOf(
  subscriptions: Record<string, readonly string[]>,
  current: ReadonlyMap<string, Assignment> = new Map(),
): SimpleMember[] {
  return Object.entries(subscriptions).map(([memberId, topics]) => ({
    memberId,
    topics: new Set(topics),
    current: current.get(memberId) ?? new Map(),
  }));
}

function sizes(made: ReadonlyMap<string, Assignment>): number[] {
  return [...made.values()].map(sizeOf).toSorted((a, b) => a - b);
}

test("one member has all of what it subscribes to", () => {
  const made = assignSimple({
    members: membersOf({ a: ["t", "u"] }),
    topics: topicsOf({ t: 3, u: 1 }),
  });
  assert.deepEqual(made.get("a"), new Map([["t", new Set([0, 1, 2])], ["u", new Set([0])]]));
});

test("members who subscribe alike share one pool, and differ by one partition at most", () => {
  const members = membersOf({ a: ["t", "u"], b: ["t", "u"], c: ["t", "u"] });
  assert.deepEqual(sizes(assignSimple({ members, topics: topicsOf({ t: 4, u: 4 }) })), [2, 3, 3]);
});

test("more members than partitions: partitions are shared evenly", () => {
  const members = membersOf(
    Object.fromEntries(["a", "b", "c", "d", "e", "f", "g"].map((id) => [id, ["t"]])),
  );
  const made = assignSimple({ members, topics: topicsOf({ t: 3 }) });
  // Seven members and three partitions: each partition wants three of them.
  for (const partition of [0, 1, 2]) {
    const holders = [...made.values()].filter((one) => holds(one, "t", partition)).length;
    assert.ok(holders >= 2 && holders <= 3, String(holders));
  }
  assert.ok(sizes(made)[0]! >= 1);
});

test("different subscriptions: each topic is spread over its own readers", () => {
  const members = membersOf({ a: ["t"], b: ["u"], c: ["t", "u"] });
  const made = assignSimple({ members, topics: topicsOf({ t: 4, u: 4 }) });
  assert.deepEqual(
    [...made].map(([id, one]) => [id, one.get("t")?.size ?? 0, one.get("u")?.size ?? 0]),
    [["a", 2, 0], ["b", 0, 2], ["c", 2, 2]],
  );
});

test("a newcomer takes its part and nothing else moves", () => {
  const topics = topicsOf({ t: 6 });
  const before = assignSimple({ members: membersOf({ a: ["t"], b: ["t"] }), topics });
  const after = assignSimple({
    members: membersOf({ a: ["t"], b: ["t"], c: ["t"] }, before),
    topics,
  });
  assert.deepEqual(sizes(after), [2, 2, 2]);
  for (const id of ["a", "b"]) {
    for (const partition of after.get(id)!.get("t")!) {
      assert.ok(holds(before.get(id)!, "t", partition), `${id} has got ${partition}`);
    }
  }
});

test("for all subscriptions and histories: nobody has what it did not ask for, nothing is left out, all is even", () => {
  const names = ["t", "u", "v"];
  const subscription = fc.subarray(names, { minLength: 1 });
  const round = fc.record({
    counts: fc.tuple(fc.nat(5), fc.nat(5), fc.nat(5)),
    members: fc.dictionary(fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"), subscription, {
      maxKeys: 8,
    }),
  });
  fc.assert(
    fc.property(fc.array(round, { minLength: 1, maxLength: 4 }), (rounds) => {
      let current: ReadonlyMap<string, Assignment> = new Map();
      for (const { counts, members: subscriptions } of rounds) {
        const topics = topicsOf(Object.fromEntries(names.map((name, at) => [name, counts[at]!])));
        const members = membersOf(subscriptions, current);
        const wanted = new Set(members.flatMap((one) => [...one.topics]));
        const pool = new Map([...topics].filter(([name]) => wanted.has(name)));
        const made = assignSimple({ members, topics: pool });
        for (const { memberId, topics: own } of members) {
          for (const [topicId, partitions] of made.get(memberId)!) {
            assert.ok(own.has(topicId));
            for (const partition of partitions) assert.ok(topics.get(topicId)!.has(partition));
          }
        }
        for (const [topicId, partitions] of pool) {
          for (const partition of partitions) {
            assert.ok([...made.values()].some((one) => holds(one, topicId, partition)));
          }
        }
        const areAlike = new Set(members.map((one) =>
          [...one.topics].toSorted().join()
        )).size === 1;
        const total = [...pool.values()].reduce((sum, { size }) => sum + size, 0);
        if (areAlike && total >= members.length) {
          const ordered = sizes(made);
          assert.ok(ordered.at(-1)! - ordered[0]! <= 1, ordered.join());
        }
        if (areAlike && total > 0) assert.ok(sizes(made)[0]! >= 1, "somebody has nothing to do");
        current = made;
      }
    }),
    { numRuns: 300 },
  );
});
