/** Classic groups: sheet sections 3.10, 3.11, the group parts of 2.x and the group rows of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { findCoordinatorApi } from "../../src/protocol/message/10_find_coordinator.ts";
import { heartbeatApi } from "../../src/protocol/message/12_heartbeat.ts";
import { leaveGroupApi } from "../../src/protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../src/protocol/message/14_sync_group.ts";
import { describeGroupsApi } from "../../src/protocol/message/15_describe_groups.ts";
import { listGroupsApi } from "../../src/protocol/message/16_list_groups.ts";
import { deleteGroupsApi } from "../../src/protocol/message/42_delete_groups.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { GroupMember, type MemberOptions, settled, stableGroup } from "./group_member.ts";
import { named, type Quirks, restarted, startQuirks, textOf } from "./quirks.ts";

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";

async function stable(count: number, options: MemberOptions = {}, properties = {}) {
  const q = await startQuirks(properties);
  const members = Array.from({ length: count }, () => new GroupMember(q, options));
  await stableGroup(q, members);
  return { q, members, leader: members[0]!, followers: members.slice(1) };
}

async function stateOf(q: Quirks, group = "g"): Promise<string> {
  const answer = await q.call(describeGroupsApi, 5, { groups: [group] });
  return answer.groups[0]!.groupState;
}

/** True once the answer is there, without waiting for it. */
function watch<T>(started: Promise<T>) {
  const seen = { done: false, answer: started };
  void started.then(() => void (seen.done = true));
  return seen;
}

// Finding the coordinator.

test("FindCoordinator answers every version in its own form; an empty id is fine", async () => {
  const q = await startQuirks();
  for (let version = 0; version <= 3; version++) {
    for (const key of ["g", ""]) {
      const answer = await q.call(findCoordinatorApi, version, { key, keyType: 0 });
      assert.deepEqual([answer.errorCode, answer.nodeId, answer.port], [0, 1, 9092]);
    }
  }
  for (let version = 4; version <= 6; version++) {
    const request = { keyType: 0, coordinatorKeys: ["a", "b", ""] };
    const { coordinators } = await q.call(findCoordinatorApi, version, request);
    assert.deepEqual(coordinators.map(({ key, nodeId, errorCode }) => [key, nodeId, errorCode]), [
      ["a", 1, 0],
      ["b", 1, 0],
      ["", 1, 0],
    ]);
  }
});

test("a key type that is not served is INVALID_REQUEST for its key", async () => {
  const q = await startQuirks();
  for (const keyType of [2, 9]) {
    const request = { keyType, coordinatorKeys: ["a"] };
    const { coordinators } = await q.call(findCoordinatorApi, 6, request);
    assert.equal(named(coordinators[0]!).error, "INVALID_REQUEST");
  }
});

test("the first join finds a coordinator at once: nobody sees COORDINATOR_NOT_AVAILABLE", async () => {
  const q = await startQuirks();
  const { error } = await settled(q, new GroupMember(q, { version: 3 }).join());
  assert.equal(error, "NONE");
});

// JoinGroup: what is refused.

test("an empty group id is INVALID_GROUP_ID", async () => {
  const q = await startQuirks();
  assert.equal((await new GroupMember(q, { group: "" }).join()).error, "INVALID_GROUP_ID");
});

test("a session timeout outside 6000 to 1800000 is INVALID_SESSION_TIMEOUT", async () => {
  const q = await startQuirks();
  const ask = async (sessionTimeoutMs: number) =>
    (await settled(q, new GroupMember(q, { sessionTimeoutMs, version: 3 }).enter())).error;
  for (const bad of [0, 5999, 1_800_001]) assert.equal(await ask(bad), "INVALID_SESSION_TIMEOUT");
  assert.equal(await ask(6000), "NONE");
});

test("no protocol type or no protocols is INCONSISTENT_GROUP_PROTOCOL for the first member", async () => {
  const q = await startQuirks();
  for (const options of [{ protocolType: "" }, { protocols: [] }]) {
    const { error } = await new GroupMember(q, options).join();
    assert.equal(error, "INCONSISTENT_GROUP_PROTOCOL");
  }
});

