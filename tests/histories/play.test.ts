/** Five seconds of it, from a process of its own; `npm run histories` plays longer ones. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tempDir } from "../support/broker_process.ts";
import { play } from "./play.ts";

test("what clients were told under kill -9 is true", async () => {
  const dir = tempDir();
  try {
    const { violations, counts } = await play({
      seconds: 5,
      seed: 1,
      store: "dir",
      cache: dir.path,
      out: dir.path,
    });
    assert.deepEqual(violations, []);
    assert.ok((counts.get("kills") ?? 0) > 0);
    assert.ok((counts.get("records in the end, committed") ?? 0) > 0);
  } finally {
    dir.remove();
  }
});
