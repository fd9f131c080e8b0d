/** A partition over memory streams with a movable clock, for tests of the log: open, crash, append, read. */
import assert from "node:assert/strict";
import { streamEpoch, type StreamId } from "../../src/lib/brand.ts";
import type { Env } from "../../src/env/env.ts";
import { openPartitionLog } from "../../src/log/open_partition_log.ts";
import type {
  Appended,
  AppendRefused,
  LogConfig,
  LogRead,
  PartitionLog,
  TransactionMarker,
  VerificationAsk,
} from "../../src/log/partition_log.ts";
import { buildBatch, readBatchHeader } from "../../src/protocol/record_batch.ts";
import { readRecords } from "../../src/protocol/record.ts";
import { createMemoryStreams, type MemoryStreams } from "./memory_streams.ts";
import { testEnv } from "./test_env.ts";

export const DAY_MS = 86_400_000;
export const HOUR_MS = 3_600_000;
export const STREAM_TAG = "topic/0";
export const START_MS = 1_700_000_000_000;

export const DEFAULT_LOG_CONFIG: LogConfig = {
  messageBytesMax: 1_048_588,
  timestampType: "create",
  timestampBeforeMsMax: Number.MAX_SAFE_INTEGER,
  timestampAfterMsMax: HOUR_MS,
  compression: "producer",
  validate: "header",
  cleanup: { delete: true, compact: false },
  cleaning: { minDirtyRatio: 0.5, minLagMs: 0, maxLagMs: 2 ** 53 - 1, deleteRetentionMs: DAY_MS },
  retentionMs: -1,
  retentionBytes: -1,
  segmentBytes: 2 ** 30,
  segmentMs: 7 * DAY_MS,
  producerExpirationMs: HOUR_MS,
  retentionCheckMs: 0,
};

export interface Sequenced {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
}

export interface Harness {
  readonly streams: MemoryStreams;
  readonly env: Env;
  readonly metaStream: StreamId | null;
  config: LogConfig;
  /** Wall time; the tests move it in any direction. Monotonic time only grows with it. */
  nowMs: number;
  log: PartitionLog;
  open(): Promise<PartitionLog>;
  /** Loses what is not durable, then opens again with the next leader epoch. */
  crash(): Promise<PartitionLog>;
  /** Closes in order, then opens again. */
  reopen(): Promise<PartitionLog>;
  batch(values: readonly string[], over?: Partial<BatchOptions>): Uint8Array;
  /** b(first..last) of producer 7, epoch 3, unless said. */
  sequenced(first: number, last: number, over?: Partial<Sequenced & BatchOptions>): Uint8Array;
}

export interface BatchOptions {
  readonly timestampMs: number;
  /** One per record, instead of the same for all. */
  readonly timestamps: readonly number[];
  readonly codec: "gzip" | "lz4" | "snappy" | "zstd" | null;
  readonly key: string | null;
  readonly transactional: boolean;
}

export async function createHarness(config: Partial<LogConfig> = {}): Promise<Harness> {
  const harness = unopened(config);
  await harness.open();
  return harness;
}

/** The same without a log: `log` is there after `open`. */
export function unopened(config: Partial<LogConfig> = {}): Harness {
  const streams = createMemoryStreams();
  let leaderEpoch = 0;
  let metaStream: StreamId | null = null;
  let monotonicMs = 0;
  let lastMs = START_MS;
  const clock = {
    nowMs: () => harness.nowMs,
    monotonicMs: () => {
      monotonicMs += Math.max(0, harness.nowMs - lastMs);
      lastMs = harness.nowMs;
      return monotonicMs;
    },
    after: () => () => {},
  };
  const env = testEnv({ clock });
  const harness: Harness = {
    streams,
    env,
    config: { ...DEFAULT_LOG_CONFIG, ...config },
    nowMs: START_MS,
    // Set by the first open.
    log: undefined as unknown as PartitionLog,
    get metaStream() {
      return metaStream;
    },
    async open() {
      harness.log = await openPartitionLog({
        streams,
        metaStream,
        streamTag: STREAM_TAG,
        onMetaStreamCreated: (id) => {
          metaStream = id;
          return Promise.resolve();
        },
        leaderEpoch: streamEpoch(++leaderEpoch),
        config: harness.config,
        env,
        topic: "t",
        partition: 0,
      });
      return harness.log;
    },
    crash() {
      streams.crash();
      return harness.open();
    },
    async reopen() {
      await harness.log.close();
      return harness.open();
    },
    batch: (values, over = {}) => build(harness, values, over),
    sequenced(first, last, over = {}) {
      const count = (last - first + 2 ** 31) % 2 ** 31 + 1;
      const values = Array.from({ length: count }, (_, i) => `${first}+${i}`);
      return build(harness, values, {
        producerId: 7,
        producerEpoch: 3,
        baseSequence: first,
        ...over,
      });
    },
  };
  return harness;
}

