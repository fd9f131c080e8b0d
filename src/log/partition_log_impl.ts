/**
 * The partition log over a stream. Appends are synchronous: check, admit, append, learn, with no await in
 * between. Everything that writes beside the log (retention, checkpoints, close) runs one at a time.
 */
import { assert } from "../lib/assert.ts";
import type { Offset, StreamEpoch } from "../lib/brand.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { CHECKPOINT_BYTES } from "../lib/limits.ts";
import type { Env } from "../env/env.ts";
import { assignOffsets, readBatchHeader } from "../protocol/record_batch.ts";
import { endOffset, type StreamRecord } from "../storage/stream_record.ts";
import type { Stream, StreamAppend } from "../stream/stream.ts";
import { checkBatch } from "./append_check.ts";
import type { Checkpointer } from "./checkpoint.ts";
import { HighWatermark } from "./high_watermark.ts";
import { type LogState, sequencedOf } from "./log_state.ts";
import type {
  Appended,
  AppendRefused,
  EpochEnd,
  LogConfig,
  LogRead,
  PartitionLog,
  ReadOptions,
  ReadRefused,
  TimestampedOffset,
} from "./partition_log.ts";
import type { ProducerBatch, SequencedBatch } from "./producer_state.ts";
import { segmentsToDelete } from "./retention.ts";
import { findByTime, findLargestTime, type TimeLookupInput } from "./time_lookup.ts";

const OUT_OF_RANGE: ReadRefused = { ok: false, error: "OFFSET_OUT_OF_RANGE" };

export interface PartitionLogOptions {
  /** For log lines. */
  readonly name: string;
  readonly leaderEpoch: StreamEpoch;
  readonly config: LogConfig;
  readonly env: Env;
  readonly log: Stream;
  readonly state: LogState;
  readonly checkpointer: Checkpointer;
  /** Bytes that a crash now would have to replay. */
  readonly uncheckpointedBytes: number;
  /** Offset of the newest checkpoint; -1 when there is none. */
  readonly checkpointedTo: Offset;
}

export class PartitionLogImpl implements PartitionLog {
  readonly leaderEpoch: StreamEpoch;
  readonly #name: string;
  readonly #env: Env;
  readonly #log: Stream;
  readonly #state: LogState;
  readonly #checkpointer: Checkpointer;
  readonly #watermark: HighWatermark;
  #config: LogConfig;
  #uncheckpointedBytes: number;
  #checkpointedTo: Offset;
  #checkpointedRolls = 0;
  /** Segments or log start changed since the last checkpoint. */
  #deleted = false;
  /** The last checkpoint was written by a log at work: the close says that it is the end. */
  #mustSayClean = false;
  /** Monotonic. */
  #retentionCheckedMs = -Infinity;
  #closing: Promise<void> | null = null;
  #work: Promise<void> = Promise.resolve();

  constructor(options: PartitionLogOptions) {
    this.#name = options.name;
    this.leaderEpoch = options.leaderEpoch;
    this.#config = options.config;
    this.#env = options.env;
    this.#log = options.log;
    this.#state = options.state;
    this.#checkpointer = options.checkpointer;
    this.#uncheckpointedBytes = options.uncheckpointedBytes;
    this.#checkpointedTo = options.checkpointedTo;
    this.#watermark = new HighWatermark(options.log);
    this.#state.producers.followClock(this.#env.clock.nowMs(), this.#env.clock.monotonicMs());
  }

  get config(): LogConfig {
    return this.#config;
  }
  get logStartOffset(): Offset {
    return this.#state.logStartOffset;
  }
  get highWatermark(): Offset {
    return this.#log.confirmOffset;
  }
  /** Equals the high watermark until transactions exist. */
  get lastStableOffset(): Offset {
    return this.#log.confirmOffset;
  }
  get logEndOffset(): Offset {
    return this.#log.nextOffset;
  }
  get sizeBytes(): number {
    return this.#state.sizeBytes;
  }

  updateConfig(config: LogConfig): void {
    this.#config = config;
  }

  onAdvance(listener: () => void): () => void {
    return this.#watermark.onAdvance(listener);
  }

  append(batch: Uint8Array): Appended | AppendRefused {
    if (this.#isStopped) return notLeader("the log is closed");
    const { clock, codecs } = this.#env;
    const nowMs = clock.nowMs();
    const checked = checkBatch(batch, this.#config, { nowMs, codecs });
    if (!checked.ok) return checked;
    const sequenced = sequencedOf(checked.header);
    const admission = this.#state.producers.admit(sequenced, clock.monotonicMs());
    if (admission.kind === "duplicate") {
      return this.#duplicate(admission.baseOffset, admission.batch);
    }
    if (admission.kind === "refuse") {
      return { ok: false, error: admission.error, message: admission.message };
    }
    return this.#write(checked.batch, sequenced, nowMs);
  }

  get #isStopped(): boolean {
    return this.#closing !== null || this.#watermark.failure !== null;
  }

  #stampMs(nowMs: number): number {
    return this.#config.timestampType === "log-append" ? nowMs : -1;
  }

