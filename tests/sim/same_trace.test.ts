/** A seed has one trace: run twice it is the same, and on Bun it is the same as on Deno. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { digest } from "./digest.ts";

const OTHER = "Bun" in globalThis
  ? ["node_modules/.bin/deno", "run", "-A", "--no-check", "tests/sim/digest.ts"]
  : ["node_modules/.bin/bun", "tests/sim/digest.ts"];

/** What the other runtime says; null where it cannot be started. */
function otherDigest(): Promise<string | null> {
  const [command, ...args] = OTHER;
  const child = spawn(command!, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: unknown) => void (text += String(chunk)));
  return new Promise((resolve, reject) => {
    child.on("error", () => resolve(null));
    child.on("close", (code) => {
      if (code === 0) resolve(text.trim());
      else reject(new Error(`${command} ends with ${code}`));
    });
  });
}

test(
  "the same seeds give the same traces on the other runtime",
  { timeout: 120_000 },
  async (t) => {
    const [mine, theirs] = await Promise.all([digest(), otherDigest()]);
    if (theirs === null) return t.skip("the other runtime is not there");
    assert.equal(theirs, mine);
  },
);

test("the same seeds give the same traces again", { timeout: 120_000 }, async () => {
  assert.equal(await digest(1), await digest(1));
});
