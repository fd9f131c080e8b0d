import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTopics, topicIdOf } from "../../../../tests/support/consumer_topics.ts";
import { type Assignment, assignmentOf, listOf, NOTHING } from "./assignment.ts";
import { type ConsumerGroup, emptyGroup, type Resolved, stateOf } from "./group.ts";
import { type Beat, heartbeat, type HeartbeatRequest } from "./heartbeat.ts";
import { leave, without } from "./leave.ts";
import type { World } from "./target.ts";

function parts(topic: string, ...partitions: number[]): Assignment {
  return assignmentOf([{ topicId: topicIdOf(topic), partitions }]);
}

function beatOf(
  memberId: string,
  epoch: number,
  over: Partial<HeartbeatRequest> = {},
): HeartbeatRequest {
  return {
    memberId,
    epoch,
    instanceId: null,
    rackId: null,
    rebalanceTimeoutMs: null,
    topicNames: null,
    topicRegex: null,
    assignor: null,
    owned: null,
    clientId: "c",
    clientHost: "127.0.0.1",
    ...over,
  };
}

function joinOf(memberId: string, over: Partial<HeartbeatRequest> = {}): HeartbeatRequest {
  const first = { rebalanceTimeoutMs: 1000, topicNames: ["t"], owned: NOTHING };
  return beatOf(memberId, 0, { ...first, ...over });
}

/** One group, one request after the other. */
class Table {
  readonly topics: FakeTopics;
  readonly resolved = new Map<string, Resolved>();
  membersMax = 10;
  group: ConsumerGroup = emptyGroup("g");

  constructor(topics: Record<string, number> = { t: 4 }) {
    this.topics = new FakeTopics(topics);
  }

  get world(): World {
    return {
      topics: this.topics,
      resolved: (pattern) => this.resolved.get(pattern),
      assignors: ["uniform", "range"],
      membersMax: this.membersMax,
      isFrozen: false,
    };
  }

  /** The answer as a member sees it: error, or epoch and what it has been given (null: as before). */
  say(request: HeartbeatRequest, isStale = false) {
    const decided = heartbeat(this.group, request, this.world, isStale);
    if (!decided.ok) return decided.error;
    this.group = decided.group;
    return [decided.member.place.epoch, shown(decided)];
  }

  leave(memberId: string, epoch: number, instanceId: string | null = null) {
    const decided = leave(this.group, { memberId, epoch, instanceId }, this.world);
    if (!decided.ok) return decided.error;
    this.group = decided.group;
    return "left";
  }

  place(memberId: string) {
    return this.group.members.get(memberId)!.place;
  }
}

function shown({ assignment }: Beat): Record<string, number[]> | null {
  if (assignment === null) return null;
  return Object.fromEntries(
    listOf(assignment).map(({ topicId, partitions }) => [
      new TextDecoder().decode(
        Uint8Array.from(
          topicId.match(/../g)!.filter((hex) => hex !== "00"),
          (hex) => parseInt(hex, 16),
        ),
      ),
      [...partitions],
    ]),
  );
}

test("the first member gets everything in its first answer", () => {
  const table = new Table();
  assert.deepEqual(table.say(joinOf("a")), [1, { t: [0, 1, 2, 3] }]);
  assert.equal(stateOf(table.group), "Stable");
  assert.deepEqual(table.say(beatOf("a", 1)), [1, null]);
});

test("a heartbeat that says nothing new leaves the very same group", () => {
  const table = new Table();
  table.say(joinOf("a"));
  const before = table.group;
  table.say(beatOf("a", 1));
  table.say(beatOf("a", 1, { topicNames: ["t"], owned: parts("t", 0, 1, 2, 3) }));
  assert.equal(table.group, before);
});

test("revoke before assign: a newcomer waits until the other has said that it let go", () => {
  const table = new Table();
  table.say(joinOf("a"));
  assert.deepEqual(table.say(joinOf("b")), [2, {}]);
  assert.equal(table.place("b").state, "unreleased");
  assert.equal(stateOf(table.group), "Reconciling");
  // The old epoch stays while it revokes; the partitions it may keep are named.
  assert.deepEqual(table.say(beatOf("a", 1)), [1, { t: [0, 1] }]);
  assert.equal(table.place("a").state, "unrevoked");
  assert.deepEqual(table.say(beatOf("b", 2)), [2, null]);
  assert.deepEqual(table.say(beatOf("a", 1)), [1, null], "it has not said yet that it let go");
  assert.deepEqual(table.say(beatOf("a", 1, { owned: parts("t", 0, 1, 2) })), [1, null]);
  assert.deepEqual(table.say(beatOf("a", 1, { owned: parts("t", 0, 1) })), [2, null]);
  assert.equal(table.place("a").state, "stable");
  assert.deepEqual(table.say(beatOf("b", 2)), [2, { t: [2, 3] }]);
  assert.equal(stateOf(table.group), "Stable");
});

