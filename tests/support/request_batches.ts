/** Batches of requests with an Idempotency-Key, and how a client that retries sends them to a log. */
import type { Env } from "../../src/env/env.ts";
import { toUtf8 } from "../../src/lib/bytes.ts";
import type { Appended, AppendRefused, PartitionLog } from "../../src/log/partition_log.ts";
import { REQUEST_SEQUENCE, type RequestPart, withPart } from "../../src/log/request_part.ts";
import { buildBatch } from "../../src/protocol/record_batch.ts";

/** 32 digits out of a small number. */
export function idOf(n: number): string {
  return n.toString(16).padStart(32, "0");
}

export function partOf(n: number, over: Partial<RequestPart> = {}): RequestPart {
  return {
    id: idOf(n),
    fingerprint: idOf(n + 1_000),
    partitions: 1,
    first: 0,
    givenMs: 5,
    ...over,
  };
}

export function requestBatch(
  env: Env,
  timestampMs: number,
  part: RequestPart,
  values: readonly string[],
): Uint8Array {
  const [first, ...rest] = values.map((value) => ({
    key: toUtf8(value),
    value: toUtf8(value),
    headers: [],
    timestampMs,
  }));
  return buildBatch({
    records: [withPart(first!, part), ...rest],
    codec: null,
    codecs: env.codecs,
    baseSequence: REQUEST_SEQUENCE,
  });
}

export function storedOf(log: PartitionLog, id: string): number {
  const known = log.rememberedRequest(id);
  known?.durable.catch(() => {});
  return known?.runs.reduce((sum, { count }) => sum + count, 0) ?? 0;
}

/** Values that are in already are not sent again; null when all are. */
export function sendRest(
  log: PartitionLog,
  send: (first: number, values: readonly string[]) => Appended | AppendRefused,
  id: string,
  values: readonly string[],
): Appended | AppendRefused | null {
  const first = storedOf(log, id);
  return first >= values.length ? null : send(first, values.slice(first));
}
