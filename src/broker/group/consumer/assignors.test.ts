import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Uuid } from "../../../lib/uuid.ts";
import { type Assignment, assignmentOf, difference, NOTHING, sizeOf } from "./assignment.ts";
import { assignRange } from "./assign_range.ts";
import { assignUniform } from "./assign_uniform.ts";
import { type AssignorInput, type AssignorMember, assignorOf } from "./assignors.ts";
import { emptyGroup, NEW_PLACE } from "./group.ts";

function member(
  memberId: string,
  topics: readonly string[],
  current: Assignment = NOTHING,
  instanceId: string | null = null,
): AssignorMember {
  return { memberId, instanceId, topics: new Set(topics), current };
}

function shown(assignments: ReadonlyMap<string, Assignment>, memberId: string) {
  const assignment = assignments.get(memberId)!;
  return Object.fromEntries([...assignment].map(([topic, held]) => [topic, [...held].toSorted()]));
}

function held(topic: string, ...partitions: number[]): Assignment {
  return assignmentOf([{ topicId: topic, partitions }]);
}

/** Every partition of a topic with subscribers has one owner, who subscribes to it. */
function assertComplete(input: AssignorInput, made: ReadonlyMap<string, Assignment>): void {
  const owners = new Map<string, string>();
  for (const { memberId, topics } of input.members) {
    for (const [topicId, partitions] of made.get(memberId)!) {
      assert.ok(topics.has(topicId), `${memberId} does not subscribe to ${topicId}`);
      assert.ok(partitions.size > 0);
      for (const partition of partitions) {
        assert.ok(partition >= 0 && partition < input.topics.get(topicId)!);
        assert.ok(!owners.has(`${topicId}/${partition}`), `${topicId}/${partition} has two owners`);
        owners.set(`${topicId}/${partition}`, memberId);
      }
    }
  }
  let wanted = 0;
  for (const [topicId, partitions] of input.topics) {
    if (input.members.some(({ topics }) => topics.has(topicId))) wanted += partitions;
  }
  assert.equal(owners.size, wanted);
}

const TOPICS = ["a", "b", "c", "d"];
const topics = fc.dictionary(fc.constantFrom(...TOPICS), fc.nat(9), { minKeys: 1 })
  .map((sizes) => new Map<Uuid, number>(Object.entries(sizes)));

const alike = fc.record({ topics, count: fc.integer({ min: 1, max: 8 }) })
  .map(({ topics, count }): AssignorInput => ({
    topics,
    members: Array.from({ length: count }, (_, at) => member(`m${at}`, [...topics.keys()])),
  }));

const unlike = fc.record({
  topics,
  wanted: fc.array(fc.subarray(TOPICS), { minLength: 1, maxLength: 8 }),
}).map(({ topics, wanted }): AssignorInput => {
  const of = (names: string[]) => names.filter((name) => topics.has(name));
  const named = new Set(wanted.flat());
  return {
    topics: new Map([...topics].filter(([topicId]) => named.has(topicId))),
    members: wanted.map((names, at) => member(`m${at}`, of(names))),
  };
});

/** The same members with what they were given; some go, some come. */
function later(
  input: AssignorInput,
  made: ReadonlyMap<string, Assignment>,
  gone: number,
  come: number,
) {
  const stay = input.members.slice(gone)
    .map((each) => ({ ...each, current: made.get(each.memberId)! }));
  const fresh = Array.from(
    { length: come },
    (_, at) => member(`n${at}`, [...input.topics.keys()]),
  );
  const members = [...stay, ...fresh];
  const isWanted = (topicId: Uuid) => members.some(({ topics }) => topics.has(topicId));
  return { topics: new Map([...input.topics].filter(([topicId]) => isWanted(topicId))), members };
}

test("uniform: equal subscriptions give counts that differ by one at most, and keep all they may", () => {
  fc.assert(fc.property(alike, fc.nat(7), fc.nat(3), (input, gone, come) => {
    const first = assignUniform(input);
    assertComplete(input, first);
    const second = later(input, first, Math.min(gone, input.members.length - 1), come);
    const made = assignUniform(second);
    assertComplete(second, made);
    const counts = [...made.values()].map(sizeOf);
    assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, `${counts}`);
    // Only what is above the fair share of a member may move away from it.
    const total = counts.reduce((sum, count) => sum + count, 0);
    const share = Math.floor(total / second.members.length);
    for (const { memberId, current } of second.members) {
      const lost = sizeOf(difference(current, made.get(memberId)!));
      assert.ok(lost <= Math.max(0, sizeOf(current) - share), `${memberId} lost ${lost}`);
    }
  }));
});

test("uniform: nothing moves when nothing changed", () => {
  fc.assert(fc.property(fc.oneof(alike, unlike), (input) => {
    const first = assignUniform(input);
    const again = later(input, first, 0, 0);
    assert.deepEqual(assignUniform(again), first);
  }));
});

