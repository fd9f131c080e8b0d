/** Metadata whose end is lost says nothing true of newer objects: the check names it, and nothing may be repaired by it. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { record } from "../../tests/support/records.ts";
import {
  appendRecords,
  check,
  checkChanged,
  type Checked,
  CLUSTER,
  type Content,
  emptyCluster,
  stateOf,
  storeOf,
} from "../../tests/support/stored_world.ts";
import { nodeEpoch, nodeId, objectId, position, streamId } from "../lib/brand.ts";
import { SLOT_BYTES } from "../lib/limits.ts";
import { CLUSTER_KEY, dataKey, logKey, probeKey, walKey } from "../object/object_key.ts";
import {
  encodeSeal,
  trimOffsetOf,
  walRecordBytes,
  writeWalHeader,
  writeWalRecord,
} from "../storage/wal/wal_object.ts";

const OWNER = { nodeId: nodeId(1), epoch: nodeEpoch(1) };
const slotOf = (slot: number) =>
  walKey(CLUSTER, { nodeId: nodeId(1), nodeEpoch: OWNER.epoch, slot });
const sealAt = (slot: number, recovery: number) => encodeSeal(OWNER, slot, position(recovery));

/** One record of stream 0 at the offset of the slot, written when the WAL began at `trim`. */
function walObject(slot: number, trim = 0, { epoch = 1, stream = 0 } = {}): Uint8Array {
  const one = record(stream, slot);
  const bodyLength = walRecordBytes(one);
  const bytes = new Uint8Array(48 + bodyLength);
  const startOffset = slot * SLOT_BYTES;
  const trimOffset = trimOffsetOf(trim);
  writeWalHeader(bytes, 0, {
    nodeId: OWNER.nodeId,
    epoch: nodeEpoch(epoch),
    startOffset,
    bodyLength,
    sticky: 0,
    trimOffset,
  });
  writeWalRecord(bytes, 48, startOffset, one);
  return bytes;
}

function withSlots(...slots: readonly number[]): Content {
  const content = emptyCluster(1);
  for (const slot of slots) content.set(slotOf(slot), walObject(slot));
  return content;
}

function assertUntouchable({ rest, brokenWals, summary }: Checked): void {
  assert.equal(summary.verdict, "damaged");
  assert.equal(rest, null, "without it no repair can begin");
  assert.deepEqual(brokenWals, []);
}

describe("a seal that is newer than the metadata", () => {
  test("is a lost end of the log, and stays", async () => {
    const { at } = await stateOf(withSlots());
    for (const recovery of [at + 1, at + 50]) {
      const content = withSlots(0, 1, 2);
      content.set(slotOf(3), sealAt(3, recovery));
      const found = await check(await storeOf(content));
      assert.deepEqual(found.damaged, [`ahead ${slotOf(3)}`], `recovery ${recovery} after ${at}`);
      assertUntouchable(found);
    }
  });

  test("is found behind a damaged slot", async () => {
    const content = withSlots(0, 1, 2);
    content.get(slotOf(1))![60]! ^= 1;
    content.set(slotOf(3), sealAt(3, 99));
    const found = await check(await storeOf(content));
    assert.deepEqual(found.damaged, [`wal ${slotOf(1)}`, `ahead ${slotOf(3)}`]);
    assertUntouchable(found);
  });

  test("is found above an empty slot, however far", async () => {
    for (const highest of [3, 20]) {
      const content = withSlots(0, ...Array.from({ length: highest - 2 }, (_, i) => i + 2));
      content.set(slotOf(highest), sealAt(highest, 99));
      const found = await check(await storeOf(content));
      assert.ok(found.damaged.includes(`ahead ${slotOf(highest)}`), found.text);
      assertUntouchable(found);
    }
  });

  test("in the WAL of an older seal's recoverer nothing is ahead", async () => {
    const { at } = await stateOf(withSlots());
    const content = withSlots(0, 1);
    content.set(slotOf(2), sealAt(2, at));
    assert.equal((await check(await storeOf(content))).summary.verdict, "clean");
  });
});

describe("slots that were uploaded and deleted after the metadata's end", () => {
  test("are not called lost: a slot above says how far the WAL was trimmed", async () => {
    for (const highest of [4, 20]) {
      const content = withSlots();
      for (let slot = 2; slot <= highest; slot++) content.set(slotOf(slot), walObject(slot, 2));
      const found = await check(await storeOf(content));
      assert.ok(found.damaged.some((one) => one.startsWith("ahead ")), found.text);
      assertUntouchable(found);
    }
  });
});

describe("a record of a stream that the WAL's node never opened, by the metadata", () => {
  /** Registered once more, without having opened a stream. */
  function registeredAgain(): Content {
    const content = emptyCluster(1);
    appendRecords(content, {
      type: "node-registered",
      nodeId: nodeId(1),
      incarnation: "1".repeat(32),
      host: "h",
      port: 1,
    });
    return content;
  }

  test("is ahead of it, as is one of a stream that was never created", async () => {
    const { at } = await stateOf(registeredAgain());
    for (const stream of [0, 1]) {
      const content = registeredAgain();
      const key = walKey(CLUSTER, { nodeId: nodeId(1), nodeEpoch: nodeEpoch(at), slot: 0 });
      content.set(key, walObject(0, 0, { epoch: at, stream }));
      const found = await check(await storeOf(content));
      assert.deepEqual(found.damaged, [`ahead ${key}`]);
      assertUntouchable(found);
    }
  });

  test("is nothing new when the stream was deleted since", async () => {
    const { at } = await stateOf(registeredAgain());
    const key = walKey(CLUSTER, { nodeId: nodeId(1), nodeEpoch: nodeEpoch(at), slot: 0 });
    const content = registeredAgain();
    appendRecords(content, { type: "stream-deleted", streamId: streamId(0) });
    content.set(key, walObject(0, 0, { epoch: at, stream: 0 }));
    assert.equal((await check(await storeOf(content))).summary.verdict, "clean");
  });
});

describe("nothing may be repaired by", () => {
  test("metadata that an object is ahead of", async () => {
    const never = dataKey(CLUSTER, objectId(64));
    const found = await checkChanged(withSlots(), (copy) => {
      copy.set(never, new Uint8Array(3));
      copy.set(probeKey("r", "x"), new Uint8Array(7));
    });
    assert.deepEqual(found.damaged, [`ahead ${never}`]);
    assertUntouchable(found);
  });

  test("metadata that is damaged itself", async () => {
    const found = await checkChanged(withSlots(), (copy) => void (copy.get(CLUSTER_KEY)![0]! ^= 1));
    assert.deepEqual(found.damaged, [`metadata ${CLUSTER_KEY}`]);
    assertUntouchable(found);
  });
});

test("a log entry far above the others is one finding, not one for each that is missing", async () => {
  const { at } = await stateOf(withSlots());
  const content = withSlots();
  content.set(logKey(CLUSTER, position(Number.MAX_SAFE_INTEGER)), new Uint8Array(9));
  const found = await check(await storeOf(content));
  assert.equal(found.damaged.length, 2);
  assert.equal(found.damaged[0], `metadata ${logKey(CLUSTER, position(at + 1))}`);
});
