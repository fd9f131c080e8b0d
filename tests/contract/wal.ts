/**
 * What every Wal must do, whatever its store does: acknowledge in order and only what survives, take a lost
 * answer for what it is, stop at a foreign object. Given as a suite over a harness that can open a WAL of
 * any epoch on the same store, and recover it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeEpoch, nodeId, position, streamEpoch, streamId } from "../../src/lib/brand.ts";
import { isFault } from "../../src/lib/errors.ts";
import type { StreamRecord } from "../../src/storage/stream_record.ts";
import { createObjectWal, type ObjectWalOptions } from "../../src/storage/wal/object_wal.ts";
import { recoverWal } from "../../src/storage/wal/recovery.ts";
import type { Wal } from "../../src/storage/wal/wal.ts";
import { slotKey } from "../../src/storage/wal/wal_slots.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { createFakeClock, type FakeClock } from "../support/fake_clock.ts";
import { testEnv } from "../support/test_env.ts";
import { createWalTestStore, type HeldPut, type WalTestStore } from "./wal_store.ts";

export const CLUSTER = "C";
export const NODE = nodeId(1);
export const EPOCH = nodeEpoch(5);

/** One record per offset of stream 1. */
export function recordAt(baseOffset: number, bytes = 8): StreamRecord {
  const payload = new Uint8Array(bytes).fill(baseOffset);
  return { streamId: streamId(1), epoch: streamEpoch(1), baseOffset, count: 1, payload };
}

export interface WalHarness {
  readonly clock: FakeClock;
  readonly store: WalTestStore;
  open(overrides?: Partial<ObjectWalOptions>): Wal;
  /** Base offsets of what recovery finds, and the sealed slot. Retriable faults are retried. */
  recover(recovery: number, walTrim?: number): Promise<Recovered>;
  key(slot: number): string;
  /** Slots below ten that hold an object. */
  slots(): Promise<readonly number[]>;
  /** Appends one record and lets its bulk close: one record per slot. */
  appendAlone(wal: Wal, offset: number): Promise<Outcome>;
  /** Lets everything that can happen happen, retries included. */
  quiesce(): Promise<void>;
  /** The held put of a slot; each call takes one. */
  take(slot: number): HeldPut;
}

export interface Recovered {
  readonly offsets: readonly number[];
  readonly sealedSlot: number;
}

/** What happened to an append, filled in when it happens. */
export interface Outcome {
  readonly offset: number;
  state: "open" | "acknowledged" | "failed";
  error: unknown;
}

/** Follows an append and notes the order in which acknowledgements come. */
export function follow(wal: Wal, record: StreamRecord, order: number[] = []): Outcome {
  const outcome: Outcome = { offset: record.baseOffset, state: "open", error: null };
  wal.append(record).durable.then(
    () => {
      outcome.state = "acknowledged";
      order.push(record.baseOffset);
    },
    (error: unknown) => {
      outcome.state = "failed";
      outcome.error = error;
    },
  );
  return outcome;
}

/** `wrap` stands between the WAL and the test's hands. */
export function createWalHarness(
  wrap: (inner: WalTestStore) => ObjectStore = (s) => s,
): WalHarness {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const hands = createWalTestStore(createMemoryStore(clock));
  const store = wrap(hands);
  const owner = { nodeId: NODE, epoch: EPOCH };

  async function recoverOnce(recovery: number, walTrim: number): Promise<Recovered> {
    const wal = { ...owner, recovery: position(recovery), walTrim };
    const { records, sealedSlot } = await recoverWal({ store, env, clusterId: CLUSTER, wal });
    const offsets: number[] = [];
    for await (const record of records) {
      assert.deepEqual(record, recordAt(record.baseOffset, record.payload.length));
      offsets.push(record.baseOffset);
    }
    return { offsets, sealedSlot };
  }

  async function recoverUntilDone(recovery: number, walTrim: number): Promise<Recovered> {
    for (let attempt = 1;; attempt++) {
      try {
        return await recoverOnce(recovery, walTrim);
      } catch (error) {
        if (attempt === 50 || !isFault(error) || !error.retriable) throw error;
      }
    }
  }

  const harness: WalHarness = {
    clock,
    store: hands,
    key: (slot) => slotKey(CLUSTER, owner, slot),
    open: (overrides = {}) =>
      createObjectWal({
        store,
        env,
        clusterId: CLUSTER,
        ...owner,
        // Plenty of tokens: bulks close after their 2 ms, up to a full window.
        policy: { kind: "metered", putsPerHour: 36_000_000 },
        ...overrides,
      }),
    async slots() {
      const found: number[] = [];
      for (let slot = 0; slot < 10; slot++) {
        if ((await hands.inner.head(harness.key(slot))) !== null) found.push(slot);
      }
      return found;
    },
    async recover(recovery, walTrim = 0) {
      const progress = { settled: false };
      const done = recoverUntilDone(recovery, walTrim).finally(() => {
        progress.settled = true;
      });
      done.catch(() => {});
      for (let i = 0; i < 100 && !progress.settled; i++) await harness.quiesce();
      return done;
    },
    async appendAlone(wal, offset) {
      const outcome = follow(wal, recordAt(offset));
      await clock.advance(2);
      return outcome;
    },
    quiesce: () => clock.advance(60_000),
    take(slot) {
      const at = hands.held.findIndex(({ key }) => key === harness.key(slot));
      assert.ok(at >= 0, `no put of slot ${slot} is held`);
      return hands.held.splice(at, 1)[0]!;
    },
  };
  return harness;
}