function build(
  harness: Harness,
  values: readonly string[],
  over: Partial<Sequenced & BatchOptions>,
): Uint8Array {
  const { key = null, timestamps, codec = null, timestampMs = harness.nowMs, ...sequence } = over;
  const encode = (text: string) => new TextEncoder().encode(text);
  return buildBatch({
    records: values.map((value, i) => ({
      key: key === null ? null : encode(key),
      value: encode(value),
      headers: [],
      timestampMs: timestamps?.[i] ?? timestampMs,
    })),
    codec,
    codecs: harness.env.codecs,
    ...sequence,
  });
}

/** b(first..last) in a transaction of producer 7, epoch 3; the coordinator always agrees. */
export function appendInTransaction(
  { log, sequenced }: Harness,
  first: number,
  last: number,
  over: Partial<Sequenced & BatchOptions & Pick<VerificationAsk, "isTransactionsV2">> = {},
): Appended | AppendRefused {
  const { isTransactionsV2 = false, ...rest } = over;
  const { producerId = 7, producerEpoch = 3 } = over;
  const ask = { producerId, producerEpoch, baseSequence: first, isTransactionsV2 };
  const verification = log.verify(ask);
  return log.append(
    sequenced(first, last, { ...rest, transactional: true }),
    verification ?? undefined,
  );
}

/** The end of a transaction of producer 7, epoch 3; an abort unless said. */
export function appendMarker(
  { log }: Harness,
  over: Partial<TransactionMarker> = {},
): Appended | AppendRefused {
  return log.appendMarker({
    producerId: 7,
    producerEpoch: 3,
    coordinatorEpoch: 0,
    commit: false,
    isTransactionsV2: false,
    ...over,
  });
}

export function accepted(result: Appended | AppendRefused): Appended {
  assert.ok(result.ok, result.ok ? "" : `${result.error}: ${result.message}`);
  return result;
}

/** `new @0`, `duplicate @0` or the error's name. */
export function outcome(result: Appended | AppendRefused): string {
  if (!result.ok) return result.error;
  return `${result.duplicate ? "duplicate" : "new"} @${result.baseOffset}`;
}

/** Appends and waits until it is durable. */
export async function put(log: PartitionLog, batch: Uint8Array): Promise<string> {
  const result = log.append(batch);
  if (result.ok) await result.durable;
  return outcome(result);
}

export async function readCommitted(
  log: PartitionLog,
  offset: number,
  bytesMax = 2 ** 30,
): Promise<LogRead> {
  const read = await log.read(offset, { bytesMax, isolation: "committed" });
  assert.ok(read !== null && read.ok);
  return read;
}

export async function readFrom(log: PartitionLog, offset: number): Promise<LogRead> {
  const read = await log.read(offset, { bytesMax: 2 ** 30, isolation: "uncommitted" });
  assert.ok(read !== null && read.ok);
  return read;
}

/** All records as `offset:value`. */
export async function contents(harness: Harness): Promise<readonly string[]> {
  const { log, env } = harness;
  const found: string[] = [];
  for (let at = log.logStartOffset; at < log.highWatermark;) {
    const { batches } = await readFrom(log, at);
    for (const batch of batches) {
      const header = readBatchHeader(batch);
      for (const { offset, value } of readRecords(batch, env.codecs)) {
        if (offset >= at) found.push(`${offset}:${new TextDecoder().decode(value!)}`);
      }
      at = header.baseOffset + header.lastOffsetDelta + 1;
    }
  }
  return found;
}
