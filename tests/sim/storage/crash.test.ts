/**
 * Two nodes, and one of them dies at a store call: at every one of a short run, which is lost and lands by turns
 * (`run.ts --crashes` takes both). The other recovers it, takes its streams and answers for all that was
 * acknowledged, before it is back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { simulateStorage } from "./scenario.ts";

/** On Deno only the engine differs. */
const EVERY = "Bun" in globalThis ? 1 : 11;
/** With it uploads, compaction of two kinds, moves of streams and a snapshot lie in the way. */
const RUN = { seed: 4, steps: 6, calm: true, small: true };

test("a node dies at any store call; another one takes over", { timeout: 180_000 }, async () => {
  const { stormRequests } = await simulateStorage(RUN);
  assert.ok(stormRequests > 100, `only ${stormRequests} calls`);
  let deaths = 0;
  for (let n = 1; n <= stormRequests; n += EVERY) {
    const result = await simulateStorage({ ...RUN, crashAtCall: n, landsAfterDeath: n % 2 });
    assert.equal(result.violation, null, `crash at call ${n}`);
    assert.ok(result.acknowledged > 0);
    deaths += result.deaths;
  }
  assert.equal(deaths, Math.ceil(stormRequests / EVERY));
});
