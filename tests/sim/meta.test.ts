/** Tests of the simulator: it repeats itself exactly, and it notices nodes that are broken on purpose. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CANARIES } from "./canary.ts";
import { simulate } from "./scenario.ts";

const STEPS = 6;

test("the same seed gives the same trace", { timeout: 120_000 }, async () => {
  for (const seed of [3, 6]) {
    const first = await simulate({ seed, steps: STEPS });
    const second = await simulate({ seed, steps: STEPS });
    assert.equal(first.hash, second.hash);
    assert.deepEqual(first.world.lines, second.world.lines);
    assert.ok(first.world.events > 1_000);
  }
});

test("another seed gives another trace", { timeout: 300_000 }, async () => {
  const [one, other] = [
    await simulate({ seed: 3, steps: 1 }),
    await simulate({ seed: 4, steps: 1 }),
  ];
  assert.notEqual(one.hash, other.hash);
});

/** How many are tried for each canary. */
const SEEDS_MAX = 30;

for (const [name, { lie, caughtBy, from }] of CANARIES) {
  test(`a node that ${name} is caught`, { timeout: 120_000 }, async () => {
    for (let seed = from; seed < from + SEEDS_MAX; seed++) {
      const { violation } = await simulate({ seed, steps: STEPS, wrapStore: lie });
      if (violation !== null) return assert.match(violation, caughtBy);
    }
    assert.fail(`${SEEDS_MAX} seeds see nothing wrong`);
  });
}
