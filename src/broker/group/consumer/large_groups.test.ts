/** Groups of many members and many topics: what one record cannot hold, and what is not done for each member. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { topicIdOf } from "../../../../tests/support/consumer_topics.ts";
import {
  beatOf,
  createConsumerWorld,
  joinOf,
  type World,
} from "../../../../tests/support/consumer_world.ts";
import { ZERO_UUID } from "../../../lib/uuid.ts";
import { NEVER } from "../offset_table.ts";
import { type Assignment, listOf, NOTHING, sizeOf } from "./assignment.ts";

const REGEX = "many.*";

function setBytesMax({ log }: World, messageBytesMax: number): void {
  log.updateConfig({ ...log.config, messageBytesMax });
}

async function addTopics(w: World, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n++) w.topics.set(`many-${n}`, 1);
  await w.host.regexes.resolve(REGEX);
}

async function joined(w: World, memberId: string): Promise<number> {
  const answer = await w.say(joinOf(memberId, { topicNames: [], topicRegex: REGEX }));
  assert.ok(answer?.ok);
  return answer.member.place.epoch;
}

/** Beats until the member has what it shall have. */
async function settled(w: World, memberId: string): Promise<Assignment> {
  for (let n = 0; n < 5; n++) {
    const { epoch, assigned } = w.group!.members.get(memberId)!.place;
    const answer = await w.say(beatOf(memberId, epoch, { owned: assigned }));
    assert.ok(answer?.ok, `${memberId}: ${answer !== null && !answer.ok ? answer.message : ""}`);
  }
  return w.group!.members.get(memberId)!.place.assigned;
}

test("who comes with more than one record holds is refused, in words, and nothing else is lost", async () => {
  const w = await createConsumerWorld();
  setBytesMax(w, 2_000);
  await addTopics(w, 0, 100);
  assert.ok((await w.say(joinOf("small")))?.ok);
  const other = w.shard.findOrCreate("other");
  const offset = { topic: "t", partition: 0, offset: 5, leaderEpoch: 0, metadata: "" };
  await w.shard.commit(other, [
    { ...offset, committedAtMs: 0, expireAtMs: NEVER, topicId: ZERO_UUID },
  ]);
  const { group, log: { logEndOffset } } = w;
  const names = Array.from({ length: 100 }, (_, n) => `many-${n}`);
  for (const over of [{ topicNames: names }, { topicNames: [], topicRegex: REGEX }]) {
    const refused = await w.say(joinOf("large", over));
    assert.ok(refused !== null && !refused.ok);
    assert.equal(refused.error, "GROUP_MAX_SIZE_REACHED");
    assert.match(
      refused.message,
      /^Cannot store a record of \d{4} bytes: max\.message\.bytes .* 2000$/,
    );
  }
  assert.equal(w.group, group);
  assert.equal(w.log.logEndOffset, logEndOffset, "not even a part of it is written");
  assert.ok(!w.shard.closed);
  assert.equal(listOf(await settled(w, "small"))[0]?.topicId, topicIdOf("t"));
  assert.equal(other.offsets.size, 1);
});

test("when a target outgrows a record, members keep what they have and may leave, until it fits again", async () => {
  const w = await createConsumerWorld();
  await addTopics(w, 0, 20);
  await joined(w, "a");
  await joined(w, "b");
  for (const memberId of ["a", "b", "a", "b"]) await settled(w, memberId);
  setBytesMax(w, 1_000);
  const before = await settled(w, "a");
  assert.equal(sizeOf(before), 10);
  await addTopics(w, 20, 200);
  assert.deepEqual(await settled(w, "a"), before);
  assert.deepEqual(await settled(w, "b"), w.group!.members.get("b")!.place.assigned);
  assert.ok((await w.leave("b"))?.ok);
  assert.deepEqual(await settled(w, "a"), before, "all of it would be too much");
  assert.ok(!w.shard.closed);
  setBytesMax(w, 1_000_000);
  await w.clock.advance(31_000);
  assert.equal(sizeOf(await settled(w, "a")), 200);
  await w.load();
  assert.equal(sizeOf(w.group!.target.get("a") ?? NOTHING), 200);
});

test("members of equal subscriptions share one list of names, so that it is looked at once, also after a reload", async () => {
  const w = await createConsumerWorld();
  const names = Array.from({ length: 50 }, (_, n) => `many-${n}`);
  const join = async (memberId: string, topicNames: readonly string[]) => {
    assert.ok((await w.say(joinOf(memberId, { topicNames })))?.ok);
  };
  const lists = () => {
    const all = [...w.group!.members.values()].map(({ profile }) => profile.topicNames);
    return new Set(all).size;
  };
  await join("a", names);
  await join("b", names.toReversed());
  await join("c", names.slice(1));
  await join("d", [...names]);
  await join("e", names.slice(1));
  assert.equal(lists(), 2);
  await w.load();
  assert.equal(lists(), 2);
  await join("f", [...names]);
  assert.equal(lists(), 2);
  assert.deepEqual(w.group!.members.get("c")!.profile.topicNames, names.slice(1).toSorted());
});
