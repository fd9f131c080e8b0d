/** How a shard's records get into its log, plain or as part of a producer's transaction, and back out of it. */
import type { Env } from "../../env/env.ts";
import { FaultError } from "../../lib/errors.ts";
import { GROUP_BATCH_BYTES, GROUP_LOAD_BYTES, GROUP_RECORDS_PER_BATCH } from "../../lib/limits.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import {
  BATCH_HEADER_BYTES,
  type BatchInput,
  buildBatch,
  isControlBatch,
  lastOffset,
  readBatchHeader,
} from "../../protocol/record_batch.ts";
import { readRecords } from "../../protocol/record.ts";

export interface KeyValue {
  readonly key: Uint8Array;
  /** Null is a tombstone. */
  readonly value: Uint8Array | null;
}

export function bytesOf({ key, value }: KeyValue): number {
  return key.length + (value?.length ?? 0);
}

/** At most: what a record takes up in a batch beside its key and its value. */
const RECORD_HEAD_BYTES = 32;

/** Throws `too-large` before anything is appended: what comes in several batches is taken whole or not at all. */
function checkSizes({ config }: PartitionLog, records: readonly KeyValue[]): void {
  const bytesMax = config.messageBytesMax - BATCH_HEADER_BYTES - RECORD_HEAD_BYTES;
  for (const record of records) {
    const bytes = bytesOf(record);
    if (bytes <= bytesMax) continue;
    const message = `Cannot store a record of ${bytes} bytes: max.message.bytes of its topic is ` +
      `${config.messageBytesMax}`;
    throw new FaultError("too-large", message, { retriable: false });
  }
}

/** In order, each within the limits of one batch; a larger record goes alone. */
export function batchesOf(records: readonly KeyValue[]): KeyValue[][] {
  const batches: KeyValue[][] = [];
  let bytes = Infinity;
  for (const record of records) {
    const size = bytesOf(record);
    const last = batches.at(-1);
    if (bytes + size > GROUP_BATCH_BYTES || last?.length === GROUP_RECORDS_PER_BATCH) {
      batches.push([record]);
      bytes = size;
    } else {
      last?.push(record);
      bytes += size;
    }
  }
  return batches;
}

/** In words, for errors. */
type ShardContent = "groups" | "transactions" | "share states";

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
  checkSizes(log, records);
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

/**
 * All records with a key of a shard's log that nobody writes transactions to. Throws FaultError,
 * which is retriable where the log is not at rest.
 */
export async function* storedRecords(
  { codecs }: Env,
  log: PartitionLog,
  what: ShardContent,
): AsyncGenerator<KeyValue, void> {
  if (log.highWatermark !== log.logEndOffset) {
    throw new FaultError("overloaded", `Cannot load ${what}: the log is not at rest`, {
      retriable: true,
    });
  }
  for await (const batch of storedBatches(log, what)) {
    if (isControlBatch(readBatchHeader(batch))) continue;
    for (const { key, value } of readRecords(batch, codecs)) if (key !== null) yield { key, value };
  }
}

/** All batches of a shard's log. Throws a retriable FaultError when the log moves away meanwhile. */
export async function* storedBatches(
  log: PartitionLog,
  what: ShardContent,
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
