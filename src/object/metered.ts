/**
 * Counts requests (by operation, class and outcome), bytes and latency. Sits directly on an adapter, below
 * retries, so that every request that costs money is seen. Listings and multipart uploads count as
 * many requests as S3 bills for them.
 */
import type { Clock } from "../env/clock.ts";
import type { Metrics } from "../env/metrics.ts";
import { isFault } from "../lib/errors.ts";
import { STORE_DELETE_BATCH_KEYS_MAX, STORE_LIST_PAGE_KEYS } from "../lib/limits.ts";
import { type RequestClass, requestClass } from "./request_class.ts";
import type { ListOptions, ObjectInfo, ObjectStore } from "./object_store.ts";

const REQUESTS = "skerry_object_store_requests_total";
const BYTES = "skerry_object_store_bytes_total";
const SECONDS = "skerry_object_store_request_seconds";

type Op = "put" | "put_parts" | "get" | "head" | "list" | "delete";

/** What is asked, and for what. */
interface Ask {
  readonly op: Op;
  readonly class: RequestClass;
}

function failure(error: unknown): string {
  if (!isFault(error)) return "error";
  return error.isThrottled ? "throttled" : error.code;
}

class Meter {
  readonly #clock: Clock;
  readonly #metrics: Metrics;

  constructor(clock: Clock, metrics: Metrics) {
    this.#clock = clock;
    this.#metrics = metrics;
  }

  nowMs(): number {
    return this.#clock.monotonicMs();
  }

  bytes(ask: Ask, count: number): void {
    this.#metrics.count(BYTES, { ...ask }, count);
  }

  record(ask: Ask, outcome: string, startedMs: number, requests = 1): void {
    this.#metrics.count(REQUESTS, { ...ask, outcome }, requests);
    this.#metrics.observe(SECONDS, (this.nowMs() - startedMs) / 1_000, { ...ask });
  }

  async run<T>(
    ask: Ask,
    work: () => Promise<T>,
    outcomeOf: (value: T) => string,
    requests: () => number = () => 1,
  ): Promise<T> {
    const startedMs = this.nowMs();
    try {
      const value = await work();
      this.record(ask, outcomeOf(value), startedMs, requests());
      return value;
    } catch (error) {
      this.record(ask, failure(error), startedMs, requests());
      throw error;
    }
  }
}

function putParts(
  store: ObjectStore,
  meter: Meter,
  ask: Ask,
  key: string,
  parts: AsyncIterable<Uint8Array>,
): Promise<void> {
  let count = 0;
  async function* counted() {
    for await (const part of parts) {
      count++;
      meter.bytes(ask, part.length);
      yield part;
    }
  }
  // One part is a plain put; more need a request to begin and one to complete.
  const requests = () => count < 2 ? 1 : count + 2;
  return meter.run(ask, () => store.putParts(key, counted()), () => "ok", requests);
}

async function* list(
  store: ObjectStore,
  meter: Meter,
  ask: Ask,
  prefix: string,
  options?: ListOptions,
): AsyncIterable<ObjectInfo> {
  const startedMs = meter.nowMs();
  let keys = 0;
  let outcome = "ok";
  // The caller's time between two keys is not the store's.
  let callerMs = 0;
  let handedMs: number | null = null;
  try {
    for await (const info of store.list(prefix, options)) {
      keys++;
      handedMs = meter.nowMs();
      yield info;
      callerMs += meter.nowMs() - handedMs;
      handedMs = null;
    }
  } catch (error) {
    outcome = failure(error);
    throw error;
  } finally {
    const pages = Math.max(1, Math.ceil(keys / STORE_LIST_PAGE_KEYS));
    if (handedMs !== null) callerMs += meter.nowMs() - handedMs;
    meter.record(ask, outcome, startedMs + callerMs, pages);
  }
}

const found = (value: unknown): string => value === null ? "missing" : "ok";

export interface MeteredOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Of a key; by default what a key alone tells. */
  readonly classOf?: (op: string, key: string) => RequestClass;
}

export function meteredStore(
  store: ObjectStore,
  { clock, metrics, classOf = requestClass("serve") }: MeteredOptions,
): ObjectStore {
  const meter = new Meter(clock, metrics);
  const ask = (op: Op, key: string): Ask => ({ op, class: classOf(op, key) });
  return {
    async put(key, body, options) {
      const put = ask("put", key);
      const answer = await meter.run(
        put,
        () => store.put(key, body, options),
        ({ created }) => created ? "ok" : "exists",
      );
      if (answer.created) meter.bytes(put, body.length);
      return answer;
    },
    putParts: (key, parts) => putParts(store, meter, ask("put_parts", key), key, parts),
    async get(key, options) {
      const get = ask("get", key);
      const got = await meter.run(get, () => store.get(key, options), found);
      if (got !== null) meter.bytes(get, got.bytes.length);
      return got;
    },
    head: (key) => meter.run(ask("head", key), () => store.head(key), found),
    list: (prefix, options) => list(store, meter, ask("list", prefix), prefix, options),
    delete: (keys) =>
      meter.run(
        // The keys of one call are all of one kind.
        ask("delete", keys[0] ?? ""),
        () => store.delete(keys),
        ({ failed }) => failed.length === 0 ? "ok" : "partial",
        () => Math.ceil(keys.length / STORE_DELETE_BATCH_KEYS_MAX),
      ),
    close: () => store.close(),
  };
}
