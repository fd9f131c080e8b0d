/** Runs the suites of the host adapters under Node too, bundled: Node 20 reads no TypeScript. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const SUITES = [
  "tests/contract/listener.test.ts",
  "src/adapters/http_serve.test.ts",
  "src/adapters/http_socket.test.ts",
  "src/adapters/http_record_stream.test.ts",
  "src/adapters/http_stream.test.ts",
  "src/adapters/codecs.test.ts",
  "src/adapters/system_env.test.ts",
  "src/protocol/record_batch.test.ts",
  "src/lib/crc.test.ts",
];

const underBun = process.versions.bun !== undefined;
const hasNode = spawnSync("node", ["--version"]).status === 0;

// Bun's test runner bundles; under Deno the same run would only repeat it.
test("host adapters under Node", { skip: !underBun || !hasNode, timeout: 60_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "skerry-node-"));
  try {
    const bundle = ["build", "--target=node", "--format=esm", `--outdir=${folder}`, ...SUITES];
    const built = spawnSync(process.execPath, bundle, { encoding: "utf8" });
    assert.equal(built.status, 0, built.stderr);
    const files = SUITES.map((suite) => join(folder, suite.replace(/\.ts$/, ".js")));
    const ran = spawnSync("node", ["--test", ...files], { encoding: "utf8", cwd: folder });
    const failures = ran.stdout.split("\n# Subtest: ").filter((part) => /^ *not ok /m.test(part));
    assert.equal(ran.status, 0, failures.join("\n").slice(0, 8_000) + ran.stderr);
    assert.match(ran.stdout, /# pass \d\d/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
