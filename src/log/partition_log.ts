/**
 * One Kafka partition: batches in, batches out, offsets, producers, epochs and times.
 * The log stream's offsets are Kafka's offsets; the high watermark is the stream's confirm offset.
 */
import type { Offset, StreamEpoch } from "../lib/brand.ts";
import type { ReadLease } from "../lib/read_lease.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import type { RequestRun } from "./request_table.ts";
import type { Writers } from "./writer_table.ts";

export interface CleaningConfig {
  /** Share of dirty bytes above which it is worth it. */
  readonly minDirtyRatio: number;
  /** Records younger than this are not compacted. */
  readonly minLagMs: number;
  /** Records older than this are compacted whatever the share. */
  readonly maxLagMs: number;
  /** How long a deletion stays visible after the pass that first met it. */
  readonly deleteRetentionMs: number;
}

/** Settings of a topic that the log obeys; already validated and with defaults filled in. */
export interface LogConfig {
  readonly messageBytesMax: number;
  readonly timestampType: "create" | "log-append";
  readonly timestampBeforeMsMax: number;
  readonly timestampAfterMsMax: number;
  /** `producer` keeps each batch's codec. */
  readonly compression: "producer" | "uncompressed" | "gzip" | "snappy" | "lz4" | "zstd";
  /** For the codec above, where it has levels. */
  readonly compressionLevel?: number;
  /** `full` inflates every batch of a producer and looks at each record. */
  readonly validate: "header" | "full";
  readonly cleanup: { readonly delete: boolean; readonly compact: boolean };
  /** How a compacted topic is compacted. */
  readonly cleaning: CleaningConfig;
  /** -1 keeps for ever. */
  readonly retentionMs: number;
  readonly retentionBytes: number;
  readonly segmentBytes: number;
  readonly segmentMs: number;
  readonly producerExpirationMs: number;
  /** Least time between two looks at retention; the node's, the same for all topics. */
  readonly retentionCheckMs: number;
}

export interface Appended {
  readonly ok: true;
  readonly baseOffset: Offset;
  readonly lastOffset: Offset;
  /** -1 unless the topic stamps records on arrival. */
  readonly logAppendTimeMs: number;
  readonly logStartOffset: Offset;
  /** True when an identical batch had been stored before; nothing was written. */
  readonly duplicate: boolean;
  /** Resolves once the high watermark has passed `lastOffset`. Rejects with a FaultError. */
  readonly durable: Promise<void>;
}

/** A record that made its whole batch fail. */
export interface RecordError {
  /** Place in the batch, from 0. */
  readonly index: number;
  readonly message: string;
}

export interface AppendRefused {
  readonly ok: false;
  readonly error: ErrorName;
  readonly message?: string;
  /** All of them, when single records are at fault: clients send the others again. */
  readonly recordErrors?: readonly RecordError[];
}

export interface ReadOptions {
  /** At least one whole batch is returned when any exists below the limit. */
  readonly bytesMax: number;
  /** `committed` stops at the last stable offset. */
  readonly isolation: "uncommitted" | "committed";
  readonly cacheOnly?: boolean;
  /** For what a node must have read before it serves: it does not wait for cold readers. */
  readonly isOpening?: boolean;
  readonly signal?: AbortSignal;
  /** Ended by the reader when it views none of the batches any more. */
  readonly lease?: ReadLease;
}

export interface AbortedTransaction {
  readonly producerId: number;
  readonly firstOffset: Offset;
}

export interface LogRead {
  readonly ok: true;
  /** Whole batches in order; the first may begin before the asked offset, as Kafka's does. */
  readonly batches: readonly Uint8Array[];
  readonly bytes: number;
  readonly highWatermark: Offset;
  readonly lastStableOffset: Offset;
  readonly logStartOffset: Offset;
  readonly aborted: readonly AbortedTransaction[];
}

export interface ReadRefused {
  readonly ok: false;
  readonly error: "OFFSET_OUT_OF_RANGE";
}

export interface TimestampedOffset {
  readonly timestampMs: number;
  readonly offset: Offset;
  readonly leaderEpoch: number;
}

export interface EpochEnd {
  readonly leaderEpoch: number;
  /** -1 when the epoch is unknown. */
  readonly endOffset: Offset;
}

/**
 * Taken before the coordinator is asked whether a producer's transaction holds this partition, and shown at
 * the append: a marker that is written in between makes it void (KIP-890).
 */
export interface Verification {
  readonly producerId: number;
  readonly producerEpoch: number;
}

export interface VerificationAsk {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
  /** Produce 12 and later: a producer without state here must begin with sequence 0. */
  readonly isTransactionsV2: boolean;
}

/** How a transaction ends in one partition. */
export interface TransactionMarker {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly coordinatorEpoch: number;
  readonly commit: boolean;
  /** The epoch must then be above the stored one, else at least as high (KIP-1228). */
  readonly isTransactionsV2: boolean;
}

