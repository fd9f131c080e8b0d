import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { Progress } from "./progress.ts";

test("a line now and then, taken away at the end; none where nobody watches", async () => {
  const clock = createFakeClock();
  const shown: string[] = [];
  const io = { env: testEnv({ clock }), progress: (text: string) => void shown.push(text) };
  const progress = new Progress(io);
  progress.update(1, 10);
  assert.deepEqual(shown, []);
  await clock.advance(1_000);
  progress.update(2_000, 4e6);
  progress.update(2_001, 4e6);
  progress.end();
  progress.end();
  assert.deepEqual(shown, ["2000 records, 4.0 MB, 2000 records/s, 4.0 MB/s", ""]);
  shown.length = 0;
  const unwanted = new Progress(io, false);
  await clock.advance(1_000);
  unwanted.update(1, 1);
  unwanted.end();
  assert.deepEqual(shown, []);
});
