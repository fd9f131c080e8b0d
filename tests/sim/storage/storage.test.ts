/** Seeds of several nodes over one store, in every run of the tests; `npm run sim` looks at as many as there is time for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runBeside } from "../beside.ts";
import { simulateStorage } from "./scenario.ts";

const IS_BUN = "Bun" in globalThis;
/** As many again run beside them. On Deno only the engine differs. */
const SEEDS = IS_BUN ? 150 : 30;
const PER_TEST = IS_BUN ? 30 : 10;
const STEPS = 40;

/** What was seen under the eyes of the checkers, so that a change cannot make the simulation idle. */
const seen = { acknowledged: 0, reads: 0, starts: 0, fenced: 0, recoveries: 0, moves: 0 };
const compacted = new Set<string>();
/** Orphans that audits deleted, and hints that were written. */
const met = { audited: 0, sparseIndexes: 0 };

/** Begun by the first test, waited for by the last. */
let beside: Promise<void> | null = null;

function begin(): Promise<void> {
  beside ??= runBeside({ level: "storage", first: SEEDS + 1, count: SEEDS, steps: STEPS });
  beside.catch(() => {});
  return beside;
}

for (let first = 1; first <= SEEDS; first += PER_TEST) {
  const last = first + PER_TEST - 1;
  test(`storage seeds ${first} to ${last} keep every promise`, { timeout: 300_000 }, async () => {
    if (IS_BUN) void begin();
    for (let seed = first; seed <= last; seed++) {
      const result = await simulateStorage({ seed, steps: STEPS });
      const again = `bun tests/sim/run.ts --level storage --seed ${seed} --steps ${STEPS} --trace`;
      assert.equal(result.violation, null, `repeat: ${again}`);
      for (const what of Object.keys(seen) as (keyof typeof seen)[]) seen[what] += result[what];
      for (const line of result.world.lines) {
        const kind = / rewrote by ([a-z]+)$/.exec(line)?.[1];
        if (kind !== undefined) compacted.add(kind);
        met.audited += Number(/ audited .*"deleted":(\d+)/.exec(line)?.[1] ?? 0);
        if (/ put [0-9a-f]{8}\/_kafka_sim\/node-/.test(line)) met.sparseIndexes++;
      }
    }
  });
}

test("the storage seeds met what they are for", () => {
  const least = {
    acknowledged: 50 * SEEDS,
    reads: 10 * SEEDS,
    starts: 3 * SEEDS,
    fenced: SEEDS / 10,
    recoveries: SEEDS / 10,
    moves: 3 * SEEDS,
  };
  for (const [what, count] of Object.entries(least)) {
    assert.ok(seen[what as keyof typeof seen] >= count, `${what}: ${JSON.stringify(seen)}`);
  }
  assert.ok(met.audited >= SEEDS / 2 && met.sparseIndexes >= SEEDS / 5, JSON.stringify(met));
  const wanted = IS_BUN ? ["cleanup", "join", "link", "merge", "split"] : ["split"];
  assert.deepEqual(wanted.filter((kind) => !compacted.has(kind)), []);
});

test("a calm storage seed needs no second attempt", async () => {
  for (let seed = 1; seed <= 3; seed++) {
    const { violation, fenced, recoveries } = await simulateStorage({
      seed,
      steps: STEPS,
      calm: true,
    });
    assert.equal(violation, null);
    assert.deepEqual({ fenced, recoveries }, { fenced: 0, recoveries: 0 });
  }
});

test(
  `storage seeds ${SEEDS + 1} to ${2 * SEEDS} keep every promise, beside the others`,
  { timeout: 300_000, skip: !IS_BUN },
  begin,
);
