/**
 * Waits for a store that cannot be used at the moment: one 503 or a network that comes up late is no reason
 * to end a start. What no waiting mends (credentials, a missing bucket, an unsuitable store) ends it at once.
 */
import { settlesWithin, sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { backoffMs } from "../object/backoff.ts";

/** Silence after which the log says what is waited for. */
const SILENT_MS = 2_000;

export interface StoreWaitOptions {
  readonly env: Pick<Env, "clock" | "random" | "log">;
  /** How people call the store. */
  readonly storeName: string;
  /** Null: for ever. */
  readonly limitMs: number | null;
  readonly signal?: AbortSignal;
}

function mayPass(error: unknown): error is FaultError {
  return isFault(error, "store-unavailable") || isFault(error, "timeout");
}

/** One wait: it says so once, and knows since when there is trouble. */
class StoreWait {
  readonly #options: StoreWaitOptions;
  #since: number | null = null;
  #last: unknown = null;

  constructor(options: StoreWaitOptions) {
    this.#options = options;
  }

  note(error: unknown): void {
    const { env, storeName, limitMs } = this.#options;
    this.#last = error ?? this.#last;
    if (this.#since !== null) return;
    this.#since = env.clock.monotonicMs();
    const fields = { store: storeName, error: error === null ? "no answer yet" : messageOf(error) };
    env.log.log("warn", "store-waited-for", limitMs === null ? fields : { ...fields, limitMs });
  }

  get isOver(): boolean {
    const { env, limitMs } = this.#options;
    return limitMs !== null && this.#since !== null &&
      env.clock.monotonicMs() - this.#since >= limitMs;
  }

  fault(): FaultError {
    const { storeName, limitMs } = this.#options;
    const why = this.#last === null ? "no answer" : messageOf(this.#last);
    const waited = `waited ${Math.round((limitMs ?? 0) / 1_000)} s for ${storeName}`;
    return new FaultError("config", `The object store cannot be used: ${waited}: ${why}`, {
      retriable: false,
      cause: this.#last,
    });
  }
}

async function repeat<T>(
  work: () => Promise<T>,
  wait: StoreWait,
  { env, signal }: StoreWaitOptions,
): Promise<T> {
  for (let attempt = 1;; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!mayPass(error)) throw error;
      wait.note(error);
    }
    await sleep(env.clock, backoffMs(attempt, env.random), signal);
    if (signal?.aborted === true) {
      throw new FaultError("closed", "Closed while waiting for the store", { retriable: false });
    }
    if (wait.isOver) throw wait.fault();
  }
}

/**
 * Repeats work that may be long while it fails for the store's sake; the limit counts from the first failure.
 * Throws FaultError `config` past it.
 */
export function whileStoreFails<T>(
  options: StoreWaitOptions,
  work: () => Promise<T>,
): Promise<T> {
  return repeat(work, new StoreWait(options), options);
}

/** The same for work of a few small requests: the limit holds for all of it, whether the store fails or is silent. */
export async function untilStoreAnswers<T>(
  options: StoreWaitOptions & { readonly limitMs: number },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { clock } = options.env;
  const wait = new StoreWait(options);
  const stop = new AbortController();
  const trying = repeat(() => work(stop.signal), wait, { ...options, signal: stop.signal });
  const cancel = clock.after(SILENT_MS, () => wait.note(null));
  const isAnswered = await settlesWithin(clock, trying, options.limitMs);
  cancel();
  if (isAnswered) return await trying;
  stop.abort();
  trying.catch(() => {});
  throw wait.fault();
}
