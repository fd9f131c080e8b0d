/**
 * One open stream: hands out offsets, follows what is durable, and stops for good when an append is lost.
 * A lost append leaves a hole that only recovery can judge, so nothing may be appended behind it.
 */
import { assert } from "../lib/assert.ts";
import type { Offset, StreamEpoch, StreamId } from "../lib/brand.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { refused } from "../storage/engine_refusal.ts";
import type { Refusal, StreamManager } from "../storage/ports.ts";
import type { ReadOptions, Storage } from "../storage/storage.ts";
import { endOffset, type StreamRecord } from "../storage/stream_record.ts";
import type { Stream, StreamAppend } from "./stream.ts";

export interface OpenedStream {
  readonly streamId: StreamId;
  readonly epoch: StreamEpoch;
  readonly start: Offset;
  readonly end: Offset;
}

export interface StreamParts {
  readonly storage: Storage;
  readonly streams: StreamManager;
  /** The stream is closed in metadata, or lost: its client forgets it. */
  readonly onClosed: () => void;
}

export class StreamImpl implements Stream {
  readonly streamId: StreamId;
  readonly epoch: StreamEpoch;
  readonly #parts: StreamParts;
  #startOffset: Offset;
  #confirmOffset: Offset;
  #nextOffset: Offset;
  #fault: FaultError | null = null;
  #closing: Promise<void> | null = null;
  /** Settles when the newest append has its outcome; appends settle in order. */
  #lastAppend: Promise<void> = Promise.resolve();

  constructor({ streamId, epoch, start, end }: OpenedStream, parts: StreamParts) {
    this.streamId = streamId;
    this.epoch = epoch;
    this.#parts = parts;
    this.#startOffset = start;
    // A trim may have passed the end.
    this.#confirmOffset = Math.max(start, end);
    this.#nextOffset = this.#confirmOffset;
  }

  /** A trim that failed here may have come through all the same: then metadata says so. */
  get startOffset(): Offset {
    const row = this.#parts.streams.viewStream(this.streamId);
    if (row?.epoch === this.epoch) this.#startOffset = Math.max(this.#startOffset, row.start);
    return this.#startOffset;
  }
  get confirmOffset(): Offset {
    return this.#confirmOffset;
  }
  get nextOffset(): Offset {
    return this.#nextOffset;
  }

  get isClosing(): boolean {
    return this.#closing !== null;
  }

  append(count: number, payload: Uint8Array): StreamAppend {
    assert(Number.isInteger(count) && count > 0, `Append of ${count} offsets`);
    this.#expectOpen();
    const baseOffset = this.#nextOffset;
    const { record, durable } = this.#parts.storage.append({
      streamId: this.streamId,
      epoch: this.epoch,
      baseOffset,
      count,
      payload,
    });
    this.#nextOffset += count;
    const confirmed = durable.then(() => this.#confirm(record), (error: unknown) => {
      this.#fence(error);
      throw error;
    });
    this.#lastAppend = confirmed.catch(() => {});
    return { baseOffset, record, durable: confirmed };
  }

  #confirm(record: StreamRecord): void {
    assert(
      record.baseOffset === this.#confirmOffset,
      `Stream ${this.streamId}: ${record.baseOffset} is durable before ${this.#confirmOffset}`,
    );
    this.#confirmOffset = endOffset(record);
  }

  #fence(cause: unknown): void {
    this.#fault ??= new FaultError(
      "fenced",
      `Stream ${this.streamId} lost an append: ${messageOf(cause)}`,
      { retriable: false, cause },
    );
  }

  #expectOpen(): void {
    if (this.#fault !== null) throw this.#fault;
    if (this.#closing === null) return;
    throw new FaultError("closed", `Stream ${this.streamId} is closed`, { retriable: false });
  }

  /** Throws RangeError outside [startOffset, confirmOffset]: the caller checks before it asks. */
  async fetch(
    start: Offset,
    end: Offset,
    options: ReadOptions,
  ): Promise<readonly StreamRecord[] | null> {
    this.#expectOpen();
    assert(start <= end, `Fetch of [${start}, ${end})`);
    const { startOffset } = this;
    if (start < startOffset || end > this.#confirmOffset) {
      throw new RangeError(
        `Fetch of [${start}, ${end}) outside [${startOffset}, ${this.#confirmOffset})`,
      );
    }
    if (start === end) return [];
    return await this.#parts.storage.read(this.streamId, start, end, options);
  }

  async trim(start: Offset): Promise<void> {
    this.#expectOpen();
    assert(start <= this.#confirmOffset, `Trim to ${start} behind ${this.#confirmOffset}`);
    if (start <= this.startOffset) return;
    const answer = await this.#parts.streams.trimStream(this.streamId, this.epoch, start);
    if (!answer.ok) throw this.#refused("Trim", answer);
    this.#startOffset = Math.max(this.#startOffset, start);
  }

  #refused(what: string, refusal: Refusal): Error {
    const error = refused(`${what} of stream ${this.streamId}`, refusal);
    if (error instanceof FaultError) this.#fence(error);
    return error;
  }

  /** After a failure the stream stays closed for appends, and closing may be tried again. */
  close(): Promise<void> {
    if (this.#closing === null || this.#closeFailed) this.#closing = this.#shutDown();
    return this.#closing;
  }

  #closeFailed = false;

  async #shutDown(): Promise<void> {
    this.#closeFailed = false;
    try {
      await this.#lastAppend;
      if (this.#fault === null) await this.#closeInMetadata();
      this.#parts.onClosed();
    } catch (error) {
      this.#closeFailed = true;
      throw error;
    }
  }

  /** A stream that somebody else took over is not ours to close; its new owner knows its end. */
  async #closeInMetadata(): Promise<void> {
    const { storage, streams } = this.#parts;
    await storage.forceUpload(this.streamId);
    const answer = await streams.closeStream(this.streamId, this.epoch, this.#confirmOffset);
    if (answer.ok) return;
    const error = this.#refused("Close", answer);
    if (!(error instanceof FaultError)) throw error;
  }
}
