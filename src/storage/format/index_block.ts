/**
 * The index block of a data object: where each stream range lies. Entries of 36 bytes, sorted by
 * (stream, start offset); there is no count field.
 *
 *   i64 stream id · i64 start offset · i32 end offset delta · i32 record count · i64 position · i32 size
 *
 * An entry may cover several adjacent data blocks of its stream. Kept as bytes: large indexes stay cheap.
 */
import { type Offset, type StreamId, streamId } from "../../lib/brand.ts";
import { DecodeError, getInt64, setInt64, viewOf } from "../../lib/bytes.ts";
import { STREAM_RECORD_HEADER_BYTES } from "../../lib/limits.ts";
import { partitionPoint } from "../../lib/partition_point.ts";
import type { StreamRange } from "../ports.ts";
import { DATA_BLOCK_HEADER_BYTES } from "./data_block.ts";

export const INDEX_ENTRY_BYTES = 36;
/** The end offset is stored as a 32-bit delta. */
export const ENTRY_OFFSETS_MAX = 2 ** 31 - 1;

export interface IndexEntry extends StreamRange {
  readonly recordCount: number;
  readonly position: number;
  /** With the headers of the blocks. */
  readonly size: number;
}

export interface Found {
  /** Adjacent entries, the first of which holds the start offset; empty when none does. */
  readonly entries: readonly IndexEntry[];
  /** Whether the end offset or the byte budget was reached inside this object. */
  readonly fulfilled: boolean;
}

export function encodeIndex(entries: readonly IndexEntry[]): Uint8Array {
  const bytes = new Uint8Array(entries.length * INDEX_ENTRY_BYTES);
  const view = viewOf(bytes);
  for (const [i, entry] of entries.entries()) {
    const at = i * INDEX_ENTRY_BYTES;
    setInt64(view, at, entry.streamId);
    setInt64(view, at + 8, entry.start);
    view.setInt32(at + 16, entry.end - entry.start);
    view.setInt32(at + 20, entry.recordCount);
    setInt64(view, at + 24, entry.position);
    view.setInt32(at + 32, entry.size);
  }
  return bytes;
}

export class IndexBlock {
  readonly #view: DataView;
  readonly count: number;

  /** Checks every entry: nothing later has to. `dataEnd` is where the data blocks end. */
  constructor(bytes: Uint8Array, dataEnd: number) {
    if (bytes.length % INDEX_ENTRY_BYTES !== 0) {
      throw new DecodeError(`Index of ${bytes.length} bytes is not a multiple of an entry`);
    }
    this.#view = viewOf(bytes);
    this.count = bytes.length / INDEX_ENTRY_BYTES;
    let previous: IndexEntry | null = null;
    for (let i = 0; i < this.count; i++) {
      const entry = this.entry(i);
      if (!isSound(entry, dataEnd) || (previous !== null && !isAfter(previous, entry))) {
        throw new DecodeError(`Index entry ${i} is not valid or not in order`);
      }
      previous = entry;
    }
  }

  get bytes(): number {
    return this.#view.byteLength;
  }

  entry(i: number): IndexEntry {
    const at = i * INDEX_ENTRY_BYTES;
    const view = this.#view;
    const start = getInt64(view, at + 8);
    return {
      streamId: streamId(getInt64(view, at)),
      start,
      end: start + view.getInt32(at + 16),
      recordCount: view.getInt32(at + 20),
      position: getInt64(view, at + 24),
      size: view.getInt32(at + 32),
    };
  }

  /** Index of the last entry at or before (stream, offset); -1 when all lie behind. */
  #floor(stream: StreamId, offset: Offset): number {
    return partitionPoint(this.count, (i) => {
      const at = i * INDEX_ENTRY_BYTES;
      const found = getInt64(this.#view, at);
      return found < stream || (found === stream && getInt64(this.#view, at + 8) <= offset);
    }) - 1;
  }

  /**
   * Entries that cover [start, end) of a stream without a gap, as far as this object has them, until
   * `bytesMax` of payload. The first entry counts only if it begins at `start`: how much of it lies
   * before is not known.
   */
  find(stream: StreamId, start: Offset, end: Offset, bytesMax: number): Found {
    const entries: IndexEntry[] = [];
    let next = start;
    let bytesLeft = bytesMax;
    for (let i = Math.max(0, this.#floor(stream, start)); i < this.count; i++) {
      const entry = this.entry(i);
      if (entry.streamId > stream) break;
      if (entry.streamId < stream || entry.end <= next) continue;
      if (entry.start > next) break;
      if (entry.start === next) bytesLeft -= payloadBytes(entry);
      next = entry.end;
      entries.push(entry);
      if (next >= end || bytesLeft <= 0) return { entries, fulfilled: true };
    }
    return { entries, fulfilled: false };
  }

  /** Ranges of all streams, adjacent ones merged, sorted by (stream, start). */
  ranges(): StreamRange[] {
    const ranges: StreamRange[] = [];
    for (let i = 0; i < this.count; i++) {
      const { streamId: id, start, end } = this.entry(i);
      const last = ranges.at(-1);
      if (last?.streamId === id && last.end === start) {
        ranges[ranges.length - 1] = { ...last, end };
      } else ranges.push({ streamId: id, start, end });
    }
    return ranges;
  }
}

function payloadBytes({ size, recordCount }: IndexEntry): number {
  return size - recordCount * STREAM_RECORD_HEADER_BYTES - DATA_BLOCK_HEADER_BYTES;
}

function isSound(entry: IndexEntry, dataEnd: number): boolean {
  return entry.start >= 0 && entry.end > entry.start && entry.recordCount > 0 &&
    entry.size > DATA_BLOCK_HEADER_BYTES && entry.position >= 0 &&
    entry.position + entry.size <= dataEnd;
}

function isAfter(a: IndexEntry, b: IndexEntry): boolean {
  return a.streamId < b.streamId || (a.streamId === b.streamId && a.end <= b.start);
}
