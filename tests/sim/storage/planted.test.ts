/** A simulator that finds nothing proves nothing: each planted bug must be caught, by the checker that is for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PLANTED } from "./planted.ts";
import { simulateStorage } from "./scenario.ts";

/** How many are tried; another checker may be first in some. */
const SEEDS_MAX = 40;
const STEPS = 40;

for (const [name, { bug, caughtBy }] of PLANTED) {
  test(`a storage node that ${name} is caught`, { timeout: 120_000 }, async () => {
    const others: string[] = [];
    for (let seed = 1; seed <= SEEDS_MAX; seed++) {
      const { violation } = await simulateStorage({ seed, steps: STEPS, sabotage: bug });
      if (violation === null) continue;
      if (caughtBy.test(violation)) return;
      others.push(violation);
    }
    assert.fail(`not by ${caughtBy} in ${SEEDS_MAX} seeds: ${others.join("\n")}`);
  });
}
