import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { assignRanges, type Subscriber } from "./range_assignor.ts";

function member(memberId: string, topics: readonly string[], instanceId: string | null = null) {
  return { memberId, topics, instanceId };
}

/** As nested objects, for reading. */
function plain(members: readonly Subscriber[], partitions: Readonly<Record<string, number>>) {
  const assigned = assignRanges(members, new Map(Object.entries(partitions)));
  return Object.fromEntries([...assigned].map(([id, topics]) => [id, Object.fromEntries(topics)]));
}

test("the examples of Kafka's RangeAssignor", () => {
  // Two consumers, two topics of three partitions: C0 gets t0p0 t0p1 t1p0 t1p1, C1 gets t0p2 t1p2.
  assert.deepEqual(
    plain([member("C1", ["t0", "t1"]), member("C0", ["t0", "t1"])], { t0: 3, t1: 3 }),
    { C0: { t0: [0, 1], t1: [0, 1] }, C1: { t0: [2], t1: [2] } },
  );
  assert.deepEqual(plain([member("a", ["t"]), member("b", ["t"])], { t: 1 }), {
    a: { t: [0] },
    b: {},
  });
  assert.deepEqual(plain([member("a", ["x"]), member("b", ["y"])], { x: 1, y: 2 }), {
    a: { x: [0] },
    b: { y: [0, 1] },
  });
  // A static member keeps its place under every new member id.
  assert.deepEqual(plain([member("a", ["t"]), member("z", ["t"], "i")], { t: 2 }), {
    a: { t: [1] },
    z: { t: [0] },
  });
  assert.deepEqual(plain([member("a", ["gone"])], {}), { a: {} });
});

test("each partition has one reader, and nobody has two more than another", () => {
  const topics = ["t0", "t1", "t2"];
  fc.assert(fc.property(
    fc.array(fc.subarray(topics), { minLength: 1, maxLength: 8 }),
    fc.array(fc.nat(12), { minLength: 3, maxLength: 3 }),
    (subscriptions, sizes) => {
      const members = subscriptions.map((own, i) => member(`m${i}`, own));
      const counts = new Map(topics.map((name, i) => [name, sizes[i]!]));
      const assigned = assignRanges(members, counts);
      for (const [topic, count] of counts) {
        const readers = members.filter((one) => one.topics.includes(topic));
        const shares = readers.map(({ memberId }) => assigned.get(memberId)!.get(topic) ?? []);
        const all = shares.flat().toSorted((a, b) => a - b);
        const wanted = readers.length === 0 ? [] : Array.from({ length: count }, (_, i) => i);
        assert.deepEqual(all, wanted);
        const lengths = shares.map(({ length }) => length);
        assert.ok(lengths.length === 0 || Math.max(...lengths) - Math.min(...lengths) <= 1);
        const others = members.filter((one) => !one.topics.includes(topic));
        assert.ok(others.every(({ memberId }) => !assigned.get(memberId)!.has(topic)));
      }
    },
  ));
});
