import assert from "node:assert/strict";
import { test } from "node:test";
import { ageMs, isTooOld, newer } from "./evidence.ts";

const HOUR_MS = 3_600_000;
const ZERO = { monotonicMs: 0, wallMs: 0, storeMs: 0 };

test("the age is the largest that any clock shows", () => {
  assert.equal(ageMs(ZERO, { monotonicMs: 5, wallMs: 7, storeMs: 6 }), 7);
  assert.equal(ageMs(ZERO, { monotonicMs: 5, wallMs: -100, storeMs: 9 }), 9);
  assert.equal(ageMs({ ...ZERO, storeMs: null }, { monotonicMs: 5, wallMs: 1, storeMs: 9 }), 5);
});

test("a machine that slept is found out by the store's clock or by the wall clock", () => {
  const slept = 13 * HOUR_MS;
  assert.equal(isTooOld(ZERO, { monotonicMs: 10, wallMs: 10, storeMs: slept }), true);
  assert.equal(isTooOld(ZERO, { monotonicMs: 10, wallMs: slept, storeMs: null }), true);
  assert.equal(isTooOld(ZERO, { monotonicMs: 10, wallMs: 10, storeMs: 10 }), false);
  assert.equal(isTooOld(ZERO, { ...ZERO, monotonicMs: 12 * HOUR_MS }), false);
});

test("the later proof wins", () => {
  const later = { monotonicMs: 1, wallMs: -5, storeMs: null };
  assert.equal(newer(ZERO, later), later);
  assert.equal(newer(later, ZERO), later);
  const jumped = { ...ZERO, wallMs: 13 * HOUR_MS };
  assert.equal(newer(ZERO, jumped), jumped, "the second one, when no time passed");
});
