/** Reads records of one partition for HTTP: whole batches in, single records out, with a long poll. */
import { sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import { DecodeError } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import { HTTP_READ_BYTES_MAX } from "../lib/limits.ts";
import type { LogRead, PartitionLog } from "../log/partition_log.ts";
import { type BatchRecord, readRecords } from "../protocol/record.ts";
import { isControlBatch, lastOffset, readBatchHeader } from "../protocol/record_batch.ts";
import type { BrokerServices } from "../broker/handler.ts";
import type { Located } from "../broker/partitions.ts";
import type { ReadAnswer, ReadQuery, RecordOutput } from "../http/port.ts";
import { recordBytes } from "./record_bytes.ts";

type Refused = Extract<ReadAnswer, { ok: false }>;

interface Taken {
  readonly ok: true;
  readonly records: readonly RecordOutput[];
  readonly next: number;
}

/** A batch that its producer filled with something else than records: admission does not look inside. */
function unsound(start: number, next: number, why: string): Refused {
  const message = `Cannot read offset ${start}: its batch holds no sound records (${why}); ` +
    `read on at ${next}`;
  return { ok: false, error: "INVALID_RECORD", message, next };
}

/**
 * Records from `start` on, at most `recordsMax`; skips control batches and what compaction removed.
 * Stops early where few bytes inflate to many, and before a batch that cannot be read.
 */
function take(
  read: LogRead,
  start: number,
  recordsMax: number,
  env: Env,
): Taken | Refused {
  const records: RecordOutput[] = [];
  let next = start;
  let bytes = 0;
  for (const batch of read.batches) {
    const header = readBatchHeader(batch);
    const end = Math.max(next, lastOffset(header) + 1);
    try {
      for (const record of isControlBatch(header) ? [] : readRecords(batch, env.codecs)) {
        if (record.offset < start) continue;
        const output = outputOf(record);
        bytes += recordBytes(output);
        const isFull = records.length === recordsMax || bytes > HTTP_READ_BYTES_MAX;
        if (isFull && records.length > 0) return { ok: true, records, next };
        records.push(output);
        next = record.offset + 1;
      }
    } catch (error) {
      if (!(error instanceof DecodeError) && !isFault(error, "corrupt")) throw error;
      return next > start ? { ok: true, records, next } : unsound(start, end, error.message);
    }
    next = end;
  }
  return { ok: true, records, next };
}

function outputOf({ offset, timestamp, key, value, headers }: BatchRecord): RecordOutput {
  return {
    offset,
    timestampMs: timestamp,
    key,
    value,
    headers: headers.map((header) => ({ name: header.key, value: header.value })),
  };
}

/** Ends early when the log advances or closes, or when the caller goes away. */
async function waitForAdvance(
  log: PartitionLog,
  env: Env,
  waitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const wake = new AbortController();
  const end = () => wake.abort();
  const unsubscribe = log.onAdvance(end);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  await sleep(env.clock, waitMs, wake.signal);
  signal.removeEventListener("abort", end);
  unsubscribe();
}

function startOf(log: PartitionLog, offset: ReadQuery["offset"]): number {
  if (offset === "earliest") return log.logStartOffset;
  return offset === "latest" ? log.highWatermark : offset;
}

type Services = Pick<BrokerServices, "env" | "permits">;

/** Holds byte permits while whole batches are in memory; a cold read never takes those of hot ones. */
async function withBatches(
  log: PartitionLog,
  start: number,
  query: ReadQuery,
  { env, permits }: Services,
): Promise<(Taken & { readonly read: LogRead }) | Refused | null> {
  const { bytesMax, signal } = query;
  for (
    const [permit, cacheOnly] of [[permits.hotFetch, true], [permits.coldFetch, false]] as const
  ) {
    await permit.acquire(bytesMax, signal);
    try {
      const read = await log.read(start, { bytesMax, isolation: "committed", cacheOnly, signal });
      if (read === null) continue;
      if (!read.ok) return null;
      const taken = take(read, start, query.recordsMax, env);
      return taken.ok ? { read, ...taken } : taken;
    } finally {
      permit.release(bytesMax);
    }
  }
  return null;
}

function outOfRange(
  { logStartOffset: logStart, highWatermark }: PartitionLog,
  start: number,
): ReadAnswer {
  const message = `Cannot read offset ${start}: the log holds ${logStart} to ${highWatermark}`;
  return { ok: false, error: "OFFSET_OUT_OF_RANGE", message, logStart, highWatermark };
}

/** `locate` is asked at each turn: a log that closed while we waited never wakes anybody again. */
export async function readFrom(
  locate: () => Promise<Located>,
  query: ReadQuery,
  services: Services,
): Promise<ReadAnswer> {
  const { clock } = services.env;
  let start: number | null = null;
  const endMs = clock.monotonicMs() + query.waitMs;
  for (;;) {
    const located = await locate();
    if (!located.ok) return located;
    const { log } = located;
    start ??= startOf(log, query.offset);
    const taken = await withBatches(log, start, query, services);
    if (taken === null) return outOfRange(log, start);
    if (!taken.ok) return taken;
    const { records, next, read } = taken;
    const leftMs = endMs - clock.monotonicMs();
    if (next > start || leftMs <= 0 || query.signal.aborted) {
      return {
        ok: true,
        records,
        next,
        highWatermark: read.highWatermark,
        logStart: read.logStartOffset,
      };
    }
    if (log.highWatermark > start) continue;
    await waitForAdvance(log, services.env, leftMs, query.signal);
  }
}
