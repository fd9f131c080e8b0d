/**
 * Memory for bulks: slabs that consecutive small bulks share, so that a quiet node pins little and a
 * busy one allocates rarely (fresh pages cost more than the copy into them). A slab comes back once its
 * last slot has left the log cache; one that is viewed even then is left to the garbage collector.
 */
import {
  SLOT_BYTES,
  WAL_KEPT_SLABS_MAX,
  WAL_OBJECT_HEADER_BYTES,
  WAL_SLAB_BYTES_MAX,
  WAL_SLAB_BYTES_MIN,
} from "../../lib/limits.ts";
import { freeMemory } from "../../lib/free_memory.ts";

const OBJECT_BYTES_MAX = SLOT_BYTES + WAL_OBJECT_HEADER_BYTES;

/** A writable place; what lies before `at` belongs to earlier bulks. */
export interface MemoryPlace {
  readonly slab: Uint8Array;
  readonly at: number;
}

export class WalMemory {
  #slab: Uint8Array = new Uint8Array(0);
  #used = 0;
  #nextBytes = WAL_SLAB_BYTES_MIN;
  #lastBulkBytes = WAL_OBJECT_HEADER_BYTES;
  /** The slabs that closed bulks lie in, with the last slot of each, ascending by it. */
  readonly #lastSlots = new Map<Uint8Array, number>();
  /** Slabs of the largest shared size, for use again. */
  readonly #kept: Uint8Array[] = [];

  /** Where the next bulk starts. A bulk as large as the last one is expected, and should not have to move. */
  open(): MemoryPlace {
    const rest = this.#slab.length - this.#used;
    if (rest >= Math.min(this.#lastBulkBytes, WAL_SLAB_BYTES_MAX)) {
      return { slab: this.#slab, at: this.#used };
    }
    return this.fresh(WAL_OBJECT_HEADER_BYTES);
  }

  /** Memory for a bulk that outgrew its place: at least `bytes`, and room to go on growing. */
  fresh(bytes: number): MemoryPlace {
    if (bytes > WAL_SLAB_BYTES_MAX) {
      return { slab: new Uint8Array(Math.min(2 * bytes, OBJECT_BYTES_MAX)), at: 0 };
    }
    while (this.#nextBytes < 2 * bytes) this.#nextBytes *= 2;
    this.#nextBytes = Math.min(this.#nextBytes, WAL_SLAB_BYTES_MAX);
    const kept = this.#nextBytes === WAL_SLAB_BYTES_MAX ? this.#kept.pop() : undefined;
    this.#slab = kept ?? new Uint8Array(this.#nextBytes);
    this.#used = 0;
    this.#nextBytes = Math.min(2 * this.#nextBytes, WAL_SLAB_BYTES_MAX);
    return { slab: this.#slab, at: 0 };
  }

  /** The bulk of `slot` lies between `start` and `end`; the rest of a shared slab is free for the next one. */
  close(slab: Uint8Array, start: number, end: number, slot: number): void {
    this.#lastBulkBytes = end - start;
    this.#lastSlots.delete(slab);
    this.#lastSlots.set(slab, slot);
    if (slab === this.#slab) this.#used = end;
  }

  /** Takes back the slabs of slots below. The current one stays: its rest is still to be filled. */
  forget(slot: number, isViewed: (buffer: ArrayBufferLike) => boolean): void {
    for (const [slab, lastSlot] of this.#lastSlots) {
      if (lastSlot >= slot) return;
      if (slab === this.#slab) continue;
      this.#lastSlots.delete(slab);
      if (!isViewed(slab.buffer)) this.#takeBack(slab);
    }
  }

  #takeBack(slab: Uint8Array): void {
    const isKept = slab.length === WAL_SLAB_BYTES_MAX && this.#kept.length < WAL_KEPT_SLABS_MAX;
    if (isKept) this.#kept.push(slab);
    else freeMemory(slab.buffer);
  }
}
