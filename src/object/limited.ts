/**
 * At most so many requests at once. Reads and writes have permits of their own, so that a burst of
 * cold reads cannot hold up the WAL; multipart uploads too, because their parts may come from reads. So have
 * reads of the logs: whether a slot holds our own bytes, and where the metadata ends, must not wait for data.
 */
import { Semaphore } from "../lib/semaphore.ts";
import { isLogKey } from "./object_key.ts";
import type { ListOptions, ObjectInfo, ObjectStore } from "./object_store.ts";

export interface StoreConcurrency {
  /** Gets, heads and listings of data at once. */
  readonly readsMax: number;
  /** The same of metadata and of WAL slots. */
  readonly logReadsMax: number;
  /** Puts and deletes at once. */
  readonly writesMax: number;
  /** Multipart uploads at once. */
  readonly uploadsMax: number;
}

/** May be shared by several views of one store. */
export interface StorePermits {
  readonly reads: Semaphore;
  readonly logReads: Semaphore;
  readonly writes: Semaphore;
  readonly uploads: Semaphore;
}

export function storePermits(
  { readsMax, logReadsMax, writesMax, uploadsMax }: StoreConcurrency,
): StorePermits {
  return {
    reads: new Semaphore(readsMax),
    logReads: new Semaphore(logReadsMax),
    writes: new Semaphore(writesMax),
    uploads: new Semaphore(uploadsMax),
  };
}

export function limitedStore(
  store: ObjectStore,
  { reads, logReads, writes, uploads }: StorePermits,
): ObjectStore {
  const readsOf = (key: string): Semaphore => isLogKey(key) ? logReads : reads;

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
        const next = await permitted(readsOf(prefix), () => keys.next());
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
    get: (key, options) => permitted(readsOf(key), () => store.get(key, options), options?.signal),
    head: (key) => permitted(readsOf(key), () => store.head(key)),
    list,
    delete: (keys) => permitted(writes, () => store.delete(keys)),
    close: () => store.close(),
  };
}
