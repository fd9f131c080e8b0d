/**
 * Consecutive records of one stream inside a log cache block. A record is one number: which memory it lies
 * in, and where. Everything else is read from there, so that tiny records by the million stay cheap.
 */
import { assert } from "../../lib/assert.ts";
import type { Offset, StreamId } from "../../lib/brand.ts";
import { LOG_CACHE_CURSORS_MAX, SLOT_BYTES, STREAM_RECORD_HEADER_BYTES } from "../../lib/limits.ts";
import type { RecordList, RecordMemory } from "../record_list.ts";
import type { StreamRecord } from "../stream_record.ts";
import { firstEndingAfter } from "./record_run.ts";

/** Above every position inside one WAL object; a power of two, so that division is exact. */
const PLACES_PER_MEMORY = 2 * SLOT_BYTES;
/** In a shorter run the search is faster than the cursors. */
const CURSOR_RECORDS_MIN = 64;

/** Where readers that read on are; two may be at the same offset. */
interface Cursor {
  readonly index: number;
  readers: number;
}

export class StreamRun implements RecordList {
  readonly streamId: StreamId;
  readonly start: Offset;
  #end: Offset;
  #bytes = 0;
  /** The block's, shared by its runs. */
  readonly #memories: readonly RecordMemory[];
  readonly #places: number[] = [];
  #cursors: Map<Offset, Cursor> | null = null;

  constructor(streamId: StreamId, start: Offset, memories: readonly RecordMemory[]) {
    this.streamId = streamId;
    this.start = start;
    this.#end = start;
    this.#memories = memories;
  }

  get end(): Offset {
    return this.#end;
  }
  /** Encoded size of the records. */
  get bytes(): number {
    return this.#bytes;
  }
  get length(): number {
    return this.#places.length;
  }
  /** Places of sequential readers that are remembered. */
  get cursors(): number {
    return this.#cursors?.size ?? 0;
  }

  /** The record in the block's memory of that index. */
  push(memoryIndex: number, at: number): void {
    const memory = this.#memories[memoryIndex]!;
    assert(memory.startAt(at) === this.#end, `Log cache: gap in stream ${this.streamId}`);
    this.#places.push(memoryIndex * PLACES_PER_MEMORY + at);
    this.#end = memory.endAt(at);
    this.#bytes += STREAM_RECORD_HEADER_BYTES + memory.payloadBytesAt(at);
  }

  /** Takes over the records of the run that follows; its block's memories stand behind ours from `shift` on. */
  take(next: StreamRun, shift: number): void {
    assert(next.start === this.#end, `Log cache: gap in stream ${this.streamId}`);
    for (const place of next.#places) this.#places.push(place + shift * PLACES_PER_MEMORY);
    this.#end = next.#end;
    this.#bytes += next.#bytes;
  }

  #memoryOf(i: number): RecordMemory {
    return this.#memories[Math.floor(this.#places[i]! / PLACES_PER_MEMORY)]!;
  }
  #positionOf(i: number): number {
    return this.#places[i]! % PLACES_PER_MEMORY;
  }

  at(i: number): StreamRecord {
    return this.#memoryOf(i).recordAt(this.#positionOf(i));
  }
  startAt(i: number): Offset {
    return this.#memoryOf(i).startAt(this.#positionOf(i));
  }
  endAt(i: number): Offset {
    return this.#memoryOf(i).endAt(this.#positionOf(i));
  }
  payloadBytesAt(i: number): number {
    return this.#memoryOf(i).payloadBytesAt(this.#positionOf(i));
  }
  write(i: number, target: Uint8Array, at: number): number {
    return this.#memoryOf(i).copy(this.#positionOf(i), target, at);
  }

  /** Index of the first record that ends behind the offset. A reader that reads on finds it at once. */
  indexOf(offset: Offset): number {
    const cursor = this.#cursors?.get(offset);
    if (cursor === undefined) return firstEndingAfter(this, offset);
    cursor.readers -= 1;
    if (cursor.readers === 0) this.#cursors?.delete(offset);
    return cursor.index;
  }

  /** A reader has read up to the record of that index, which begins at the offset. */
  remember(offset: Offset, index: number): void {
    if (this.#places.length < CURSOR_RECORDS_MIN) return;
    this.#cursors ??= new Map();
    const cursor = this.#cursors.get(offset);
    if (cursor !== undefined) {
      cursor.readers += 1;
      return;
    }
    if (this.#cursors.size >= LOG_CACHE_CURSORS_MAX) {
      const [oldest] = this.#cursors.keys();
      this.#cursors.delete(oldest!);
    }
    this.#cursors.set(offset, { index, readers: 1 });
  }
}
