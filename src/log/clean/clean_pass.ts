/**
 * One pass over a log: the newest offset of each key in the dirty part, then everything below written anew with
 * what is still the newest. Reads and writes in bounded steps; the log itself is not touched.
 */
import type { Env } from "../../env/env.ts";
import { assert } from "../../lib/assert.ts";
import type { Offset } from "../../lib/brand.ts";
import { FaultError } from "../../lib/errors.ts";
import { CLEAN_READ_BYTES, CLEAN_TURN_MS, PAYLOAD_BYTES_MAX } from "../../lib/limits.ts";
import { partitionPoint } from "../../lib/partition_point.ts";
import { readMarker } from "../../protocol/control_record.ts";
import {
  eachRecord,
  emptiedBatch,
  type FilteredRecord,
  type Steps,
} from "../../protocol/filter_batch.ts";
import {
  type BatchHeader,
  isControlBatch,
  lastOffset,
  readBatchHeader,
} from "../../protocol/record_batch.ts";
import { endOffset, type StreamRecord } from "../../storage/stream_record.ts";
import type { Stream } from "../../stream/stream.ts";
import { findAborted } from "../aborted_lookup.ts";
import type { LogState } from "../log_state.ts";
import type { LogView } from "../log_view.ts";
import type { LogConfig } from "../partition_log.ts";
import type { ProducerState } from "../producer_state.ts";
import type { Segment } from "../segment.ts";
import { BatchCleaner, isUnreadable } from "./clean_batch.ts";
import type { CleanWriter } from "./clean_writer.ts";
import { OffsetMap } from "./offset_map.ts";
import { TransactionTracker } from "./transaction_tracker.ts";

export interface CleanPassOptions {
  readonly env: Env;
  readonly config: LogConfig;
  readonly state: LogState;
  readonly view: LogView;
  /** As it is now: it may be made, and take over what is in memory, while a pass is under way. */
  readonly txn: () => Stream | null;
  /** What may be cleaned, oldest first. */
  readonly segments: readonly Segment[];
  readonly firstDirty: Offset;
  readonly mapBytesMax: number;
  readonly nowMs: number;
  readonly signal: AbortSignal;
  /** Called with the bytes of each read; ends when the next one may come. */
  readonly pace: (bytes: number) => Promise<void>;
}

export function isLastOfProducer(producers: ProducerState, header: BatchHeader): boolean {
  const entry = producers.get(header.producerId);
  if (header.producerId < 0 || entry === undefined) return false;
  const last = entry.batches.at(-1);
  return last === undefined
    ? isControlBatch(header) && entry.epoch === header.producerEpoch
    : last.lastOffset === lastOffset(header);
}

export class CleanPass {
  readonly #options: CleanPassOptions;
  readonly #map: OffsetMap;
  /** Keys up to here are in the map. */
  #mappedTo: Offset;
  #bytesRead = 0;
  #unreadable = 0;
  #turnBeganMs = 0;

  constructor(options: CleanPassOptions) {
    this.#options = options;
    const { firstDirty, mapBytesMax } = options;
    this.#map = new OffsetMap(options.segments.at(-1)!.endOffset - firstDirty, mapBytesMax);
    this.#mappedTo = firstDirty;
  }

  /** Below it the log is clean after this pass. */
  get cleanedTo(): Offset {
    return this.#mappedTo;
  }
  get bytesRead(): number {
    return this.#bytesRead;
  }
  get unreadable(): number {
    return this.#unreadable;
  }