test("a full request is answered with the assignment, though nothing changed", () => {
  const table = new Table();
  table.say(joinOf("a"));
  const full = { rebalanceTimeoutMs: 1000, topicNames: ["t"], owned: parts("t", 0) };
  assert.deepEqual(table.say(beatOf("a", 1, full)), [1, { t: [0, 1, 2, 3] }]);
  assert.deepEqual(table.say(beatOf("a", 1, { owned: parts("t", 0) })), [1, null]);
});

test("epochs: unknown, higher, lower, the previous one after a lost answer", () => {
  const table = new Table();
  assert.equal(table.say(beatOf("a", 1)), "UNKNOWN_MEMBER_ID");
  table.say(joinOf("a"));
  table.say(joinOf("b"));
  table.say(beatOf("a", 1));
  table.say(beatOf("a", 1, { owned: parts("t", 0, 1) }));
  assert.equal(table.place("a").epoch, 2);
  assert.equal(table.say(beatOf("a", 3)), "FENCED_MEMBER_EPOCH");
  assert.equal(table.say(beatOf("a", 1)), "FENCED_MEMBER_EPOCH", "without what it owns");
  assert.equal(table.say(beatOf("a", 1, { owned: parts("t", 0, 3) })), "FENCED_MEMBER_EPOCH");
  assert.deepEqual(table.say(beatOf("a", 1, { owned: parts("t", 0) })), [2, null]);
  table.say(joinOf("c"));
  table.say(beatOf("b", 2, { owned: NOTHING }));
  assert.equal(table.say(beatOf("x", 2)), "UNKNOWN_MEMBER_ID");
});

test("a member that joins again has let go of everything", () => {
  const table = new Table();
  table.say(joinOf("a"));
  table.say(joinOf("b"));
  table.say(beatOf("a", 1));
  assert.equal(table.place("a").state, "unrevoked");
  assert.deepEqual(table.say(joinOf("a")), [2, { t: [0, 1] }]);
  assert.deepEqual(table.say(beatOf("b", 2)), [2, { t: [2, 3] }]);
});

test("a changed subscription, a larger topic and a deleted one raise the epoch; others do not", () => {
  const table = new Table({ t: 2, u: 1, v: 1 });
  table.say(joinOf("a"));
  assert.deepEqual(table.say(beatOf("a", 1, { topicNames: ["u", "t"] })), [2, {
    t: [0, 1],
    u: [0],
  }]);
  table.topics.set("t", 3);
  assert.deepEqual(table.say(beatOf("a", 2), true), [3, { t: [0, 1, 2], u: [0] }]);
  table.topics.set("v", 7);
  assert.deepEqual(table.say(beatOf("a", 3), true), [3, null]);
  table.topics.set("u", 0);
  assert.deepEqual(table.say(beatOf("a", 3), true), [3, { t: [0, 1, 2] }]);
  assert.equal(table.place("a").state, "unrevoked");
  assert.deepEqual(table.say(beatOf("a", 3, { owned: parts("t", 0, 1, 2) })), [4, null]);
  assert.deepEqual(table.say(beatOf("a", 4, { topicNames: [] })), [4, {}]);
  assert.deepEqual(table.say(beatOf("a", 4, { owned: NOTHING })), [5, null]);
});

test("a topic that is subscribed to before it exists is given when it does", () => {
  const table = new Table({});
  assert.deepEqual(table.say(joinOf("a")), [1, {}]);
  table.topics.set("t", 1);
  assert.deepEqual(table.say(beatOf("a", 1), true), [2, { t: [0] }]);
});