test("another type than the group's, or no common protocol, is INCONSISTENT_GROUP_PROTOCOL", async () => {
  const { q } = await stable(1, { protocols: ["range", "sticky"] });
  for (const options of [{ protocolType: "connect" }, { protocols: ["other"] }]) {
    const { error } = await new GroupMember(q, options).join();
    assert.equal(error, "INCONSISTENT_GROUP_PROTOCOL");
  }
});

test("a member id that the group does not know, or of no group, is UNKNOWN_MEMBER_ID", async () => {
  const { q } = await stable(1);
  for (const group of ["g", "nobody"]) {
    const member = new GroupMember(q, { group });
    member.id = "made up";
    assert.equal((await member.join()).error, "UNKNOWN_MEMBER_ID");
  }
});

test("a full group is GROUP_MAX_SIZE_REACHED", async () => {
  const { q } = await stable(1, {}, { "group.max.size": "1" });
  assert.equal((await new GroupMember(q).join()).error, "GROUP_MAX_SIZE_REACHED");
});

// JoinGroup: ids.

test("v4 and later: an empty id of a dynamic member is MEMBER_ID_REQUIRED with a fresh id", async () => {
  const q = await startQuirks();
  for (let version = 4; version <= 9; version++) {
    const member = new GroupMember(q, { version, clientId: "my client", group: `g${version}` });
    const answer = await member.join();
    assert.equal(answer.error, "MEMBER_ID_REQUIRED");
    assert.match(answer.memberId, new RegExp(`^my client-${UUID}$`));
    const joined = await settled(q, member.join());
    assert.deepEqual([joined.error, joined.memberId], ["NONE", answer.memberId]);
  }
});

test("v0 to v3: an empty id is a member at once", async () => {
  const q = await startQuirks();
  for (let version = 0; version <= 3; version++) {
    const member = new GroupMember(q, { version, group: `g${version}` });
    assert.equal((await settled(q, member.join())).error, "NONE");
  }
});

test("a static member is a member at once, named after its instance", async () => {
  const q = await startQuirks();
  for (const version of [5, 9]) {
    const member = new GroupMember(q, { version, instanceId: "i", group: `g${version}` });
    const { error, memberId } = await settled(q, member.join());
    assert.equal(error, "NONE");
    assert.match(memberId, new RegExp(`^i-${UUID}$`));
  }
});

test("an id that was handed out and not used is gone after the session timeout", async () => {
  const q = await startQuirks();
  const member = new GroupMember(q, { sessionTimeoutMs: 6000 });
  await member.join();
  await q.node.clock.advance(6000);
  assert.equal((await member.join()).error, "UNKNOWN_MEMBER_ID");
});

test("a rebalance waits for handed-out ids, and no longer than for the session timeout", async () => {
  const { q, leader } = await stable(1);
  const pending = new GroupMember(q, { sessionTimeoutMs: 6000 });
  await pending.join();
  const rejoined = watch(leader.join());
  await q.node.clock.advance(5999);
  assert.equal(rejoined.done, false);
  await q.node.clock.advance(1);
  assert.equal((await rejoined.answer).error, "NONE");
});

// JoinGroup: the join phase.

test("an empty group waits group.initial.rebalance.delay.ms, again for each newcomer", async () => {
  const q = await startQuirks({ "group.initial.rebalance.delay.ms": "3000" });
  const first = watch(new GroupMember(q, { version: 3 }).join());
  await q.node.clock.advance(2000);
  const second = watch(new GroupMember(q, { version: 3 }).join());
  await q.node.clock.advance(1000);
  assert.deepEqual([first.done, second.done], [false, false], "a newcomer came: once more");
  await q.node.clock.advance(3000);
  const answers = await Promise.all([first.answer, second.answer]);
  assert.deepEqual(answers.map(({ generationId }) => generationId), [1, 1]);
});

test("the initial delay ends at the rebalance timeout however many come", async () => {
  const q = await startQuirks({ "group.initial.rebalance.delay.ms": "3000" });
  const joins = [watch(new GroupMember(q, { version: 3, rebalanceTimeoutMs: 7000 }).join())];
  for (let second = 2; second <= 6; second += 2) {
    await q.node.clock.advance(2000);
    joins.push(watch(new GroupMember(q, { version: 3, rebalanceTimeoutMs: 7000 }).join()));
  }
  await q.node.clock.advance(999);
  assert.ok(joins.every(({ done }) => !done));
  await q.node.clock.advance(1);
  await Promise.all(joins.map(({ answer }) => answer));
});

