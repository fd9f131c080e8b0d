import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import {
  STORE_WRITES_MAX,
  UPLOAD_PACED_MS_MIN,
  UPLOAD_SPREAD_MS_MAX,
  UPLOADS_IN_FLIGHT_MAX,
  WAL_BULKS_IN_FLIGHT_MAX,
} from "../../lib/limits.ts";
import { UploadPace } from "./upload_pace.ts";

/** Lets the bytes through, and answers when each of them went. */
async function times(pace: UploadPace, bytes: readonly number[], act?: () => void) {
  const clock = clocks.get(pace)!;
  const went: number[] = [];
  const waits = bytes.map((count) => pace.wait(count).then(() => went.push(clock.monotonicMs())));
  await clock.advance(1);
  act?.();
  await clock.advance(100_000);
  await Promise.all(waits);
  return went;
}

const clocks = new Map<UploadPace, ReturnType<typeof createFakeClock>>();

function newPace(bytesPerSecond: number | null = null): UploadPace {
  const clock = createFakeClock();
  const pace = new UploadPace(clock, bytesPerSecond);
  clocks.set(pace, clock);
  return pace;
}

describe("pace of uploads", () => {
  test("a block is written twice as fast as it was filled", async () => {
    const pace = newPace();
    pace.add(10_000, 5_000);
    assert.deepEqual(await times(pace, [4_000, 4_000, 2_000]), [0, 1_000, 2_000]);
  });

  test("a block that was filled at once is written at once; one filled slowly takes seconds, not minutes", async () => {
    const burst = newPace();
    burst.add(10_000, UPLOAD_PACED_MS_MIN);
    assert.deepEqual(await times(burst, [5_000, 5_000]), [0, 0]);
    const slow = newPace();
    slow.add(10_000, 600_000);
    assert.deepEqual(await times(slow, [5_000, 5_000]), [0, UPLOAD_SPREAD_MS_MAX / 4]);
  });

  test("the fastest block sets the rate until all are uploaded", async () => {
    const pace = newPace();
    pace.add(10_000, 1_000);
    pace.add(10_000, 10_000);
    assert.deepEqual(await times(pace, [20_000, 20_000]), [0, 1_000]);
    pace.reset();
    pace.add(10_000, 10_000);
    const [first, second] = await times(pace, [20_000, 20_000]);
    assert.equal(second! - first!, 10_000);
  });

  test("a configured rate replaces it", async () => {
    const pace = newPace(1_000);
    pace.add(10_000, 0);
    assert.deepEqual(await times(pace, [500, 500, 500]), [0, 500, 1_000]);
  });

  test("in a hurry nobody waits, those that wait already included; then it is as before", async () => {
    const pace = newPace(1_000);
    pace.add(10_000, 0);
    assert.deepEqual(await times(pace, [5_000, 5_000, 5_000], () => pace.hurry()), [0, 1, 1]);
    pace.reset();
    pace.add(10_000, 0);
    const [first, second] = await times(pace, [5_000, 5_000]);
    assert.equal(second! - first!, 5_000);
  });

  test("uploads leave the WAL its writes: its window and a hedge of each fit beside them", () => {
    assert.ok(UPLOADS_IN_FLIGHT_MAX + 2 * WAL_BULKS_IN_FLIGHT_MAX < STORE_WRITES_MAX);
  });
});