test("a regular expression counts beside names, and its topics follow", () => {
  const table = new Table({ t: 1, "x-1": 1, "x-2": 1 });
  const found = (...topics: string[]) => ({
    topics,
    version: table.topics.version,
    resolvedAtMs: 0,
  });
  table.resolved.set("x-.*", found("x-1", "x-2"));
  const joined = table.say(joinOf("a", { topicRegex: "x-.*" }));
  assert.deepEqual(joined, [1, { t: [0], "x-1": [0], "x-2": [0] }]);
  table.topics.set("x-3", 1);
  table.resolved.set("x-.*", found("x-1", "x-2", "x-3"));
  assert.deepEqual(table.say(beatOf("a", 1), true), [
    2,
    { t: [0], "x-1": [0], "x-2": [0], "x-3": [0] },
  ]);
  assert.deepEqual(table.say(beatOf("a", 2, { topicRegex: "" })), [2, { t: [0] }]);
  assert.equal(table.group.regexes.size, 0);
});

test("static members: an instance in use is not released, one that left with -2 is taken over in place", () => {
  const table = new Table();
  table.say(joinOf("a", { instanceId: "i" }));
  table.say(joinOf("b"));
  table.say(beatOf("a", 1, { instanceId: "i" }));
  table.say(beatOf("a", 1, { instanceId: "i", owned: parts("t", 0, 1) }));
  assert.deepEqual(table.say(beatOf("b", 2)), [2, { t: [2, 3] }]);
  assert.equal(table.say(joinOf("z", { instanceId: "i" })), "UNRELEASED_INSTANCE_ID");
  assert.equal(table.say(beatOf("z", 2, { instanceId: "i" })), "FENCED_INSTANCE_ID");
  assert.equal(table.say(beatOf("a", 2, { instanceId: "j" })), "UNKNOWN_MEMBER_ID");
  assert.equal(table.leave("z", -2, "i"), "FENCED_INSTANCE_ID");
  assert.equal(table.leave("a", -2, "i"), "left");
  assert.equal(table.place("a").epoch, -2);
  assert.equal(table.group.epoch, 2, "its partitions stay, nobody is assigned anew");
  assert.deepEqual(table.say(beatOf("b", 2)), [2, null]);
  assert.equal(table.say(beatOf("a", 2, { instanceId: "i" })), "FENCED_MEMBER_EPOCH");
  assert.deepEqual(table.say(joinOf("z", { instanceId: "i" })), [2, { t: [0, 1] }]);
  assert.deepEqual([...table.group.members.keys()].toSorted(), ["b", "z"]);
  assert.equal(table.group.epoch, 2);
  assert.deepEqual(
    table.say(joinOf("z", { instanceId: "i" })),
    [2, { t: [0, 1] }],
    "by the same member",
  );
  assert.equal(table.leave("z", -2, "i"), "left");
  assert.deepEqual(
    table.say(joinOf("z", { instanceId: "i" })),
    [2, { t: [0, 1] }],
    "under the same id",
  );
  assert.equal(table.leave("z", -1, "i"), "left");
  assert.deepEqual(table.say(beatOf("b", 2)), [3, { t: [0, 1, 2, 3] }]);
});

test("who leaves or is fenced gives its partitions back; the last one leaves an empty group", () => {
  const table = new Table();
  table.say(joinOf("a"));
  table.say(joinOf("b"));
  assert.equal(table.leave("x", -1), "UNKNOWN_MEMBER_ID");
  assert.equal(table.leave("a", -1), "left");
  assert.equal(stateOf(table.group), "Assigning");
  assert.deepEqual(table.say(beatOf("b", 2)), [3, { t: [0, 1, 2, 3] }]);
  table.group = without(table.group, ["b"], table.world);
  assert.equal(stateOf(table.group), "Empty");
  assert.equal(table.group.epoch, 4);
  assert.deepEqual(table.say(joinOf("c")), [5, { t: [0, 1, 2, 3] }]);
});

test("a full group takes nobody in, but goes on with its members", () => {
  const table = new Table();
  table.membersMax = 1;
  table.say(joinOf("a"));
  assert.equal(table.say(joinOf("b")), "GROUP_MAX_SIZE_REACHED");
  assert.deepEqual(table.say(joinOf("a")), [1, { t: [0, 1, 2, 3] }]);
});

test("the assignor that members ask for is used, and asking for another assigns anew", () => {
  const table = new Table({ t: 3 });
  assert.deepEqual(table.say(joinOf("a", { assignor: "range" })), [1, { t: [0, 1, 2] }]);
  table.say(joinOf("b", { assignor: "range" }));
  assert.deepEqual(listOf(table.group.target.get("a")!)[0]!.partitions, [0, 1]);
  table.say(beatOf("b", 2, { assignor: "uniform" }));
  assert.equal(table.group.epoch, 3);
});
