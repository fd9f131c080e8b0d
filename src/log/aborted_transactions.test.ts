import assert from "node:assert/strict";
import { test } from "node:test";
import { DecodeError } from "../lib/bytes.ts";
import { ABORTED_RECENT_MAX } from "../lib/limits.ts";
import { AbortedTransactions, decodeAborted, encodeAborted } from "./aborted_transactions.ts";

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function entry(at: number) {
  return { producerId: 7, firstOffset: at, lastOffset: at + 1, lastStableOffset: at + 2 };
}

function filled(count: number): AbortedTransactions {
  const aborted = new AbortedTransactions(0);
  for (let i = 0; i < count; i++) aborted.add(entry(i * 2));
  return aborted;
}

test("an entry has Kafka's 34 bytes", () => {
  const one = { producerId: 1, firstOffset: 2, lastOffset: 515, lastStableOffset: 4 };
  const bytes = encodeAborted([one]);
  assert.equal(
    hex(bytes),
    "0000" + "0000000000000001" + "0000000000000002" + "0000000000000203" + "0000000000000004",
  );
  assert.deepEqual(decodeAborted(bytes), [one]);
});

test("another version and a cut entry are no entries", () => {
  const bytes = encodeAborted([entry(0), entry(2)]);
  assert.throws(() => decodeAborted(bytes.with(1, 1)), DecodeError);
  assert.throws(() => decodeAborted(bytes.subarray(0, 40)), DecodeError);
});

test("only what is durable in the index leaves memory, and the newest stays in any case", () => {
  const count = ABORTED_RECENT_MAX + 100;
  const aborted = filled(count);
  assert.ok(aborted.isFull);
  aborted.forget(2 * count);
  assert.equal(aborted.from(0).length, count, "the index has none of them");
  aborted.markStreamed(count - 50);
  aborted.forget(60);
  assert.equal(aborted.from(0).length, count - 30, "30 markers are below 60");
  assert.equal(aborted.completeFrom, 60);
  aborted.forget(2 * count);
  assert.equal(aborted.from(0).length, ABORTED_RECENT_MAX);
  assert.equal(aborted.completeFrom, 200);
  assert.equal(aborted.unstreamedBelow(2 * count, 1_000).length, 50);
});

test("a trim drops what ended below the log's first segment, in the index or not", () => {
  const aborted = filled(10);
  aborted.markStreamed(2);
  aborted.trim(6);
  assert.equal(aborted.from(0).length, 7);
  assert.equal(aborted.completeFrom, 6);
  assert.equal(aborted.unstreamedBelow(100, 100).length, 7);
  assert.deepEqual(aborted.unstreamedBelow(8, 100), [entry(6)]);
});