test("uniform: with unlike subscriptions no single move makes it more even", () => {
  fc.assert(fc.property(unlike, fc.nat(7), fc.nat(2), (input, gone, come) => {
    const first = assignUniform(input);
    const second = later(input, first, Math.min(gone, input.members.length - 1), come);
    const made = assignUniform(second);
    assertComplete(second, made);
    for (const from of second.members) {
      for (const [topicId] of made.get(from.memberId)!) {
        for (const to of second.members) {
          if (!to.topics.has(topicId)) continue;
          const more = sizeOf(made.get(from.memberId)!) - sizeOf(made.get(to.memberId)!);
          assert.ok(more <= 1, `${from.memberId} could give ${topicId} to ${to.memberId}`);
        }
      }
    }
  }));
});

test("uniform: each topic is spread as well when all subscribe alike", () => {
  const made = assignUniform({
    topics: new Map([["a", 4], ["b", 4]]),
    members: ["x", "y"].map((id) => member(id, ["a", "b"])),
  });
  assert.deepEqual(shown(made, "x"), { a: [0, 2], b: [0, 2] });
  assert.deepEqual(shown(made, "y"), { a: [1, 3], b: [1, 3] });
});

test("uniform: partitions that are gone or of topics no longer wanted are not kept", () => {
  const current = assignmentOf([
    { topicId: "a", partitions: [0, 1, 7] },
    { topicId: "b", partitions: [0] },
  ]);
  const made = assignUniform({
    topics: new Map([["a", 2]]),
    members: [member("x", ["a"], current)],
  });
  assert.deepEqual(shown(made, "x"), { a: [0, 1] });
});

test("range: topics are cut in one order, so equal topics are cut alike", () => {
  const made = assignRange({
    topics: new Map([["a", 3], ["b", 3]]),
    members: ["x", "y"].map((id) => member(id, ["a", "b"])),
  });
  assert.deepEqual(shown(made, "x"), { a: [0, 1], b: [0, 1] });
  assert.deepEqual(shown(made, "y"), { a: [2], b: [2] });
});

test("range: complete, even per topic, the same again when nothing changed", () => {
  fc.assert(fc.property(fc.oneof(alike, unlike), (input) => {
    const made = assignRange(input);
    assertComplete(input, made);
    for (const topicId of input.topics.keys()) {
      const counts = input.members.filter(({ topics }) => topics.has(topicId))
        .map(({ memberId }) => made.get(memberId)!.get(topicId)?.size ?? 0);
      if (counts.length > 0) assert.ok(Math.max(...counts) - Math.min(...counts) <= 1);
    }
    const again = later(input, made, 0, 0);
    assertComplete(again, assignRange(again));
  }));
});

test("range: a newcomer comes last, and static members stand in the order of their instances", () => {
  const topics = new Map([["a", 4]]);
  const members = [
    member("n", ["a"]),
    member("z", ["a"], held("a", 0, 1)),
    member("y", ["a"], held("a", 2, 3)),
  ];
  const made = assignRange({ topics, members });
  assert.deepEqual(shown(made, "z"), { a: [0, 1] });
  assert.deepEqual(shown(made, "y"), { a: [2] });
  assert.deepEqual(shown(made, "n"), { a: [3] });
  const statics = assignRange({
    topics: new Map([["a", 3]]),
    members: [
      member("p", ["a"]),
      member("q", ["a"], NOTHING, "2"),
      member("r", ["a"], NOTHING, "1"),
    ],
  });
  assert.deepEqual(["r", "q", "p"].map((id) => shown(statics, id)), [{ a: [0] }, { a: [1] }, {
    a: [2],
  }]);
});

test("the assignor that most members ask for is used, else the first that is allowed", () => {
  const asking = (...assignors: (string | null)[]) => ({
    ...emptyGroup("g"),
    members: new Map(assignors.map((assignor, at) => {
      const profile = {
        instanceId: null,
        rackId: null,
        clientId: "",
        clientHost: "",
        topicNames: [],
        topicRegex: null,
        rebalanceTimeoutMs: 1,
        assignor,
        classic: null,
      };
      return [`m${at}`, { memberId: `m${at}`, profile, place: NEW_PLACE }];
    })),
  });
  const allowed = ["uniform", "range"];
  assert.equal(assignorOf(asking(null, null), allowed), "uniform");
  assert.equal(assignorOf(asking(null, "range"), allowed), "range");
  assert.equal(assignorOf(asking("range", "uniform"), allowed), "uniform");
  assert.equal(assignorOf(asking("range", "range", "uniform"), allowed), "range");
  assert.equal(assignorOf(asking("gone", "gone"), ["range"]), "range");
});
