/** The sparse index of one node in memory: bounded, thinned where it would grow beyond. Only ever a hint. */
import type { ObjectId, Offset, StreamId } from "../../lib/brand.ts";
import { DecodeError } from "../../lib/bytes.ts";
import { SPARSE_INDEX_BYTES_MAX, SPARSE_RANGE_BYTES } from "../../lib/limits.ts";
import { decodeSparseIndex, encodeSparseIndex, type SparseRange } from "../format/sparse_index.ts";
import type { StreamRange } from "../ports.ts";
import { SparseRanges } from "./sparse_ranges.ts";

export class SparseIndex {
  readonly #bytesMax: number;
  readonly #streams = new Map<StreamId, SparseRanges>();
  readonly #objects = new Set<ObjectId>();
  #count = 0;

  constructor(bytesMax = SPARSE_INDEX_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Throws DecodeError or AssertionError. Ours are thinned before they are written: one that is too large is none
   * of ours, and to thin it would keep everybody waiting.
   */
  static decode(bytes: Uint8Array, bytesMax = SPARSE_INDEX_BYTES_MAX): SparseIndex {
    const index = new SparseIndex(bytesMax);
    const streams = decodeSparseIndex(bytes);
    const count = streams.reduce((sum, { ranges }) => sum + ranges.length, 0);
    if (count * SPARSE_RANGE_BYTES > bytesMax) {
      throw new DecodeError(`Sparse index of ${count} ranges`);
    }
    for (const { streamId, ranges } of streams) {
      if (ranges.length === 0) continue;
      index.#streams.set(streamId, new SparseRanges(ranges));
      index.#count += ranges.length;
      for (const { objectId } of ranges) index.#objects.add(objectId);
    }
    return index;
  }

  encode(): Uint8Array {
    const streams = [...this.#streams].toSorted(([a], [b]) => a - b);
    return encodeSparseIndex(
      streams.map(([streamId, { ranges }]) => ({ streamId, ranges })),
    );
  }

  get bytes(): number {
    return this.#count * SPARSE_RANGE_BYTES;
  }
  get streams(): number {
    return this.#streams.size;
  }

  /** Whether ranges of the object were put in; some of them may be thinned out. */
  has(id: ObjectId): boolean {
    return this.#objects.has(id);
  }

  floor(stream: StreamId, offset: Offset): SparseRange | null {
    return this.#streams.get(stream)?.floor(offset) ?? null;
  }

  ranges(stream: StreamId): readonly SparseRange[] {
    return this.#streams.get(stream)?.ranges ?? [];
  }

  add(objectId: ObjectId, ranges: Iterable<StreamRange>): void {
    this.#objects.add(objectId);
    for (const { streamId, start, end } of ranges) {
      const known = this.#streams.get(streamId) ?? new SparseRanges();
      this.#streams.set(streamId, known);
      this.#change(known, () => known.add({ start, end, objectId }));
    }
    this.#fit();
  }

  /** Forgets objects that are gone. */
  keepOnly(live: ReadonlySet<ObjectId>): void {
    for (const id of this.#objects) {
      if (!live.has(id)) this.#objects.delete(id);
    }
    for (const [stream, known] of this.#streams) {
      this.#change(known, () => known.keepOnly(live));
      if (known.ranges.length === 0) this.#streams.delete(stream);
    }
  }

  #change(known: SparseRanges, change: () => void): void {
    this.#count -= known.ranges.length;
    change();
    this.#count += known.ranges.length;
  }

  /** A stream loses its last range only when no stream has more than one. */
  #fit(): void {
    this.#thin((known) => known.ranges.length > 1);
    this.#thin(() => true);
  }

  /** One range of each stream after the other: who gave one goes to the end of the map, and of the loop. */
  #thin(mayThin: (known: SparseRanges) => boolean): void {
    for (const [stream, known] of this.#streams) {
      if (this.bytes <= this.#bytesMax) return;
      if (!mayThin(known)) continue;
      this.#change(known, () => known.thin());
      this.#streams.delete(stream);
      if (known.ranges.length > 0) this.#streams.set(stream, known);
    }
  }
}
