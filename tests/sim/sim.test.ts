/** A handful of seeds of every run of the tests; `run.ts` looks at as many as there is time for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { simulate } from "./scenario.ts";

const IS_BUN = "Bun" in globalThis;
const SEEDS = IS_BUN ? 14 : 4;
const STEPS = 6;

/** Kinds of compaction that were committed under the eyes of the checkers. */
const compacted = new Set<string>();

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`seed ${seed} keeps every promise`, { timeout: 300_000 }, async () => {
    const { violation, world } = await simulate({ seed, steps: STEPS });
    for (const line of world.lines) {
      const kind = /compacted \{"kind":"([a-z]+)"/.exec(line)?.[1];
      if (kind !== undefined) compacted.add(kind);
    }
    assert.equal(
      violation,
      null,
      `replay: bun tests/sim/run.ts --seed ${seed} --steps ${STEPS} --trace`,
    );
  });
}

test("stream set objects were joined and split, stream objects linked", () => {
  const wanted = IS_BUN ? ["join", "link", "split"] : ["split"];
  assert.deepEqual(wanted.filter((kind) => !compacted.has(kind)), []);
});