  #write(
    batch: Uint8Array,
    sequenced: SequencedBatch,
    nowMs: number,
  ): Appended | AppendRefused {
    const baseOffset = this.#log.nextOffset;
    const logAppendTimeMs = this.#stampMs(nowMs);
    const stampMs = logAppendTimeMs < 0 ? null : logAppendTimeMs;
    assignOffsets(batch, baseOffset, this.leaderEpoch, stampMs);
    let stored: StreamAppend;
    try {
      stored = this.#log.append(sequenced.lastOffsetDelta + 1, batch);
    } catch (error) {
      return this.#refused(error, sequenced);
    }
    assert(stored.baseOffset === baseOffset, "the stream's offsets are the log's");
    this.#state.learn(readBatchHeader(batch), batch.length, this.#config, nowMs);
    this.#uncheckpointedBytes += batch.length;
    const lastOffset = baseOffset + sequenced.lastOffsetDelta;
    return {
      ok: true,
      baseOffset,
      lastOffset,
      logAppendTimeMs,
      logStartOffset: this.logStartOffset,
      duplicate: false,
      durable: this.#watermark.track(lastOffset, stored.durable),
    };
  }

  #refused(error: unknown, batch: SequencedBatch): AppendRefused {
    if (isFault(error, "fenced") || isFault(error, "closed")) return notLeader(error.message);
    if (!(error instanceof FaultError)) throw error;
    this.#state.producers.refuse(batch, this.#env.clock.monotonicMs());
    return { ok: false, error: "NOT_ENOUGH_REPLICAS", message: error.message };
  }

  /** Answered like the original: not before the high watermark has passed it. */
  #duplicate(baseOffset: Offset, batch: ProducerBatch): Appended {
    return {
      ok: true,
      baseOffset,
      lastOffset: batch.lastOffset,
      logAppendTimeMs: this.#stampMs(batch.timestampMs),
      logStartOffset: this.logStartOffset,
      duplicate: true,
      durable: this.#watermark.passed(batch.lastOffset + 1),
    };
  }

  async read(offset: Offset, options: ReadOptions): Promise<LogRead | ReadRefused | null> {
    if (offset < this.logStartOffset || offset > this.logEndOffset) return OUT_OF_RANGE;
    const end = this.highWatermark;
    if (offset >= end) return this.#answer([], end);
    const records = await this.#fetch(offset, end, options);
    if (offset < this.logStartOffset) return OUT_OF_RANGE;
    return records === null
      ? null
      : this.#answer(wholeBatches(records, end, options.bytesMax), end);
  }

  async #fetch(offset: Offset, end: Offset, options: ReadOptions) {
    const { bytesMax, cacheOnly, signal, lease } = options;
    try {
      return await this.#log.fetch(offset, end, {
        bytesMax,
        ...(cacheOnly === undefined ? {} : { cacheOnly }),
        ...(signal === undefined ? {} : { signal }),
        ...(lease === undefined ? {} : { lease }),
      });
    } catch (error) {
      // Trimmed while the read was under way: the offset is gone, nothing is broken.
      if (offset < this.logStartOffset) return [];
      throw error;
    }
  }

  #answer(batches: readonly Uint8Array[], end: Offset): LogRead {
    return {
      ok: true,
      batches,
      bytes: batches.reduce((sum, { length }) => sum + length, 0),
      highWatermark: end,
      lastStableOffset: end,
      logStartOffset: this.logStartOffset,
      aborted: [],
    };
  }

  #timeLookup(signal: AbortSignal | undefined): TimeLookupInput {
    return {
      ...(signal === undefined ? {} : { signal }),
      segments: [...this.#state.segments],
      log: this.#log,
      time: this.#checkpointer.time,
      codecs: this.#env.codecs,
      logStartOffset: this.logStartOffset,
      end: this.highWatermark,
    };
  }

  offsetForTimestamp(
    timestampMs: number,
    signal?: AbortSignal,
  ): Promise<TimestampedOffset | null> {
    return this.#lookUp((input) => findByTime(input, timestampMs), signal);
  }

  maxTimestamp(signal?: AbortSignal): Promise<TimestampedOffset | null> {
    return this.#lookUp(findLargestTime, signal);
  }

  /** Retention may take away what a search is reading: it then starts again from the new log start. */
  async #lookUp(
    find: (input: TimeLookupInput) => Promise<TimestampedOffset | null>,
    signal: AbortSignal | undefined,
  ): Promise<TimestampedOffset | null> {
    for (;;) {
      const input = this.#timeLookup(signal);
      try {
        const found = await find(input);
        if (found === null || found.offset >= this.logStartOffset) return found;
      } catch (error) {
        if (this.logStartOffset === input.logStartOffset || signal?.aborted === true) throw error;
      }
    }
  }

  /** The current epoch ends at the high watermark: what lies above may still disappear. */
  endOfEpoch(leaderEpoch: number): EpochEnd {
    return this.#state.epochs.endOf(leaderEpoch, this.highWatermark);
  }

  epochAt(offset: Offset): number {
    return this.#state.epochs.at(offset);
  }

  async deleteRecords(
    before: Offset,
  ): Promise<{ readonly ok: true; readonly logStartOffset: Offset } | ReadRefused> {
    if (before < 0 || before > this.highWatermark) return OUT_OF_RANGE;
    if (this.#isStopped) throw closedFault(this.#name);
    await this.#exclusively(async () => {
      if (before <= this.logStartOffset) return;
      this.#state.raiseLogStart(before);
      this.#deleted = true;
      this.#deleteSegments(this.#env.clock.nowMs());
      await this.#checkpoint(false);
    });
    return { ok: true, logStartOffset: this.logStartOffset };
  }

  async tick(nowMs: number): Promise<void> {
    if (this.#isStopped) return;
    await this.#exclusively(async () => {
      if (this.#isStopped) return;
      this.#state.producers.followClock(nowMs, this.#env.clock.monotonicMs());
      this.#state.producers.expire(nowMs, this.#config.producerExpirationMs);
      if (this.#isRetentionDue()) this.#deleteSegments(nowMs);
      const rolled = this.#state.rolls > this.#checkpointedRolls;
      const due = this.#deleted || rolled || this.#uncheckpointedBytes > CHECKPOINT_BYTES;
      if (due) await this.#checkpoint(false);
    });
  }

  #isRetentionDue(): boolean {
    const monotonicMs = this.#env.clock.monotonicMs();
    if (monotonicMs - this.#retentionCheckedMs < this.#config.retentionCheckMs) return false;
    this.#retentionCheckedMs = monotonicMs;
    return true;
  }

  #deleteSegments(nowMs: number): void {
    const count = segmentsToDelete({
      segments: this.#state.segments,
      config: this.#config,
      highWatermark: this.highWatermark,
      logStartOffset: this.logStartOffset,
      nowMs,
    });
    if (count === 0) return;
    this.#state.deleteOldest(count, nowMs);
    this.#deleted = true;
  }

  async #checkpoint(clean: boolean): Promise<void> {
    const { rolls } = this.#state;
    const bytes = this.#uncheckpointedBytes;
    const passed = (offset: Offset) => this.#watermark.passed(offset);
    const input = { state: this.#state, log: this.#log, passed, clean };
    this.#checkpointedTo = await this.#checkpointer.write(input);
    this.#mustSayClean = !clean;
    // What was deleted meanwhile stays marked: deletions happen only in here.
    if (this.#deleted) await this.#checkpointer.trim(this.#state, this.#log);
    this.#deleted = false;
    this.#checkpointedRolls = rolls;
    this.#uncheckpointedBytes -= bytes;
  }

  /** Runs after what was begun before; a failure is the caller's alone. */
  #exclusively(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => {});
    return done;
  }

  close(): Promise<void> {
    this.#closing ??= this.#exclusively(() => this.#close());
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#lastCheckpoint();
    const closed = await Promise.allSettled([this.#log.close(), this.#checkpointer.close()]);
    this.#watermark.close();
    if (this.#watermark.failure !== null) return;
    for (const outcome of closed) if (outcome.status === "rejected") throw outcome.reason;
  }

  /** Without it the next open replays: slower, never wrong. So its failure does not stop the close. */
  async #lastCheckpoint(): Promise<void> {
    try {
      await this.#watermark.passed(this.logEndOffset);
      const dirty = this.#deleted || this.#mustSayClean ||
        this.#checkpointedTo !== this.logEndOffset;
      if (dirty) await this.#checkpoint(true);
    } catch (error) {
      const fields = { partition: this.#name, reason: messageOf(error) };
      this.#env.log.log("warn", "partition-checkpoint-failed", fields);
    }
  }
}

function notLeader(message: string): AppendRefused {
  return { ok: false, error: "NOT_LEADER_OR_FOLLOWER", message };
}

function closedFault(name: string): FaultError {
  return new FaultError("closed", `The log of ${name} is closed`, { retriable: true });
}

/** The first batch is given however large it is, as KIP-74 asks. */
function wholeBatches(
  records: readonly StreamRecord[],
  end: Offset,
  bytesMax: number,
): readonly Uint8Array[] {
  const batches: Uint8Array[] = [];
  let bytes = 0;
  for (const record of records) {
    if (endOffset(record) > end) break;
    bytes += record.payload.length;
    if (batches.length > 0 && bytes > bytesMax) break;
    batches.push(record.payload);
  }
  return batches;
}
