import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../tests/support/test_env.ts";
import { COMPACTION_READS_MAX, STORE_READS_MAX } from "../lib/limits.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { nodeStores } from "./node_store.ts";

test("cold reads that hang keep compaction from nothing: it has reads of its own", async () => {
  const env = testEnv();
  const memory = createMemoryStore(env.clock);
  await memory.put("data", new Uint8Array([1]));
  const stores = nodeStores({
    ...memory,
    get: (key, options) => key === "stuck" ? new Promise(() => {}) : memory.get(key, options),
  }, env);
  for (let i = 0; i <= STORE_READS_MAX; i++) void stores.serve.get("stuck");
  let served = false;
  void stores.serve.get("data").then(() => void (served = true));
  assert.deepEqual((await stores.compaction.get("data"))?.bytes, new Uint8Array([1]));
  assert.equal(served, false, "behind those that hang");
});

test("what opens has reads of its own: neither cold reads nor compaction hold it up", async () => {
  const env = testEnv();
  const memory = createMemoryStore(env.clock);
  await memory.put("data", new Uint8Array([1]));
  const stores = nodeStores({
    ...memory,
    get: (key, options) => key === "stuck" ? new Promise(() => {}) : memory.get(key, options),
  }, env);
  for (let i = 0; i <= STORE_READS_MAX; i++) void stores.serve.get("stuck");
  for (let i = 0; i <= COMPACTION_READS_MAX; i++) void stores.compaction.get("stuck");
  assert.deepEqual((await stores.open.get("data"))?.bytes, new Uint8Array([1]));
  assert.match(env.metrics.render(), /class="open",op="get",outcome="ok"\} 1/);
});
