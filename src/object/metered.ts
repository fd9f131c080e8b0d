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

export function meteredStore(
  store: ObjectStore,
  { clock, metrics }: { readonly clock: Clock; readonly metrics: Metrics },
): ObjectStore {
  function record(op: Op, outcome: string, startedMs: number, requests = 1): void {
    metrics.count(REQUESTS, { op, outcome }, requests);
    metrics.observe(SECONDS, (clock.monotonicMs() - startedMs) / 1_000, { op });
  }

  async function measured<T>(
    op: Op,
    work: () => Promise<T>,
    outcomeOf: (value: T) => string,
    requests: () => number = () => 1,
  ): Promise<T> {
    const startedMs = clock.monotonicMs();
    try {
      const value = await work();
      record(op, outcomeOf(value), startedMs, requests());
      return value;
    } catch (error) {
      record(op, failure(error), startedMs, requests());
      throw error;
    }
  }

  function putParts(key: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
    let count = 0;
    async function* counted() {
      for await (const part of parts) {
        count++;
        metrics.count(BYTES, { op: "put_parts" }, part.length);
        yield part;
      }
    }
    // One part is a plain put; more need a request to begin and one to complete.
    const requests = () => count < 2 ? 1 : count + 2;
    return measured("put_parts", () => store.putParts(key, counted()), () => "ok", requests);
  }

  async function* list(prefix: string, options?: ListOptions): AsyncIterable<ObjectInfo> {
    const startedMs = clock.monotonicMs();
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
      record("list", outcome, startedMs, Math.max(1, Math.ceil(keys / STORE_LIST_PAGE_KEYS)));
    }
  }

  return {
    async put(key, body, options) {
      const answer = await measured(
        "put",
        () => store.put(key, body, options),
        ({ created }) => created ? "ok" : "exists",
      );
      if (answer.created) metrics.count(BYTES, { op: "put" }, body.length);
      return answer;
    },
    putParts,
    async get(key, options) {
      const got = await measured(
        "get",
        () => store.get(key, options),
        (value) => value === null ? "missing" : "ok",
      );
      if (got !== null) metrics.count(BYTES, { op: "get" }, got.bytes.length);
      return got;
    },
    head: (key) =>
      measured("head", () => store.head(key), (value) => value === null ? "missing" : "ok"),
    list,
    delete: (keys) =>
      measured(
        "delete",
        () => store.delete(keys),
        ({ failed }) => failed.length === 0 ? "ok" : "partial",
        () => Math.ceil(keys.length / STORE_DELETE_BATCH_KEYS_MAX),
      ),
    close: () => store.close(),
  };
}