test("only the leader's answer has the members, with their metadata for the chosen protocol", async () => {
  const q = await startQuirks({ "group.initial.rebalance.delay.ms": "1000" });
  const leader = new GroupMember(q, { version: 3, protocols: [["range", "of leader"]] });
  const other = new GroupMember(q, { version: 3, protocols: [["range", "of other"]] });
  const joins = [leader.join(), other.join()];
  await q.node.clock.advance(2000);
  const [first, second] = await Promise.all(joins);
  assert.equal(first!.leader, leader.id);
  assert.equal(second!.leader, leader.id);
  assert.equal(first!.protocolName, "range");
  const shown = first!.members.map(({ memberId, metadata }) => [memberId, textOf(metadata)]);
  assert.deepEqual(shown, [[leader.id, "of leader"], [other.id, "of other"]]);
  assert.deepEqual(second!.members, []);
});

test("each member votes for its first common protocol; most votes win", async () => {
  const q = await startQuirks({ "group.initial.rebalance.delay.ms": "1000" });
  const offers = [["a", "b", "c"], ["x", "b", "c"], ["c", "b"], ["c", "b", "y"]];
  const joins = offers.map((protocols) => new GroupMember(q, { version: 3, protocols }).join());
  await q.node.clock.advance(5000);
  const answers = await Promise.all(joins);
  const chosen = new Set(answers.map(({ protocolName }) => protocolName));
  assert.equal(chosen.size, 1);
  assert.ok(chosen.has("b") || chosen.has("c"), "two votes each");
});

test("the protocol type is answered from v7 on", async () => {
  const q = await startQuirks();
  const answer = await settled(q, new GroupMember(q, { version: 7, instanceId: "i" }).join());
  assert.equal(answer.protocolType, "consumer");
});

test("Connect and Schema Registry: type and metadata are opaque", async () => {
  const q = await startQuirks();
  for (const [protocolType, protocol] of [["connect", "sessioned"], ["sr", "v0"]] as const) {
    const options = {
      group: protocolType,
      protocolType,
      protocols: [[protocol, "\0\u00ff no subscription"]] as [string, string][],
    };
    const member = new GroupMember(q, options);
    const { error, members } = await settled(q, member.enter());
    assert.equal(error, "NONE");
    assert.equal(textOf(members[0]!.metadata), "\0\u00ff no subscription");
    const synced = await member.sync({ [member.id]: "whatever" });
    assert.deepEqual([synced.error, textOf(synced.assignment)], ["NONE", "whatever"]);
    assert.equal(await member.beat(), "NONE");
  }
});

test("a newcomer starts a rebalance: members are told by heartbeat and rejoin, the generation goes up", async () => {
  const { q, leader } = await stable(1);
  const generation = leader.generation;
  const newcomer = new GroupMember(q);
  const entering = watch(newcomer.enter());
  await q.node.clock.advance(0);
  assert.equal(entering.done, false);
  assert.equal(await leader.beat(), "REBALANCE_IN_PROGRESS");
  const again = await leader.join();
  const joined = await entering.answer;
  assert.deepEqual([again.generationId, joined.generationId], [generation + 1, generation + 1]);
  assert.equal(again.leader, leader.id, "the old leader stays when it rejoins");
  assert.equal(joined.leader, leader.id);
});

test("members that do not rejoin within the rebalance timeout are out, unless they are static", async () => {
  const q = await startQuirks();
  const slow = { sessionTimeoutMs: 60_000, rebalanceTimeoutMs: 10_000 };
  const dynamic = new GroupMember(q, slow);
  const fixed = new GroupMember(q, { ...slow, instanceId: "i" });
  const third = new GroupMember(q, slow);
  await stableGroup(q, [fixed, dynamic, third]);
  third.options = { ...slow, protocols: [["range", "changed"]] };
  const rejoined = watch(third.join());
  await q.node.clock.advance(9999);
  assert.equal(rejoined.done, false);
  await q.node.clock.advance(1);
  const answer = await rejoined.answer;
  assert.equal(answer.leader, third.id, "the first of those that came");
  assert.deepEqual(
    answer.members.map(({ memberId }) => memberId).toSorted(),
    [fixed.id, third.id].toSorted(),
  );
  assert.equal(await dynamic.beat(), "UNKNOWN_MEMBER_ID");
});

