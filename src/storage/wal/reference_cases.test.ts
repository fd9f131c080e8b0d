/**
 * The reference's test cases of its WAL service (ObjectWALServiceTest), with its numbers, as this design has
 * them: slots instead of byte ranges, a seal instead of a reservation. Cases of the old V0 header and of
 * reads from the WAL do not apply: neither exists here.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { record } from "../../../tests/support/records.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { nodeEpoch, nodeId, position, streamEpoch, streamId } from "../../lib/brand.ts";
import { WAL_RECOVERY_READ_AHEAD_SLOTS } from "../../lib/limits.ts";
import { createMemoryStore } from "../../object/memory.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { Replay } from "../recover_replay.ts";
import type { StreamRecord } from "../stream_record.ts";
import { AppendQueue } from "../engine_appends.ts";
import { createObjectWal } from "./object_wal.ts";
import { recoverWal } from "./recovery.ts";
import type { Wal } from "./wal.ts";
import { slotKey } from "./wal_slots.ts";

function newStore() {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const store = createMemoryStore(clock);
  const ownerOf = (epoch: number) => ({ nodeId: nodeId(1), epoch: nodeEpoch(epoch) });
  return {
    clock,
    store,
    open: (epoch: number): Wal =>
      createObjectWal({
        store,
        env,
        clusterId: "C",
        ...ownerOf(epoch),
        policy: { kind: "unmetered" },
      }),
    async recover(epoch: number, walTrim = 0, from: ObjectStore = store) {
      const wal = { ...ownerOf(epoch), recovery: position(100 + epoch), walTrim };
      const recovered = await recoverWal({ store: from, env, clusterId: "C", wal });
      const records: StreamRecord[] = [];
      for await (const one of recovered.records) records.push(one);
      return { records, sealedSlot: recovered.sealedSlot };
    },
    key: (epoch: number, slot: number) => slotKey("C", ownerOf(epoch), slot),
  };
}

/** Notes how many reads are under way at most. */
function counting(store: ObjectStore): { store: ObjectStore; readonly most: number } {
  let now = 0;
  let most = 0;
  return {
    store: {
      ...store,
      async get(key, options) {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setImmediate(resolve));
        now -= 1;
        return await store.get(key, options);
      },
    },
    get most() {
      return most;
    },
  };
}

/** One WAL object for each of the groups. */
async function fill(
  { clock }: ReturnType<typeof newStore>,
  wal: Wal,
  groups: readonly (readonly number[])[],
): Promise<void> {
  for (const offsets of groups) {
    const appends = offsets.map((offset) => wal.append(record(233, offset, 1, 256)).durable);
    await clock.settle();
    await Promise.all(appends);
  }
}

const offsetsOf = (records: readonly StreamRecord[]) => records.map(({ baseOffset }) => baseOffset);

