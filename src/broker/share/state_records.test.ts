/** Records of share states against bytes that Kafka 4.2.1's own classes wrote. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError, fromHex, toHex } from "../../lib/bytes.ts";
import type { ShareState, ShareStateChange } from "./share_state.ts";
import {
  coordinatorKey,
  readShareRecord,
  shareTombstone,
  snapshotRecord,
  updateRecord,
} from "./state_records.ts";

const KEY = { groupId: "g", topicId: "000102030405060708090a0b0c0d0e0f", partition: 3 };
const STATE: ShareState = {
  snapshotEpoch: 1,
  stateEpoch: 2,
  leaderEpoch: 3,
  startOffset: 4,
  finalCount: 7,
  createdAtMs: 1_700_000_000_000,
  writtenAtMs: 1_700_000_000_001,
  batches: [{ first: 5, last: 6, state: "acknowledged", count: 1 }],
};
const CHANGE: ShareStateChange = {
  leaderEpoch: 3,
  startOffset: 4,
  finalCount: -1,
  batches: [{ first: 5, last: 6, state: "archived", count: 1 }],
};
const SNAPSHOT = [
  "0000000167000102030405060708090a0b0c0d0e0f00000003",
  "000000000001000000020000000300000000000000040000018bcfe568000000018bcfe56801" +
  "02000000000000000500000000000000060200010001000400000007",
] as const;
const UPDATE = [
  "0001000167000102030405060708090a0b0c0d0e0f00000003",
  "000000000001000000030000000000000004" + "02000000000000000500000000000000060400010000",
] as const;

test("snapshots, updates and tombstones are Kafka's bytes", () => {
  const snapshot = snapshotRecord(KEY, STATE);
  assert.deepEqual([toHex(snapshot.key), toHex(snapshot.value!)], [...SNAPSHOT]);
  const update = updateRecord(KEY, 1, CHANGE);
  assert.deepEqual([toHex(update.key), toHex(update.value!)], [...UPDATE]);
  const gone = shareTombstone(KEY);
  assert.deepEqual([toHex(gone.key), gone.value], [SNAPSHOT[0], null]);
});

test("they come back as they were", () => {
  const [snapshotKey, snapshotValue] = SNAPSHOT.map(fromHex);
  assert.deepEqual(readShareRecord(snapshotKey!, snapshotValue!), {
    kind: "snapshot",
    key: KEY,
    state: STATE,
  });
  const [updateKey, updateValue] = UPDATE.map(fromHex);
  assert.deepEqual(readShareRecord(updateKey!, updateValue!), {
    kind: "update",
    key: KEY,
    snapshotEpoch: 1,
    change: CHANGE,
  });
  assert.deepEqual(readShareRecord(snapshotKey!, null), {
    kind: "snapshot",
    key: KEY,
    state: null,
  });
  assert.equal(readShareRecord(fromHex("0007ff"), null).kind, "unknown");
});

test("what no state can be does not decode", () => {
  const [key, value] = SNAPSHOT.map(fromHex);
  const other = (at: number, byte: number) => {
    const copy = value!.slice();
    copy[at] = byte;
    return copy;
  };
  assert.throws(() => readShareRecord(key!, other(55, 1)), DecodeError, "acquired is not stored");
  assert.throws(() => readShareRecord(key!, other(54, 1)), DecodeError, "turned round");
  assert.throws(() => readShareRecord(fromHex("00"), value!), DecodeError);
  assert.throws(() => readShareRecord(key!, value!.subarray(0, 40)), DecodeError);
});

test("a state stands where Kafka's name of its share partition puts it", () => {
  assert.equal(coordinatorKey(KEY), "g:AAECAwQFBgcICQoLDA0ODw:3");
});