test("a new member that waits in its join has five minutes, not its session timeout", async () => {
  const q = await startQuirks();
  const long = { sessionTimeoutMs: 1_800_000, rebalanceTimeoutMs: 1_800_000 };
  const fixed = new GroupMember(q, { ...long, instanceId: "i" });
  await stableGroup(q, [fixed]);
  const newcomer = new GroupMember(q, { version: 3, sessionTimeoutMs: 6000 });
  const waiting = watch(newcomer.join());
  await q.node.clock.advance(299_999);
  assert.equal(waiting.done, false);
  await q.node.clock.advance(2);
  assert.equal((await waiting.answer).error, "UNKNOWN_MEMBER_ID");
});

// Rejoining.

test("Stable: a follower with the same metadata gets the current generation at once, no storm", async () => {
  const { leader, followers: [follower] } = await stable(2);
  const { error, generationId } = await follower!.join();
  assert.deepEqual([error, generationId], ["NONE", leader.generation]);
  assert.equal(await leader.beat(), "NONE");
});

test("Stable: the leader's rejoin, and changed metadata of anyone, start a rebalance", async () => {
  for (const who of [0, 1]) {
    const { q, members } = await stable(2);
    const [one, other] = who === 0 ? [members[0]!, members[1]!] : [members[1]!, members[0]!];
    const { generation } = one;
    if (who === 1) one.options = { protocols: [["range", "changed"]] };
    const rejoined = watch(one.join());
    await q.node.clock.advance(0);
    assert.equal(rejoined.done, false);
    assert.equal(await other.beat(), "REBALANCE_IN_PROGRESS");
    await other.join();
    assert.equal((await rejoined.answer).generationId, generation + 1);
  }
});

test("CompletingRebalance: the same metadata gets the same generation again, changed rebalances", async () => {
  const q = await startQuirks();
  const member = new GroupMember(q);
  const first = await settled(q, member.enter());
  const lost = await member.join();
  assert.deepEqual([lost.error, lost.generationId], ["NONE", first.generationId]);
  member.options = { protocols: [["range", "changed"]] };
  const changed = await member.join();
  assert.deepEqual([changed.error, changed.generationId], ["NONE", first.generationId + 1]);
});

// SyncGroup.

test("followers are held until the leader assigns; who gets nothing gets empty bytes", async () => {
  const q = await startQuirks();
  const members = [new GroupMember(q), new GroupMember(q), new GroupMember(q)];
  const entering = members.map((member) => member.enter());
  for (let i = 0; i < 3; i++) await q.node.clock.advance(0);
  const joins = await Promise.all(entering);
  const leader = members.find(({ id }) => id === joins[0]!.leader)!;
  const [second, third] = members.filter((member) => member !== leader);
  const held = watch(second!.sync());
  await q.node.clock.advance(0);
  assert.equal(held.done, false);
  const own = await leader.sync({ [leader.id]: "L", [second!.id]: "S" });
  assert.equal(textOf(own.assignment), "L");
  assert.equal(textOf((await held.answer).assignment), "S");
  const late = await third!.sync();
  assert.deepEqual([late.error, late.assignment.length], ["NONE", 0]);
  assert.equal(textOf((await second!.sync()).assignment), "S", "Stable: the stored one");
});

test("SyncGroup: unknown member, wrong generation, wrong type or name, unknown group", async () => {
  const { q, leader } = await stable(1);
  const errorOf = async (changes: Parameters<GroupMember["sync"]>[1]) =>
    (await leader.sync({}, changes)).error;
  assert.equal(await errorOf({ memberId: "x" }), "UNKNOWN_MEMBER_ID");
  assert.equal(await errorOf({ generation: 99 }), "ILLEGAL_GENERATION");
  assert.equal(await errorOf({ protocolType: "connect" }), "INCONSISTENT_GROUP_PROTOCOL");
  assert.equal(await errorOf({ protocolName: "other" }), "INCONSISTENT_GROUP_PROTOCOL");
  assert.equal(await errorOf({ protocolType: "consumer", protocolName: "range" }), "NONE");
  const request = { groupId: "none", generationId: 1, memberId: "m", assignments: [] };
  assert.equal(named(await q.call(syncGroupApi, 3, request)).error, "UNKNOWN_MEMBER_ID");
});

