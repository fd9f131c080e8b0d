/** Runs the object store contract on memory and on a directory. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDirStore } from "../../src/adapters/dir_store.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { systemTestClock } from "../support/system_test_clock.ts";
import { objectStoreContract } from "./object_store.ts";

objectStoreContract("memory", async () => {
  const store = createMemoryStore(systemTestClock);
  return { store, close: () => store.close() };
});

objectStoreContract("directory", async () => {
  const path = await mkdtemp(join(tmpdir(), "skerry-store-"));
  const store = await openDirStore(path, { clock: systemTestClock });
  return {
    store,
    async close() {
      await store.close();
      await rm(path, { recursive: true });
    },
  };
});
