/** Seeds of the whole node in every run of the tests; `npm run sim` looks at as many as there is time for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Moment } from "./checker/wal_watch.ts";
import { simulate } from "./scenario.ts";

const IS_BUN = "Bun" in globalThis;
/** On Deno only the engine differs. */
const SEEDS = IS_BUN ? 30 : 4;
const PER_TEST = IS_BUN ? 3 : 1;
const STEPS = 5;

/** What happened under the eyes of the checkers, so that a change cannot make the simulation idle. */
const seen = { acknowledged: 0, starts: 0, fenced: 0, requests: 0, transactions: 0 };
/** In which processes died. */
const moments = new Set<Moment>();
/** Kinds of compaction that were committed. */
const compacted = new Set<string>();
let groupLogsCut = 0;

for (let first = 1; first <= SEEDS; first += PER_TEST) {
  const last = first + PER_TEST - 1;
  const name = PER_TEST === 1 ? `seed ${first} keeps` : `seeds ${first} to ${last} keep`;
  test(`${name} every promise`, { timeout: 300_000 }, async () => {
    for (let seed = first; seed <= last; seed++) {
      const result = await simulate({ seed, steps: STEPS });
      const again = `bun tests/sim/run.ts --level broker --seed ${seed} --steps ${STEPS} --trace`;
      assert.equal(result.violation, null, `replay: ${again}`);
      for (const what of Object.keys(seen) as (keyof typeof seen)[]) seen[what] += result[what];
      for (const moment of result.moments.keys()) moments.add(moment);
      for (const line of result.world.lines) {
        const kind = / rewrote by ([a-z]+)$/.exec(line)?.[1];
        if (kind !== undefined) compacted.add(kind);
        if (line.includes("group-log-rewritten")) groupLogsCut += 1;
      }
    }
  });
}

test("the seeds met what they are for", () => {
  const least = { acknowledged: 50, starts: 3, fenced: 0.25, requests: 200, transactions: 0.5 };
  for (const [what, count] of Object.entries(least)) {
    const total = seen[what as keyof typeof seen];
    assert.ok(total >= count * SEEDS, `${what}: ${JSON.stringify(seen)}`);
  }
  const wanted = IS_BUN ? ["join", "link", "merge", "split"] : ["split"];
  assert.deepEqual(wanted.filter((kind) => !compacted.has(kind)), []);
  const met: readonly Moment[] = [
    "data without a snapshot",
    "an open transaction",
    "a marker without a snapshot",
    "a snapshot above an open transaction",
    "a promised end without its markers",
  ];
  if (IS_BUN) assert.deepEqual(met.filter((moment) => !moments.has(moment)), []);
  if (IS_BUN) assert.ok(groupLogsCut > 0, "no log of the groups was rewritten");
});
