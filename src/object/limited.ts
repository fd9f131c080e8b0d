/**
 * At most so many requests at once. Reads and writes have permits of their own, so that a burst of
 * cold reads cannot hold up the WAL; multipart uploads too, because their parts may come from reads.
 */
import { Semaphore } from "../lib/semaphore.ts";
import type { ListOptions, ObjectInfo, ObjectStore } from "./object_store.ts";

export interface StoreConcurrency {
  /** Gets, heads and listings at once. */
  readonly readsMax: number;
  /** Puts and deletes at once. */
  readonly writesMax: number;
  /** Multipart uploads at once. */
  readonly uploadsMax: number;
}

export function limitedStore(store: ObjectStore, limits: StoreConcurrency): ObjectStore {
  const reads = new Semaphore(limits.readsMax);
  const writes = new Semaphore(limits.writesMax);
  const uploads = new Semaphore(limits.uploadsMax);

  async function permitted<T>(
    permits: Semaphore,
    work: () => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    await permits.acquire(1, signal);
    try {
      return await work();
    } finally {
      permits.release();
    }
  }

  /** A permit is held only while the store looks for the next key, not while the caller works on it. */
  async function* list(prefix: string, options?: ListOptions): AsyncIterable<ObjectInfo> {
    const keys = store.list(prefix, options)[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await permitted(reads, () => keys.next());
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      await keys.return?.();
    }
  }

  return {
    put: (key, body, options) =>
      permitted(writes, () => store.put(key, body, options), options?.signal),
    putParts: (key, parts) => permitted(uploads, () => store.putParts(key, parts)),
    get: (key, options) => permitted(reads, () => store.get(key, options), options?.signal),
    head: (key) => permitted(reads, () => store.head(key)),
    list,
    delete: (keys) => permitted(writes, () => store.delete(keys)),
    close: () => store.close(),
  };
}