test("SyncGroup during the join phase is REBALANCE_IN_PROGRESS", async () => {
  const { q, leader } = await stable(1);
  void new GroupMember(q).enter();
  await q.node.clock.advance(0);
  assert.equal((await leader.sync()).error, "REBALANCE_IN_PROGRESS");
});

test("members that do not sync within the rebalance timeout are out", async () => {
  const q = await startQuirks();
  const options = { sessionTimeoutMs: 60_000, rebalanceTimeoutMs: 10_000 };
  const members = [new GroupMember(q, options), new GroupMember(q, options)];
  const entering = members.map((member) => member.enter());
  for (let i = 0; i < 2; i++) await q.node.clock.advance(0);
  const joins = await Promise.all(entering);
  const leader = members.find(({ id }) => id === joins[0]!.leader)!;
  const other = members.find((member) => member !== leader)!;
  const held = watch(other.sync());
  await q.node.clock.advance(10_000);
  assert.equal((await held.answer).error, "REBALANCE_IN_PROGRESS");
  assert.equal(await leader.beat(), "UNKNOWN_MEMBER_ID");
  const alone = await other.join();
  assert.deepEqual([alone.leader, alone.members.length], [other.id, 1]);
});

// Heartbeat and sessions.

test("Heartbeat: Stable and Completing are NONE, a wrong generation is ILLEGAL_GENERATION", async () => {
  const q = await startQuirks();
  const member = new GroupMember(q);
  await settled(q, member.enter());
  assert.equal(await member.beat(), "NONE", "Completing");
  await member.sync();
  assert.equal(await member.beat(), "NONE", "Stable");
  assert.equal(await member.beat({ generation: member.generation + 1 }), "ILLEGAL_GENERATION");
  assert.equal(await member.beat({ memberId: "x" }), "UNKNOWN_MEMBER_ID");
});

test("Heartbeat of an unknown or an empty group is UNKNOWN_MEMBER_ID, of no id INVALID_GROUP_ID", async () => {
  const { q, leader } = await stable(1);
  await leader.leave();
  for (const [groupId, error] of [["g", "UNKNOWN_MEMBER_ID"], ["none", "UNKNOWN_MEMBER_ID"]]) {
    const request = { groupId: groupId!, generationId: 1, memberId: "m" };
    assert.equal(named(await q.call(heartbeatApi, 0, request)).error, error);
  }
  const request = { groupId: "", generationId: 1, memberId: "m" };
  assert.equal(named(await q.call(heartbeatApi, 0, request)).error, "INVALID_GROUP_ID");
});

test("a heartbeat during the join phase still keeps the session alive", async () => {
  const { q, members: [one, other] } = await stable(2, { rebalanceTimeoutMs: 60_000 });
  one!.options = { rebalanceTimeoutMs: 60_000, protocols: [["range", "changed"]] };
  const rejoined = watch(one!.join());
  for (let round = 0; round < 4; round++) {
    await q.node.clock.advance(6000);
    assert.equal(await other!.beat(), "REBALANCE_IN_PROGRESS");
  }
  assert.equal(rejoined.done, false, "nobody was dropped");
  await other!.join();
  assert.equal((await rejoined.answer).error, "NONE");
});

test("a session that runs out removes the member and the others gather", async () => {
  const { q, members: [one, other] } = await stable(2);
  await q.node.clock.advance(9000);
  assert.equal(await one!.beat(), "NONE");
  await q.node.clock.advance(1000);
  assert.equal(await one!.beat(), "REBALANCE_IN_PROGRESS");
  assert.equal(await other!.beat(), "UNKNOWN_MEMBER_ID");
  const { members } = await one!.join();
  assert.equal(members.length, 1);
});

