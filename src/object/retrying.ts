/**
 * Repeats requests that a second time changes nothing: get, head, list, delete and unconditional
 * put (whose keys are unique or whose bytes are the same). Never a conditional put, whose lost
 * answer only `create.ts` can resolve, and never `putParts`, whose source cannot be read twice.
 */
import type { Clock } from "../env/clock.ts";
import { sleep } from "../env/clock.ts";
import type { Random } from "../env/random.ts";
import { isFault } from "../lib/errors.ts";
import { STORE_ATTEMPTS_MAX } from "../lib/limits.ts";
import { backoffMs } from "./backoff.ts";
import type { DeleteAnswer, ListOptions, ObjectInfo, ObjectStore } from "./object_store.ts";

/** A full or forbidding store will not change its mind within our few attempts; its callers wait longer. */
function isWorthRetrying(error: unknown): boolean {
  return isFault(error, "store-unavailable") && error.retriable;
}

export interface RetryingOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Told of each request that is sent again. */
  readonly onRetry?: (op: string, key: string) => void;
}

/** Goes on after the last key that was delivered; progress resets the count of attempts. */
async function* listAgain(
  store: ObjectStore,
  { clock, random, onRetry }: Required<RetryingOptions>,
  prefix: string,
  options: ListOptions = {},
): AsyncIterable<ObjectInfo> {
  let startAfter = options.startAfter;
  for (let attempt = 1;; attempt++) {
    try {
      for await (
        const info of store.list(prefix, startAfter === undefined ? {} : { startAfter })
      ) {
        startAfter = info.key;
        attempt = 1;
        yield info;
      }
      return;
    } catch (error) {
      if (attempt >= STORE_ATTEMPTS_MAX || !isWorthRetrying(error)) throw error;
      await sleep(clock, backoffMs(attempt, random));
      onRetry("list", prefix);
    }
  }
}

export function retryingStore(
  store: ObjectStore,
  { clock, random, onRetry = () => {} }: RetryingOptions,
): ObjectStore {
  async function repeat<T>(
    op: string,
    key: string,
    work: () => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    for (let attempt = 1;; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (attempt >= STORE_ATTEMPTS_MAX || !isWorthRetrying(error)) throw error;
        await sleep(clock, backoffMs(attempt, random), signal);
        if (signal?.aborted === true) throw error;
        onRetry(op, key);
      }
    }
  }

  /** Only keys without a confirmation are sent again. */
  async function deleteAll(keys: readonly string[]): Promise<DeleteAnswer> {
    const gone: string[] = [];
    let failed = keys;
    for (let attempt = 1; failed.length > 0; attempt++) {
      const answer = await repeat("delete", failed[0]!, () => store.delete(failed));
      gone.push(...answer.gone);
      failed = answer.failed;
      if (failed.length === 0 || attempt >= STORE_ATTEMPTS_MAX) break;
      await sleep(clock, backoffMs(attempt, random));
      onRetry("delete", failed[0]!);
    }
    return { gone, failed };
  }

  return {
    put(key, body, options) {
      if (options?.ifAbsent === true) return store.put(key, body, options);
      return repeat("put", key, () => store.put(key, body, options), options?.signal);
    },
    putParts: (key, parts) => store.putParts(key, parts),
    get: (key, options) => repeat("get", key, () => store.get(key, options), options?.signal),
    head: (key) => repeat("head", key, () => store.head(key)),
    // Without an order there is no place to go on from: the store repeats its pages by itself.
    list: (prefix, options) =>
      options?.anyOrder === true
        ? store.list(prefix, options)
        : listAgain(store, { clock, random, onRetry }, prefix, options),
    delete: deleteAll,
    close: () => store.close(),
  };
}