  /** Fills the map; returns the segments that it says something about. */
  async map(): Promise<readonly Segment[]> {
    const { segments, firstDirty } = this.#options;
    const transactions = new TransactionTracker();
    const end = segments.at(-1)!.endOffset;
    for await (const record of this.#records(firstDirty, end, transactions)) {
      if (!await this.#inTurns(this.#mapBatch(record.payload, transactions))) break;
    }
    const count = partitionPoint(segments.length, (i) => segments[i]!.baseOffset < this.#mappedTo);
    return segments.slice(0, count);
  }

  /** False when the map is full. */
  *#mapBatch(batch: Uint8Array, transactions: TransactionTracker): Steps<boolean> {
    const header = readBatchHeader(batch);
    if (isControlBatch(header)) {
      const marker = readMarker(batch);
      if (marker !== null) transactions.onMarker(header, marker);
    } else if (!transactions.onData(header) && !(yield* this.#mapKeys(batch, header))) return false;
    this.#mappedTo = lastOffset(header) + 1;
    return true;
  }

  *#mapKeys(batch: Uint8Array, header: BatchHeader): Steps<boolean> {
    const { env, firstDirty } = this.#options;
    try {
      return yield* eachRecord(batch, header, env.codecs, ({ key, offset }) => {
        if (key === null || offset < firstDirty) return true;
        if (this.#map.isFull) return false;
        this.#map.put(key, offset);
        this.#mappedTo = offset + 1;
        return true;
      });
    } catch (error) {
      // It stays in the log as it is, and makes nothing else old.
      if (!isUnreadable(error)) throw error;
    }
    return true;
  }

  /** Above what the map has come to all stays: a deletion there may still hide an older record. */
  #keeps({ key, offset, isTombstone }: FilteredRecord, areDeletesOver: boolean): boolean {
    if (offset >= this.#mappedTo) return true;
    return key !== null && offset >= this.#map.get(key) && !(isTombstone && areDeletesOver);
  }

  /** Writes what is left of the segments. */
  async rewrite(segments: readonly Segment[], writer: CleanWriter): Promise<void> {
    const { env, config, nowMs } = this.#options;
    const end = segments.at(-1)!.endOffset;
    const { producers, logStartOffset } = this.#options.state;
    const transactions = new TransactionTracker();
    const cleaner = new BatchCleaner({
      keeps: (record, areDeletesOver) => this.#keeps(record, areDeletesOver),
      isLastOfProducer: (header) => isLastOfProducer(producers, header),
      isLastOfLog: (header) => lastOffset(header) + 1 === end,
      nowMs,
      deleteRetentionMs: config.cleaning.deleteRetentionMs,
      batchBytesMax: PAYLOAD_BYTES_MAX,
      codecs: env.codecs,
    }, transactions);
    let at = 0;
    /** The newest that goes. */
    let gone: BatchHeader | null = null;
    for await (const { payload } of this.#records(segments[0]!.baseOffset, end, transactions)) {
      const header = readBatchHeader(payload);
      if (gone !== null && writer.mustBridge(header)) {
        await writer.write(emptiedBatch(gone), segments[at]!);
      }
      while (segments[at]!.endOffset <= lastOffset(header)) at++;
      // Asked for each batch, since it follows transactions; what lies below the log start goes all the same.
      const cleaned = await this.#inTurns(cleaner.clean(payload, header));
      const left = lastOffset(header) < logStartOffset ? null : cleaned;
      if (left !== null) await writer.write(left, segments[at]!);
      gone = left === null ? header : null;
    }
    assert(writer.end === end, "a cleaned log ends where it ended before");
    this.#unreadable = cleaner.unreadable;
  }

  /**
   * A few KiB may inflate to many MiB: others have their turn when work has taken long, within a batch too. Only what
   * a codec does in one call is not divided.
   */
  async #inTurns<T>(steps: Steps<T>): Promise<T> {
    for (;;) {
      await this.#turn();
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  async #turn(): Promise<void> {
    const { env: { clock }, signal, pace } = this.#options;
    if (clock.monotonicMs() - this.#turnBeganMs <= CLEAN_TURN_MS) return;
    await pace(0);
    stopIf(signal);
    this.#turnBeganMs = clock.monotonicMs();
  }

  /** The log in reads of bounded size; before each, its aborted transactions are made known. */
  async *#records(
    from: Offset,
    to: Offset,
    transactions: TransactionTracker,
  ): AsyncGenerator<StreamRecord, void, undefined> {
    const { env: { clock }, view, state, txn, signal, pace } = this.#options;
    const { aborted } = state;
    for (let start = from; start < to;) {
      const records = await view.fetch(start, to, { bytesMax: CLEAN_READ_BYTES, signal });
      const last = records?.at(-1);
      if (last === undefined || endOffset(last) <= start) throw nothingAt(view, start);
      const end = endOffset(last);
      const { segments } = state;
      const query = { segments, aborted, txn: txn(), start, end, how: { signal } };
      transactions.enter((await findAborted(query))!);
      const bytes = records!.reduce((sum, { payload }) => sum + payload.length, 0);
      this.#bytesRead += bytes;
      await pace(bytes);
      stopIf(signal);
      this.#turnBeganMs = clock.monotonicMs();
      yield* records!;
      start = end;
    }
  }
}

function stopIf(signal: AbortSignal): void {
  if (signal.aborted) throw new FaultError("aborted", "The log closes", { retriable: true });
}

function nothingAt({ streamId }: LogView, offset: Offset): FaultError {
  const message = `Cannot compact stream ${streamId}: nothing at ${offset}`;
  return new FaultError("data-loss", message, { retriable: false });
}
