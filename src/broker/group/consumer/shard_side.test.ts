import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { topicIdOf } from "../../../../tests/support/consumer_topics.ts";
import {
  beatOf,
  Clients,
  createConsumerWorld,
  joinOf,
  SESSION_MS,
} from "../../../../tests/support/consumer_world.ts";
import { ZERO_UUID } from "../../../lib/uuid.ts";
import { NEVER } from "../offset_table.ts";
import { assignmentOf, holds, listOf, NOTHING } from "./assignment.ts";
import {
  type ConsumerMember,
  emptyGroup,
  NEW_PLACE,
  type Profile,
  stateOf,
  subscriptionTo,
} from "./group.ts";
import { applyRecord, emptyDraft, recordsBetween, recordsOf } from "./records.ts";
import { decodeConsumerGroupKey } from "../../../protocol/message/consumer_group_records.ts";

const OFFSET = {
  topic: "t",
  partition: 0,
  offset: 5,
  leaderEpoch: 0,
  metadata: "",
  committedAtMs: 0,
  expireAtMs: NEVER,
  topicId: ZERO_UUID,
};

const PROFILE: Profile = {
  instanceId: null,
  rackId: null,
  clientId: "c",
  clientHost: "/127.0.0.1",
  topicNames: [],
  topicRegex: null,
  rebalanceTimeoutMs: 1000,
  assignor: null,
  classic: null,
};

test("a reload finds the group as it was, and idle heartbeats write nothing", async () => {
  const w = await createConsumerWorld();
  await w.say(joinOf("a", { instanceId: "i", rackId: "r", assignor: "range" }));
  await w.say(joinOf("b"));
  const before = w.group!;
  await w.load();
  assert.deepEqual(w.group, before);
  await w.say(beatOf("b", 2));
  const end = w.log.logEndOffset;
  for (let n = 0; n < 5; n++) await w.say(beatOf("b", 2));
  assert.equal(w.log.logEndOffset, end);
});

test("the first look at topics after a reload writes nothing when they are as they were", async () => {
  const w = await createConsumerWorld();
  await w.say(joinOf("a"));
  await w.load();
  const end = w.log.logEndOffset;
  const answer = await w.say(beatOf("a", 1));
  assert.ok(answer?.ok);
  assert.equal(w.log.logEndOffset, end);
  w.topics.set("t", 5);
  const grown = await w.say(beatOf("a", 1));
  assert.ok(grown?.ok && grown.member.place.epoch === 2);
});

test("a member that is silent for its session is fenced, and who waits gets its partitions", async () => {
  const w = await createConsumerWorld();
  await w.say(joinOf("a"));
  await w.clock.advance(SESSION_MS / 2);
  await w.say(joinOf("b"));
  await w.clock.advance(SESSION_MS / 2);
  assert.deepEqual([...w.group!.members.keys()], ["b"]);
  const answer = await w.say(beatOf("b", 2));
  assert.ok(answer?.ok && answer.assignment !== null);
  assert.deepEqual(listOf(answer.assignment)[0]!.partitions, [0, 1, 2, 3]);
  await w.clock.advance(SESSION_MS);
  assert.equal(stateOf(w.group!), "Empty");
});

test("a member that does not let go in its rebalance timeout is fenced, heartbeats or not", async () => {
  const w = await createConsumerWorld();
  await w.say(joinOf("a", { rebalanceTimeoutMs: 10_000 }));
  await w.say(joinOf("b"));
  await w.say(beatOf("a", 1));
  await w.clock.advance(9_999);
  await w.say(beatOf("a", 1));
  assert.ok(w.group!.members.has("a"));
  await w.clock.advance(1);
  assert.ok(!w.group!.members.has("a"));
});

test("deadlines begin anew after a reload", async () => {
  const w = await createConsumerWorld();
  await w.say(joinOf("a", { rebalanceTimeoutMs: 10_000 }));
  await w.say(joinOf("b"));
  await w.say(beatOf("a", 1));
  await w.clock.advance(5_000);
  await w.load();
  await w.clock.advance(9_999);
  assert.ok(w.group!.members.has("a"));
  await w.clock.advance(1);
  assert.ok(!w.group!.members.has("a"));
  await w.clock.advance(SESSION_MS);
  assert.equal(w.group!.members.size, 0);
});

test("nobody is answered before it is durable", async () => {
  const w = await createConsumerWorld();
  w.log.durability = "manual";
  let answered = 0;
  const first = w.say(joinOf("a")).then(() => answered++);
  // It tells of what the first has changed.
  const second = w.say(beatOf("a", 1)).then(() => answered++);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(answered, 0);
  w.log.confirm();
  await Promise.all([first, second]);
  assert.equal(answered, 2);
});

