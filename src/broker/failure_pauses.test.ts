import assert from "node:assert/strict";
import { test } from "node:test";
import { FaultError } from "../lib/errors.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { FailurePauses } from "./failure_pauses.ts";

/** Lengths of the pauses of ten failures in a row, each at the end of the last one's. */
async function pauses(error: unknown): Promise<number[]> {
  const clock = createFakeClock();
  const failures = new FailurePauses<string, null>(clock);
  const seen: number[] = [];
  for (let i = 0; i < 10; i++) {
    failures.check("k");
    const pauseMs = failures.failed("k", error, null);
    seen.push(pauseMs);
    await clock.advance(pauseMs - 1);
    assert.throws(() => failures.check("k"), (thrown) => thrown === error);
    await clock.advance(1);
  }
  return seen;
}

test("pauses grow to 30 s after damage and to 2 s after what may pass", async () => {
  const growing = [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000];
  assert.deepEqual(await pauses(new FaultError("corrupt", "bad", { retriable: false })), growing);
  assert.deepEqual(await pauses(new Error("a bug")), growing);
  const passing = new FaultError("store-unavailable", "down", { retriable: true });
  assert.deepEqual(await pauses(passing), growing.map((ms) => Math.min(ms, 2000)));
});

test("keys pause apart from each other, and what is forgotten begins anew", () => {
  const failures = new FailurePauses<string, number>(createFakeClock());
  const fault = new FaultError("corrupt", "bad", { retriable: false });
  failures.failed("a", fault, 1);
  failures.failed("b", fault, 2);
  failures.check("c");
  failures.forgetWhere((about) => about === 1);
  failures.check("a");
  assert.throws(() => failures.check("b"), fault);
  failures.forget("b");
  assert.equal(failures.size, 0);
  assert.equal(failures.failed("b", fault, 2), 250);
});
