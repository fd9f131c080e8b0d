import assert from "node:assert/strict";
import { test } from "node:test";
import { createHarness, put } from "../../tests/support/partition_harness.ts";

test("the size of a log is what lies behind its start, within a segment as well", async () => {
  const harness = await createHarness();
  const { log } = harness;
  assert.equal(log.sizeBytes, 0);
  for (let i = 0; i < 10; i++) await put(log, harness.batch(["value"]));
  const whole = log.sizeBytes;
  assert.ok((await log.deleteRecords(8)).ok);
  assert.equal(log.sizeBytes, Math.round(whole / 5));
  assert.ok((await log.deleteRecords(10)).ok);
  assert.equal(log.sizeBytes, 0);
  await put(log, harness.batch(["value"]));
  assert.ok(log.sizeBytes > 0 && log.sizeBytes <= whole / 5);
});
