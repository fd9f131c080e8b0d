import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toUtf8 } from "../../lib/bytes.ts";
import type { RecordOutput } from "../port.ts";
import { type Held, PartitionWindow } from "./window.ts";

const ALL = { records: 100, bytes: 1_000_000 };

function record(offset: number, key: string | null = null, bytes = 1): RecordOutput {
  return {
    offset,
    timestampMs: 0,
    key: key === null ? null : toUtf8(key),
    value: new Uint8Array(bytes),
    headers: [],
  };
}

function windowOf(...keys: readonly (string | null)[]): PartitionWindow {
  const window = new PartitionWindow(0);
  window.add(keys.map((key, i) => record(i, key)), keys.length);
  return window;
}

function offsets(taken: readonly Held[]): number[] {
  return taken.map(({ offset }) => offset);
}

test("records of a key wait for those before them; others do not", () => {
  const window = windowOf("a", "b", "a", null);
  const first = window.take(0, { ...ALL, records: 1 });
  assert.deepEqual(offsets(first), [0]);
  assert.deepEqual(offsets(window.take(0, ALL)), [1, 3]);
  assert.deepEqual(offsets(window.take(0, ALL)), []);
  window.done(first);
  assert.deepEqual(offsets(window.take(0, ALL)), [2]);
});

test("a record that waits for its time holds back its key", () => {
  const window = windowOf("a", "a", "b");
  const [held] = [window.take(0, { ...ALL, records: 1 })];
  window.again(held, 1_000, false);
  assert.deepEqual(offsets(window.take(0, ALL)), [2]);
  assert.equal(window.nextDueMs(0), 1_000);
  assert.deepEqual(offsets(window.take(1_000, ALL)), [0, 1]);
});

test("the position stands at the first record that is not done", () => {
  const window = windowOf(null, null, null);
  const one = () => window.take(0, { ...ALL, records: 1 });
  const [first, second, third] = [one(), one(), one()];
  window.done(second);
  assert.equal(window.position, 0);
  window.done(first);
  assert.equal(window.position, 2);
  window.done(third);
  assert.equal(window.position, 3);
  window.add([], 9);
  assert.equal(window.position, 9);
});

test("a batch ends before too many bytes, but holds at least one record", () => {
  const window = new PartitionWindow(0);
  window.add([record(0, null, 5_000), record(1, null, 5_000), record(2, null, 10)], 3);
  assert.deepEqual(offsets(window.take(0, { records: 10, bytes: 1_000 })), [0]);
  assert.deepEqual(offsets(window.take(0, { records: 10, bytes: 6_000 })), [1, 2]);
});

/** Plays a handler that takes and refuses at random; checks each step against what must hold. */
function play(keys: readonly (string | null)[], steps: readonly number[], batch: number): void {
  const window = windowOf(...keys);
  const underWay: (readonly Held[])[] = [];
  const delivered: number[] = [];
  let nowMs = 0;
  const isBusy = (key: string | null) =>
    key !== null && underWay.some((taken) => taken.some((held) => keys[held.offset] === key));
  for (const step of steps) {
    nowMs += step % 7;
    if (step % 3 === 0 || underWay.length === 0) {
      const expectFree = (held: Held) => assert.ok(!isBusy(keys[held.offset]!), "one at a time");
      const taken = window.take(nowMs, { records: batch, bytes: 1_000_000 });
      taken.forEach(expectFree);
      assert.ok(taken.length <= batch);
      if (taken.some(({ isAlone }) => isAlone)) assert.equal(taken.length, 1);
      if (taken.length > 0) underWay.push(taken);
      continue;
    }
    const [taken] = underWay.splice(step % underWay.length, 1);
    if (step % 2 === 0) {
      delivered.push(...offsets(taken!));
      window.done(taken!);
    } else window.again(taken!, nowMs + step % 11, step % 5 === 0);
    const undone = keys.findIndex((_, offset) => !delivered.includes(offset));
    assert.equal(window.position, undone < 0 ? keys.length : undone);
  }
  for (const taken of underWay) window.again(taken, 0, false);
  for (
    let taken = window.take(Infinity, ALL);
    taken.length > 0;
    taken = window.take(Infinity, ALL)
  ) {
    delivered.push(...offsets(taken));
    window.done(taken);
  }
  assert.deepEqual(delivered.toSorted((a, b) => a - b), keys.map((_, offset) => offset));
  for (const key of new Set(keys)) {
    if (key === null) continue;
    const ofKey = delivered.filter((offset) => keys[offset] === key);
    assert.deepEqual(ofKey, ofKey.toSorted((a, b) => a - b), "in order of its key");
  }
  assert.equal(window.position, keys.length);
  assert.deepEqual([window.bytes, window.count, window.waiting], [0, 0, 0]);
}

test("whatever a handler does, each record is delivered once, and those of a key in order", () => {
  const key = fc.oneof(fc.constant(null), fc.constantFrom("a", "b", "c"));
  fc.assert(
    fc.property(
      fc.array(key, { maxLength: 30 }),
      fc.array(fc.nat(1_000), { maxLength: 80 }),
      fc.integer({ min: 1, max: 5 }),
      play,
    ),
  );
});
