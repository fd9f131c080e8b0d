/**
 * What compaction leaves of one batch, as Kafka's cleaner decides it. A batch that cannot be read stays as it is:
 * nothing in it can be known to be old.
 */
import type { Codecs } from "../../env/codecs.ts";
import { DecodeError } from "../../lib/bytes.ts";
import { isFault } from "../../lib/errors.ts";
import { readMarker } from "../../protocol/control_record.ts";
import {
  emptiedBatch,
  filterBatch,
  type FilteredRecord,
  type Steps,
} from "../../protocol/filter_batch.ts";
import { type BatchHeader, deleteHorizonOf, isControlBatch } from "../../protocol/record_batch.ts";
import type { TransactionTracker } from "./transaction_tracker.ts";

export interface CleanRules {
  /** What to do with a record of a batch whose deletions may go, or not yet. */
  readonly keeps: (record: FilteredRecord, areDeletesOver: boolean) => boolean;
  /** Whether the batch is all that a restart has to know a producer by. */
  readonly isLastOfProducer: (header: BatchHeader) => boolean;
  /** Whether offsets would end early without it. */
  readonly isLastOfLog: (header: BatchHeader) => boolean;
  readonly nowMs: number;
  readonly deleteRetentionMs: number;
  /** What fits a stream record: a horizon, and a codec that does worse than the client's, make batches grow. */
  readonly batchBytesMax: number;
  readonly codecs: Codecs;
}

/** True for what a batch of a broken producer, or damage, throws. */
export function isUnreadable(error: unknown): boolean {
  return error instanceof DecodeError || isFault(error, "corrupt");
}

export class BatchCleaner {
  readonly #rules: CleanRules;
  readonly #transactions: TransactionTracker;
  /** Batches that could not be read, or would be too large. */
  unreadable = 0;

  constructor(rules: CleanRules, transactions: TransactionTracker) {
    this.#rules = rules;
    this.#transactions = transactions;
  }

  /** Asked for each batch in order. The batch itself when nothing changes, null when nothing is left. */
  *clean(batch: Uint8Array, header: BatchHeader): Steps<Uint8Array | null> {
    try {
      return isControlBatch(header)
        ? yield* this.#control(batch, header)
        : yield* this.#data(batch, header);
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      this.unreadable++;
      return batch;
    }
  }

  *#data(batch: Uint8Array, header: BatchHeader): Steps<Uint8Array | null> {
    const isAborted = this.#transactions.onData(header);
    const left = isAborted ? null : yield* this.#newest(batch, header);
    if (left !== null || !this.#isNeeded(header)) return left;
    return header.recordCount === 0 ? batch : emptiedBatch(header);
  }

  *#newest(batch: Uint8Array, header: BatchHeader): Steps<Uint8Array | null> {
    const horizonMs = deleteHorizonOf(header);
    // A batch that stayed whole may hold what a deletion behind it hides.
    const areDeletesOver = horizonMs !== null && this.#rules.nowMs >= horizonMs &&
      this.unreadable === 0;
    return yield* this.#filter(
      batch,
      header,
      (record) => this.#rules.keeps(record, areDeletesOver),
    );
  }

  *#filter(
    batch: Uint8Array,
    header: BatchHeader,
    keeps: (record: FilteredRecord) => boolean,
  ): Steps<Uint8Array | null> {
    const { nowMs, deleteRetentionMs, codecs } = this.#rules;
    const isHorizonDue = isControlBatch(header);
    const horizonMs = Math.min(nowMs + deleteRetentionMs, Number.MAX_SAFE_INTEGER);
    const left = yield* filterBatch(batch, header, { keeps, horizonMs, isHorizonDue, codecs });
    if (left === null || left === batch || left.length <= this.#rules.batchBytesMax) return left;
    this.unreadable++;
    return batch;
  }

  /**
   * A marker stays while its transaction has a batch left, then until its horizon. One that is needed keeps its
   * record: without it a restart would not know the epoch that fences.
   */
  *#control(batch: Uint8Array, header: BatchHeader): Steps<Uint8Array | null> {
    const marker = readMarker(batch);
    // Without its record it only bridged a hole; other types of control records stay.
    if (marker === null) return header.recordCount === 0 && !this.#isNeeded(header) ? null : batch;
    if (!this.#transactions.onMarker(header, marker)) return batch;
    const horizonMs = deleteHorizonOf(header);
    if (horizonMs === null) return yield* this.#filter(batch, header, () => true);
    return this.#rules.nowMs >= horizonMs && !this.#isNeeded(header) ? null : batch;
  }

  #isNeeded(header: BatchHeader): boolean {
    return this.#rules.isLastOfProducer(header) || this.#rules.isLastOfLog(header);
  }
}
