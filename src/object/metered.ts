/**
 * Counts requests (by operation and outcome), bytes and latency. Sits directly on an adapter, below
 * retries, so that every request that costs money is seen. Listings and multipart uploads count as
 * many requests as S3 bills for them.
 */
import type { Clock } from "../env/clock.ts";
import type { Metrics } from "../env/metrics.ts";
import { isFault } from "../lib/errors.ts";
import { STORE_DELETE_BATCH_KEYS_MAX, STORE_LIST_PAGE_KEYS } from "../lib/limits.ts";
import type { ListOptions, ObjectInfo, ObjectStore } from "./object_store.ts";

const REQUESTS = "skerry_object_store_requests_total";
const BYTES = "skerry_object_store_bytes_total";
const SECONDS = "skerry_object_store_request_seconds";

type Op = "put" | "put_parts" | "get" | "head" | "list" | "delete";

function failure(error: unknown): string {
  return isFault(error) ? error.code : "error";
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

  bytes(op: Op, count: number): void {
    this.#metrics.count(BYTES, { op }, count);
  }

  record(op: Op, outcome: string, startedMs: number, requests = 1): void {
    this.#metrics.count(REQUESTS, { op, outcome }, requests);
    this.#metrics.observe(SECONDS, (this.nowMs() - startedMs) / 1_000, { op });
  }

  async run<T>(
    op: Op,
    work: () => Promise<T>,
    outcomeOf: (value: T) => string,
    requests: () => number = () => 1,
  ): Promise<T> {
    const startedMs = this.nowMs();
    try {
      const value = await work();
      this.record(op, outcomeOf(value), startedMs, requests());
      return value;
    } catch (error) {
      this.record(op, failure(error), startedMs, requests());
      throw error;
    }
  }
}

function putParts(
  store: ObjectStore,
  meter: Meter,
  key: string,
  parts: AsyncIterable<Uint8Array>,
): Promise<void> {
  let count = 0;
  async function* counted() {
    for await (const part of parts) {
      count++;
      meter.bytes("put_parts", part.length);
      yield part;
    }
  }
  // One part is a plain put; more need a request to begin and one to complete.
  const requests = () => count < 2 ? 1 : count + 2;
  return meter.run("put_parts", () => store.putParts(key, counted()), () => "ok", requests);
}

async function* list(
  store: ObjectStore,
  meter: Meter,
  prefix: string,
  options?: ListOptions,
): AsyncIterable<ObjectInfo> {
  const startedMs = meter.nowMs();
  let keys = 0;
  let outcome = "ok";
  try {
    for await (const info of store.list(prefix, options)) {
      keys++;
      yield info;
    }
  } catch (error) {
    outcome = failure(error);
    throw error;
  } finally {
    const pages = Math.max(1, Math.ceil(keys / STORE_LIST_PAGE_KEYS));
    meter.record("list", outcome, startedMs, pages);
  }
}

const found = (value: unknown): string => value === null ? "missing" : "ok";

export function meteredStore(
  store: ObjectStore,
  { clock, metrics }: { readonly clock: Clock; readonly metrics: Metrics },
): ObjectStore {
  const meter = new Meter(clock, metrics);
  return {
    async put(key, body, options) {
      const answer = await meter.run(
        "put",
        () => store.put(key, body, options),
        ({ created }) => created ? "ok" : "exists",
      );
      if (answer.created) meter.bytes("put", body.length);
      return answer;
    },
    putParts: (key, parts) => putParts(store, meter, key, parts),
    async get(key, options) {
      const got = await meter.run("get", () => store.get(key, options), found);
      if (got !== null) meter.bytes("get", got.bytes.length);
      return got;
    },
    head: (key) => meter.run("head", () => store.head(key), found),
    list: (prefix, options) => list(store, meter, prefix, options),
    delete: (keys) =>
      meter.run(
        "delete",
        () => store.delete(keys),
        ({ failed }) => failed.length === 0 ? "ok" : "partial",
        () => Math.ceil(keys.length / STORE_DELETE_BATCH_KEYS_MAX),
      ),
    close: () => store.close(),
  };
}
