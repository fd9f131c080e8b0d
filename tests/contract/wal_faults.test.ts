/** The faults 1-14 of the control-plane sheet, as far as they concern the WAL. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeEpoch, nodeId, position } from "../../src/lib/brand.ts";
import { FaultError, isFault } from "../../src/lib/errors.ts";
import { collectSealedWal } from "../../src/storage/wal/wal_slots.ts";
import { encodeSeal } from "../../src/storage/wal/wal_object.ts";
import { CLUSTER, createWalHarness, EPOCH, follow, NODE, recordAt } from "./wal.ts";
import { testEnv } from "../support/test_env.ts";
import { lost } from "./wal_store.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const OWNER = { nodeId: NODE, epoch: EPOCH };

test("fault 1: a PUT that succeeded without an answer is acknowledged once", async () => {
  const h = createWalHarness();
  h.store.hold = true;
  const order: number[] = [];
  const wal = h.open();
  follow(wal, recordAt(0), order);
  await h.clock.advance(2);
  h.store.hold = false;
  await h.take(0).loseAnswer();
  await h.quiesce();
  assert.deepEqual(order, [0]);
  assert.deepEqual(await h.recover(9), { offsets: [0], sealedSlot: 1 });
});

test("fault 2: a delayed PUT that lands after its repeat changes nothing", async () => {
  const h = createWalHarness();
  h.store.hold = true;
  const order: number[] = [];
  const wal = h.open();
  follow(wal, recordAt(0), order);
  await h.clock.advance(2);
  h.store.hold = false;
  const delayed = h.take(0);
  delayed.giveUp();
  await h.clock.advance(30_000);
  assert.deepEqual(order, [0]);
  assert.equal((await delayed.land()).created, false);
  assert.deepEqual((await h.recover(9)).offsets, [0]);
});

test("fault 3: a PUT that lands after the crash and before the seal is recovered", async () => {
  const h = createWalHarness();
  h.store.hold = true;
  const outcome = await h.appendAlone(h.open(), 0);
  h.store.hold = false;
  await h.take(0).land();
  assert.deepEqual(await h.recover(9), { offsets: [0], sealedSlot: 1 });
  assert.equal(outcome.state, "open");
});

test("fault 4: a PUT that lands after the seal is refused by the store", async () => {
  const h = createWalHarness();
  h.store.hold = true;
  await h.appendAlone(h.open(), 0);
  h.store.hold = false;
  assert.deepEqual(await h.recover(9), { offsets: [], sealedSlot: 0 });
  assert.equal((await h.take(0).land()).created, false);
  assert.deepEqual(await h.recover(10), { offsets: [], sealedSlot: 0 });
});

test("fault 5: later slots stored, an earlier one not: none is acknowledged, the seal goes before them", async () => {
  const h = createWalHarness();
  const wal = h.open();
  for (let offset = 0; offset < 5; offset++) await h.appendAlone(wal, offset);
  await h.quiesce();
  h.store.hold = true;
  const late = [];
  for (let offset = 5; offset < 8; offset++) late.push(await h.appendAlone(wal, offset));
  await h.take(6).release();
  await h.take(7).release();
  await h.clock.settle();
  h.store.hold = false;
  assert.deepEqual(await h.recover(9), { offsets: [0, 1, 2, 3, 4], sealedSlot: 5 });
  h.take(5).giveUp();
  await h.quiesce();
  for (const { error } of late) assert.ok(isFault(error, "fenced"));
  const collected = await collectSealedWal(h.store, CLUSTER, { ...OWNER, sealedSlot: 5 });
  assert.deepEqual(collected, { deleted: 7, empty: false });
  assert.deepEqual(await h.slots(), [5]);
});

test("fault 6: a second process that registered and recovered fences the first at its next create", async () => {
  const h = createWalHarness();
  const first = h.open();
  await h.appendAlone(first, 0);
  await h.quiesce();
  await h.recover(9);
  const second = h.open({ epoch: nodeEpoch(9) });
  const fresh = follow(second, recordAt(1));
  const stale = follow(first, recordAt(1));
  await h.quiesce();
  assert.equal(fresh.state, "acknowledged");
  assert.ok(isFault(stale.error, "fenced"));
});

test("fault 7: a node that was paused and recovered meanwhile meets the seal", async () => {
  const h = createWalHarness();
  const wal = h.open();
  const waiting = follow(wal, recordAt(0));
  await h.recover(9);
  await h.clock.advance(60_000);
  assert.ok(isFault(waiting.error, "fenced"));
  assert.match(String(waiting.error), /slot 0 holds the seal of recovery 9/);
});

test("fault 8: a node that slept until its seal was deleted asks before it acknowledges", async () => {
  const h = createWalHarness();
  const asked: number[] = [];
  const checkEpoch = () => {
    asked.push(h.clock.monotonicMs());
    return Promise.resolve(false);
  };
  const wal = h.open({ checkEpoch });
  const before = await h.appendAlone(wal, 0);
  await h.clock.settle();
  assert.deepEqual([before.state, asked.length], ["acknowledged", 0]);
  const { sealedSlot } = await h.recover(9);
  const sealed = { ...OWNER, sealedSlot };
  assert.equal((await collectSealedWal(h.store, CLUSTER, sealed)).empty, false);
  await h.clock.advance(8 * DAY_MS);
  assert.equal((await collectSealedWal(h.store, CLUSTER, sealed)).empty, true);
  const after = follow(wal, recordAt(1));
  await h.quiesce();
  assert.equal(asked.length, 1);
  assert.ok(isFault(after.error, "fenced"));
});

test("fault 8b: an idle node that still owns its WAL asks once, waits for the answer, and goes on", async () => {
  const h = createWalHarness();
  let asked = 0;
  let reachable = false;
  const wal = h.open({
    checkEpoch: () => {
      asked += 1;
      return reachable ? Promise.resolve(true) : Promise.reject(lost());
    },
  });
  await h.clock.advance(13 * HOUR_MS);
  const outcome = await h.appendAlone(wal, 0);
  await h.quiesce();
  assert.equal(outcome.state, "open");
  reachable = true;
  await h.quiesce();
  assert.equal(outcome.state, "acknowledged");
  const questions = asked;
  await h.appendAlone(wal, 1);
  await h.clock.advance(11 * HOUR_MS);
  assert.equal((await h.appendAlone(wal, 2)).state, "acknowledged");
  assert.equal(asked, questions, "own PUTs prove it afterwards");
});

test("fault 8c: a machine whose clocks stood still all the time is found out by the store's, at its first bulk", async () => {
  const h = createWalHarness();
  const frozen = { ...h.clock, nowMs: () => 1, monotonicMs: () => 1 };
  const asked: number[] = [];
  const checkEpoch = () => {
    asked.push(h.clock.monotonicMs());
    return Promise.resolve(false);
  };
  const storeMs = h.clock.nowMs();
  const env = testEnv({ clock: frozen });
  const wal = h.open({ checkEpoch, storeMs, env, policy: { kind: "unmetered" } });
  await h.clock.advance(8 * DAY_MS);
  const outcome = follow(wal, recordAt(0));
  await h.clock.advance(1_000);
  assert.equal(asked.length, 1);
  assert.ok(isFault(outcome.error, "fenced"));
});

for (const jumped of ["wall", "store"] as const) {
  test(`fault 8d: the ${jumped} clock jumps while no other time passes: one question, and it goes on`, async () => {
    const h = createWalHarness();
    let nowMs = h.clock.nowMs();
    const storeMs = nowMs;
    const standing = { ...h.clock, nowMs: () => nowMs, monotonicMs: () => 1 };
    let asked = 0;
    const wal = h.open({
      checkEpoch: () => {
        asked += 1;
        return Promise.resolve(asked < 10);
      },
      storeMs,
      env: testEnv({ clock: standing }),
      policy: { kind: "unmetered" },
    });
    if (jumped === "wall") nowMs += 31 * HOUR_MS;
    else await h.clock.advance(31 * HOUR_MS);
    for (let i = 0; i < 3; i++) {
      const outcome = follow(wal, recordAt(i));
      await h.clock.settle();
      assert.deepEqual([outcome.state, asked], ["acknowledged", 1], String(outcome.error));
    }
  });
}

test("faults 9 and 10: the next recoverer goes on with the same end, before and after the seal", async () => {
  const h = createWalHarness();
  const wal = h.open();
  for (let offset = 0; offset < 3; offset++) await h.appendAlone(wal, offset);
  await h.quiesce();
  const first = await h.recover(9);
  const second = await h.recover(12);
  assert.deepEqual(first, { offsets: [0, 1, 2], sealedSlot: 3 });
  assert.deepEqual(second, first);
});

test("fault 11: of two recoverers one seals, the earlier one stops at the other's seal", async () => {
  const h = createWalHarness();
  await h.appendAlone(h.open(), 0);
  await h.quiesce();
  const [low, high] = await Promise.allSettled([h.recover(9), h.recover(12)]);
  assert.equal(high.status, "fulfilled");
  if (low.status === "rejected") assert.ok(isFault(low.reason, "fenced"));
  await h.store.inner.delete([h.key(1)]);
  await h.store.inner.put(h.key(1), encodeSeal(OWNER, 1, position(12)));
  await assert.rejects(h.recover(9), { code: "fenced" });
});

test("fault 12: a recoverer that died while it replayed is repeated from the seal", async () => {
  const h = createWalHarness();
  const wal = h.open();
  for (let offset = 0; offset < 3; offset++) await h.appendAlone(wal, offset);
  await h.quiesce();
  assert.deepEqual(await h.recover(9, 1), { offsets: [1, 2], sealedSlot: 3 });
  assert.deepEqual(await h.recover(10, 1), { offsets: [1, 2], sealedSlot: 3 });
});

test("faults 13 and 14: slots below the committed trim may vanish while recovery scans", async () => {
  const h = createWalHarness();
  const wal = h.open();
  for (let offset = 0; offset < 6; offset++) await h.appendAlone(wal, offset);
  await h.quiesce();
  h.store.after = (op) => {
    if (op === "get") wal.trim(4);
  };
  assert.deepEqual(await h.recover(9, 4), { offsets: [4, 5], sealedSlot: 6 });
  await h.quiesce();
  assert.deepEqual(await h.slots(), [4, 5, 6]);
});

test("a damaged slot below the end stops recovery, names the key and seals nothing", async () => {
  const h = createWalHarness();
  const wal = h.open();
  for (let offset = 0; offset < 3; offset++) await h.appendAlone(wal, offset);
  await h.quiesce();
  const got = await h.store.inner.get(h.key(1));
  const bytes = got!.bytes;
  bytes[bytes.length - 1]! ^= 1;
  await h.store.inner.put(h.key(1), bytes);
  await assert.rejects(h.recover(9), (error) => {
    assert.ok(isFault(error, "data-loss"));
    assert.ok(error.message.includes(h.key(1)));
    return true;
  });
  assert.deepEqual(await h.slots(), [0, 1, 2]);
});

test("a lost slot further below the end than the window is told apart from the end", async () => {
  const h = createWalHarness();
  const wal = h.open();
  for (let offset = 0; offset < 10; offset++) await h.appendAlone(wal, offset);
  await h.quiesce();
  await h.store.inner.delete([h.key(1)]);
  await assert.rejects(h.recover(9), { code: "data-loss" });
  assert.ok(!(await h.slots()).includes(1));
});

test("slots that a later recoverer deleted are no loss", async () => {
  const h = createWalHarness();
  const wal = h.open();
  for (let offset = 0; offset < 9; offset++) await h.appendAlone(wal, offset);
  await h.quiesce();
  const { sealedSlot } = await h.recover(12);
  await collectSealedWal(h.store, CLUSTER, { ...OWNER, sealedSlot });
  await assert.rejects(h.recover(9), { code: "fenced" });
});

test("another node's object in the slot is damage, not data", async () => {
  const h = createWalHarness();
  const foreign = encodeSeal({ ...OWNER, nodeId: nodeId(2) }, 0, position(3));
  await h.store.inner.put(h.key(0), foreign);
  await assert.rejects(h.recover(9), { code: "data-loss" });
});

test("a store that refuses (full, credentials) is asked again until it takes the bulk", async () => {
  const h = createWalHarness();
  const wal = h.open();
  let refusals = 0;
  h.store.before = (op) => {
    if (op !== "put" || refusals === 20) return;
    refusals += 1;
    throw new FaultError("store-full", "No space left", { retriable: false });
  };
  const outcome = await h.appendAlone(wal, 0);
  for (let i = 0; i < 5; i++) await h.quiesce();
  assert.equal(refusals, 20);
  assert.equal(outcome.state, "acknowledged");
  assert.equal(wal.state().fenced, false);
});

test("recovery reads again what it could not keep, and never seals a hole below a seal", async () => {
  const h = createWalHarness();
  const wal = h.open();
  const big = 30 * 1024 * 1024;
  for (let offset = 0; offset < 3; offset++) follow(wal, recordAt(offset, big));
  await h.quiesce();
  const reads: string[] = [];
  h.store.before = (op, key) => void (op === "get" && reads.push(key));
  assert.deepEqual(await h.recover(9), { offsets: [0, 1, 2], sealedSlot: 3 });
  assert.deepEqual(reads, [0, 1, 2, 2].map(h.key));
  // The harness repeats a recovery that lost a slot on its way; the repeat must not seal the hole.
  let asked = 0;
  h.store.before = (op, key) => {
    if (op !== "get" || key !== h.key(2)) return;
    asked += 1;
    if (asked === 2) void h.store.inner.delete([key]);
  };
  await assert.rejects(h.recover(10), (error) => {
    assert.ok(isFault(error, "data-loss"));
    assert.match(error.message, /empty below the seal in slot 3/);
    return true;
  });
  assert.ok(asked > 2);
  assert.ok(!(await h.slots()).includes(2));
});
