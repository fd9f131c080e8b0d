/** What takes days: snapshots, the trim behind them, sleepers that wake up behind it, proof that is half a day old. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { WAL_EVIDENCE_AGE_MS_MAX } from "../../src/lib/limits.ts";
import { acknowledgeLate, liveThroughTrim } from "./ages.ts";
import { readLogOfMemory, snapshotOtherState } from "./canary.ts";

const LATE_MS = WAL_EVIDENCE_AGE_MS_MAX + 3_600_000;

test(
  "a day passes, the log is trimmed, a sleeper wakes up behind the trim",
  { timeout: 120_000 },
  async () => {
    const result = await liveThroughTrim();
    assert.equal(result.violation, null);
    assert.ok(result.snapshots >= 4, `${result.snapshots} snapshots`);
    assert.ok(result.entriesLeft < result.entries - 900, `${result.entriesLeft} entries left`);
    assert.equal(result.fenced, 1);
    assert.equal(result.read, 3);
  },
);

test(
  "a node that writes another state as its snapshot is caught",
  { timeout: 120_000 },
  async () => {
    const { violation } = await liveThroughTrim(snapshotOtherState);
    assert.match(violation ?? "", /^I15/);
  },
);

test(
  "a WAL whose answers come half a day late is acknowledged on new proof",
  { timeout: 300_000 },
  async () => {
    const result = await acknowledgeLate(LATE_MS);
    assert.equal(result.violation, null);
    assert.ok(result.acknowledgements > 1);
    assert.equal(result.read, 2);
  },
);

test("a node that does not look for it is caught", { timeout: 300_000 }, async () => {
  const { violation } = await acknowledgeLate(LATE_MS, readLogOfMemory);
  assert.match(violation ?? "", /^I16/);
});