test("a log that takes nothing leaves the group as it was", async () => {
  const w = await createConsumerWorld();
  await w.say(joinOf("a"));
  const before = w.group;
  w.log.refusal = "NOT_ENOUGH_REPLICAS";
  await assert.rejects(w.say(joinOf("b")) as Promise<unknown>, /Cannot store the record/);
  assert.equal(w.group, before);
  await w.clock.advance(SESSION_MS);
  assert.ok(w.group!.members.has("a"), "it cannot be fenced now");
  w.log.refusal = null;
  await w.clock.advance(1000);
  assert.equal(w.group!.members.size, 0);
});

test("a group whose first member is refused is not there", async () => {
  const w = await createConsumerWorld();
  w.log.refusal = "NOT_ENOUGH_REPLICAS";
  await assert.rejects(w.say(joinOf("a")) as Promise<unknown>);
  assert.equal(w.shard.find("g"), undefined);
});

test("an empty classic group becomes a consumer group and back, and keeps its offsets over reloads", async () => {
  const w = await createConsumerWorld();
  const entry = w.shard.findOrCreate("g");
  entry.group.generation = 3;
  entry.group.protocolType = "consumer";
  await w.shard.host.store(entry.group);
  await w.shard.commit(entry, [OFFSET]);
  await w.load();
  await w.say(joinOf("a"));
  await w.load();
  assert.equal(w.group!.members.size, 1);
  assert.equal(w.shard.find("g")!.record, null);
  assert.equal(w.shard.find("g")!.offsets.get("t", 0, ZERO_UUID)?.offset, 5);
  await w.leave("a");
  await w.shard.consumers.becomeClassic(w.shard.find("g")!);
  await w.load();
  assert.equal(w.group, undefined);
  assert.equal(w.shard.find("g")!.group.state, "Empty");
  assert.equal(w.shard.find("g")!.offsets.get("t", 0, ZERO_UUID)?.offset, 5);
});

test("an id that was handed out and never used does not keep a group classic", async () => {
  const w = await createConsumerWorld();
  w.shard.findOrCreate("g").group.pending.set("x", Infinity);
  const answer = await w.say(joinOf("a"));
  assert.ok(answer?.ok);
  assert.equal(w.shard.find("g")!.group.pending.size, 0);
});

test("a classic group with members does not become a consumer group", async () => {
  const w = await createConsumerWorld();
  const { group } = w.shard.findOrCreate("g");
  group.state = "Stable";
  assert.equal(await w.say(joinOf("a")), null);
});

test("a deleted consumer group is gone with its offsets after a reload", async () => {
  const w = await createConsumerWorld();
  await w.say(joinOf("a"));
  await w.shard.commit(w.shard.find("g")!, [OFFSET]);
  await w.leave("a");
  await w.shard.delete(w.shard.find("g")!);
  await w.load();
  assert.equal(w.shard.find("g"), undefined);
});

test("offsets of topics that members subscribe to live on; without members each commit counts", async () => {
  const w = await createConsumerWorld();
  await w.say(joinOf("a"));
  await w.shard.commit(w.shard.find("g")!, [OFFSET, { ...OFFSET, topic: "u" }]);
  await w.shard.maintain(86_400_001);
  assert.deepEqual([...w.shard.find("g")!.offsets.entries()].map(({ topic }) => topic), ["t"]);
  await w.leave("a");
  await w.shard.maintain(86_400_001);
  assert.equal(w.shard.find("g"), undefined);
});

test("a rewritten log holds the same group", async () => {
  const w = await createConsumerWorld();
  await w.say(joinOf("a"));
  await w.say(joinOf("b"));
  const entry = w.shard.find("g")!;
  for (let n = 0; n < 60; n++) {
    await w.shard.commit(entry, [{ ...OFFSET, offset: n, metadata: "m".repeat(500) }]);
  }
  await w.shard.commit(entry, [OFFSET]);
  await w.shard.maintain(1);
  assert.ok(w.log.logStartOffset > 0, "it was rewritten");
  const before = w.group;
  await w.load();
  assert.deepEqual(w.group, before);
});

const topicName = fc.constantFrom("t", "u", "x-1");
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("join" as const),
      who: fc.nat(4),
      topics: fc.uniqueArray(topicName),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("beat" as const),
      who: fc.nat(4),
      isLost: fc.boolean(),
      says: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("leave" as const, "crash" as const),
      who: fc.nat(4),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("reload" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("topic" as const),
      name: topicName,
      more: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(1000, 20_000) }),
  },
);

