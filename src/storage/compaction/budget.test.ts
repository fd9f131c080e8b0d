import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { CompactionBudget } from "./budget.ts";

const MIB = 2 ** 20;

/** Milliseconds of virtual time that reading so much takes. */
async function readingMs(
  clock: ReturnType<typeof createFakeClock>,
  budget: CompactionBudget,
  reads: number,
  bytes: number,
): Promise<number> {
  const { signal } = new AbortController();
  const fromMs = clock.monotonicMs();
  let endedMs = 0;
  const done = Promise.all(
    Array.from({ length: reads }, () =>
      budget.read(bytes, signal, async () => {
        endedMs = clock.monotonicMs();
      })),
  );
  for (let i = 0; i < 300; i++) await clock.advance(100);
  await done;
  return endedMs - fromMs;
}

describe("budget that follows the uploads", () => {
  test("without uploads the floor: 64 MiB in a second", async () => {
    const clock = createFakeClock();
    const budget = new CompactionBudget(clock, 64 * MIB, () => ({ bytes: 0, isHurried: false }));
    assert.equal(await readingMs(clock, budget, 11, 64 * MIB), 10_000);
  });

  test("uploads of 100 MiB/s for minutes: more than twice as much may be read", async () => {
    const clock = createFakeClock();
    const load = () => ({ bytes: clock.monotonicMs() / 1_000 * 100 * MIB, isHurried: false });
    const budget = new CompactionBudget(clock, 64 * MIB, load);
    await clock.advance(120_000);
    const ms = await readingMs(clock, budget, 41, 64 * MIB);
    const perSecond = 40 * 64 / (ms / 1_000);
    assert.ok(perSecond > 250 && perSecond <= 400, `${perSecond} MiB/s`);
  });

  test("the rate falls back to the floor when uploads end", async () => {
    const clock = createFakeClock();
    const load = () => ({
      bytes: Math.min(60_000, clock.monotonicMs()) / 1_000 * 100 * MIB,
      isHurried: false,
    });
    const budget = new CompactionBudget(clock, 64 * MIB, load);
    await clock.advance(60_000);
    await readingMs(clock, budget, 1, 1);
    await clock.advance(600_000);
    await readingMs(clock, budget, 1, 1);
    assert.equal(await readingMs(clock, budget, 11, 64 * MIB), 10_000);
  });

  test("while somebody waits for an upload reads pause, and go on as soon as nobody does", async () => {
    const clock = createFakeClock();
    let isHurried = true;
    const budget = new CompactionBudget(clock, 64 * MIB, () => ({ bytes: 0, isHurried }));
    let isRead = false;
    const reading = budget.read(1, new AbortController().signal, async () => {
      isRead = true;
    });
    await clock.advance(300);
    assert.equal(isRead, false);
    isHurried = false;
    await clock.advance(50);
    assert.equal(isRead, true);
    await reading;
  });

  test("a node that is always in a hurry still compacts: a second per read at most", async () => {
    const clock = createFakeClock();
    const budget = new CompactionBudget(clock, 64 * MIB, () => ({ bytes: 0, isHurried: true }));
    assert.equal(await readingMs(clock, budget, 1, 1), 1_000);
  });
});
