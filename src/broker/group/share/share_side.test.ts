import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { topicIdOf } from "../../../../tests/support/consumer_topics.ts";
import {
  createShareWorld,
  shareBeatOf,
  ShareWorld,
} from "../../../../tests/support/share_world.ts";
import { decodeShareGroupKey } from "../../../protocol/message/share_group_records.ts";
import { type Assignment, holds, listOf } from "../consumer/assignment.ts";
import { emptyShareGroup } from "./group.ts";
import { applyShareRecord, emptyShareDraft, shareRecordsOf } from "./records.ts";

const SESSION_MS = 45_000;

function shown(assignment: Assignment | null): [string, number[]][] | null {
  return assignment === null
    ? null
    : listOf(assignment).map(({ topicId, partitions }) => [topicId, [...partitions]]);
}

const ALL_OF_T: [string, number[]][] = [[topicIdOf("t"), [0, 1, 2, 3]]];

test("the first member gets nothing until the states are made, and all with its next heartbeat", async () => {
  const w = await createShareWorld();
  const first = await w.beat(shareBeatOf("a", 0, ["t"]));
  assert.ok(first?.ok);
  assert.equal(first.member.place.epoch, 1);
  assert.deepEqual(shown(first.assignment), []);
  assert.deepEqual(
    [...w.shareGroups.states.values()].map(({ stateEpoch, startOffset }) => [
      stateEpoch,
      startOffset,
    ]),
    Array.from({ length: 4 }, () => [1, -1]),
  );
  const second = await w.beat(shareBeatOf("a", 1));
  assert.ok(second?.ok);
  assert.equal(second.member.place.epoch, 2);
  assert.deepEqual(shown(second.assignment), ALL_OF_T);
  const third = await w.beat(shareBeatOf("a", 2));
  assert.ok(third?.ok && third.assignment === null && third.member.place.epoch === 2);
});

test("idle heartbeats write nothing", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t");
  const end = w.log.logEndOffset;
  for (let n = 0; n < 5; n++) await w.beat(shareBeatOf("a", 2));
  assert.equal(w.log.logEndOffset, end);
});

test("epochs: unknown, higher, lower, the previous one after a lost answer", async () => {
  const w = await createShareWorld();
  assert.equal(await w.beat(shareBeatOf("a", 1)), null, "a heartbeat makes no group");
  await w.joined("a", "t");
  const error = async (memberId: string, epoch: number) => {
    const answer = await w.beat(shareBeatOf(memberId, epoch));
    return answer === null || answer.ok ? null : answer.error;
  };
  assert.equal(await error("b", 1), "UNKNOWN_MEMBER_ID");
  assert.equal(await error("a", 3), "FENCED_MEMBER_EPOCH");
  assert.equal(await error("a", 1), null);
  await w.beat(shareBeatOf("b", 0, ["t"]));
  await w.beat(shareBeatOf("a", 2));
  assert.equal(await error("a", 1), "FENCED_MEMBER_EPOCH");
  assert.equal(await error("a", 2), null);
});

test("a full group takes nobody else, and keeps whom it has", async () => {
  const w = await createShareWorld();
  const full = { ...w.shares, membersMax: 2 };
  Object.assign(w.shares, full);
  await w.load();
  await w.beat(shareBeatOf("a", 0, ["t"]));
  await w.beat(shareBeatOf("b", 0, ["t"]));
  const third = await w.beat(shareBeatOf("c", 0, ["t"]));
  assert.ok(third !== null && !third.ok && third.error === "GROUP_MAX_SIZE_REACHED");
  const again = await w.beat(shareBeatOf("a", 0, ["t"]));
  assert.ok(again?.ok);
});

test("a silent member is fenced, who listens is told, and the others get its partitions", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t");
  await w.clock.advance(SESSION_MS / 2);
  await w.joined("b", "t");
  await w.clock.advance(SESSION_MS / 2);
  assert.deepEqual([...w.share!.members.keys()], ["b"]);
  assert.deepEqual(w.shareGroups.told, ["a left g"]);
  const answer = await w.beat(shareBeatOf("b", w.epochOf("b")));
  assert.deepEqual(answer?.ok && shown(answer.assignment), ALL_OF_T);
  await w.clock.advance(SESSION_MS);
  assert.deepEqual(w.shareGroups.told.slice(1), ["b left g", "g is empty"]);
  assert.equal(w.share!.members.size, 0, "the group stays");
});