const steps = fc.array(step, { minLength: 10, maxLength: 80, size: "max" });

test("whatever joins, leaves, crashes and gets lost: no partition has two owners, in the end all have one", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (run) => {
      const w = await createConsumerWorld();
      w.topics.set("u", 3);
      const clients = new Clients(w);
      for (const each of run) {
        if (each.kind === "reload") await w.load();
        else if (each.kind === "wait") await w.clock.advance(each.ms);
        else if (each.kind === "topic") {
          w.topics.set(each.name, (w.topics.find(each.name)?.partitions ?? 0) + each.more);
        } else if (each.kind === "join") {
          // A client that lives joins again only when it is told to.
          if (!clients.all.has(`m${each.who}`)) await clients.join(`m${each.who}`, each.topics);
        } else if (each.kind === "beat") await clients.beat(`m${each.who}`, each.isLost, each.says);
        else {
          if (each.kind === "leave" && clients.all.delete(`m${each.who}`)) {
            await w.leave(`m${each.who}`);
          } else clients.all.delete(`m${each.who}`);
        }
        clients.assertApart();
      }
      await w.clock.advance(SESSION_MS);
      await clients.settle();
      for (const name of ["t", "u", "x-1"]) {
        const wanting = [...clients.all.values()].filter(({ topics }) => topics.includes(name));
        const topic = w.topics.find(name);
        if (wanting.length === 0 || topic === undefined) continue;
        for (let partition = 0; partition < topic.partitions; partition++) {
          const owned = wanting.filter((one) => holds(one.owned, topicIdOf(name), partition));
          assert.equal(owned.length, 1, `${name}/${partition}`);
        }
      }
      w.shard.close();
    }),
    { numRuns: 30 },
  );
});

test("records of a change, applied to what was before, give what is after", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (run) => {
      const w = await createConsumerWorld();
      const clients = new Clients(w);
      let before = emptyGroup("g");
      const draft = emptyDraft("g");
      for (const each of run) {
        if (each.kind === "join") await clients.join(`m${each.who}`, each.topics);
        else if (each.kind === "beat") await clients.beat(`m${each.who}`, false, each.says);
        else if (each.kind === "leave") await w.leave(`m${each.who}`);
        const after = w.group ?? before;
        for (const { key, value } of recordsBetween(before, after)) {
          applyRecord(draft, decodeConsumerGroupKey(key)!, value);
        }
        before = after;
        assert.deepEqual(draft, { ...after });
      }
      const whole = emptyDraft("g");
      for (const { key, value } of recordsOf(before)) {
        applyRecord(whole, decodeConsumerGroupKey(key)!, value);
      }
      assert.deepEqual(whole, draft);
      assert.deepEqual(assignmentOf([]), NOTHING);
      w.shard.close();
    }),
    { numRuns: 15 },
  );
});

test("topics that change while an expression is looked up are looked at again", async () => {
  const w = await createConsumerWorld();
  const { regexes } = w.host;
  const said = { topicNames: [], topicRegex: "t.*" };
  await regexes.resolve("t.*");
  await w.say(joinOf("a", said));
  w.topics.set("t2", 1);
  // What is known of the expression is older than the topics by now.
  await w.say(beatOf("a", 1));
  await regexes.resolve("t.*");
  const answer = await w.say(beatOf("a", 1));
  assert.ok(answer?.ok && answer.assignment !== null, "the new topic is nobody's");
  assert.ok(holds(answer.assignment, topicIdOf("t2"), 0));
});

test("what members say of themselves counts in the node's memory, ids and all", async () => {
  const w = await createConsumerWorld();
  const long = "x".repeat(10_000);
  await w.say(joinOf("a"));
  const before = w.shard.find("g")!.bytes;
  await w.say(joinOf(`b${long}`, { instanceId: long, rackId: long, clientHost: long }));
  assert.ok(w.shard.find("g")!.bytes - before >= 4 * long.length);
});

test("who asks for many topics whether they are subscribed to looks at the members once", () => {
  let looks = 0;
  class Counted extends Map<string, ConsumerMember> {
    override values() {
      looks += 1;
      return super.values();
    }
  }
  const profile = { ...PROFILE, topicNames: ["t"] };
  const members = new Counted([["a", { memberId: "a", profile, place: NEW_PLACE }]]);
  const isSubscribed = subscriptionTo({ ...emptyGroup("g"), members });
  assert.ok(isSubscribed("t"));
  for (let n = 0; n < 100; n++) assert.ok(!isSubscribed(`other-${n}`));
  assert.equal(looks, 1);
});