/** What DescribeProducers shows of one producer. */
export interface ActiveProducer {
  readonly producerId: number;
  readonly producerEpoch: number;
  /** -1 when only a marker is known. */
  readonly lastSequence: number;
  readonly lastTimestampMs: number;
  /** -1 when no marker was seen. */
  readonly coordinatorEpoch: number;
  readonly currentTxnFirstOffset: Offset | null;
}

/** What a partition has of a request with an Idempotency-Key. */
export interface RememberedRequest {
  readonly fingerprint: string;
  /** How many the topic had when the request came. */
  readonly partitions: number;
  /** Its records here, in order from the first; a part of them after a crash in the middle. */
  readonly runs: readonly RequestRun[];
  /** Resolves once the high watermark has passed all of them. Rejects with a FaultError. */
  readonly durable: Promise<void>;
}

/** What compaction would work on now. */
export interface Cleanable {
  /** Share of bytes above what is clean already. */
  readonly dirtyRatio: number;
  readonly dirtyBytes: number;
  /** By the topic's rules. */
  readonly isDue: boolean;
}

export interface CleanOptions {
  /** For the map of keys; where it is full the pass ends, and the next one goes on. */
  readonly mapBytesMax: number;
  /** Infinity takes no pauses. */
  readonly bytesPerSecond: number;
}

export interface Cleaned {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  /** Batches kept as they are because they cannot be read. */
  readonly unreadable: number;
  readonly cleanedTo: Offset;
}

export interface PartitionLog {
  readonly leaderEpoch: StreamEpoch;
  readonly logStartOffset: Offset;
  readonly highWatermark: Offset;
  readonly lastStableOffset: Offset;
  readonly logEndOffset: Offset;
  readonly config: LogConfig;
  /** Bytes between log start and end, for retention and DescribeLogDirs. */
  readonly sizeBytes: number;

  /**
   * Admits one batch of a client, synchronously: checks, offsets, producer state, append.
   * `batch` is one record batch v2 whose base offset and leader epoch are rewritten in place. A transactional
   * one that opens its producer's transaction here needs the verification, else it is INVALID_TXN_STATE.
   */
  append(batch: Uint8Array, verification?: Verification): Appended | AppendRefused;
  /** The same for a batch of a request with an Idempotency-Key (request_part.ts), which `append` refuses. */
  appendRequest(batch: Uint8Array): Appended | AppendRefused;
  /** Null for one that left nothing here, or too long ago. */
  rememberedRequest(id: string): RememberedRequest | null;
  /** What named writers have left here. One that has closed the log ends every kind of append but markers. */
  readonly writers: Writers;
  /** The same as `append` for a batch of a named writer (writer_step.ts), which `append` refuses. */
  appendStep(batch: Uint8Array): Appended | AppendRefused;
  /** Resolves once the high watermark is at the offset. Rejects with a FaultError. */
  passed(offset: Offset): Promise<void>;
  /** Null when nobody has to be asked: the transaction is open here already, or the batch will be refused anyway. */
  verify(ask: VerificationAsk): Verification | null;
  /**
   * Writes a marker. Refused: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, or as append. One of
   * transactions v2 that is here already is a duplicate, without offsets (-1), and is not written again.
   */
  appendMarker(marker: TransactionMarker): Appended | AppendRefused;
  /** All of them, or the one with an id. */
  activeProducers(producerId?: number): readonly ActiveProducer[];
  /** Null only with `cacheOnly` and a miss. */
  read(offset: Offset, options: ReadOptions): Promise<LogRead | ReadRefused | null>;
  /** First record whose timestamp is at or after `timestampMs`, below the high watermark; null if none. */
  offsetForTimestamp(timestampMs: number, signal?: AbortSignal): Promise<TimestampedOffset | null>;
  /** The record with the largest timestamp; null for an empty log. */
  maxTimestamp(signal?: AbortSignal): Promise<TimestampedOffset | null>;
  /** End of the asked leader epoch, or of the largest one below it (KIP-320). */
  endOfEpoch(leaderEpoch: number): EpochEnd;
  /** Leader epoch that was current at an offset; -1 if unknown. */
  epochAt(offset: Offset): number;
  /** Moves the log start up (DeleteRecords); an offset past the high watermark is refused. */
  deleteRecords(
    before: Offset,
  ): Promise<{ readonly ok: true; readonly logStartOffset: Offset } | ReadRefused>;
  /** Applies time and size retention if it is time, expires producers, checkpoints when dirty. Writes nothing when nothing changed. */
  tick(nowMs: number): Promise<void>;
  /** Null when the topic is not compacted or nothing may be. */
  cleanable(nowMs: number): Cleanable | null;
  /**
   * Compacts once, due or not, beside everything else. Null when there is nothing to do, when a pass is under way,
   * or when the log closes or loses what is read: then nothing has changed.
   */
  clean(options: CleanOptions): Promise<Cleaned | null>;
  updateConfig(config: LogConfig): void;
  /** Called after each advance of the high watermark and when the log closes; returns the unsubscribe. */
  onAdvance(listener: () => void): () => void;
  /** Checkpoints producer state, persists metadata, closes the streams. */
  close(): Promise<void>;
}
