/** Names that a node does not know: when it reads the metadata log for them, and when it does not any more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { FaultError } from "../lib/errors.ts";
import {
  LOOK_PAUSE_CAP_MS,
  LOOK_PAUSE_FIRST_MS,
  LOOK_REFILL_MS,
  LOOK_WAIT_MS,
  LOOKS_AT_ONCE_MAX,
} from "../lib/limits.ts";
import { SecondLook } from "./second_look.ts";

function world() {
  const clock = createFakeClock();
  const known = new Set<string>();
  const state = { reads: 0, answer: () => Promise.resolve() };
  const look = new SecondLook({
    env: testEnv({ clock }),
    metadata: {
      async fresh() {
        state.reads += 1;
        await state.answer();
        // Nobody looks at it.
        return undefined as never;
      },
    },
  });
  const ask = async (...keys: readonly string[]): Promise<boolean> => {
    const looking = look.look(keys, (key) => known.has(key));
    await looking;
    return looking !== null;
  };
  return { clock, known, state, ask };
}

test("what is known costs nothing, what is not is looked for, together with others", async () => {
  const { known, state, ask } = world();
  known.add("a");
  assert.equal(await ask("a"), false);
  assert.deepEqual(await Promise.all([ask("a", "b"), ask("c"), ask("b")]), [true, true, true]);
  assert.equal(state.reads, 1);
});

test("a name that nobody has made is looked for less and less, until somebody makes it", async () => {
  const { clock, known, state, ask } = world();
  let pauseMs = LOOK_PAUSE_FIRST_MS;
  for (let looks = 1; pauseMs < LOOK_PAUSE_CAP_MS; looks++) {
    assert.ok(await ask("a"));
    await clock.advance(pauseMs - 1);
    assert.equal(await ask("a"), false);
    assert.equal(state.reads, looks);
    await clock.advance(1);
    pauseMs *= 2;
  }
  assert.ok(await ask("a"));
  await clock.advance(LOOK_PAUSE_CAP_MS);
  const made = ask("a");
  known.add("a");
  await made;
  known.delete("a");
  await ask("a");
  const { reads } = state;
  await clock.advance(LOOK_PAUSE_FIRST_MS);
  await ask("a");
  assert.equal(state.reads, reads + 1, "its pause began anew");
});

test("names without end cost a read now and then", async () => {
  const { clock, state, ask } = world();
  for (let n = 0; n < 1000; n++) await ask(`made-up-${n}`);
  assert.equal(state.reads, LOOKS_AT_ONCE_MAX);
  await clock.advance(3 * LOOK_REFILL_MS);
  for (let n = 1000; n < 2000; n++) await ask(`made-up-${n}`);
  assert.equal(state.reads, LOOKS_AT_ONCE_MAX + 3);
});

test("a store that fails or does not answer holds nobody up for long", async () => {
  const { clock, state, ask } = world();
  state.answer = () =>
    Promise.reject(new FaultError("store-unavailable", "gone", { retriable: true }));
  assert.ok(await ask("a"));
  state.answer = () => new Promise(() => {});
  let answered = false;
  const waiting = ask("b").then(() => void (answered = true));
  await clock.advance(LOOK_WAIT_MS - 1);
  assert.equal(answered, false);
  await clock.advance(1);
  await waiting;
});
