/** The client is small, and stands alone. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { gzipSync } from "node:zlib";

const GZIPPED_BYTES_MAX = 6_144;

test("minified and gzipped the whole client has less than 6 KiB, and it imports nothing", () => {
  const { status, stdout, stderr } = spawnSync(
    "node_modules/.bin/bun",
    ["build", "--minify", "--target=browser", "src/client/mod.ts"],
    { encoding: "utf8" },
  );
  assert.equal(status, 0, stderr);
  assert.match(stdout, /createClient/);
  assert.doesNotMatch(stdout, /\b(import|require)\b\s*[({"']|from\s*"/);
  assert.doesNotMatch(stdout, /\b(Buffer|process|Deno|Bun|console)\b/);
  const { length } = gzipSync(stdout, { level: 9 });
  assert.ok(length < GZIPPED_BYTES_MAX, `${length} bytes`);
});
