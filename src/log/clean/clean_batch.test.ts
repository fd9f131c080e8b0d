import assert from "node:assert/strict";
import { test } from "node:test";
import { toUtf8 } from "../../lib/bytes.ts";
import { assignOffsets, buildBatch, readBatchHeader } from "../../protocol/record_batch.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { BatchCleaner } from "./clean_batch.ts";
import { TransactionTracker } from "./transaction_tracker.ts";

const { codecs } = testEnv();

const NOW_MS = 1_700_000_000_000;
const DAY_MS = 86_400_000;

function deletions(count: number, offset: number): Uint8Array {
  const batch = buildBatch({
    records: Array.from({ length: count }, (_, i) => ({
      key: toUtf8(`${i}`),
      value: null,
      headers: [],
      timestampMs: NOW_MS,
    })),
    codec: null,
    codecs,
  });
  assignOffsets(batch, offset, 1);
  return batch;
}

function cleanerOf(batchBytesMax: number, nowMs = NOW_MS): BatchCleaner {
  return new BatchCleaner({
    keeps: ({ isTombstone }, areDeletesOver) => !(isTombstone && areDeletesOver),
    isLastOfProducer: () => false,
    isLastOfLog: () => false,
    nowMs,
    deleteRetentionMs: DAY_MS,
    batchBytesMax,
    codecs,
  }, new TransactionTracker());
}

function clean(cleaner: BatchCleaner, batch: Uint8Array): Uint8Array | null {
  const steps = cleaner.clean(batch, readBatchHeader(batch));
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

test("a batch that would grow past what can be stored stays as it is, and the pass goes on", () => {
  const batch = deletions(1000, 0);
  // A horizon makes each of its timestamp deltas longer.
  const grown = clean(cleanerOf(2 ** 20), batch)!;
  assert.ok(grown.length > batch.length + 2000);
  assert.equal(clean(cleanerOf(grown.length), batch)!.length, grown.length);
  const tight = cleanerOf(grown.length - 1);
  assert.equal(clean(tight, batch), batch);
  assert.equal(tight.unreadable, 1);
});

test("no deletion goes behind a batch that stayed whole: it may hold what is deleted", () => {
  const withHorizon = clean(cleanerOf(2 ** 20), deletions(10, 1000))!;
  const laterMs = NOW_MS + 2 * DAY_MS;
  assert.equal(clean(cleanerOf(2 ** 20, laterMs), withHorizon), null, "its time is over");
  const cleaner = cleanerOf(8000, laterMs);
  const whole = deletions(1000, 0);
  assert.equal(clean(cleaner, whole), whole);
  assert.equal(clean(cleaner, withHorizon), withHorizon);
});
