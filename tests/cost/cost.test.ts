/**
 * Requests of a node in virtual time, at or below what the design allows. Counts are exact and repeat. Sizes are
 * divided and rates with them where there are many bytes; `tests/bench/run.ts cost` prints the whole table.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { COMPACTION_MEMORY_BYTES, COMPACTION_OBJECTS_MIN } from "../../src/lib/limits.ts";
import { type CostOptions, CostWorld, type Hourly } from "./cost_world.ts";
import { ALLOWED, type Budget, BUDGETS, LARGE_NODE, type Rate, RATES } from "./rows.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

async function measured(
  rate: Rate | null,
  budget: Budget,
  ms: number,
  options: Partial<CostOptions> = {},
): Promise<Hourly> {
  const arrivals = rate === null ? null : RATES[rate];
  const world = new CostWorld({ arrivals, putsPerHour: BUDGETS[budget], ...options });
  await world.start();
  return await world.hourly(ms);
}

suite("requests of an hour", () => {
  test("idle: none that is paid as a PUT, and the looks at the metadata log", async () => {
    const { puts, gets } = await measured(null, "250 ms", HOUR_MS);
    assert.equal(puts, 0);
    assert.ok(gets <= 360, `${gets} GETs`);
  });

  for (const budget of ["250 ms", "5 s"] as const) {
    test(`1 KiB/s with a PUT each ${budget}`, async () => {
      const { puts, dollarsPerMonth } = await measured("1 KiB/s", budget, HOUR_MS);
      const allowed = ALLOWED[budget]["1 KiB/s"];
      assert.ok(puts <= allowed.puts, `${puts} PUTs`);
      assert.ok(dollarsPerMonth <= allowed.dollars, `$${dollarsPerMonth}`);
    });
  }

  test("1 MiB/s with a PUT each 250 ms, compaction included", async () => {
    const found = await measured("1 MiB/s", "250 ms", HOUR_MS / 4, { scale: 64 });
    const allowed = ALLOWED["250 ms"]["1 MiB/s"];
    assert.ok(found.puts <= allowed.puts, `${found.puts} PUTs`);
    assert.ok(found.dollarsPerMonth <= allowed.dollars, `$${found.dollarsPerMonth}`);
  });

  test("an upload is joined without a request for its index", async () => {
    const world = new CostWorld({
      arrivals: RATES["1 MiB/s"],
      putsPerHour: BUDGETS["250 ms"],
      scale: 64,
    });
    await world.start();
    await world.run(HOUR_MS / 4);
    const rendered = world.metrics.render();
    const value = (series: string) =>
      Number(rendered.split("\n").find((line) => line.startsWith(`${series} `))?.split(" ")[1]);
    const bytes = value("skerry_compaction_read_bytes_total");
    const reads = value(
      'skerry_object_store_requests_total{class="compaction",op="get",outcome="ok"}',
    );
    assert.equal(value('skerry_compaction_runs_total{kind="join",outcome="done"}'), 1);
    const steps = Math.ceil(bytes * 64 / COMPACTION_MEMORY_BYTES);
    assert.equal(reads, steps * COMPACTION_OBJECTS_MIN);
  });

  test("100 MiB/s: a bulk of the WAL is 16 MiB, a block of 256 MiB one PUT and one entry", async () => {
    const options = { ...LARGE_NODE, scale: 64 };
    const { puts } = await measured("100 MiB/s", "250 ms", MINUTE_MS / 2, options);
    // What the WAL, 1,406 uploads in parts of 64 MiB and their entries may cost; compaction comes later.
    assert.ok(puts <= 22_500 + 1_406 * 6 + 1_406, `${puts} PUTs`);
  });
});
