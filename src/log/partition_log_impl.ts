/**
 * The partition log over a stream. Appends are synchronous: check, admit, append, learn, with no await in
 * between. Everything that writes beside the log (retention, checkpoints, close) runs one at a time.
 */
import { assert } from "../lib/assert.ts";
import type { Offset, StreamEpoch } from "../lib/brand.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { CHECKPOINT_BYTES } from "../lib/limits.ts";
import type { Env } from "../env/env.ts";
import { buildMarker } from "../protocol/control_record.ts";
import { assignOffsets, readBatchHeader } from "../protocol/record_batch.ts";
import type { Stream, StreamAppend } from "../stream/stream.ts";
import { activeProducer } from "./active_producer.ts";
import {
  type AnswerContext,
  CLOSED_FOR_GOOD,
  duplicateOf,
  rememberedOf,
  repeatedMarker,
  RESERVED_SEQUENCE,
} from "./append_answer.ts";
import { type BatchChecked, checkBatch } from "./append_check.ts";
import { type Source, sourceOf } from "./append_source.ts";
import type { Checkpointer } from "./checkpoint.ts";
import { PartitionCleaner } from "./clean/partition_cleaner.ts";
import { HighWatermark } from "./high_watermark.ts";
import { readLog } from "./log_read.ts";
import { closedFault, notLeader } from "./log_closed.ts";
import { type LogState, sequencedOf } from "./log_state.ts";
import type {
  ActiveProducer,
  Appended,
  AppendRefused,
  Cleanable,
  Cleaned,
  CleanOptions,
  EpochEnd,
  LogConfig,
  LogRead,
  PartitionLog,
  ReadOptions,
  ReadRefused,
  RememberedRequest,
  TimestampedOffset,
  TransactionMarker,
  Verification,
  VerificationAsk,
} from "./partition_log.ts";
import type { PartitionLogOptions } from "./partition_log_options.ts";
import type { SequencedBatch } from "./producer_state.ts";
import { segmentsToDelete } from "./retention.ts";
import { findByTime, findLargestTime } from "./time_lookup.ts";
import { type SearchedLog, searchTimes } from "./time_search.ts";
import type { Writers } from "./writer_table.ts";

const OUT_OF_RANGE: ReadRefused = { ok: false, error: "OFFSET_OUT_OF_RANGE" };

