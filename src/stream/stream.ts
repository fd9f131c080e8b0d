/** The stream port: what the log layer stands on. A stream has one owner at a time, fenced by its epoch. */
import type { Offset, StreamEpoch, StreamId } from "../lib/brand.ts";
import type { ReadOptions } from "../storage/storage.ts";
import type { StreamRecord } from "../storage/stream_record.ts";

export interface StreamAppend {
  readonly baseOffset: Offset;
  /** The record as stored; its payload is a view of the WAL's memory. */
  readonly record: StreamRecord;
  /** Resolves when durable; the confirm offset has passed the record by then. */
  readonly durable: Promise<void>;
}

export interface Stream {
  readonly streamId: StreamId;
  readonly epoch: StreamEpoch;
  /** First offset that still exists. */
  readonly startOffset: Offset;
  /** End of what is durable: for a log stream the Kafka high watermark. */
  readonly confirmOffset: Offset;
  /** End of what was appended. */
  readonly nextOffset: Offset;
  /** `count` offsets starting at `nextOffset`. Throws FaultError `overloaded`, `fenced`, `closed`. */
  append(count: number, payload: Uint8Array): StreamAppend;
  /** Records that cover [start, end) with end at most the confirm offset; see Storage.read. */
  fetch(start: Offset, end: Offset, options: ReadOptions): Promise<readonly StreamRecord[] | null>;
  trim(start: Offset): Promise<void>;
  /** Waits for appends in flight, uploads, closes in metadata at the confirm offset. */
  close(): Promise<void>;
}

export interface StreamClient {
  /** Creates a stream and opens it with this epoch; with a partition's key as its tag it is deleted with its topic. */
  create(epoch: StreamEpoch, tag?: string): Promise<Stream>;
  /** Throws FaultError `fenced` when a newer epoch or another owner holds it. */
  open(stream: StreamId, epoch: StreamEpoch): Promise<Stream>;
  /** Records of a stream that is closed, as `Stream.fetch` has them: its end is what the metadata says. */
  read(
    stream: StreamId,
    start: Offset,
    end: Offset,
    options: ReadOptions,
  ): Promise<readonly StreamRecord[] | null>;
  /** The stream must be closed. Deleting a missing stream is no error. */
  delete(stream: StreamId): Promise<void>;
  /** Closes every open stream. */
  close(): Promise<void>;
}
