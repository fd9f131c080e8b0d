/**
 * Writes cleaned batches to a new stream and accounts for them as segments. Each stream record covers the hole
 * before its batch too, so that the stream has no gaps while offsets stay what they are.
 */
import { type Clock, sleep } from "../../env/clock.ts";
import { assert } from "../../lib/assert.ts";
import type { Offset } from "../../lib/brand.ts";
import { FaultError, isFault } from "../../lib/errors.ts";
import {
  CLEAN_IN_FLIGHT_BYTES,
  CLEAN_OVERLOAD_PAUSE_MS,
  TIME_INDEX_INTERVAL_BYTES,
} from "../../lib/limits.ts";
import { type BatchHeader, lastOffset, readBatchHeader } from "../../protocol/record_batch.ts";
import type { StreamAppend } from "../../stream/stream.ts";
import { type RollConfig, Segment } from "../segment.ts";
import { extended } from "../slice.ts";
import { encodeTimeEntries } from "../time_index.ts";
import type { CleanedPart, CleanedStreams } from "./cleaned_streams.ts";

export interface CleanWriterOptions {
  readonly part: CleanedPart;
  /** Where the cleaned log begins. */
  readonly base: Offset;
  readonly segmentBytes: number;
  /** Offsets without a batch in a row; fewer than a stream record can count. */
  readonly holeOffsetsMax: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export class CleanWriter {
  readonly #options: CleanWriterOptions;
  readonly #segments: Segment[] = [];
  /** By size alone: records of old segments come together. */
  readonly #roll: RollConfig;
  #end: Offset;
  #bytes = 0;
  #inFlightBytes = 0;
  #lastAppend: Promise<void> = Promise.resolve();

  constructor(options: CleanWriterOptions) {
    this.#options = options;
    this.#roll = { segmentBytes: options.segmentBytes, segmentMs: Infinity };
    this.#end = options.base;
  }

  /** Every offset below is covered. */
  get end(): Offset {
    return this.#end;
  }
  get bytes(): number {
    return this.#bytes;
  }

  /** Whether a record up to the end of this batch would cover too many offsets, so that one has to come before. */
  mustBridge(header: BatchHeader): boolean {
    return lastOffset(header) - this.#end >= this.#options.holeOffsetsMax;
  }

  /** A batch as it is left; `source` is the segment that it came from. */
  async write(batch: Uint8Array, source: Segment): Promise<void> {
    const header = readBatchHeader(batch);
    const end = lastOffset(header) + 1;
    const { durable } = await this.#append(end - this.#end, batch);
    this.#lastAppend = durable;
    durable.catch(() => {});
    this.#count(batch, header, source);
    this.#end = end;
    this.#bytes += batch.length;
    this.#inFlightBytes += batch.length;
    if (this.#inFlightBytes < CLEAN_IN_FLIGHT_BYTES) return;
    await durable;
    this.#inFlightBytes = 0;
  }

  #count(batch: Uint8Array, header: BatchHeader, source: Segment): void {
    const counted = {
      baseOffset: this.#end,
      lastOffset: lastOffset(header),
      bytes: batch.length,
      // Nobody finds a record by the time of an empty batch, and retention must not wait for it.
      maxTimestampMs: header.recordCount === 0 ? -1 : header.maxTimestamp,
    };
    const last = this.#segments.at(-1);
    if (last === undefined || last.isFullFor(counted, this.#roll, 0)) {
      last?.seal();
      const { part, base } = this.#options;
      const start = this.#end - base;
      this.#segments.push(new Segment(this.#end, source.createdMs, { part, start }));
    }
    this.#segments.at(-1)!.countBatch(counted, source.lastModifiedMs);
  }

  /** Producers go first when there is no room. */
  async #append(count: number, batch: Uint8Array): Promise<StreamAppend> {
    const { part, clock, signal } = this.#options;
    for (;;) {
      if (signal.aborted) {
        throw new FaultError("aborted", "The log closes", { retriable: true });
      }
      try {
        return part.log.append(count, batch);
      } catch (error) {
        if (!isFault(error, "overloaded")) throw error;
      }
      await sleep(clock, CLEAN_OVERLOAD_PAUSE_MS, signal);
    }
  }

  /** The segments, once all of them are durable. */
  async finish(streams: Pick<CleanedStreams, "addTimeStream">): Promise<readonly Segment[]> {
    this.#segments.at(-1)?.seal();
    await this.#writeTimes(streams);
    await this.#lastAppend;
    const { part, base } = this.#options;
    assert(part.log.confirmOffset === this.#end - base, "all that was cleaned is durable");
    return this.#segments;
  }

  /** Small segments are searched faster than an index. */
  async #writeTimes(streams: Pick<CleanedStreams, "addTimeStream">): Promise<void> {
    const { part } = this.#options;
    let last: Promise<void> = Promise.resolve();
    for (const segment of this.#segments) {
      const entries = segment.timePending.splice(0);
      if (entries.length === 0 || segment.bytes <= TIME_INDEX_INTERVAL_BYTES) continue;
      const stream = part.time ?? await streams.addTimeStream(part);
      const payload = encodeTimeEntries(entries, segment.baseOffset);
      const { baseOffset, durable } = stream.append(payload.length, payload);
      segment.timeSlice = extended(segment.timeSlice, baseOffset, payload.length);
      durable.catch(() => {});
      last = durable;
    }
    await last;
  }
}