export function walContract(name: string, newHarness: () => WalHarness): void {
  test(`${name}: appended records are acknowledged and recovered in order`, async () => {
    const h = newHarness();
    const wal = h.open();
    const order: number[] = [];
    for (let offset = 0; offset < 30; offset++) {
      follow(wal, recordAt(offset, 10 + offset), order);
      if (offset % 4 === 0) await h.clock.advance(2);
    }
    await h.quiesce();
    assert.deepEqual(order, [...Array(30).keys()]);
    assert.equal(wal.state().unacknowledgedBytes, 0);
    assert.deepEqual((await h.recover(9)).offsets, order);
  });

  test(`${name}: the stored record equals the appended one and outlives its source`, async () => {
    const h = newHarness();
    const source = recordAt(3, 100);
    const { record, slot } = h.open().append(source);
    source.payload.fill(0);
    assert.deepEqual(record, recordAt(3, 100));
    assert.equal(slot, 0);
  });

  test(`${name}: acknowledgements keep the order of the slots when PUTs end in another`, async () => {
    const h = newHarness();
    h.store.hold = true;
    const wal = h.open();
    const outcomes: Outcome[] = [];
    for (let offset = 0; offset < 4; offset++) outcomes.push(await h.appendAlone(wal, offset));
    const states = () => outcomes.map(({ state }) => state === "acknowledged");
    h.store.hold = false;
    for (const slot of [3, 1, 2]) {
      await h.take(slot).release();
      await h.clock.settle();
      assert.deepEqual(states(), [false, false, false, false]);
    }
    await h.take(0).release();
    await h.quiesce();
    assert.deepEqual(states(), [true, true, true, true]);
  });

  test(`${name}: at most eight PUTs are in flight, in one span of slots`, async () => {
    const h = newHarness();
    h.store.hold = true;
    const wal = h.open();
    for (let offset = 0; offset < 12; offset++) await h.appendAlone(wal, offset);
    assert.equal(h.store.held.length, 8);
    await h.take(3).release();
    const closed = wal.close();
    await h.clock.advance(10);
    assert.equal(h.store.held.length, 7, "slot 8 waits for slot 0");
    await h.take(0).release();
    await h.clock.advance(10);
    assert.equal(h.store.held.length, 7, "the bulk behind the window went out");
    h.store.hold = false;
    for (const put of h.store.held.splice(0)) await put.release();
    await h.quiesce();
    await closed;
  });

  test(`${name}: an object of somebody else in the next slot fences, once and for all`, async () => {
    const h = newHarness();
    const wal = h.open();
    const reasons: string[] = [];
    wal.onFenced((reason) => reasons.push(reason));
    await h.store.inner.put(h.key(1), new Uint8Array([1, 2, 3]));
    const first = await h.appendAlone(wal, 0);
    await h.quiesce();
    const second = follow(wal, recordAt(1));
    const third = follow(wal, recordAt(2));
    await h.quiesce();
    assert.equal(first.state, "acknowledged");
    for (const { error } of [second, third]) assert.ok(isFault(error, "fenced"));
    assert.equal(reasons.length, 1);
    assert.throws(() => wal.append(recordAt(9)), { code: "fenced" });
    assert.equal(wal.state().fenced, true);
    await wal.close();
  });

  test(`${name}: a zombie cannot acknowledge behind a seal`, async () => {
    const h = newHarness();
    const wal = h.open();
    await h.appendAlone(wal, 0);
    await h.quiesce();
    const recovered = await h.recover(9);
    const late = follow(wal, recordAt(1));
    await h.quiesce();
    assert.deepEqual(recovered, { offsets: [0], sealedSlot: 1 });
    assert.ok(isFault(late.error, "fenced"));
  });

  test(`${name}: close sends what is open, waits, then refuses`, async () => {
    const h = newHarness();
    const wal = h.open();
    const outcome = follow(wal, recordAt(0));
    const closed = wal.close();
    assert.throws(() => wal.append(recordAt(1)), { code: "closed" });
    await h.quiesce();
    await closed;
    assert.equal(outcome.state, "acknowledged");
  });

  test(`${name}: trimmed slots are deleted, the newest stays until there is a newer one`, async () => {
    const h = newHarness();
    const wal = h.open();
    for (let offset = 0; offset < 3; offset++) await h.appendAlone(wal, offset);
    await h.quiesce();
    assert.throws(() => wal.trim(4), /only slots below 3/);
    wal.trim(3);
    await h.quiesce();
    assert.equal(wal.state().trimmedTo, 3);
    assert.deepEqual(await h.slots(), [2]);
    await h.appendAlone(wal, 3);
    await h.quiesce();
    assert.deepEqual(await h.slots(), [3]);
    assert.deepEqual((await h.recover(9, 3)).offsets, [3]);
  });

  test(`${name}: past its byte cap the WAL refuses, and takes more when the store is back`, async () => {
    const h = newHarness();
    h.store.hold = true;
    const wal = h.open();
    const big = recordAt(0, 60 * 1024 * 1024);
    for (let i = 0; i < 4; i++) wal.append(big);
    assert.throws(() => wal.append(big), { code: "overloaded", retriable: true });
    h.store.hold = false;
    for (const put of h.store.held.splice(0)) put.giveUp();
    await h.quiesce();
    assert.equal(wal.state().unacknowledgedBytes, 0);
    wal.append(recordAt(1));
  });
}
