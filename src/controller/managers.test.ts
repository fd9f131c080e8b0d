/** The storage engine's ports on a real metadata store: outcomes, views, a whole recovery. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { range, register, streamObject, streamSet } from "../../tests/support/controller_world.ts";
import { MetadataWorld } from "../../tests/support/metadata_world.ts";
import { nodeId, objectId, position, streamEpoch, streamId } from "../lib/brand.ts";
import type { Requester } from "./command.ts";
import { createManagers } from "./managers.ts";
import type { MetadataStore } from "./metadata_store.ts";

async function registered(metadata: MetadataStore, node: number, incarnation: number) {
  const decided = await metadata.submit(register(node, incarnation));
  assert.ok(decided.ok && "epoch" in decided);
  return { nodeId: nodeId(node), epoch: decided.epoch } as Requester;
}

test("create, upload, view, trim, close, open, delete", async () => {
  const world = new MetadataWorld();
  const { metadata } = await world.open(1);
  const by = await registered(metadata, 1, 1);
  const { streams, objects } = createManagers(metadata, () => by);
  const epoch = streamEpoch(3);
  const created = await streams.createStream(epoch);
  assert.ok(created.ok);
  const s = created.streamId;
  assert.deepEqual(streams.viewStream(s), { streamId: s, epoch, open: true, start: 0, end: 0 });
  assert.equal(streams.viewStream(streamId(9)), null);
  assert.deepEqual(await objects.reserveIds(10), { ok: true, at: 3, first: 0 });
  const commit = {
    streamSetObject: streamSet(0, range(s, 0, 10)),
    streamObjects: [streamObject(1, range(s, 10, 30))],
    walTrim: 1,
  };
  assert.equal((await objects.commitUpload(commit)).ok, true);
  assert.deepEqual(objects.viewObjects(s), {
    ranges: [{ nodeId: nodeId(1), start: 0, end: null }],
    streamObjects: [{
      objectId: objectId(1),
      kind: "stream",
      size: 10,
      attributes: 0,
      checksums: { bytesCrc: 2, indexCrc: 3 },
      start: 10,
      end: 30,
    }],
  });
  assert.deepEqual(objects.streamSetObjects(nodeId(1)), [{
    objectId: objectId(0),
    kind: "stream-set",
    size: 10,
    attributes: 0,
    checksums: { bytesCrc: 1, indexCrc: 2 },
    nodeId: nodeId(1),
    order: position(4),
  }]);
  assert.deepEqual(objects.streamSetObjects(nodeId(2)), []);
  assert.equal(objects.viewObjects(streamId(9)), null);
  const gap = { ...commit, streamSetObject: streamSet(2, range(s, 31, 40)), streamObjects: [] };
  assert.deepEqual(await objects.commitUpload(gap), {
    ok: false,
    reason: "not-continuous",
    expected: 30,
  });
  assert.deepEqual(await streams.trimStream(s, streamEpoch(2), 5), { ok: false, reason: "fenced" });
  assert.equal((await streams.trimStream(s, epoch, 5)).ok, true);
  assert.deepEqual(await streams.deleteStream(s), { ok: false, reason: "not-closed" });
  assert.equal((await streams.closeStream(s, epoch, 30)).ok, true);
  assert.deepEqual(await streams.trimStream(s, epoch, 6), { ok: false, reason: "not-open" });
  const opened = await streams.openStream(s, streamEpoch(4));
  assert.deepEqual(opened.ok && [opened.start, opened.end], [5, 30]);
  const back = await streams.trimStream(s, streamEpoch(4), 4);
  assert.equal(!back.ok && back.reason, "conflict");
  assert.equal((await streams.closeStream(s, streamEpoch(4), 30)).ok, true);
  assert.equal((await streams.deleteStream(s)).ok, true);
  assert.deepEqual(await streams.openStream(s, streamEpoch(5)), { ok: false, reason: "not-found" });
  await objects.refresh();
});

test("a restarted node recovers its earlier incarnation and goes on", async () => {
  const world = new MetadataWorld();
  const { metadata } = await world.open(1);
  const old = await registered(metadata, 1, 1);
  const before = createManagers(metadata, () => old);
  const created = await before.streams.createStream(streamEpoch(0));
  assert.ok(created.ok);
  const s = created.streamId;
  await registered(metadata, 2, 2);
  const by = await registered(metadata, 1, 3);
  const { recovery, objects, streams } = createManagers(metadata, () => by);
  assert.deepEqual(recovery.pendingRecoveries(), [old]);
  assert.deepEqual(await before.objects.reserveIds(1), { ok: false, reason: "fenced" });
  const begun = await recovery.beginRecovery(nodeId(1), old.epoch);
  assert.ok(begun.ok);
  assert.deepEqual(begun.wal, {
    ...old,
    recovery: metadata.view().at,
    walTrim: 0,
    streams: [{ streamId: s, epoch: streamEpoch(0), open: true, start: 0, end: 0 }],
  });
  const ids = await objects.reserveIds(1);
  assert.ok(ids.ok);
  const commit = {
    wal: begun.wal,
    streamSetObject: streamSet(ids.first, range(s, 0, 7)),
    streamObjects: [],
    ends: [{ streamId: s, end: 7 }],
    sealedSlot: 3,
  };
  assert.equal((await recovery.finishRecovery(commit)).ok, true);
  assert.deepEqual(recovery.pendingRecoveries(), []);
  const opened = await streams.openStream(s, streamEpoch(1));
  assert.deepEqual(opened.ok && [opened.start, opened.end], [0, 7]);
  assert.deepEqual(objects.viewObjects(s)?.ranges, [{ nodeId: nodeId(1), start: 0, end: null }]);
});
