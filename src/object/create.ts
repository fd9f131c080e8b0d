/**
 * Create-if-absent with a definite answer. A put that got no answer may have happened or may still
 * happen, so the identical bytes are put again until the store says "created" or "exists"; an
 * existing object with exactly our bytes is our own earlier attempt. Nothing else decides: a read
 * that finds nothing proves nothing, because the lost put may land after it.
 */
import type { Clock } from "../env/clock.ts";
import { sleep } from "../env/clock.ts";
import type { Logger } from "../env/logger.ts";
import type { Random } from "../env/random.ts";
import { equalBytes } from "../lib/bytes.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { backoffMs } from "./backoff.ts";
import type { ObjectStore } from "./object_store.ts";

export interface CreateOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly signal?: AbortSignal;
  /** How long to try, from now; null or absent: until there is an answer. */
  readonly deadlineMs?: number | null;
  /** Told of each attempt that will be repeated. */
  readonly onRetry?: (error: unknown) => void;
}

interface Evidence {
  /** Monotonic time at which the attempt with the definite answer started. */
  readonly startedMs: number;
  /** The store's clock in that answer. */
  readonly storeNowMs: number;
}

export type CreateOutcome =
  /** The object holds our bytes, by this attempt or an earlier one. */
  | ({ readonly created: true } & Evidence)
  /** The name is taken by other bytes. */
  | ({ readonly created: false; readonly found: Uint8Array } & Evidence);

/**
 * Two writers must never create the same key with the same bytes: put an incarnation into the body.
 * Throws FaultError: `timeout` past the deadline, `aborted` by the signal (the put may still happen
 * after both), and any fault that is not retriable. Settles only when the store is done with `body`.
 */
export async function createExactly(
  store: ObjectStore,
  key: string,
  body: Uint8Array,
  options: CreateOptions,
): Promise<CreateOutcome> {
  const { clock, random, signal, deadlineMs = null } = options;
  const stop = new AbortController();
  const onAbort = () => stop.abort();
  signal?.addEventListener("abort", onAbort, { once: true });
  if (signal?.aborted === true) stop.abort();
  const cancel = deadlineMs === null ? null : clock.after(deadlineMs, onAbort);
  let last: unknown = null;
  try {
    for (let attempt = 1; !stop.signal.aborted; attempt++) {
      try {
        const outcome = await attemptCreate(store, key, body, clock, stop.signal);
        if (outcome !== null) return outcome;
        last = new Error("it existed, but was gone when read");
      } catch (error) {
        if (stop.signal.aborted) break;
        if (!isFault(error) || !error.retriable) throw error;
        last = error;
      }
      logRetry(options.log, key, attempt, last);
      options.onRetry?.(last);
      await sleep(clock, backoffMs(attempt, random), stop.signal);
    }
    throw gaveUp(key, signal?.aborted === true ? "aborted" : "timeout", last);
  } finally {
    cancel?.();
    signal?.removeEventListener("abort", onAbort);
  }
}

async function attemptCreate(
  store: ObjectStore,
  key: string,
  body: Uint8Array,
  clock: Clock,
  signal: AbortSignal,
): Promise<CreateOutcome | null> {
  const startedMs = clock.monotonicMs();
  const { created, storeNowMs } = await store.put(key, body, { ifAbsent: true, signal });
  if (created) return { created, startedMs, storeNowMs };
  const found = await store.get(key, { signal });
  if (found === null) return null;
  if (equalBytes(found.bytes, body)) return { created: true, startedMs, storeNowMs };
  return { created: false, found: found.bytes, startedMs, storeNowMs };
}

function gaveUp(key: string, code: "aborted" | "timeout", last: unknown): FaultError {
  const why = last === null ? "no answer" : messageOf(last);
  return new FaultError(code, `Cannot create ${key}: ${code}; last: ${why}`, {
    retriable: true,
    cause: last,
  });
}

/** Attempts 1, 2, 4, 8, ...: an outage of a minute must not fill the log. */
function logRetry(log: Logger, key: string, attempt: number, error: unknown): void {
  if ((attempt & (attempt - 1)) !== 0) return;
  log.log("warn", "store-create-retry", { key, attempt, error: messageOf(error) });
}
