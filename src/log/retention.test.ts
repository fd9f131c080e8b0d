import assert from "node:assert/strict";
import { test } from "node:test";
import { type RetentionInput, segmentsToDelete } from "./retention.ts";

/** Three segments of 10 offsets and 100 bytes, the last one active; largest timestamps 100, 200, 300. */
function plan(over: Partial<RetentionInput> = {}, config: Partial<RetentionInput["config"]> = {}) {
  const segments = [0, 10, 20].map((baseOffset) => ({
    baseOffset,
    endOffset: baseOffset + 10,
    bytes: 100,
    largestTimestampMs: baseOffset * 10 + 100,
    lastModifiedMs: 0,
  }));
  return segmentsToDelete({
    segments,
    highWatermark: 30,
    logStartOffset: 0,
    nowMs: 1000,
    config: {
      cleanup: { delete: true, compact: false },
      retentionMs: -1,
      retentionBytes: -1,
      ...config,
    },
    ...over,
  });
}

test("nothing goes without a limit", () => assert.equal(plan(), 0));

test("time: older than retention.ms goes, the first that stays ends it", () => {
  assert.equal(plan({}, { retentionMs: 900 }), 0);
  assert.equal(plan({}, { retentionMs: 899 }), 1);
  assert.equal(plan({}, { retentionMs: 699 }), 3);
});

test("time: without timestamps the last change counts", () => {
  const segments = [{
    baseOffset: 0,
    endOffset: 1,
    bytes: 1,
    largestTimestampMs: -1,
    lastModifiedMs: 50,
  }];
  assert.equal(plan({ segments }, { retentionMs: 950 }), 0);
  assert.equal(plan({ segments }, { retentionMs: 949 }), 1);
});

test("size: the oldest go while what is left holds retention.bytes", () => {
  assert.equal(plan({}, { retentionBytes: 201 }), 0);
  assert.equal(plan({}, { retentionBytes: 200 }), 1);
  assert.equal(plan({}, { retentionBytes: 0 }), 3);
});

test("segments below the log start go whatever the policy", () => {
  const compact = { cleanup: { delete: false, compact: true }, retentionMs: 0, retentionBytes: 0 };
  assert.equal(plan({ logStartOffset: 19 }, compact), 1);
  assert.equal(plan({ logStartOffset: 20 }, compact), 2);
});

test("nothing above the high watermark goes", () => {
  assert.equal(plan({ highWatermark: 19 }, { retentionMs: 0 }), 1);
  assert.equal(plan({ highWatermark: 29 }, { retentionMs: 0 }), 2);
});

test("DeleteRecords: only what lies below the start goes, whatever its age and size", () => {
  const old = { nowMs: 1e9, config: null };
  assert.equal(plan(old), 0);
  assert.equal(plan({ ...old, logStartOffset: 19 }), 1);
  assert.equal(plan({ ...old, logStartOffset: 20 }), 2);
});
