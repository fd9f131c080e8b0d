import assert from "node:assert/strict";
import { test } from "node:test";
import { EXIT } from "./exit.ts";
import { PipeClosed, printer } from "./printer.ts";
import { runTool } from "./tool_store.ts";

test("a reader that went away ends a tool without a word, by the exit code of SIGPIPE", async () => {
  const words: unknown[] = [];
  const real = process.stderr.write.bind(process.stderr);
  process.stderr.write = (word: string | Uint8Array) => words.push(word) > 0;
  try {
    const code = await runTool(async () => {
      const print = printer(() => Promise.reject(new PipeClosed("standard output")));
      await print.line("x".repeat(100_000));
      return EXIT.ok;
    });
    assert.equal(code, 141);
    assert.deepEqual(words, []);
  } finally {
    process.stderr.write = real;
  }
});