test("a group's own session time-out counts, from the next heartbeat on", async () => {
  const w = await createShareWorld();
  const settings = w.shares.membership.settingsOf("g");
  Object.assign(w.shares, {
    membership: { settingsOf: () => ({ ...settings, sessionTimeoutMs: 60_000 }) },
  });
  await w.joined("a", "t");
  await w.clock.advance(SESSION_MS);
  assert.equal(w.share!.members.size, 1);
  await w.clock.advance(15_000);
  assert.equal(w.share!.members.size, 0);
});

test("a reload finds the group as it was, and states that were begun are made then", async () => {
  const w = await createShareWorld();
  let open = () => {};
  w.shareGroups.gate = new Promise((resolve) => void (open = resolve));
  await w.beat(shareBeatOf("a", 0, ["t"], { rackId: "r" }));
  const before = w.share!;
  assert.deepEqual(listOf(before.states.initializing)[0]!.partitions, [0, 1, 2, 3]);
  await w.load();
  assert.deepEqual(w.share, before);
  w.shareGroups.gate = Promise.resolve();
  open();
  await w.clock.advance(0);
  w.shareGroups.states.clear();
  await w.beat(shareBeatOf("a", 1));
  assert.equal(w.shareGroups.states.size, 4);
  const answer = await w.beat(shareBeatOf("a", 1));
  assert.deepEqual(answer?.ok && shown(answer.assignment), ALL_OF_T);
});

test("what a shard that is lost began to make is not written into the log of the next one", async () => {
  const w = await createShareWorld();
  let open = () => {};
  w.shareGroups.gate = new Promise((resolve) => void (open = resolve));
  await w.beat(shareBeatOf("a", 0, ["t"]));
  await w.load();
  const end = w.log.logEndOffset;
  open();
  await w.clock.advance(0);
  assert.equal(w.log.logEndOffset, end);
});

test("work that waits for its turn is not begun by a shard that is lost meanwhile", async () => {
  const w = await createShareWorld();
  let open = () => {};
  w.shareGroups.gate = new Promise((resolve) => void (open = resolve));
  const live = w.shard.shares.of("g", true)!;
  const start = { topicId: topicIdOf("t"), partition: 0, startOffset: 1 };
  const first = live.restart([start]);
  const second = live.restart([{ ...start, partition: 1 }]);
  await w.clock.advance(0);
  await w.load();
  open();
  await first;
  assert.equal(await second, "NOT_COORDINATOR");
  assert.deepEqual([...w.shareGroups.states.keys()], [`g:${topicIdOf("t")}:0`]);
});

test("after a reload every member has a whole session, and no more", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t");
  await w.clock.advance(SESSION_MS - 1);
  await w.load();
  await w.clock.advance(SESSION_MS - 1);
  assert.equal(w.share!.members.size, 1);
  await w.clock.advance(1);
  assert.equal(w.share!.members.size, 0);
});

test("states that cannot be made are tried again, after a while, with a heartbeat", async () => {
  const w = await createShareWorld();
  w.shareGroups.errors.push("COORDINATOR_LOAD_IN_PROGRESS");
  await w.beat(shareBeatOf("a", 0, ["t"]));
  assert.equal(w.shareGroups.states.size, 3);
  await w.beat(shareBeatOf("a", 1));
  assert.equal(w.shareGroups.states.size, 3, "not at once");
  await w.clock.advance(1000);
  await w.beat(shareBeatOf("a", w.epochOf("a")));
  assert.equal(w.shareGroups.states.size, 4);
  const answer = await w.beat(shareBeatOf("a", w.epochOf("a")));
  assert.deepEqual(answer?.ok && shown(answer.assignment), ALL_OF_T);
});

test("a topic that grows, one that comes later, one that is deleted", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t", "u");
  w.topics.set("t", 5);
  w.topics.set("u", 1);
  await w.beat(shareBeatOf("a", w.epochOf("a")));
  const grown = await w.beat(shareBeatOf("a", w.epochOf("a")));
  assert.deepEqual(grown?.ok && shown(grown.assignment), [
    [topicIdOf("t"), [0, 1, 2, 3, 4]],
    [topicIdOf("u"), [0]],
  ]);
  w.topics.set("t", 0);
  const less = await w.beat(shareBeatOf("a", w.epochOf("a")));
  assert.deepEqual(less?.ok && shown(less.assignment), [[topicIdOf("u"), [0]]]);
  assert.deepEqual([...w.share!.states.names.values()], ["u"]);
  const end = w.log.logEndOffset;
  await w.beat(shareBeatOf("a", w.epochOf("a")));
  assert.equal(w.log.logEndOffset, end);
});

