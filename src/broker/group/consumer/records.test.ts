/** Records of consumer groups as Apache Kafka 4.2.1 wrote them: three members, then a classic one, then one leaves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromHex, toHex, toUtf8 } from "../../../lib/bytes.ts";
import { decodeConsumerGroupKey } from "../../../protocol/message/consumer_group_records.ts";
import { consumerProtocolSubscription } from "../../../protocol/message/consumer_protocol.ts";
import { encodeVersioned } from "../../../protocol/versioned.ts";
import { type Assignment, assignmentOf } from "./assignment.ts";
import { emptyGroup, stateOf } from "./group.ts";
import { applyRecord, type Draft, emptyDraft, recordsBetween } from "./records.ts";

const T = "cc45188eacba464982a4119386e0bb98";
const X = "969cd28d4b2d4a3babc1bfa76617d327";

const KAFKA = `
0005000167000161 00000269027205746573740b2f3132372e302e302e3102027401000075300672616e676501000100
0003000167 00000000000101000875bc02edbcf431bb
0007000167000161 000002${T}040000000000000001000000020000
0006000167 00000000000100
0008000167000161 000000000001000000000002${T}04000000000000000100000002000100
0005000167000162 0000000005746573740b2f3132372e302e302e310105782d2e2a00004e200001000100
0008000167000162 0000000000010000000000010100
00100001670004782d2e2a 00000204782d31000000000000001e000001a22d2abcb800
0003000167 0000000000020100085953a0b8bccb9714
0005000167000163 0000000005746573740b2f3132372e302e302e3102027401000075300001000100
0003000167 0000000000030100085953a0b8bccb9714
0007000167000161 000002${T}0300000000000000010000
0007000167000162 000002${X}02000000000000
0007000167000163 000002${T}02000000020000
0006000167 00000000000300
0008000167000163 0000000000030000000002010100
0005000167000164 0000000005746573740b2f3132372e302e302e310202740100007530000100200100002710020672616e676512000100000001000174ffffffff000000000000
0003000167 0000000000040100085953a0b8bccb9714
0007000167000161 000002${T}02000000000000
0007000167000163 000002${T}02000000010000
0007000167000164 000002${T}02000000020000
0006000167 00000000000400
0008000167000164 0000000000040000000002010100
0008000167000161 000000000001000000010102${T}02000000000002${T}0300000001000000020000
0008000167000162 null
0007000167000162 null
0005000167000162 null
00100001670004782d2e2a null
0003000167 00000000000501000875bc02edbcf431bb
`.trim().split("\n").map((line) => {
  const [key, value] = line.split(" ");
  return { key: fromHex(key!), value: value === "null" ? null : fromHex(value!) };
});

function replayed(count = KAFKA.length): Draft {
  const draft = emptyDraft("g");
  for (const { key, value } of KAFKA.slice(0, count)) {
    applyRecord(draft, decodeConsumerGroupKey(key)!, value);
  }
  return draft;
}

function parts(...partitions: number[]): Assignment {
  return assignmentOf([{ topicId: T, partitions }]);
}

test("a group that Kafka wrote is read with its members, epochs and assignments", () => {
  const group = replayed();
  assert.deepEqual([group.epoch, group.targetEpoch, stateOf(group)], [5, 4, "Assigning"]);
  assert.deepEqual([...group.members.keys()], ["a", "c", "d"]);
  const a = group.members.get("a")!;
  assert.deepEqual(a.profile, {
    instanceId: "i",
    rackId: "r",
    clientId: "test",
    clientHost: "/127.0.0.1",
    topicNames: ["t"],
    topicRegex: "",
    rebalanceTimeoutMs: 30_000,
    assignor: "range",
    classic: null,
  });
  assert.deepEqual(a.place, {
    epoch: 1,
    previousEpoch: 1,
    state: "unrevoked",
    assigned: parts(0),
    revoking: parts(1, 2),
  });
  assert.equal(group.members.get("c")!.place.state, "unreleased");
  const targets = ["a", "c", "d"].map((memberId) => group.target.get(memberId));
  assert.deepEqual(targets, [parts(0), parts(1), parts(2)]);
  const metadata = encodeVersioned(consumerProtocolSubscription, 1, { topics: ["t"] });
  assert.deepEqual(group.members.get("d")!.profile.classic, {
    sessionTimeoutMs: 10_000,
    protocols: [{ name: "range", metadata }],
  });
});

test("a regular expression is read with its topics, and its tombstone removes it", () => {
  const { regexes, members } = replayed(8);
  assert.deepEqual(regexes.get("x-.*")?.topics, ["x-1"]);
  assert.equal(members.get("b")!.profile.topicRegex, "x-.*");
  assert.equal(replayed().regexes.size, 0);
});

test("targets and assignments are written in the same bytes as Kafka's", () => {
  const written = new Map(
    recordsBetween(emptyGroup("g"), replayed()).map((
      { key, value },
    ) => [toHex(key), toHex(value!)]),
  );
  const newest = new Map(
    KAFKA.map(({ key, value }) => [toHex(key), value === null ? null : toHex(value)]),
  );
  let compared = 0;
  for (const [key, value] of written) {
    // Members have no tag without classic metadata, and the group has our own hash.
    if (!/^000[678]/.test(key)) continue;
    assert.equal(value, newest.get(key), key);
    compared += 1;
  }
  assert.equal(compared, 7);
});

test("keys of other kinds are not taken for those of consumer groups", () => {
  for (const key of ["0000", "0002000167", "0009000167", "0011", ""]) {
    assert.equal(decodeConsumerGroupKey(fromHex(key)), null, key);
  }
  assert.throws(() => decodeConsumerGroupKey(toUtf8("\u0000\u0003")));
});
