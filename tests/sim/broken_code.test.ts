/** The checkers of transactions and topic compaction notice a node whose code is broken, each by its own rule. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { BROKEN_CODE } from "./broken_code.ts";
import { simulate } from "./scenario.ts";

const STEPS = 5;
/** How many are tried for each bug. */
const SEEDS_MAX = 10;

for (const [name, { plant, caughtBy, from }] of BROKEN_CODE) {
  test(`a node that ${name} is caught`, { timeout: 120_000 }, async () => {
    const mend = plant();
    try {
      for (let seed = from; seed < from + SEEDS_MAX; seed++) {
        const { violation } = await simulate({ seed, steps: STEPS, semantics: true });
        if (violation !== null) return assert.match(violation, caughtBy, `seed ${seed}`);
      }
    } finally {
      mend();
    }
    assert.fail(`${SEEDS_MAX} seeds see nothing wrong`);
  });
}
