/** Bytes behind a version of their own: group members' metadata and `__consumer_offsets`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError, fromHex, toHex } from "../lib/bytes.ts";
import {
  consumerProtocolAssignment,
  consumerProtocolSubscription,
} from "./message/consumer_protocol.ts";
import {
  decodeOffsetsTopicKey,
  groupMetadataKey,
  groupMetadataValue,
  offsetCommitKey,
  offsetCommitValue,
} from "./message/offsets_topic.ts";
import { decodeGrowing, decodeVersioned, encodeVersioned } from "./versioned.ts";

test("member metadata and assignment as kafkajs 2.2.4 writes them", () => {
  const subscription = fromHex("0000 00000001 00066f7264657273 00000002 6162");
  const read = decodeGrowing(consumerProtocolSubscription, subscription);
  assert.deepEqual([read.topics, read.userData], [["orders"], fromHex("6162")]);
  assert.deepEqual(encodeVersioned(consumerProtocolSubscription, 0, read), subscription);

  const assignment = fromHex("0000 00000001 00066f7264657273 00000002 00000000 00000002 00000000");
  assert.deepEqual(decodeGrowing(consumerProtocolAssignment, assignment), {
    assignedPartitions: [{ topic: "orders", partitions: [0, 2] }],
    userData: new Uint8Array(0),
  });
});

test("a later version of the consumer protocol reads as the newest known, its rest ignored", () => {
  const wire = fromHex("0009 00000001 000161 ffffffff 00000000 00000005 000172 dead");
  assert.deepEqual(decodeGrowing(consumerProtocolSubscription, wire), {
    topics: ["a"],
    userData: null,
    ownedPartitions: [],
    generationId: 5,
    rackId: "r",
  });
  assert.throws(() => decodeGrowing(consumerProtocolSubscription, fromHex("ffff")), DecodeError);
});

test("keys of __consumer_offsets tell what the record is", () => {
  const offset = fromHex("0001 000167 00066f7264657273 00000003");
  assert.deepEqual(decodeOffsetsTopicKey(offset), {
    kind: "offset",
    key: { group: "g", topic: "orders", partition: 3 },
  });
  const key = { group: "g", topic: "orders", partition: 3 };
  assert.deepEqual(encodeVersioned(offsetCommitKey, 1, key), offset);
  const group = fromHex("0002 000167");
  assert.deepEqual(decodeOffsetsTopicKey(group), { kind: "group", key: { group: "g" } });
  assert.deepEqual(encodeVersioned(groupMetadataKey, 2, { group: "g" }), group);
  const newer = decodeOffsetsTopicKey(fromHex("0003 000167"));
  assert.deepEqual(newer, { kind: "unknown", version: 3 });
  assert.throws(() => decodeOffsetsTopicKey(fromHex("00")), DecodeError);
  assert.throws(() => decodeOffsetsTopicKey(fromHex("0002 0005 67")), DecodeError);
});

test("a committed offset in versions 1, 3 and 4", () => {
  const value = { offset: 42, metadata: "m", commitTimestamp: 1000 };
  const [offset, time, meta] = ["000000000000002a", "00000000000003e8", "00016d"];
  assert.equal(
    toHex(encodeVersioned(offsetCommitValue, 1, { ...value, expireTimestamp: 2000 })),
    `0001${offset}${meta}${time}00000000000007d0`,
  );
  const three = `0003${offset}00000005${meta}${time}`;
  assert.equal(toHex(encodeVersioned(offsetCommitValue, 3, { ...value, leaderEpoch: 5 })), three);
  assert.deepEqual(decodeVersioned(offsetCommitValue, fromHex(three)), {
    ...value,
    leaderEpoch: 5,
    expireTimestamp: -1,
    topicId: "0".repeat(32),
  });
  const topicId = "ab".repeat(16);
  assert.equal(
    toHex(encodeVersioned(offsetCommitValue, 4, { ...value, topicId })),
    `0004${offset}ffffffff026d${time}010010${topicId}`,
  );
  assert.throws(() => decodeVersioned(offsetCommitValue, fromHex(`0005${offset}`)), DecodeError);
});

test("group state in version 3", () => {
  const wire =
    "0003 0008636f6e73756d6572 00000007 000572616e6765 00036d2d31 00000000000003e8 00000001" +
    "00036d2d31 ffff 000163 00022f31 0000ea60 00007530 00000001aa 00000001bb";
  const value = decodeVersioned(groupMetadataValue, fromHex(wire));
  assert.deepEqual(value, {
    protocolType: "consumer",
    generation: 7,
    protocol: "range",
    leader: "m-1",
    currentStateTimestamp: 1000,
    members: [{
      memberId: "m-1",
      groupInstanceId: null,
      clientId: "c",
      clientHost: "/1",
      rebalanceTimeout: 60_000,
      sessionTimeout: 30_000,
      subscription: fromHex("aa"),
      assignment: fromHex("bb"),
    }],
  });
  assert.equal(toHex(encodeVersioned(groupMetadataValue, 3, value)), wire.replaceAll(" ", ""));
});