test("waiting in a join or a sync counts as alive", async () => {
  const { q, members: [one, other] } = await stable(2, { rebalanceTimeoutMs: 60_000 });
  one!.options = { rebalanceTimeoutMs: 60_000, protocols: [["range", "changed"]] };
  const rejoined = watch(one!.join());
  for (let round = 0; round < 3; round++) {
    await q.node.clock.advance(9000);
    await other!.beat();
  }
  assert.equal(rejoined.done, false);
  assert.equal((await other!.join()).error, "NONE");
  const joined = await rejoined.answer;
  assert.equal(joined.error, "NONE");
  const [leader, follower] = joined.leader === one!.id ? [one!, other!] : [other!, one!];
  const synced = watch(follower.sync());
  for (let round = 0; round < 3; round++) {
    await q.node.clock.advance(9000);
    assert.equal(await leader.beat(), "NONE");
  }
  assert.equal(synced.done, false);
  await leader.sync({ [follower.id]: "late" });
  assert.equal(textOf((await synced.answer).assignment), "late");
});

// Leaving.

test("LeaveGroup v0 to v2: one member; unknown is UNKNOWN_MEMBER_ID", async () => {
  for (let version = 0; version <= 2; version++) {
    const { q, leader } = await stable(1);
    const leave = async (memberId: string) =>
      named(await q.call(leaveGroupApi, version, { groupId: "g", memberId })).error;
    assert.equal(await leave("x"), "UNKNOWN_MEMBER_ID");
    assert.equal(await leave(leader.id), "NONE");
    assert.equal(await stateOf(q), "Empty");
  }
});

test("LeaveGroup v3 and later: a list with an error for each, also by instance id alone", async () => {
  for (let version = 3; version <= 5; version++) {
    const q = await startQuirks();
    const dynamic = new GroupMember(q);
    const fixed = new GroupMember(q, { instanceId: "i" });
    await stableGroup(q, [fixed, dynamic]);
    const answer = await q.call(leaveGroupApi, version, {
      groupId: "g",
      members: [
        { memberId: "x" },
        { memberId: "", groupInstanceId: "j" },
        { memberId: "x", groupInstanceId: "i" },
        { memberId: dynamic.id },
        { memberId: "", groupInstanceId: "i" },
      ],
    });
    assert.equal(answer.errorCode, 0);
    assert.deepEqual(answer.members.map((one) => named(one).error), [
      "UNKNOWN_MEMBER_ID",
      "UNKNOWN_MEMBER_ID",
      "FENCED_INSTANCE_ID",
      "NONE",
      "NONE",
    ]);
    assert.equal(await stateOf(q), "Empty");
  }
});

test("an id that was handed out and not used may leave", async () => {
  const q = await startQuirks();
  const member = new GroupMember(q);
  await member.join();
  assert.equal(await member.leave(), "NONE");
  assert.equal((await member.join()).error, "UNKNOWN_MEMBER_ID");
});

test("when one leaves the others are told at once", async () => {
  const { leader, followers: [follower] } = await stable(2);
  assert.equal(await leader.leave(), "NONE");
  assert.equal(await follower!.beat(), "REBALANCE_IN_PROGRESS");
  const { leader: next } = await follower!.join();
  assert.equal(next, follower!.id);
});

// Static members.

test("a restarted static follower keeps its place: no rebalance, same generation, old id fenced", async () => {
  const q = await startQuirks();
  const leader = new GroupMember(q, { instanceId: "a" });
  const old = new GroupMember(q, { instanceId: "b" });
  await stableGroup(q, [leader, old]);
  const again = new GroupMember(q, { instanceId: "b" });
  const { error, generationId, memberId, leader: shown } = await again.join();
  assert.deepEqual([error, generationId, shown], ["NONE", leader.generation, leader.id]);
  assert.notEqual(memberId, old.id);
  assert.equal(await leader.beat(), "NONE");
  assert.equal(textOf((await again.sync()).assignment), "partition 1");
  assert.equal(await old.beat(), "FENCED_INSTANCE_ID");
  assert.equal((await old.join()).error, "FENCED_INSTANCE_ID");
  assert.equal((await old.sync()).error, "FENCED_INSTANCE_ID");
});

