/**
 * A PartitionLog in memory for tests of the broker: batches become durable by hand or at once, reads can
 * be made to miss the cache, to wait or to fail. No idempotence, no transactions, no retention.
 */
import { type StreamEpoch, streamEpoch } from "../../src/lib/brand.ts";
import { FaultError } from "../../src/lib/errors.ts";
import type {
  LogConfig,
  LogRead,
  PartitionLog,
  ReadOptions,
  ReadRefused,
  TransactionMarker,
} from "../../src/log/partition_log.ts";
import type { ErrorName } from "../../src/protocol/error_code.ts";
import { assignOffsets, readBatchHeader, validateBatch } from "../../src/protocol/record_batch.ts";

interface Stored {
  readonly baseOffset: number;
  readonly lastOffset: number;
  readonly timestampMs: number;
  readonly bytes: Uint8Array;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export interface MemoryLog extends PartitionLog {
  durability: "auto" | "manual";
  /** Makes cache-only reads miss. */
  cold: boolean;
  /** Thrown by every append and read while set. */
  fault: FaultError | null;
  /** Answered by every append while set. */
  refusal: ErrorName | null;
  /** Awaited by every read that is not cache-only. */
  gate: Promise<void> | null;
  /** Markers that were sent here; all are refused. */
  readonly markers: readonly TransactionMarker[];
  readonly closed: boolean;
  readonly ticks: number;
  /** Reads that were not cache-only. */
  readonly coldReads: number;
  readonly listeners: number;
  /** Makes everything appended so far durable. */
  confirm(): void;
  /** Rejects everything that is not durable. */
  reject(error: FaultError): void;
  /** Moves the log start without asking. */
  setStart(offset: number): void;
}

export function createMemoryLog(config: LogConfig, epoch: StreamEpoch = streamEpoch(0)): MemoryLog {
  const stored: Stored[] = [];
  const listeners = new Set<() => void>();
  const markers: TransactionMarker[] = [];
  let start = 0;
  let confirmed = 0;
  let end = 0;
  let ticks = 0;
  let coldReads = 0;
  let closed = false;
  let current = config;

  function check(): void {
    if (log.fault !== null) throw log.fault;
    if (closed) throw new FaultError("closed", "Cannot use the log: closed", { retriable: true });
  }
  function announce(): void {
    for (const listener of listeners) listener();
  }
  function readNow(offset: number, { bytesMax }: ReadOptions): LogRead | ReadRefused {
    if (offset < start || offset > end) return { ok: false, error: "OFFSET_OUT_OF_RANGE" };
    const batches: Uint8Array[] = [];
    let bytes = 0;
    for (const one of stored) {
      if (one.lastOffset < offset || one.lastOffset >= confirmed) continue;
      if (batches.length > 0 && bytes + one.bytes.length > bytesMax) break;
      batches.push(one.bytes);
      bytes += one.bytes.length;
    }
    const { highWatermark, lastStableOffset, logStartOffset } = log;
    return {
      ok: true,
      batches,
      bytes,
      highWatermark,
      lastStableOffset,
      logStartOffset,
      aborted: [],
    };
  }
  function timestamped(one: Stored | undefined) {
    if (one === undefined) return null;
    return { timestampMs: one.timestampMs, offset: one.baseOffset, leaderEpoch: epoch };
  }

  const log: MemoryLog = {
    durability: "auto",
    cold: false,
    fault: null,
    refusal: null,
    gate: null,
    leaderEpoch: epoch,
    get closed() {
      return closed;
    },
    get ticks() {
      return ticks;
    },
    get coldReads() {
      return coldReads;
    },
    get listeners() {
      return listeners.size;
    },
    get logStartOffset() {
      return start;
    },
    get highWatermark() {
      return confirmed;
    },
    get lastStableOffset() {
      return confirmed;
    },
    get logEndOffset() {
      return end;
    },
    get config() {
      return current;
    },
    get sizeBytes() {
      return stored.reduce((sum, { bytes }) => sum + bytes.length, 0);
    },
    append(bytes) {
      check();
      if (log.refusal !== null) return { ok: false, error: log.refusal };
      const valid = validateBatch(bytes, current.messageBytesMax);
      if (!valid.ok) return valid;
      const batch = valid.batch.slice();
      const baseOffset = end;
      assignOffsets(batch, baseOffset, epoch);
      const header = readBatchHeader(batch);
      const lastOffset = baseOffset + header.lastOffsetDelta;
      end = lastOffset + 1;
      const durable = new Promise<void>((resolve, reject) => {
        const timestampMs = header.maxTimestamp;
        stored.push({ baseOffset, lastOffset, timestampMs, bytes: batch, resolve, reject });
      });
      if (log.durability === "auto") log.confirm();
      const answer = { baseOffset, lastOffset, logAppendTimeMs: -1, logStartOffset: start };
      return { ok: true, ...answer, duplicate: false, durable };
    },
    verify: () => null,
    appendRequest: (batch) => log.append(batch),
    rememberedRequest: () => null,
    writers: { closing: null, order: null, writer: () => undefined },
    appendStep: (batch) => log.append(batch),
    passed: () => Promise.resolve(),
    markers,
    appendMarker(marker) {
      markers.push(marker);
      return { ok: false, error: "INVALID_TXN_STATE" };
    },
    activeProducers: () => [],
    async read(offset, options) {
      check();
      if (options.cacheOnly === true) return log.cold ? null : readNow(offset, options);
      coldReads += 1;
      if (log.gate !== null) await log.gate;
      return readNow(offset, options);
    },
    offsetForTimestamp: (timestampMs) =>
      Promise.resolve(timestamped(stored.find((one) => one.timestampMs >= timestampMs))),
    maxTimestamp: () =>
      Promise.resolve(
        timestamped(stored.toSorted((a, b) => b.timestampMs - a.timestampMs)[0]),
      ),
    endOfEpoch: (asked) =>
      asked < epoch ? { leaderEpoch: -1, endOffset: -1 } : { leaderEpoch: epoch, endOffset: end },
    epochAt: () => epoch,
    deleteRecords(before) {
      if (before < 0 || before > confirmed) {
        return Promise.resolve({ ok: false as const, error: "OFFSET_OUT_OF_RANGE" as const });
      }
      start = Math.max(start, before);
      return Promise.resolve({ ok: true as const, logStartOffset: start });
    },
    tick() {
      ticks += 1;
      return log.fault === null ? Promise.resolve() : Promise.reject(log.fault);
    },
    cleanable: () => null,
    clean: () => Promise.resolve(null),
    updateConfig(next) {
      current = next;
    },
    onAdvance(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close() {
      closed = true;
      announce();
      return Promise.resolve();
    },
    confirm() {
      confirmed = end;
      for (const one of stored) one.resolve();
      announce();
    },
    reject(error) {
      for (const one of stored) if (one.lastOffset >= confirmed) one.reject(error);
    },
    setStart(offset) {
      start = offset;
      announce();
    },
  };
  return log;
}
