/** How a shard's records get into its log, plain or as part of a producer's transaction, and back out of it. */
import type { Env } from "../../env/env.ts";
import { FaultError } from "../../lib/errors.ts";
import { GROUP_LOAD_BYTES } from "../../lib/limits.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import {
  type BatchInput,
  buildBatch,
  lastOffset,
  readBatchHeader,
} from "../../protocol/record_batch.ts";
import { batchesOf, type KeyValue } from "./records.ts";

export interface RecordsAppended {
  /** Offset of the first record; the others follow side by side. */
  readonly first: number;
  readonly durable: Promise<unknown>;
}

export function shardBatch(
  env: Env,
  records: readonly KeyValue[],
  producer: Partial<BatchInput> = {},
): Uint8Array {
  const timestampMs = env.clock.nowMs();
  return buildBatch({
    records: records.map(({ key, value }) => ({ key, value, headers: [], timestampMs })),
    codec: null,
    codecs: env.codecs,
    ...producer,
  });
}

/** In one synchronous stretch. Throws FaultError. */
export function appendRecords(
  env: Env,
  log: PartitionLog,
  records: readonly KeyValue[],
): RecordsAppended {
  const waits: Promise<void>[] = [];
  let first = -1;
  for (const part of batchesOf(records)) {
    const appended = log.append(shardBatch(env, part));
    if (!appended.ok) {
      throw new FaultError("overloaded", `Cannot store the record: ${appended.error}`, {
        retriable: true,
      });
    }
    // When a later batch is refused nobody waits for this one any more.
    appended.durable.catch(() => {});
    waits.push(appended.durable);
    if (first < 0) first = appended.baseOffset;
  }
  return { first, durable: Promise.all(waits) };
}

/** All batches of a shard's log. Throws a retriable FaultError when the log moves away meanwhile. */
export async function* storedBatches(
  log: PartitionLog,
  what: "groups" | "transactions",
): AsyncGenerator<Uint8Array, void> {
  for (let at = log.logStartOffset; at < log.highWatermark;) {
    const read = await log.read(at, {
      bytesMax: GROUP_LOAD_BYTES,
      isolation: "uncommitted",
      isOpening: true,
    });
    if (read === null || !read.ok) {
      throw new FaultError("closed", `Cannot load ${what}: the log moved`, { retriable: true });
    }
    const last = read.batches.at(-1);
    if (last === undefined) return;
    yield* read.batches;
    at = lastOffset(readBatchHeader(last)) + 1;
  }
}
