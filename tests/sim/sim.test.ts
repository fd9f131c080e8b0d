/** A handful of seeds of every run of the tests; `run.ts` looks at as many as there is time for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate } from "./scenario.ts";

const IS_BUN = "Bun" in globalThis;
const SEEDS = IS_BUN ? 14 : 4;
const STEPS = 6;

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`seed ${seed} keeps every promise`, { timeout: 60_000 }, async () => {
    const { violation } = await simulate({ seed, steps: STEPS });
    assert.equal(
      violation,
      null,
      `replay: bun tests/sim/run.ts --seed ${seed} --steps ${STEPS} --trace`,
    );
  });
}
