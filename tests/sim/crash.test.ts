/**
 * The anomaly loop: the process dies as it makes its n-th request, for every n of a small run that has a crash,
 * a recovery, a clean stop and a start of its own. The request itself is lost or lands, by turns.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate } from "./scenario.ts";

/** A sample that still meets both outcomes at all stages; on Deno only the engine differs. `run.ts --crashes` takes all. */
const EVERY = "Bun" in globalThis ? 9 : 31;

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
