import assert from "node:assert/strict";
import { test } from "node:test";
import { type CleanPlanInput, planClean, type PlannedSegment } from "./clean_plan.ts";

/** A segment of a hundred offsets and as many bytes, a minute after the one before. */
function segment(at: number, over: Partial<PlannedSegment> = {}): PlannedSegment {
  return {
    baseOffset: 100 * at,
    endOffset: 100 * at + 100,
    bytes: 100,
    firstTimestampMs: 60_000 * at,
    largestTimestampMs: 60_000 * at + 59_999,
    lastModifiedMs: 0,
    ...over,
  };
}

function plan(over: Partial<CleanPlanInput> = {}, rules = {}) {
  return planClean({
    segments: [0, 1, 2, 3].map((at) => segment(at)),
    config: {
      cleanup: { delete: false, compact: true },
      cleaning: {
        minDirtyRatio: 0.5,
        minLagMs: 0,
        maxLagMs: 2 ** 53,
        deleteRetentionMs: 0,
        ...rules,
      },
    },
    cleanedTo: 0,
    logStartOffset: 0,
    lastStableOffset: 400,
    nowMs: 300_000,
    ...over,
  });
}

test("all but the active segment, from the first dirty offset on", () => {
  const all = { count: 3, firstDirty: 0, end: 300, dirtyBytes: 300, ratio: 1, isDue: true };
  assert.deepEqual(plan(), all);
  const half = plan({ cleanedTo: 200 });
  assert.deepEqual([half?.firstDirty, half?.dirtyBytes, half?.ratio], [200, 100, 1 / 3]);
  assert.equal(half?.isDue, false);
  assert.equal(plan({ cleanedTo: 300 }), null);
  assert.equal(plan({ cleanedTo: 50, logStartOffset: 120 })?.firstDirty, 120);
});

test("the ratio must be above the limit, not at it", () => {
  const segments = [0, 1, 2].map((at) => segment(at));
  assert.equal(plan({ segments, cleanedTo: 100 })?.isDue, false);
  assert.equal(plan({ segments, cleanedTo: 100 }, { minDirtyRatio: 0.49 })?.isDue, true);
});

test("nothing at or above the last stable offset", () => {
  assert.equal(plan({ lastStableOffset: 200 })?.end, 200);
  assert.equal(plan({ lastStableOffset: 199 })?.end, 100);
  assert.equal(plan({ lastStableOffset: 99 }), null);
});

test("segments with records younger than the least lag wait, and all above them", () => {
  assert.equal(plan({ nowMs: 179_999 + 1_000 }, { minLagMs: 1_000 })?.end, 300);
  assert.equal(plan({ nowMs: 179_999 + 999 }, { minLagMs: 1_000 })?.end, 200);
  const segments = [
    segment(0),
    segment(1, { largestTimestampMs: 10 ** 9 }),
    segment(2),
    segment(3),
  ];
  assert.equal(plan({ segments }, { minLagMs: 1_000 })?.end, 100);
});

test("records older than the greatest lag are compacted whatever the ratio", () => {
  const over = { cleanedTo: 200, nowMs: 120_000 + 5_000 };
  assert.equal(plan(over, { maxLagMs: 5_000 })?.isDue, false);
  assert.equal(plan({ ...over, nowMs: 125_001 }, { maxLagMs: 5_000 })?.isDue, true);
});

test("a topic that is not compacted has no plan", () => {
  const config = {
    cleanup: { delete: true, compact: false },
    cleaning: { minDirtyRatio: 0, minLagMs: 0, maxLagMs: 1, deleteRetentionMs: 0 },
  };
  assert.equal(plan({ config }), null);
});
