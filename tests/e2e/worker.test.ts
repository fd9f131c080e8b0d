/** A stock Kafka client inside a Worker: workerd, which is what Cloudflare runs. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { createBroker } from "../../mod.ts";

/** The few members that are used here. */
interface Miniflare {
  dispatchFetch(url: string, init: RequestInit): Promise<Response>;
  dispose(): Promise<void>;
}
interface Workers {
  readonly Miniflare: new (options: Readonly<Record<string, unknown>>) => Miniflare;
}

// Bun bundles the Worker; under Deno the same run would only repeat it.
const underBun = process.versions["bun"] !== undefined;
/** By a name that the compiler does not follow: its types want those of Workers. */
const workers = underBun ? await import(String("miniflare")) as Workers : null;

/** One module, as the tools of Workers bundle it: node's own modules stay imports. */
function workerScript(): string {
  const folder = mkdtempSync(join(tmpdir(), "skerry-worker-"));
  try {
    const file = join(folder, "worker.mjs");
    const built = spawnSync(process.execPath, [
      "build",
      "examples/kafka_in_worker.ts",
      "--target=node",
      "--format=esm",
      `--outfile=${file}`,
    ], { encoding: "utf8" });
    assert.equal(built.status, 0, built.stderr);
    // There are no files, and so no address of this one.
    return readFileSync(file, "utf8").replaceAll("import.meta.url", '"file:///worker.mjs"');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("kafkajs over a WebSocket in a Worker", { skip: !underBun, timeout: 60_000 }, async () => {
  const broker = await createBroker({
    store: "memory:",
    kafka: { "group.initial.rebalance.delay.ms": "0" },
  });
  const worker = new workers!.Miniflare({
    modules: true,
    script: workerScript(),
    compatibilityDate: "2026-04-01",
    compatibilityFlags: ["nodejs_compat"],
    bindings: { BROKER: `${broker.http.url.replace("http", "ws")}/v1/kafka` },
  });
  try {
    const url = "http://worker/from-a-worker";
    const answer = await worker.dispatchFetch(url, { method: "POST", body: "hello" });
    assert.deepEqual(await answer.json(), ["worker=hello"]);
    const page = await fetch(`${broker.http.url}/v1/topics/from-a-worker/records`);
    const { records } = await page.json() as { records: { value: string }[] };
    assert.equal(records[0]!.value, "hello");
  } finally {
    await worker.dispose();
    await broker.close();
  }
});