export class PartitionLogImpl implements PartitionLog {
  readonly leaderEpoch: StreamEpoch;
  readonly writers: Writers;
  readonly appendRequest = (batch: Uint8Array) => this.#appendOwn(batch, "request");
  readonly appendStep = (batch: Uint8Array) => this.#appendOwn(batch, "step");
  readonly passed = (offset: Offset) => this.#watermark.passed(offset);
  readonly #name: string;
  readonly #env: Env;
  readonly #log: Stream;
  readonly #state: LogState;
  readonly #checkpointer: Checkpointer;
  readonly #watermark: HighWatermark;
  readonly #cleaner: PartitionCleaner;
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
    this.writers = options.state.writers;
    this.#checkpointer = options.checkpointer;
    this.#uncheckpointedBytes = options.uncheckpointedBytes;
    this.#checkpointedTo = options.checkpointedTo;
    this.#watermark = new HighWatermark(options.log);
    this.#cleaner = new PartitionCleaner({
      ...options,
      config: () => this.#config,
      exclusively: (work) => this.#exclusively(() => this.#whileOpen(work)),
      swap: (end, change) => this.#swap(end, change),
    });
    this.#followClock(this.#env.clock.nowMs(), this.#env.clock.monotonicMs());
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
  get lastStableOffset(): Offset {
    return this.#state.lastStableOffset(this.highWatermark);
  }
  get logEndOffset(): Offset {
    return this.#log.nextOffset;
  }
  get sizeBytes(): number {
    return this.#state.sizeBytes;
  }

  cleanable(nowMs: number): Cleanable | null {
    return this.#cleaner.cleanable(nowMs);
  }

  async clean(options: CleanOptions): Promise<Cleaned | null> {
    return this.#isStopped ? null : await this.#cleaner.clean(options);
  }

  /** The new segments must be found by a restart before the old ones go. */
  async #swap(end: Offset, change: () => void): Promise<void> {
    if (this.#checkpointedTo < end) await this.#checkpoint(false);
    await this.#checkpointer.dropSnapshotsBelow(end);
    change();
    this.#deleted = true;
    await this.#checkpoint(false);
  }

  updateConfig(config: LogConfig): void {
    this.#config = config;
  }

  onAdvance(listener: () => void): () => void {
    return this.#watermark.onAdvance(listener);
  }

  verify(ask: VerificationAsk): Verification | null {
    if (this.#isStopped) return null;
    return this.#state.producers.verify(ask, this.#env.clock.monotonicMs());
  }

  append(batch: Uint8Array, verification?: Verification): Appended | AppendRefused {
    const { clock } = this.#env;
    const nowMs = clock.nowMs();
    const checked = this.#check(batch, nowMs, "client");
    if (!checked.ok) return checked;
    const sequenced = sequencedOf(checked.header);
    const { producers } = this.#state;
    const admission = producers.admit(sequenced, clock.monotonicMs(), verification);
    if (admission.kind === "duplicate") {
      return duplicateOf(admission.baseOffset, admission.batch, this.#answerContext);
    }
    if (admission.kind === "refuse") {
      return { ok: false, error: admission.error, message: admission.message };
    }
    return this.#state.isClosed ? CLOSED_FOR_GOOD : this.#write(checked.batch, sequenced, nowMs);
  }

  #appendOwn(batch: Uint8Array, source: Source): Appended | AppendRefused {
    const nowMs = this.#env.clock.nowMs();
    const checked = this.#check(batch, nowMs, source);
    if (!checked.ok) return checked;
    if (this.#state.isClosed) return CLOSED_FOR_GOOD;
    return this.#write(checked.batch, sequencedOf(checked.header), nowMs);
  }

  /** Whoever may write here must not pretend that somebody's request is in already. */
  #check(batch: Uint8Array, nowMs: number, source: Source): BatchChecked {
    if (this.#isStopped) return notLeader("the log is closed");
    const checked = checkBatch(batch, this.#config, { nowMs, codecs: this.#env.codecs });
    return !checked.ok || sourceOf(checked.header) === source ? checked : RESERVED_SEQUENCE;
  }

  rememberedRequest(id: string): RememberedRequest | null {
    const entry = this.#state.requests.get(id);
    return entry === undefined ? null : rememberedOf(entry, this.#watermark);
  }

  appendMarker(marker: TransactionMarker): Appended | AppendRefused {
    if (this.#isStopped) return notLeader("the log is closed");
    const admission = this.#state.producers.admitMarker(marker);
    if (admission.kind === "refuse") {
      return { ok: false, error: admission.error, message: admission.message };
    }
    if (admission.kind === "repeat") return repeatedMarker(this.#answerContext);
    const { clock, codecs } = this.#env;
    const nowMs = clock.nowMs();
    const batch = buildMarker({ ...marker, timestampMs: nowMs }, codecs);
    return this.#write(batch, sequencedOf(readBatchHeader(batch)), nowMs);
  }

  get #answerContext(): AnswerContext {
    const { logStartOffset, logEndOffset } = this;
    return { logStartOffset, logEndOffset, watermark: this.#watermark };
  }

  activeProducers(producerId?: number): readonly ActiveProducer[] {
    return Array.from(this.#state.producers.entries(producerId), activeProducer);
  }

  get #isStopped(): boolean {
    return this.#closing !== null || this.#watermark.failure !== null;
  }

  #write(
    batch: Uint8Array,
    sequenced: SequencedBatch,
    nowMs: number,
  ): Appended | AppendRefused {
    const baseOffset = this.#log.nextOffset;
    const logAppendTimeMs = this.#config.timestampType === "log-append" ? nowMs : -1;
    assignOffsets(batch, baseOffset, this.leaderEpoch, logAppendTimeMs < 0 ? null : nowMs);
    let stored: StreamAppend;
    try {
      stored = this.#log.append(sequenced.lastOffsetDelta + 1, batch);
    } catch (error) {
      return this.#refused(error, sequenced);
    }
    assert(stored.baseOffset === baseOffset, "the stream's offsets are the log's");
    this.#state.learn(readBatchHeader(batch), batch, this.#config, nowMs);
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

  read(offset: Offset, options: ReadOptions): Promise<LogRead | ReadRefused | null> {
    const txn = () => this.#checkpointer.txn;
    return readLog({ log: this.#log, state: this.#state, txn }, offset, options);
  }

  get #searched(): SearchedLog {
    const { time } = this.#checkpointer;
    return { log: this.#log, state: this.#state, time, codecs: this.#env.codecs };
  }

  offsetForTimestamp(
    timestampMs: number,
    signal?: AbortSignal,
  ): Promise<TimestampedOffset | null> {
    return searchTimes(this.#searched, (input) => findByTime(input, timestampMs), signal);
  }

  maxTimestamp(signal?: AbortSignal): Promise<TimestampedOffset | null> {
    return searchTimes(this.#searched, findLargestTime, signal);
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
      this.#deleteSegments(this.#env.clock.nowMs(), null);
      await this.#checkpoint(false);
    });
    return { ok: true, logStartOffset: this.logStartOffset };
  }

  async tick(nowMs: number): Promise<void> {
    if (this.#isStopped) return;
    await this.#exclusively(async () => {
      if (this.#isStopped) return;
      const { producers, requests } = this.#state;
      const monotonicMs = this.#env.clock.monotonicMs();
      this.#followClock(nowMs, monotonicMs);
      requests.expire(nowMs);
      producers.expire(nowMs, this.#config.producerExpirationMs);
      producers.expireVerifications(monotonicMs, this.#config.producerExpirationMs);
      if (this.#isRetentionDue()) this.#deleteSegments(nowMs, this.#config);
      const rolled = this.#state.rolls > this.#checkpointedRolls;
      const due = this.#deleted || rolled || this.#state.aborted.isFull ||
        this.#uncheckpointedBytes > CHECKPOINT_BYTES ||
        this.#checkpointer.mustTrim(this.#state, this.#log);
      if (due) await this.#checkpoint(false);
    });
  }

  #followClock(nowMs: number, monotonicMs: number): void {
    this.#state.producers.followClock(nowMs, monotonicMs);
    this.#state.requests.followClock(nowMs, monotonicMs);
  }

  #isRetentionDue(): boolean {
    const monotonicMs = this.#env.clock.monotonicMs();
    if (monotonicMs - this.#retentionCheckedMs < this.#config.retentionCheckMs) return false;
    this.#retentionCheckedMs = monotonicMs;
    return true;
  }

  #deleteSegments(nowMs: number, config: LogConfig | null): void {
    const count = segmentsToDelete({
      segments: this.#state.segments,
      config,
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
    const mustTrim = this.#deleted || this.#checkpointer.mustTrim(this.#state, this.#log);
    if (mustTrim) await this.#checkpointer.trim(this.#state, this.#log);
    this.#deleted = false;
    this.#checkpointedRolls = rolls;
    this.#uncheckpointedBytes -= bytes;
  }

  async #whileOpen(work: () => Promise<void>): Promise<void> {
    if (this.#isStopped) throw closedFault(this.#name);
    await work();
  }

  /** Runs after what was begun before; a failure is the caller's alone. */
  #exclusively(work: () => Promise<void>): Promise<void> {
    const done = this.#work.then(work);
    this.#work = done.catch(() => {});
    return done;
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  async #shutDown(): Promise<void> {
    await this.#cleaner.stop();
    await this.#exclusively(() => this.#close());
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
