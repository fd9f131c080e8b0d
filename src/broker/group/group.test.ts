import assert from "node:assert/strict";
import { test } from "node:test";
import { toUtf8, utf8 } from "../../lib/bytes.ts";
import {
  createGroup,
  type Group,
  type GroupHost,
  type JoinAnswer,
  type JoinRequest,
  nextDeadline,
  type SyncAnswer,
} from "./group.ts";
import { join } from "./join.ts";
import { heartbeat, leave, tick } from "./membership.ts";
import { chooseProtocol } from "./protocols.ts";
import { groupRecord, readGroupRecord } from "./records.ts";
import { sync } from "./sync.ts";

interface World {
  readonly group: Group;
  readonly host: GroupHost;
  /** Moves time, ticking at each deadline on the way as the coordinator's timer does. */
  advance(ms: number): void;
  join(overrides?: Partial<JoinRequest>): { answer: JoinAnswer | null };
  sync(
    memberId: string,
    generation: number,
    assignments?: Record<string, string>,
  ): { answer: SyncAnswer | null };
  readonly stored: Group["state"][];
  failStores(fail: boolean): void;
  /** Bytes that the node's groups may still grow by. */
  leaveRoom(bytes: number): void;
  /** Until the answer is called, stores do not end. */
  holdStores(): () => void;
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

function world(settings: Partial<GroupHost["settings"]> = {}): World {
  let now = 0;
  let ids = 0;
  let failing = false;
  let room = Infinity;
  let held: Promise<void> = Promise.resolve();
  const stored: Group["state"][] = [];
  const host: GroupHost = {
    settings: {
      sessionTimeoutMsMin: 6000,
      sessionTimeoutMsMax: 1_800_000,
      initialRebalanceDelayMs: 3000,
      membersMax: 100,
      ...settings,
    },
    nowMs: () => 1_700_000_000_000 + now,
    monotonicMs: () => now,
    newMemberId: (prefix) => `${prefix}-${++ids}`,
    hasRoom: (bytes) => bytes <= room,
    store(group) {
      stored.push(group.state);
      return failing ? Promise.reject(new Error("no store")) : held;
    },
  };
  const group = createGroup("g", host.nowMs());
  return {
    group,
    host,
    stored,
    leaveRoom: (bytes) => void (room = bytes),
    failStores: (fail) => void (failing = fail),
    holdStores() {
      let release = () => {};
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    advance(ms) {
      const until = now + ms;
      for (let due = nextDeadline(group); due !== null && due <= until; due = nextDeadline(group)) {
        now = Math.max(now, due);
        tick(group, host);
      }
      now = until;
    },
    join(overrides = {}) {
      const held: { answer: JoinAnswer | null } = { answer: null };
      const request: JoinRequest = {
        memberId: "",
        instanceId: null,
        clientId: "c",
        clientHost: "127.0.0.1",
        sessionTimeoutMs: 10_000,
        rebalanceTimeoutMs: 60_000,
        protocolType: "consumer",
        protocols: [{ name: "range", metadata: toUtf8("m") }],
        needsKnownId: false,
        canSkipAssignment: false,
        ...overrides,
      };
      join(group, host, request, (answer) => void (held.answer = answer));
      return held;
    },
    sync(memberId, generation, assignments = {}) {
      const held: { answer: SyncAnswer | null } = { answer: null };
      const request = {
        memberId,
        instanceId: [...group.members.values()].find((m) => m.memberId === memberId)?.instanceId ??
          null,
        generation,
        protocolType: null,
        protocolName: null,
        assignments: Object.entries(assignments).map(([id, text]) => ({
          memberId: id,
          assignment: toUtf8(text),
        })),
      };
      sync(group, host, request, (answer) => void (held.answer = answer));
      return held;
    },
  };
}

/** A stable group of `count` dynamic members; the first is the leader. */
async function stable(count = 1, settings: Partial<GroupHost["settings"]> = {}) {
  const w = world(settings);
  const joins = Array.from({ length: count }, () => w.join());
  w.advance(3000);
  w.advance(3000);
  const ids = joins.map(({ answer }) => answer!.memberId);
  const generation = joins[0]!.answer!.generation;
  const syncs = ids.map((id, i) =>
    w.sync(
      id,
      generation,
      i === 0 ? Object.fromEntries(ids.map((each) => [each, `for ${each}`])) : {},
    )
  );
  await settle();
  assert.deepEqual(syncs.map(({ answer }) => answer?.error), ids.map(() => "NONE"));
  return { ...w, ids, generation };
}

test("the first member of an empty group waits for late comers, then leads", () => {
  const w = world();
  const first = w.join();
  assert.equal(w.group.state, "PreparingRebalance");
  w.advance(2999);
  assert.equal(first.answer, null);
  const second = w.join();
  w.advance(1);
  assert.equal(first.answer, null, "a newcomer starts the delay again");
  w.advance(3000);
  assert.equal(first.answer!.generation, 1);
  assert.equal(first.answer!.leader, first.answer!.memberId);
  assert.deepEqual(first.answer!.members.map(({ memberId }) => memberId), [
    first.answer!.memberId,
    second.answer!.memberId,
  ]);
  assert.deepEqual(second.answer!.members, [], "only the leader sees the members");
  assert.equal(w.group.state, "CompletingRebalance");
});

test("the initial delay ends at the longest rebalance timeout", () => {
  const w = world();
  const first = w.join({ rebalanceTimeoutMs: 7000 });
  for (let i = 0; i < 5 && first.answer === null; i++) {
    w.join({ rebalanceTimeoutMs: 7000 });
    w.advance(2000);
  }
  assert.notEqual(first.answer, null);
  assert.ok(w.host.monotonicMs() <= 8000);
});

test("v4 and later: an id first, then the join with it", () => {
  const w = world();
  const asked = w.join({ needsKnownId: true });
  assert.equal(asked.answer!.error, "MEMBER_ID_REQUIRED");
  const { memberId } = asked.answer!;
  const joined = w.join({ needsKnownId: true, memberId });
  w.advance(3000);
  assert.equal(joined.answer!.error, "NONE");
  assert.equal(joined.answer!.memberId, memberId);
});

test("a handed-out id that is never used does not block a rebalance for ever", async () => {
  const w = await stable(1);
  w.join({ needsKnownId: true });
  const rejoined = w.join({ memberId: w.ids[0]! });
  assert.equal(rejoined.answer, null, "the pending member is waited for");
  w.advance(10_000);
  assert.equal(rejoined.answer!.error, "NONE");
});

test("joins that are refused", async () => {
  const cases: [string, Partial<JoinRequest>, string][] = [
    ["no protocols", { protocols: [] }, "INCONSISTENT_GROUP_PROTOCOL"],
    ["no type", { protocolType: "" }, "INCONSISTENT_GROUP_PROTOCOL"],
    ["another type", { protocolType: "connect" }, "INCONSISTENT_GROUP_PROTOCOL"],
    [
      "nothing in common",
      { protocols: [{ name: "other", metadata: toUtf8("") }] },
      "INCONSISTENT_GROUP_PROTOCOL",
    ],
    ["an id that is not a member", { memberId: "nobody" }, "UNKNOWN_MEMBER_ID"],
  ];
  for (const [name, overrides, error] of cases) {
    const w = await stable(1);
    assert.equal(w.join(overrides).answer!.error, error, name);
    assert.equal(w.group.state, "Stable", name);
  }
  const full = await stable(2, { membersMax: 2 });
  assert.equal(full.join().answer!.error, "GROUP_MAX_SIZE_REACHED");
});

test("followers wait for the leader's assignment and get their own bytes", async () => {
  const w = world();
  const [a, b] = [w.join(), w.join()];
  w.advance(6000);
  const [leader, follower] = [a.answer!.memberId, b.answer!.memberId];
  const waiting = w.sync(follower, 1);
  assert.equal(waiting.answer, null);
  const led = w.sync(leader, 1, { [leader]: "one", [follower]: "two" });
  await settle();
  assert.equal(utf8(led.answer!.assignment), "one");
  assert.equal(utf8(waiting.answer!.assignment), "two");
  assert.equal(w.group.state, "Stable");
});

test("an assignment that cannot be stored is answered as such, and the group gathers again", async () => {
  const w = world();
  const a = w.join();
  w.advance(3000);
  w.failStores(true);
  const held = w.sync(a.answer!.memberId, 1, { [a.answer!.memberId]: "x" });
  await settle();
  assert.equal(held.answer!.error, "COORDINATOR_NOT_AVAILABLE");
  assert.equal(w.group.state, "PreparingRebalance");
});

test("sync errors by state and generation", async () => {
  const w = await stable(2);
  const [leader, follower] = w.ids as [string, string];
  assert.equal(w.sync("nobody", 1).answer!.error, "UNKNOWN_MEMBER_ID");
  assert.equal(w.sync(leader, 9).answer!.error, "ILLEGAL_GENERATION");
  assert.equal(
    utf8(w.sync(follower, 1).answer!.assignment),
    `for ${follower}`,
    "stable gives the stored one",
  );
  w.join({ memberId: leader });
  assert.equal(w.sync(follower, 1).answer!.error, "REBALANCE_IN_PROGRESS");
});

test("heartbeats: alive while a rebalance runs, fenced by generation", async () => {
  const w = await stable(2);
  const [leader, follower] = w.ids as [string, string];
  const beat = (id: string, generation: number) => heartbeat(w.group, w.host, id, null, generation);
  assert.equal(beat(follower, 1), "NONE");
  assert.equal(beat(follower, 2), "ILLEGAL_GENERATION");
  assert.equal(beat("nobody", 1), "UNKNOWN_MEMBER_ID");
  w.join({ memberId: leader });
  for (let i = 0; i < 5; i++) {
    w.advance(5000);
    assert.equal(beat(follower, 1), "REBALANCE_IN_PROGRESS");
  }
  assert.ok(w.group.members.has(follower));
});

test("a silent member is removed after its session timeout and the others gather", async () => {
  const w = await stable(2);
  const [leader, follower] = w.ids as [string, string];
  w.advance(9000);
  heartbeat(w.group, w.host, leader, null, 1);
  w.advance(1000);
  assert.ok(!w.group.members.has(follower));
  assert.equal(w.group.state, "PreparingRebalance");
  const rejoined = w.join({ memberId: leader });
  assert.equal(rejoined.answer!.generation, 2);
  assert.deepEqual(rejoined.answer!.members.map(({ memberId }) => memberId), [leader]);
});

test("a member that waits in a join does not time out", async () => {
  const w = await stable(2);
  const [leader, follower] = w.ids as [string, string];
  const held = w.join({ memberId: leader });
  for (let i = 0; i < 7; i++) {
    heartbeat(w.group, w.host, follower, null, 1);
    w.advance(8000);
  }
  assert.ok(w.group.members.has(leader));
  w.advance(10_000);
  assert.equal(
    held.answer!.error,
    "NONE",
    "the join phase ends at the rebalance timeout without the follower",
  );
  assert.ok(!w.group.members.has(follower));
});

test("a member that joins but never syncs is removed at the rebalance timeout", async () => {
  const w = world();
  const [a, b] = [w.join({ sessionTimeoutMs: 600_000 }), w.join({ sessionTimeoutMs: 600_000 })];
  w.advance(6000);
  const waiting = w.sync(b.answer!.memberId, 1);
  w.advance(60_000);
  await settle();
  assert.equal(waiting.answer!.error, "REBALANCE_IN_PROGRESS");
  assert.ok(!w.group.members.has(a.answer!.memberId));
});

test("rejoin: a follower with the same metadata gets the current generation, a leader starts a rebalance", async () => {
  const w = await stable(2);
  const [leader, follower] = w.ids as [string, string];
  assert.equal(w.join({ memberId: follower }).answer!.generation, 1);
  assert.equal(w.group.state, "Stable");
  assert.equal(w.join({ memberId: leader }).answer, null);
  assert.equal(w.group.state, "PreparingRebalance");
  const changed = await stable(2);
  const held = changed.join({
    memberId: changed.ids[1]!,
    protocols: [{ name: "range", metadata: toUtf8("new") }],
  });
  assert.equal(held.answer, null);
  assert.equal(changed.group.state, "PreparingRebalance");
});

test("a lost join answer is repeated while the group completes", () => {
  const w = world();
  const a = w.join();
  w.advance(3000);
  const again = w.join({ memberId: a.answer!.memberId });
  assert.equal(again.answer!.generation, 1);
  assert.equal(again.answer!.members.length, 1);
});

test("leaving: the rest gathers; the last one leaves an empty group that is stored", async () => {
  const w = await stable(2);
  const [leader, follower] = w.ids as [string, string];
  assert.equal(leave(w.group, w.host, follower, null), "NONE");
  assert.equal(leave(w.group, w.host, follower, null), "UNKNOWN_MEMBER_ID");
  assert.equal(w.group.state, "PreparingRebalance");
  assert.equal(leave(w.group, w.host, leader, null), "NONE");
  assert.equal(w.group.state, "Empty");
  assert.equal(w.stored.at(-1), "Empty");
  assert.equal(nextDeadline(w.group), null);
});

test("the leader's departure gives the lead to the next in order of arrival", async () => {
  const w = await stable(3);
  const [leader, second, third] = w.ids as [string, string, string];
  leave(w.group, w.host, leader, null);
  const joins = [w.join({ memberId: third }), w.join({ memberId: second })];
  assert.equal(joins[0]!.answer!.leader, second);
});

async function staticGroup(canSkipAssignment = true) {
  const w = world();
  const first = w.join({ instanceId: "i", canSkipAssignment });
  w.advance(3000);
  const { memberId } = first.answer!;
  w.sync(memberId, 1, { [memberId]: "kept" });
  await settle();
  return { ...w, memberId };
}

test("a restarted static member keeps generation and assignment; its old id is fenced", async () => {
  const w = await staticGroup();
  const again = w.join({ instanceId: "i", canSkipAssignment: true });
  await settle();
  const answer = again.answer!;
  assert.deepEqual([answer.error, answer.generation, answer.skipAssignment], ["NONE", 1, true]);
  assert.notEqual(answer.memberId, w.memberId);
  assert.equal(w.group.state, "Stable");
  assert.equal(utf8(w.sync(answer.memberId, 1).answer!.assignment), "kept");
  assert.equal(heartbeat(w.group, w.host, w.memberId, "i", 1), "FENCED_INSTANCE_ID");
  assert.equal(
    w.join({ memberId: w.memberId, instanceId: "i" }).answer!.error,
    "FENCED_INSTANCE_ID",
  );
});

test("an old static leader is shown its former id as leader, so that it does not assign", async () => {
  const w = await staticGroup(false);
  const again = w.join({ instanceId: "i" });
  await settle();
  assert.equal(again.answer!.leader, w.memberId);
  assert.deepEqual(again.answer!.members, []);
});

test("static members survive a missed join and leave by instance id", async () => {
  const w = world();
  const fixed = w.join({ instanceId: "i", sessionTimeoutMs: 600_000 });
  const loose = w.join({ sessionTimeoutMs: 600_000 });
  w.advance(6000);
  const [leader, other] = [fixed.answer!.memberId, loose.answer!.memberId];
  w.sync(leader, 1, {});
  w.sync(other, 1);
  await settle();
  const held = w.join({
    memberId: other,
    sessionTimeoutMs: 600_000,
    protocols: [{ name: "range", metadata: toUtf8("x") }],
  });
  w.advance(60_000);
  assert.equal(held.answer!.error, "NONE");
  assert.ok(w.group.members.has(leader), "a static member keeps its place");
  assert.equal(leave(w.group, w.host, "", "nobody"), "UNKNOWN_MEMBER_ID");
  assert.equal(leave(w.group, w.host, "wrong", "i"), "FENCED_INSTANCE_ID");
  assert.equal(leave(w.group, w.host, "", "i"), "NONE");
  assert.ok(!w.group.members.has(leader));
});

test("protocols: each votes for its first common name", () => {
  const member = (...names: string[]) => ({
    ...createMember(),
    protocols: names.map((name) => ({ name, metadata: toUtf8("") })),
  });
  assert.equal(chooseProtocol([member("a", "b"), member("b", "a"), member("b")]), "b");
  assert.equal(chooseProtocol([member("a", "b"), member("b", "a")]), "a");
  assert.equal(chooseProtocol([member("a"), member("b")]), null);
});

function createMember() {
  return {
    memberId: "m",
    instanceId: null,
    clientId: "c",
    clientHost: "h",
    sessionTimeoutMs: 1,
    rebalanceTimeoutMs: 1,
    assignment: toUtf8(""),
    joining: null,
    syncing: null,
    deadlineMs: 0,
    isNew: false,
  };
}

test("a stored group comes back stable with its members, and a tombstone as nothing", async () => {
  const w = await stable(2);
  const { key, value } = groupRecord(w.group);
  const back = readGroupRecord(key, value, 500);
  assert.ok(back.kind === "group" && back.group !== null);
  assert.equal(back.group.state, "Stable");
  assert.equal(back.group.generation, 1);
  assert.deepEqual([...back.group.members.keys()], w.ids);
  const member = back.group.members.get(w.ids[1]!)!;
  assert.equal(utf8(member.assignment), `for ${w.ids[1]}`);
  assert.equal(member.deadlineMs, 10_500, "each has a whole session to be heard of");
  const gone = readGroupRecord(key, null, 0);
  assert.ok(gone.kind === "group" && gone.group === null);
});

test("an assignment that is still being written does not hold up the next generation", async () => {
  const w = world();
  const first = w.join();
  w.advance(3000);
  const { memberId } = first.answer!;
  const release = w.holdStores();
  const overtaken = w.sync(memberId, 1, { [memberId]: "old" });
  const second = w.join();
  assert.equal(overtaken.answer!.error, "REBALANCE_IN_PROGRESS");
  w.join({ memberId });
  assert.equal(second.answer!.generation, 2);
  const leading = w.sync(memberId, 2, { [memberId]: "new" });
  const following = w.sync(second.answer!.memberId, 2);
  release();
  await settle();
  assert.deepEqual([leading.answer?.error, following.answer?.error], ["NONE", "NONE"]);
  assert.equal(utf8(leading.answer!.assignment), "new");
  assert.equal(w.group.state, "Stable");
});

test("when the node has no memory for more, members stay and come again, and nobody else joins", async () => {
  const w = await stable(2);
  const [leader, follower] = [...w.group.members.keys()];
  w.leaveRoom(0);
  assert.equal(w.join().answer!.error, "GROUP_MAX_SIZE_REACHED");
  assert.equal(w.join({ needsKnownId: true }).answer!.error, "GROUP_MAX_SIZE_REACHED");
  const larger = [{ name: "range", metadata: new Uint8Array(100) }];
  const grown = w.join({ memberId: follower!, protocols: larger });
  assert.equal(grown.answer!.error, "GROUP_MAX_SIZE_REACHED");
  assert.equal(w.group.state, "Stable");
  const again = [w.join({ memberId: leader! }), w.join({ memberId: follower! })];
  assert.deepEqual(again.map(({ answer }) => answer?.error), ["NONE", "NONE"]);
  const { generation } = w.group;
  const held = w.sync(follower!, generation);
  const tooMuch = w.sync(leader!, generation, { [follower!]: "partition 0, ".repeat(20) });
  assert.equal(tooMuch.answer!.error, "GROUP_MAX_SIZE_REACHED");
  assert.equal(held.answer, null);
  w.sync(leader!, generation, {});
  await settle();
  assert.equal(held.answer!.error, "NONE");
});
