/**
 * Compaction keeps up with a default node's producers, in virtual time: the number of objects that wait for
 * it does not grow from one stretch of time to the next. Sizes are divided; requests take as long as a store's do.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { CostWorld } from "./cost_world.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const STEP_MS = 5_000;
/** Looks come once a minute, so objects wave; a backlog that grows does more than that. */
const WAVE = 1.25;

/** Stream set objects of the node. */
function sets(world: CostWorld): number {
  return [...world.image().streamSets.values()].reduce((sum, ids) => sum + ids.length, 0);
}

/** Objects of single streams that a read may have to look at. */
function streamObjects(world: CostWorld): number {
  const rows = [...world.image().objects.values()];
  return rows.filter(({ state, linkedBy, stream }) =>
    state === "committed" && linkedBy === null && stream !== null
  ).length;
}

/** The most that was seen in so many seconds. */
async function most(world: CostWorld, seconds: number, count: (world: CostWorld) => number) {
  const seen: number[] = [];
  for (let ms = 0; ms < seconds * 1_000; ms += STEP_MS) {
    await world.run(STEP_MS);
    seen.push(count(world));
  }
  return Math.max(...seen);
}

suite("compaction keeps up", () => {
  for (const priced of [true, false]) {
    const name = priced ? "where requests have prices" : "where they have none";
    test(`100 MiB/s, ${name}: uploads do not pile up`, { timeout: 120_000 }, async () => {
      const arrivals = { perSecond: 20, bytes: 5 * MIB };
      const world = new CostWorld({ arrivals, putsPerHour: 14_400, scale: 512, priced });
      await world.start();
      await world.run(240_000);
      const seen = await most(world, 240, sets);
      // Some 280 were uploaded in either half. About as many wait as come while two of the largest joins run.
      assert.ok(seen <= 200, `${seen} stream set objects`);
    });
  }

  test("200 streams, uploads every two seconds: small objects do not pile up", {
    timeout: 120_000,
  }, async () => {
    const world = new CostWorld({
      arrivals: { perSecond: 30, bytes: 128 * KIB },
      putsPerHour: 14_400,
      scale: 128,
      streams: 200,
      priced: false,
      engine: { uploadIntervalMs: 2_000, splitBytes: 64 * KIB },
    });
    await world.start();
    const before = await most(world, 150, streamObjects);
    const after = await most(world, 150, streamObjects);
    assert.ok(before > 1_000, `${before} objects`);
    assert.ok(after <= before * WAVE, `${before} objects, later ${after}`);
  });
});
