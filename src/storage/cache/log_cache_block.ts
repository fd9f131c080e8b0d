/** One block of the log cache: records of many streams in WAL order, uploaded and committed as a whole. */
import { assert } from "../../lib/assert.ts";
import { type StreamId, streamId } from "../../lib/brand.ts";
import {
  LOG_CACHE_RECORD_OVERHEAD_BYTES,
  LOG_CACHE_STREAM_OVERHEAD_BYTES,
  STREAM_RECORD_HEADER_BYTES,
} from "../../lib/limits.ts";
import { OwnMemory, type RecordMemory } from "../record_list.ts";
import type { StreamRecord } from "../stream_record.ts";
import { StreamRun } from "./stream_run.ts";

export class LogCacheBlock {
  readonly #runs = new Map<StreamId, StreamRun>();
  /** Where the records lie, in order of arrival. */
  readonly #memories: RecordMemory[] = [];
  readonly #own = new OwnMemory();
  readonly firstSlot: number;
  #lastSlot: number;
  #bytes = 0;
  #committed = false;

  constructor(firstSlot: number) {
    this.firstSlot = firstSlot;
    this.#lastSlot = firstSlot;
  }

  /** What the block costs in memory. */
  get bytes(): number {
    return this.#bytes;
  }
  get lastSlot(): number {
    return this.#lastSlot;
  }
  get streams(): number {
    return this.#runs.size;
  }
  /** Its records are in data objects that metadata knows: it may be freed. */
  get committed(): boolean {
    return this.#committed;
  }

  run(stream: StreamId): StreamRun | undefined {
    return this.#runs.get(stream);
  }

  /** Ascending by stream id. */
  runs(): StreamRun[] {
    return [...this.#runs.values()].toSorted((a, b) => a.streamId - b.streamId);
  }

  /** False for a record that leaves a gap: the stream was elsewhere meanwhile. */
  continuesWith(memory: RecordMemory, at: number): boolean {
    const run = this.#runs.get(streamId(memory.streamAt(at)));
    return run === undefined || run.end === memory.startAt(at);
  }

  /** Copies the record: for those who do not hold it in memory that stays. */
  put(record: StreamRecord, slot: number): void {
    const { memory, at } = this.#own.copy(record);
    this.putStored(memory, at, slot);
  }

  /** Takes an encoded record as it lies in memory that stays as it is while the block lives. */
  putStored(memory: RecordMemory, at: number, slot: number): void {
    assert(slot >= this.#lastSlot, `Log cache: slot ${slot} after ${this.#lastSlot}`);
    const stream = streamId(memory.streamAt(at));
    if (this.#memories.at(-1) !== memory) this.#memories.push(memory);
    this.#runOf(stream, memory.startAt(at)).push(this.#memories.length - 1, at);
    this.#lastSlot = slot;
    this.#bytes += STREAM_RECORD_HEADER_BYTES + memory.payloadBytesAt(at) +
      LOG_CACHE_RECORD_OVERHEAD_BYTES;
  }

  #runOf(stream: StreamId, start: number): StreamRun {
    const run = this.#runs.get(stream);
    if (run !== undefined) return run;
    const fresh = new StreamRun(stream, start, this.#memories);
    this.#runs.set(stream, fresh);
    this.#bytes += LOG_CACHE_STREAM_OVERHEAD_BYTES;
    return fresh;
  }

  markCommitted(): void {
    this.#committed = true;
  }

  /** Whether the younger block's records follow ours without a gap, in every stream that both have. */
  isFollowedBy(next: LogCacheBlock): boolean {
    for (const run of next.#runs.values()) {
      const own = this.#runs.get(run.streamId);
      if (own !== undefined && own.end !== run.start) return false;
    }
    return true;
  }

  /** Takes over all records of the next block, which keeps its own: whoever still reads it sees no change. */
  take(next: LogCacheBlock): void {
    assert(this.#committed && next.#committed, "Only committed blocks are merged");
    const shift = this.#memories.length;
    this.#memories.push(...next.#memories);
    for (const run of next.#runs.values()) this.#runOf(run.streamId, run.start).take(run, shift);
    // Streams are counted where their runs are made.
    this.#bytes += next.#bytes - next.streams * LOG_CACHE_STREAM_OVERHEAD_BYTES;
    this.#lastSlot = next.#lastSlot;
  }
}
