/**
 * The storage engine's facade: append, read, trim and force-upload by (stream, offset).
 * It joins WAL, log cache, uploader and block cache; it knows nothing of Kafka.
 */
import type { Offset, StreamId } from "../lib/brand.ts";
import type { FaultError } from "../lib/errors.ts";
import type { ReadLease } from "../lib/read_lease.ts";
import type { StreamRecord } from "./stream_record.ts";
import type { Learned } from "./written_index.ts";

export interface Append {
  /** The record as stored; its payload is a view of the WAL's memory, until the next append. */
  readonly record: StreamRecord;
  /** Resolves when durable, in append order over all streams. */
  readonly durable: Promise<void>;
}

export interface ReadOptions {
  /** At least one record is returned when any exists, however large. */
  readonly bytesMax: number;
  /** Answer null instead of reading objects: lets a hot fetch never wait behind a cold one. */
  readonly cacheOnly?: boolean;
  /** Something opens, and others wait for it: objects are read with permits of their own, not behind cold readers. */
  readonly isOpening?: boolean;
  readonly signal?: AbortSignal;
  /** Ended by the reader when it views none of the records any more; without one their memory is not used again. */
  readonly lease?: ReadLease;
}

/** What an engine that was given up leaves to recovery. */
export interface NotUploaded {
  /** Acknowledged, and safe in the WAL. */
  readonly durableBytes: number;
  readonly slots: number;
  /** Not acknowledged: it may be stored or not. */
  readonly unacknowledgedBytes: number;
}

/** What uploads are like: other work follows them, or lets them pass. */
export interface UploadLoad {
  /** Committed so far. */
  readonly bytes: number;
  /** Somebody waits for an upload, or room gets short. */
  readonly isHurried: boolean;
}

export interface Storage {
  /** The caller keeps offsets of one stream contiguous. Throws FaultError `overloaded`, `fenced`, `closed`. */
  append(record: StreamRecord): Append;
  /**
   * Records that cover [start, end), in order and without gaps; the first may begin before `start`.
   * Null only with `cacheOnly` and a miss. Throws `object-missing`, `corrupt`, `data-loss`, `store-unavailable`.
   */
  read(
    stream: StreamId,
    start: Offset,
    end: Offset,
    options: ReadOptions,
  ): Promise<readonly StreamRecord[] | null>;
  /** Resolves when everything of the stream that was durable at the call is committed to data objects. */
  forceUpload(stream: StreamId): Promise<void>;
  /** Objects that this node has committed beside its uploads: readers need not ask what is in them. */
  learn(written: Learned): void;
  uploadLoad(): UploadLoad;
  /** Uploads and commits all, then closes the WAL. */
  close(): Promise<void>;
  /**
   * Gives up at once, as a crash would: what waits fails with the fault, and closing waits for the store no more.
   * What was acknowledged lies in the WAL, for the next start to recover.
   */
  abandon(fault: FaultError): NotUploaded;
}