describe("ObjectWALServiceTest", () => {
  test("reset each epoch: the next one recovers only the 10 records of 256 bytes of the one before", async () => {
    const world = newStore();
    for (let epoch = 1; epoch <= 3; epoch++) {
      const offsets = Array.from({ length: 10 }, (_, i) => 10 * epoch + i);
      const wal = world.open(epoch);
      await fill(world, wal, offsets.map((offset) => [offset]));
      await wal.close();
      const { records } = await world.recover(epoch);
      assert.deepEqual(offsetsOf(records), offsets);
      for (const one of records) assert.deepEqual(one, record(233, one.baseOffset, 1, 256));
    }
  });

  test("recover across 3 epochs with a trim each time: all records behind the trim", async () => {
    const world = newStore();
    for (let epoch = 1; epoch <= 3; epoch++) {
      const wal = world.open(epoch);
      await fill(world, wal, Array.from({ length: 10 }, (_, i) => [10 * epoch + i]));
      wal.trim(epoch);
      await world.clock.settle();
      const { records } = await world.recover(epoch, epoch);
      assert.deepEqual(
        offsetsOf(records),
        Array.from({ length: 10 - epoch }, (_, i) => 11 * epoch + i),
      );
    }
  });

  test("8 records 100..107, a flush after each even one, trim to record 101: 6 are recovered, 102..107", async () => {
    const world = newStore();
    const wal = world.open(1);
    await fill(world, wal, [[100], [101, 102], [103, 104], [105, 106], [107]]);
    // The slot of 101 holds 102 too, so it is still needed.
    wal.trim(1);
    await world.clock.settle();
    const { records } = await world.recover(1, 1);
    assert.deepEqual(offsetsOf(records), [101, 102, 103, 104, 105, 106, 107]);
    const stream = {
      streamId: streamId(233),
      epoch: streamEpoch(0),
      open: true,
      start: 0,
      end: 102,
    };
    const replay = new Replay("wal", [stream]);
    for (const one of records) replay.add(one);
    const run = replay.takeBlock().run(streamId(233))!;
    assert.deepEqual([run.start, run.end, run.length], [102, 108, 6]);
  });

  test("4 objects 100..103, the third is lost: 100 and 101 are recovered", async () => {
    const world = newStore();
    await fill(world, world.open(1), [[100], [101], [102], [103]]);
    await world.store.delete([world.key(1, 2)]);
    const { records, sealedSlot } = await world.recover(1);
    assert.deepEqual([offsetsOf(records), sealedSlot], [[100, 101], 2]);
  });

  /** Objects of the table are slots of 10; a trim inside an object needs it whole. */
  const table: readonly (readonly [objects: number[], trim: number, kept: number[]])[] = [
    [[0, 10, 20], -1, [0, 10, 20]],
    [[], -1, []],
    [[0, 20], -1, [0]],
    [[0, 10, 20], 10, [10, 20]],
    [[0, 10, 20], 15, [10, 20]],
    [[0, 10, 20], 30, []],
    [[0, 10, 30], 10, [10]],
  ];
  for (const [objects, trim, kept] of table) {
    test(`getContinuousFromTrimOffset: ${objects.join(" ") || "none"}, trim ${trim}`, async () => {
      const world = newStore();
      const last = (objects.at(-1) ?? -10) / 10;
      await fill(world, world.open(1), Array.from({ length: last + 1 }, (_, slot) => [10 * slot]));
      for (let slot = 0; slot <= last; slot++) {
        if (!objects.includes(10 * slot)) await world.store.delete([world.key(1, slot)]);
      }
      const { records, sealedSlot } = await world.recover(1, Math.max(0, Math.floor(trim / 10)));
      assert.deepEqual(offsetsOf(records), kept);
      assert.equal(sealedSlot, kept.length > 0 ? kept.at(-1)! / 10 + 1 : Math.max(0, trim / 10));
    });
  }

  test("AutoMQ 3198, 3088: recovery reads a few slots ahead, and each record once", async () => {
    const world = newStore();
    const offsets = Array.from({ length: 20 }, (_, i) => i);
    await fill(world, world.open(1), offsets.map((offset) => [offset]));
    const counted = counting(world.store);
    const { records } = await world.recover(1, 0, counted.store);
    assert.deepEqual(offsetsOf(records), offsets);
    assert.equal(counted.most, WAL_RECOVERY_READ_AHEAD_SLOTS);
  });

  test("AutoMQ 2805: a trim of an empty WAL is none, and closing it writes nothing", async () => {
    const world = newStore();
    const wal = world.open(1);
    wal.trim(0);
    await wal.close();
    assert.throws(() => wal.trim(1), /only slots below 0 are acknowledged/);
    for await (const { key } of world.store.list("")) assert.fail(key);
    assert.deepEqual((await world.recover(1)).records, []);
  });
});

test("AutoMQ 3064: durable groups are handed on in WAL order, whatever order their promises settle in", async () => {
  const delivered: number[] = [];
  const queue = new AppendQueue((_, slot) => void delivered.push(slot));
  const settle: ((body: Uint8Array) => void)[] = [];
  const waits = [0, 1, 2].map((slot) =>
    queue.add({ slot, durable: new Promise((resolve) => void settle.push(resolve)) })
  );
  for (const slot of [2, 1]) settle[slot]!(new Uint8Array(0));
  await Promise.resolve();
  assert.deepEqual([delivered, queue.firstSlot], [[], 0]);
  settle[0]!(new Uint8Array(0));
  await Promise.all(waits);
  assert.deepEqual([delivered, queue.firstSlot], [[0, 1, 2], null]);
});

test("segmented recovery (cache of two records): blocks [10,11] and [12,13] are full, [14] is not", () => {
  const view = { streamId: streamId(233), epoch: streamEpoch(0), open: true, start: 0, end: 10 };
  const replay = new Replay("wal", [view]);
  replay.add(record(233, 10));
  const oneRecord = replay.bytes;
  const blocks: [start: number, end: number, full: boolean][] = [];
  const take = (full: boolean) => {
    const run = replay.takeBlock().run(streamId(233))!;
    blocks.push([run.start, run.end, full]);
  };
  for (const offset of [11, 12, 13, 14]) {
    replay.add(record(233, offset));
    if (replay.bytes > oneRecord) take(true);
  }
  // Another stream's record is not of this WAL's streams.
  replay.add(record(234, 20));
  take(false);
  assert.deepEqual(blocks, [[10, 12, true], [12, 14, true], [14, 15, false]]);
});
