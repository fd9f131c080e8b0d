/** The WAL contract over a store that works, and over one where a third of all requests fail or lose their answer. */
import { FaultError } from "../../src/lib/errors.ts";
import { seededRandom } from "../../src/env/random.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { createWalHarness, walContract } from "./wal.ts";
import type { WalTestStore } from "./wal_store.ts";

/** Calm while a test holds puts by hand. */
function flaky(inner: WalTestStore): ObjectStore {
  const random = seededRandom(7);
  async function maybe<T>(work: () => Promise<T>): Promise<T> {
    const luck = inner.hold ? 1 : random.float();
    const fault = new FaultError("store-unavailable", "No answer", { retriable: true });
    if (luck < 0.15) throw fault;
    const answer = await work();
    if (luck < 0.3) throw fault;
    return answer;
  }
  return {
    put: (key, body, options) => maybe(() => inner.put(key, body, options)),
    putParts: (key, parts) => inner.putParts(key, parts),
    get: (key, options) => maybe(() => inner.get(key, options)),
    head: (key) => maybe(() => inner.head(key)),
    list: (prefix, options) => inner.list(prefix, options),
    delete: (keys) => maybe(() => inner.delete(keys)),
    close: () => inner.close(),
  };
}

walContract("memory", () => createWalHarness());
walContract("flaky", () => createWalHarness(flaky));
