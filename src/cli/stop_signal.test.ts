import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { STOP_MS_MAX, stopSignal } from "./stop_signal.ts";

function host() {
  const clock = createFakeClock();
  let send: (name: string) => void = () => {};
  let exits = 0;
  const stopped = stopSignal(testEnv({ clock }), {
    onSignal: (listener) => void (send = listener),
    exit: () => void exits++,
  });
  return { clock, stopped, send: (name: string) => send(name), exits: () => exits };
}

test("the first signal asks, the second one ends at once", async () => {
  const { stopped, send, exits } = host();
  send("SIGTERM");
  assert.equal(await stopped, "SIGTERM");
  assert.equal(exits(), 0);
  send("SIGINT");
  assert.equal(exits(), 1);
});

test("thirty seconds after the first signal the end comes by itself", async () => {
  const { clock, send, exits } = host();
  await clock.advance(STOP_MS_MAX);
  assert.equal(exits(), 0);
  send("SIGTERM");
  await clock.advance(STOP_MS_MAX - 1);
  assert.equal(exits(), 0);
  await clock.advance(1);
  assert.equal(exits(), 1);
});
