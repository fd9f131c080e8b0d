import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { HTTP_PERMIT_WAIT_MS } from "../../lib/limits.ts";
import { ProblemError } from "../problem.ts";
import { PollWaits } from "./poll_waits.ts";

const NOBODY_LEAVES = new AbortController().signal;

test("polls look at so many partitions at a time, the others in turn or not at all", async () => {
  const clock = createFakeClock();
  const waits = new PollWaits(testEnv({ clock }), { waiters: 1, looks: 10 });
  const begun: string[] = [];
  const end = new Map<string, () => void>();
  const look = (name: string, partitions: number, signal = NOBODY_LEAVES) =>
    waits.look(partitions, signal, () => {
      begun.push(name);
      return new Promise<void>((resolve) => void end.set(name, resolve));
    });
  const first = look("first", 6);
  const leaver = new AbortController();
  const left = assert.rejects(look("left", 6, leaver.signal), ProblemError);
  // More than there can be is all that there is.
  const wide = look("wide", 500);
  await clock.settle();
  assert.deepEqual(begun, ["first"]);
  leaver.abort();
  await left;
  end.get("first")!();
  await first;
  await clock.settle();
  assert.deepEqual(begun, ["first", "wide"]);
  const late = assert.rejects(look("late", 1), ProblemError);
  await clock.advance(HTTP_PERMIT_WAIT_MS);
  await late;
  end.get("wide")!();
  await wide;
  await waits.look(10, NOBODY_LEAVES, () => Promise.resolve());
  assert.equal(clock.timers, 0);
  waits.close();
});

test("a look that fails gives back what it took", async () => {
  const waits = new PollWaits(testEnv(), { waiters: 1, looks: 1 });
  const failing = () => Promise.reject(new Error("as it were"));
  await assert.rejects(waits.look(1, NOBODY_LEAVES, failing), /as it were/);
  assert.equal(await waits.look(1, NOBODY_LEAVES, () => Promise.resolve(7)), 7);
  waits.close();
});
