/**
 * Memory for bulks: slabs that consecutive small bulks share, so that a quiet node pins little and a
 * busy one allocates rarely (fresh pages cost more than the copy into them). Slabs are never reused:
 * the log cache and fetch answers hold views for an unknown time; the garbage collector knows when they are gone.
 */
import {
  SLOT_BYTES,
  WAL_OBJECT_HEADER_BYTES,
  WAL_SLAB_BYTES_MAX,
  WAL_SLAB_BYTES_MIN,
} from "../../lib/limits.ts";

const OBJECT_BYTES_MAX = SLOT_BYTES + WAL_OBJECT_HEADER_BYTES;

/** A writable place; what lies before `at` belongs to earlier bulks. */
export interface MemoryPlace {
  readonly slab: Uint8Array;
  readonly at: number;
}

export class WalMemory {
  #slab = new Uint8Array(0);
  #used = 0;
  #nextBytes = WAL_SLAB_BYTES_MIN;
  #lastBulkBytes = WAL_OBJECT_HEADER_BYTES;

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
    if (2 * bytes > WAL_SLAB_BYTES_MAX) {
      return { slab: new Uint8Array(Math.min(2 * bytes, OBJECT_BYTES_MAX)), at: 0 };
    }
    while (this.#nextBytes < 2 * bytes) this.#nextBytes *= 2;
    this.#slab = new Uint8Array(this.#nextBytes);
    this.#used = 0;
    this.#nextBytes = Math.min(2 * this.#nextBytes, WAL_SLAB_BYTES_MAX);
    return { slab: this.#slab, at: 0 };
  }

  /** The bulk that started at `start` ends at `end`; the rest of a shared slab is free for the next one. */
  close(slab: Uint8Array, start: number, end: number): void {
    this.#lastBulkBytes = end - start;
    if (slab === this.#slab) this.#used = end;
  }
}