test("a restarted static leader: v9 is told to skip the assignment, older ones see the old leader", async () => {
  for (const version of [5, 9]) {
    const q = await startQuirks();
    const old = new GroupMember(q, { instanceId: "a", version });
    const follower = new GroupMember(q, { instanceId: "b", version });
    await stableGroup(q, [old, follower]);
    const again = new GroupMember(q, { instanceId: "a", version });
    const answer = await again.join();
    assert.deepEqual([answer.error, answer.generationId], ["NONE", old.generation]);
    if (version === 9) {
      assert.equal(answer.skipAssignment, true);
      assert.equal(answer.leader, again.id);
      assert.equal(answer.members.length, 2);
    } else {
      assert.equal(answer.leader, old.id, "so that it does not assign again");
      assert.deepEqual(answer.members, []);
    }
    assert.equal(textOf((await again.sync()).assignment), "partition 0");
    assert.equal(await follower.beat(), "NONE");
  }
});

test("a restarted static member that changes the protocol starts a rebalance", async () => {
  const q = await startQuirks();
  const both = { protocols: ["range", "sticky"] };
  const leader = new GroupMember(q, { instanceId: "a", ...both });
  const old = new GroupMember(q, { instanceId: "b", ...both });
  await stableGroup(q, [leader, old]);
  const again = new GroupMember(q, { instanceId: "b", protocols: ["sticky"] });
  const rejoined = watch(again.join());
  await q.node.clock.advance(0);
  assert.equal(rejoined.done, false);
  assert.equal(await leader.beat(), "REBALANCE_IN_PROGRESS");
  await leader.join();
  assert.equal((await rejoined.answer).protocolName, "sticky");
});

test("a static member that is away is waited for, again and again, until its session ends", async () => {
  const q = await startQuirks();
  const options = { sessionTimeoutMs: 30_000, rebalanceTimeoutMs: 10_000 };
  const fixed = new GroupMember(q, { ...options, instanceId: "a" });
  const dynamic = new GroupMember(q, options);
  await stableGroup(q, [fixed, dynamic]);
  await dynamic.leave();
  await q.node.clock.advance(15_000);
  assert.equal(await fixed.beat(), "REBALANCE_IN_PROGRESS");
  await q.node.clock.advance(15_000);
  assert.equal((await fixed.join()).error, "NONE");
  await fixed.sync();
  await q.node.clock.advance(30_000);
  assert.equal(await fixed.beat(), "UNKNOWN_MEMBER_ID");
  assert.equal(await stateOf(q), "Empty");
});

test("an instance id under another member id is FENCED_INSTANCE_ID", async () => {
  const q = await startQuirks();
  const member = new GroupMember(q, { instanceId: "a" });
  await stableGroup(q, [member]);
  assert.equal(await member.beat({ memberId: "other" }), "FENCED_INSTANCE_ID");
  assert.equal((await member.sync({}, { memberId: "other" })).error, "FENCED_INSTANCE_ID");
});

// What admin clients see.

test("DescribeGroups: an unknown group is Dead without an error, from v6 GROUP_ID_NOT_FOUND", async () => {
  const q = await startQuirks();
  for (let version = 0; version <= 6; version++) {
    const { groups } = await q.call(describeGroupsApi, version, { groups: ["none"] });
    const { error, groupState, errorMessage } = named(groups[0]!);
    assert.equal(groupState, "Dead");
    if (version < 6) assert.equal(error, "NONE");
    else assert.deepEqual([error, errorMessage !== null], ["GROUP_ID_NOT_FOUND", true]);
  }
});

test("DescribeGroups goes through the states and shows members", async () => {
  const q = await startQuirks({ "group.initial.rebalance.delay.ms": "1000" });
  const member = new GroupMember(q, { version: 3, clientId: "me" });
  const joining = member.join();
  await q.node.clock.advance(0);
  assert.equal(await stateOf(q), "PreparingRebalance");
  await q.node.clock.advance(1000);
  await joining;
  assert.equal(await stateOf(q), "CompletingRebalance");
  await member.sync({ [member.id]: "mine" });
  const { groups } = await q.call(describeGroupsApi, 4, { groups: ["g"] });
  const [group] = groups;
  assert.deepEqual(
    [group!.groupState, group!.protocolType, group!.protocolData],
    ["Stable", "consumer", "range"],
  );
  const [shown] = group!.members;
  assert.deepEqual(
    [
      shown!.memberId,
      shown!.clientId,
      textOf(shown!.memberMetadata),
      textOf(shown!.memberAssignment),
    ],
    [member.id, "me", "range", "mine"],
  );
  assert.match(shown!.clientHost, /192\.0\.2\.7/);
  await member.leave();
  assert.equal(await stateOf(q), "Empty");
});

