/** Crash at every request of the store, then recover: what was acknowledged is there once, in order. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { createWalHarness, follow, recordAt, type Recovered, type WalHarness } from "./wal.ts";
import { dieAt, heal, lost } from "./wal_store.ts";

interface Run {
  readonly appended: number;
  readonly acknowledged: readonly number[];
  /** The trim point that the "metadata" committed. */
  readonly walTrim: number;
  /** Records below the committed trim point. */
  readonly committed: number;
}

/** Appends in groups; commits and trims half-way. Stops at the first fence or refusal. */
async function workload(h: WalHarness, groups: readonly number[]): Promise<Run> {
  const wal = h.open();
  const acknowledged: number[] = [];
  const slotOf: number[] = [];
  let walTrim = 0;
  for (const [at, size] of groups.entries()) {
    for (let i = 0; i < size; i++) {
      const offset = slotOf.length;
      follow(wal, recordAt(offset), acknowledged);
      slotOf.push(wal.state().nextSlot - 1);
    }
    await h.clock.advance(2);
    if (at !== groups.length >> 1 || acknowledged.length === 0) continue;
    walTrim = slotOf[acknowledged.length - 1]! + 1;
    wal.trim(walTrim);
  }
  await h.clock.advance(500);
  const committed = slotOf.filter((slot) => slot < walTrim).length;
  return { appended: slotOf.length, acknowledged, walTrim, committed };
}

/** Acknowledgements came in order; recovery continues where the committed part ends and covers them all. */
function checkRecovered(run: Run, offsets: readonly number[]): void {
  const recovered = [...Array(run.committed).keys(), ...offsets];
  assert.deepEqual(recovered, [...Array(recovered.length).keys()], "no gap, no repeat, in order");
  assert.deepEqual(run.acknowledged, [...Array(run.acknowledged.length).keys()]);
  assert.ok(recovered.length >= run.acknowledged.length, "every acknowledged record is there");
  assert.ok(recovered.length <= run.appended, "nothing is invented");
}

const GROUPS = [1, 3, 2, 1, 4, 1, 2];

async function crashAt(n: number, executed: boolean): Promise<void> {
  const h = createWalHarness();
  dieAt(h.store, n, executed);
  const run = await workload(h, GROUPS);
  heal(h.store);
  const { offsets } = await recoverWithoutWriter(h, run.walTrim);
  checkRecovered(run, offsets);
}

/** While it recovers, conditional puts of data (anything longer than a seal) get no answer: the writer is dead. */
async function recoverWithoutWriter(h: WalHarness, walTrim: number): Promise<Recovered> {
  const put = h.store.put.bind(h.store);
  h.store.put = (key, body, options) =>
    body.length === 48 ? put(key, body, options) : new Promise(() => {});
  return await h.recover(9, walTrim);
}

test("the writer dies at each request, executed or not", async () => {
  for (let n = 1; n <= 12; n++) {
    for (const executed of [true, false]) await crashAt(n, executed);
  }
});

test("the recoverer dies at each request, executed or not; the next one finds the same", async () => {
  for (let n = 1; n <= 14; n++) {
    for (const executed of [true, false]) {
      const h = createWalHarness();
      const run = await workload(h, GROUPS);
      dieAt(h.store, n, executed);
      const first = h.recover(9, run.walTrim).then((found) => found, () => null);
      await h.quiesce();
      heal(h.store);
      const second = await h.recover(10, run.walTrim);
      checkRecovered(run, second.offsets);
      const lower = await first;
      if (lower !== null) assert.deepEqual(lower, second);
    }
  }
});

test("a living zombie goes on through recovery: its acknowledgements are all recovered", async () => {
  for (let n = 1; n <= 6; n++) {
    const h = createWalHarness();
    const wal = h.open();
    const order: number[] = [];
    h.store.hold = true;
    for (let offset = 0; offset < 6; offset++) {
      follow(wal, recordAt(offset), order);
      await h.clock.advance(2);
    }
    for (let slot = 0; slot < n; slot++) await h.take(slot).release();
    h.store.hold = false;
    const recovering = h.recover(9);
    for (const put of h.store.held.splice(0).toReversed()) await put.release();
    const { offsets } = await recovering;
    await h.quiesce();
    assert.ok(order.length >= n);
    assert.deepEqual(offsets.slice(0, order.length), order);
  }
});

test("property: any mix of groups, faults and a crash loses nothing that was acknowledged", async () => {
  const fault = fc.constantFrom("none", "none", "none", "not-executed", "answer-lost");
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 8 }),
      fc.array(fault, { maxLength: 20 }),
      fc.integer({ min: 1, max: 25 }),
      fc.boolean(),
      async (groups, faults, death, executed) => {
        const h = createWalHarness();
        dieAt(h.store, death, executed);
        const { before, after } = h.store;
        let request = 0;
        h.store.before = (op, key) => {
          before(op, key);
          request += 1;
          if (faults[request - 1] === "not-executed") throw lost();
        };
        h.store.after = (op, key) => {
          after(op, key);
          if (faults[request - 1] === "answer-lost") throw lost();
        };
        const run = await workload(h, groups);
        heal(h.store);
        const { offsets } = await recoverWithoutWriter(h, run.walTrim);
        checkRecovered(run, offsets);
      },
    ),
    { numRuns: 40 },
  );
});