test("offsets of an empty group are set, and survive a reload; a member makes it refuse", async () => {
  const w = await createShareWorld();
  const live = w.shard.shares.of("g", true)!;
  const start = { topicId: topicIdOf("t"), partition: 1, startOffset: 7 };
  const refused = await live.restart([start]);
  assert.ok(typeof refused !== "string" && refused.size === 0);
  assert.equal(w.shareGroups.states.get(`g:${topicIdOf("t")}:1`)?.startOffset, 7);
  await w.load();
  assert.deepEqual(listOf(w.share!.states.initialized)[0]!.partitions, [1]);
  await w.joined("a", "t");
  assert.equal(
    w.shareGroups.states.get(`g:${topicIdOf("t")}:1`)?.startOffset,
    7,
    "it was not begun anew",
  );
  assert.equal(w.shareGroups.states.size, 4);
  assert.equal(await w.shard.shares.of("g", false)!.restart([start]), "NON_EMPTY_GROUP");
  assert.equal(await w.shard.shares.of("g", false)!.removeStates(null), "NON_EMPTY_GROUP");
});

test("an offset that could not be set leaves the state that was there alone", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t");
  await w.leaveShare("a");
  const key = `g:${topicIdOf("t")}:1`;
  const before = w.shareGroups.states.get(key);
  w.shareGroups.errors.push("NOT_COORDINATOR");
  const start = { topicId: topicIdOf("t"), partition: 1, startOffset: 7 };
  const refused = await w.shard.shares.of("g", false)!.restart([start]);
  assert.ok(typeof refused !== "string");
  assert.equal(refused.get(start), "NOT_COORDINATOR");
  await w.joined("b", "t");
  assert.equal(w.shareGroups.states.get(key), before);
});

test("states that are taken away are gone once all of a topic is; what fails is tried again", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t");
  await w.leaveShare("a");
  w.shareGroups.errors.push("COORDINATOR_NOT_AVAILABLE");
  const failed = await w.shard.shares.of("g", false)!.removeStates([topicIdOf("t")]);
  assert.ok(typeof failed !== "string");
  assert.equal(failed.get(topicIdOf("t")), "COORDINATOR_NOT_AVAILABLE");
  assert.deepEqual([...w.share!.states.deleting], [topicIdOf("t")]);
  await w.load();
  assert.equal(w.shareGroups.states.size, 1);
  const again = await w.shard.shares.of("g", false)!.removeStates(null);
  assert.ok(typeof again !== "string" && again.size === 0);
  assert.equal(w.shareGroups.states.size, 0);
  assert.equal(w.share!.states.names.size, 0);
});

test("a deleted group leaves nothing behind, in memory or for a reload", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t");
  await w.leaveShare("a");
  await w.shard.delete(w.shard.find("g")!);
  assert.equal(w.shard.find("g"), undefined);
  await w.load();
  assert.equal(w.shard.find("g"), undefined);
});

test("a log that takes nothing leaves the group as it was", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t");
  const before = w.share;
  w.log.refusal = "NOT_ENOUGH_REPLICAS";
  await assert.rejects(w.beat(shareBeatOf("b", 0, ["t"])), /Cannot store the record/);
  assert.equal(w.share, before);
  await w.clock.advance(SESSION_MS);
  assert.equal(w.share!.members.size, 1, "it cannot be fenced now");
  w.log.refusal = null;
  await w.clock.advance(1000);
  assert.equal(w.share!.members.size, 0);
});

test("nobody is answered before it is durable, and no state is made before", async () => {
  const w = await createShareWorld();
  w.log.durability = "manual";
  let isAnswered = false;
  const first = w.beat(shareBeatOf("a", 0, ["t"])).then(() => void (isAnswered = true));
  await w.clock.advance(0);
  assert.ok(!isAnswered);
  assert.equal(w.shareGroups.states.size, 0);
  w.log.durability = "auto";
  w.log.confirm();
  await first;
  assert.equal(w.shareGroups.states.size, 4);
});

test("what no record holds is refused to who comes with it; who is there keeps what it has", async () => {
  const w = await createShareWorld({ "max.message.bytes": "8000" });
  w.topics.set("huge", 3_000);
  const refused = await w.beat(shareBeatOf("a", 0, ["huge"]));
  assert.ok(refused !== null && !refused.ok && refused.error === "GROUP_MAX_SIZE_REACHED");
  assert.equal(w.shard.find("g"), undefined);
  await w.joined("a", "t");
  w.topics.set("t", 3_000);
  const kept = await w.beat(shareBeatOf("a", 2));
  assert.ok(kept?.ok && kept.member.place.epoch === 2);
  assert.deepEqual(shown(kept.member.place.assigned), ALL_OF_T);
  assert.ok((await w.leaveShare("a"))?.ok);
});

