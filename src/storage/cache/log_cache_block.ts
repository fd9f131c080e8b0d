/** One block of the log cache: records of many streams in WAL order, uploaded and committed as a whole. */
import { assert } from "../../lib/assert.ts";
import type { Offset, StreamId } from "../../lib/brand.ts";
import { LOG_CACHE_RECORD_OVERHEAD_BYTES } from "../../lib/limits.ts";
import { encodedBytes, endOffset, type StreamRecord } from "../stream_record.ts";

/** Consecutive records of one stream inside a block. */
export interface StreamRun {
  readonly streamId: StreamId;
  readonly start: Offset;
  readonly end: Offset;
  /** Encoded size of the records. */
  readonly bytes: number;
  readonly records: readonly StreamRecord[];
}

interface OpenRun extends StreamRun {
  end: Offset;
  bytes: number;
  readonly records: StreamRecord[];
}

/** What a record costs in memory. */
export function cachedBytes(record: StreamRecord): number {
  return encodedBytes(record) + LOG_CACHE_RECORD_OVERHEAD_BYTES;
}

export class LogCacheBlock {
  readonly #runs = new Map<StreamId, OpenRun>();
  readonly firstSlot: number;
  #lastSlot: number;
  #bytes = 0;
  #committed = false;

  constructor(firstSlot: number) {
    this.firstSlot = firstSlot;
    this.#lastSlot = firstSlot;
  }

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
  continues(record: StreamRecord): boolean {
    const run = this.#runs.get(record.streamId);
    return run === undefined || run.end === record.baseOffset;
  }

  put(record: StreamRecord, slot: number): void {
    assert(this.continues(record), `Log cache: gap in stream ${record.streamId}`);
    assert(slot >= this.#lastSlot, `Log cache: slot ${slot} after ${this.#lastSlot}`);
    this.#lastSlot = slot;
    this.#bytes += cachedBytes(record);
    const run = this.#runs.get(record.streamId);
    if (run === undefined) {
      this.#runs.set(record.streamId, {
        streamId: record.streamId,
        start: record.baseOffset,
        end: endOffset(record),
        bytes: encodedBytes(record),
        records: [record],
      });
      return;
    }
    run.records.push(record);
    run.end = endOffset(record);
    run.bytes += encodedBytes(record);
  }

  markCommitted(): void {
    this.#committed = true;
  }
}
