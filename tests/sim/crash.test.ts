/**
 * The anomaly loop: the process dies as it makes its n-th request, for every n of a small run that has a crash,
 * a recovery, a clean stop and a start of its own. The request itself is lost or lands, by turns.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate } from "./scenario.ts";

/** A sample that still meets both outcomes at all stages; on Deno only the engine differs. `run.ts --crashes` takes all. */
const EVERY = "Bun" in globalThis ? 9 : 31;

/** Two ids that commit, abort and give up, and keys that are compacted, within a few seconds. */
const SEMANTICS = {
  instances: [1, 1],
  keyedWriters: 1,
  readers: 1,
  pauseMs: 20,
  timeoutMs: 2_000,
  deletionMs: 60_000,
  partitions: [2, 1],
} as const;

test(
  "a crash at any store call keeps the promises of transactions and of topic compaction",
  { timeout: 180_000 },
  async () => {
    let committed = 0;
    for (let n = 1;; n += 6 * EVERY) {
      const result = await simulate({
        seed: 2,
        steps: 0,
        calm: true,
        small: true,
        semantics: SEMANTICS,
        crashAtCall: n,
        landsAfterDeath: n % 2,
      });
      assert.equal(result.violation, null, `crash at call ${n}`);
      committed += result.transactions;
      if (result.requests >= n) continue;
      assert.ok(n > 90, `only ${n} calls`);
      return assert.ok(committed > n / EVERY / 2, `only ${committed} transactions are committed`);
    }
  },
);

test(
  "a crash at any store call loses nothing and repeats nothing",
  { timeout: 180_000 },
  async () => {
    for (let n = 1;; n += EVERY) {
      const result = await simulate({
        seed: 1,
        steps: 0,
        calm: true,
        small: true,
        crashAtCall: n,
        landsAfterDeath: Math.floor(n / EVERY) % 2,
      });
      assert.equal(result.violation, null, `crash at call ${n}`);
      assert.ok(result.acknowledged > 0);
      if (result.requests < n) return assert.ok(n > 90, `only ${n} calls`);
    }
  },
);