test("ListGroups filters by state from v4 and by type from v5, in any case of letters", async () => {
  const { q } = await stable(1);
  const other = new GroupMember(q, { group: "empty" });
  await stableGroup(q, [other]);
  await other.leave();
  const ids = async (version: number, statesFilter: string[] = [], typesFilter: string[] = []) => {
    const answer = await q.call(listGroupsApi, version, { statesFilter, typesFilter });
    assert.equal(errorName(answer.errorCode), "NONE");
    return answer.groups.map(({ groupId }) => groupId).toSorted();
  };
  for (let version = 0; version <= 5; version++) {
    assert.deepEqual(await ids(version), ["empty", "g"]);
  }
  assert.deepEqual(await ids(4, ["Stable"]), ["g"]);
  assert.deepEqual(await ids(5, ["Empty", "Stable"]), ["empty", "g"]);
  assert.deepEqual(await ids(5, ["Dead"]), []);
  for (const type of ["Classic", "classic"]) {
    assert.deepEqual(await ids(5, [], [type]), ["empty", "g"]);
  }
  for (const type of ["Consumer", "Share"]) assert.deepEqual(await ids(5, [], [type]), []);
  const { groups } = await q.call(listGroupsApi, 5, {});
  assert.ok(
    groups.every(({ groupType, protocolType }) =>
      groupType.toLowerCase() === "classic" && protocolType === "consumer"
    ),
  );
});

test("DeleteGroups: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, and an empty one goes", async () => {
  const { q, leader } = await stable(1);
  const remove = async (version: number, ...groupsNames: string[]) => {
    const { results } = await q.call(deleteGroupsApi, version, { groupsNames });
    return results.map((one) => named(one).error);
  };
  assert.deepEqual(await remove(2, "g", "none"), ["NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"]);
  await leader.leave();
  assert.deepEqual(await remove(0, "g"), ["NONE"]);
  assert.deepEqual(await remove(1, "g"), ["GROUP_ID_NOT_FOUND"]);
  assert.equal(await stateOf(q), "Dead");
});

test("a refused first join leaves no group behind", async () => {
  const q = await startQuirks();
  await new GroupMember(q, { protocols: [] }).join();
  assert.deepEqual((await q.call(listGroupsApi, 5, {})).groups, []);
});

test("a group without members and offsets is deleted at the next check", async () => {
  const { q, leader } = await stable(1);
  await leader.leave();
  assert.equal(await stateOf(q), "Empty");
  await q.node.clock.advance(600_000);
  const fresh = q.node.connect();
  assert.deepEqual((await fresh.call(listGroupsApi, 5, {})).groups, []);
});

// Restarts.

for (const clean of [true, false]) {
  test(`a ${clean ? "clean restart" : "crash"}: members go on with generation and assignment`, async () => {
    const before = await stable(2);
    const q = await restarted(before.q, { clean });
    for (const [at, member] of before.members.entries()) {
      const moved = new GroupMember(q, member.options);
      moved.id = member.id;
      moved.generation = member.generation;
      assert.equal(await moved.beat(), "NONE");
      assert.equal(textOf((await moved.sync()).assignment), `partition ${at}`);
    }
  });
}

test("a rolling restart of three static members costs no rebalance", async () => {
  const q = await startQuirks();
  const members = ["a", "b", "c"].map((instanceId) => new GroupMember(q, { instanceId }));
  await stableGroup(q, members);
  const generation = members[0]!.generation;
  for (const at of [0, 1, 2]) {
    const again = new GroupMember(q, members[at]!.options);
    assert.equal((await again.join()).generationId, generation);
    assert.equal(textOf((await again.sync()).assignment), `partition ${at}`);
    members[at] = again;
    for (const member of members) assert.equal(await member.beat(), "NONE");
  }
});