test("the hollow log is written anew with the group in it", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t");
  for (let n = 0; n < 40; n++) {
    await w.beat(shareBeatOf("a", w.epochOf("a"), n % 2 ? ["t"] : ["t", "u"]));
  }
  await w.shard.maintain(w.clock.nowMs());
  assert.ok(w.log.logStartOffset > 0);
  const before = w.share!;
  await w.load();
  assert.deepEqual(w.share, before);
});

type Step =
  | { readonly do: "beat"; readonly id: string; readonly topics: readonly string[] | null }
  | { readonly do: "join"; readonly id: string; readonly topics: readonly string[] }
  | { readonly do: "leave"; readonly id: string }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "topic"; readonly name: string; readonly partitions: number }
  | { readonly do: "fail" }
  | { readonly do: "load" };

const ids = fc.constantFrom("a", "b", "c", "d");
const wanted = fc.subarray(["t", "u", "v"], { minLength: 1 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("beat" as const), id: ids, topics: fc.option(wanted) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("join" as const), id: ids, topics: wanted }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("leave" as const), id: ids }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(30_000) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("topic" as const),
      name: fc.constantFrom("t", "u", "v"),
      partitions: fc.nat(5),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fail" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("load" as const) }) },
);

async function run(w: ShareWorld, one: Step): Promise<void> {
  switch (one.do) {
    case "beat":
      return void await w.beat(shareBeatOf(one.id, w.epochOf(one.id), one.topics));
    case "join":
      return void await w.beat(shareBeatOf(one.id, 0, one.topics));
    case "leave":
      return void await w.leaveShare(one.id);
    case "wait":
      return void await w.clock.advance(one.ms);
    case "topic":
      return w.topics.set(one.name, one.partitions);
    case "fail":
      return void w.shareGroups.errors.push("COORDINATOR_NOT_AVAILABLE");
    case "load":
      await w.load();
  }
}

/** What a member is given is what it asked for, of topics that have states. */
function assertWithin(w: ShareWorld): void {
  for (const { profile, place } of w.share?.members.values() ?? []) {
    for (const { topicId, partitions } of listOf(place.assigned)) {
      const topic = w.topics.findById(topicId);
      if (topic === undefined) continue;
      for (const partition of partitions) {
        assert.ok(w.shareGroups.states.has(`g:${topicId}:${partition}`), "it has a state");
      }
      if (w.share!.targetEpoch === place.epoch) assert.ok(profile.topicNames.includes(topic.name));
    }
  }
}

/** With everybody's heartbeats and nothing going wrong, every partition that somebody wants has a reader. */
async function settle(w: ShareWorld): Promise<void> {
  w.shareGroups.errors.length = 0;
  await w.clock.advance(1000);
  for (let round = 0; round < 4; round++) {
    for (const id of w.share?.members.keys() ?? []) await w.beat(shareBeatOf(id, w.epochOf(id)));
  }
  const members = [...w.share?.members.values() ?? []];
  for (const name of ["t", "u", "v"]) {
    const topic = w.topics.find(name);
    const readers = members.filter(({ profile }) => profile.topicNames.includes(name));
    if (topic === undefined || readers.length === 0) continue;
    for (let partition = 0; partition < topic.partitions; partition++) {
      assert.ok(
        readers.some(({ place }) => holds(place.assigned, topic.topicId, partition)),
        `nobody reads ${name}-${partition}`,
      );
    }
  }
}

test("for all joins, leaves, silences, topics and reloads: members have what they asked for, and all is read", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const w = await createShareWorld();
      for (const one of steps) {
        await run(w, one);
        assertWithin(w);
      }
      await settle(w);
      const before = w.share;
      await w.load();
      assert.deepEqual(w.share, before, "the log says what memory said");
    }),
    { numRuns: 60 },
  );
});

test("all of a group as records, and back", async () => {
  const w = await createShareWorld();
  await w.joined("a", "t");
  await w.joined("b", "t", "u");
  const group = w.share!;
  const draft = emptyShareDraft("g");
  for (const { key, value } of shareRecordsOf(group)) {
    applyShareRecord(draft, decodeShareGroupKey(key)!, value);
  }
  assert.deepEqual(draft, group);
  assert.deepEqual(shareRecordsOf(emptyShareGroup("g")), []);
});
