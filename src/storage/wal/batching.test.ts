import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decideSend,
  fullBucket,
  refill,
  softCapBytes,
  spend,
  type TokenBucket,
  type WalPolicy,
} from "./batching.ts";

const MIB = 1024 * 1024;
const FREE: WalPolicy = { kind: "unmetered" };
const FOUR_PER_SECOND: WalPolicy = { kind: "metered", putsPerHour: 14_400 };

test("caps follow the budget", () => {
  assert.equal(softCapBytes(FREE), 8 * MIB);
  assert.equal(softCapBytes({ kind: "metered", putsPerHour: 36_000 }), 16 * MIB);
  assert.equal(softCapBytes(FOUR_PER_SECOND), 16 * MIB);
  assert.equal(softCapBytes({ kind: "metered", putsPerHour: 3_600 }), 32 * MIB);
  assert.equal(softCapBytes({ kind: "metered", putsPerHour: 720 }), 64 * MIB);
});

test("unmetered: a bulk leaves at once, behind two others it waits for one to end", () => {
  const view = { nowMs: 10, openedAtMs: 10 };
  assert.deepEqual(decideSend(FREE, fullBucket(0), { ...view, inFlight: 0 }), { send: true });
  assert.deepEqual(decideSend(FREE, fullBucket(0), { ...view, inFlight: 1 }), { send: true });
  const waits = { send: false, waitMs: null };
  assert.deepEqual(decideSend(FREE, fullBucket(0), { ...view, inFlight: 2 }), waits);
});

test("metered: the first record waits 2 ms for others, then leaves while there are tokens", () => {
  const view = { openedAtMs: 100, inFlight: 0 };
  const bucket = fullBucket(0);
  const wait = decideSend(FOUR_PER_SECOND, bucket, { ...view, nowMs: 100 });
  assert.deepEqual(wait, { send: false, waitMs: 2 });
  assert.deepEqual(decideSend(FOUR_PER_SECOND, bucket, { ...view, nowMs: 102 }), { send: true });
});

test("metered: behind a full window the bulk grows instead of queueing", () => {
  const view = { openedAtMs: 0, nowMs: 1_000, inFlight: 8 };
  assert.deepEqual(decideSend(FOUR_PER_SECOND, fullBucket(0), view), { send: false, waitMs: null });
});

test("an empty bucket gives the next PUT after one interval", () => {
  let bucket: TokenBucket = fullBucket(0);
  for (let i = 0; i < 8; i++) bucket = spend(FOUR_PER_SECOND, bucket, 0);
  assert.equal(bucket.tokens, 0);
  const view = { openedAtMs: 0, inFlight: 0 };
  assert.deepEqual(decideSend(FOUR_PER_SECOND, bucket, { ...view, nowMs: 100 }), {
    send: false,
    waitMs: 150,
  });
  assert.deepEqual(decideSend(FOUR_PER_SECOND, bucket, { ...view, nowMs: 250 }), { send: true });
});

test("full bulks go into debt, but not deeper than a burst; rest restores at most a burst", () => {
  let bucket: TokenBucket = fullBucket(0);
  for (let i = 0; i < 100; i++) bucket = spend(FOUR_PER_SECOND, bucket, 0);
  assert.equal(bucket.tokens, -8);
  assert.equal(refill(FOUR_PER_SECOND, bucket, 1_000).tokens, -4);
  assert.equal(refill(FOUR_PER_SECOND, bucket, 3_600_000).tokens, 8);
});

/** Sends whenever the policy says so, for records that arrive at fixed intervals; PUTs take no time. */
function putsInAnHour(policy: WalPolicy, everyMs: number): number {
  let bucket = fullBucket(0);
  let puts = 0;
  let openedAtMs: number | null = null;
  for (let nowMs = 0; nowMs < 3_600_000; nowMs += everyMs) {
    openedAtMs ??= nowMs;
    if (!decideSend(policy, bucket, { nowMs, openedAtMs, inFlight: 0 }).send) continue;
    bucket = spend(policy, bucket, nowMs);
    puts += 1;
    openedAtMs = null;
  }
  return puts;
}

test("the hourly budget holds at any rate below the cap, with one burst on top", () => {
  for (const everyMs of [5, 40, 100]) {
    assert.ok(putsInAnHour(FOUR_PER_SECOND, everyMs) <= 14_400 + 8);
    assert.ok(putsInAnHour({ kind: "metered", putsPerHour: 720 }, everyMs) <= 720 + 8);
  }
});
