/**
 * From keys to their newest offsets, in bounded memory: of a key only its MD5 is kept, as in Kafka, 24 bytes
 * with the offset. Two keys with one hash would be taken for one; whoever could make such keys may as well
 * write over the other's records.
 */
import { assert } from "../../lib/assert.ts";
import type { Offset } from "../../lib/brand.ts";
import { viewOf } from "../../lib/bytes.ts";
import { md5 } from "../../lib/md5.ts";

const HASH_WORDS = 4;
const SLOT_BYTES = 4 * HASH_WORDS + 8;
/** Fuller tables search too long. */
const LOAD_MAX = 0.9;
const SLOTS_MIN = 16;
const EMPTY = -1;

export class OffsetMap {
  readonly #slots: number;
  readonly #hashes: Uint32Array;
  readonly #offsets: Float64Array;
  readonly #sizeMax: number;
  #size = 0;

  /** Takes memory for `keysMax` keys, and never more than `bytesMax`. */
  constructor(keysMax: number, bytesMax: number) {
    const wanted = Math.max(SLOTS_MIN, Math.ceil(keysMax / LOAD_MAX) + 1);
    this.#slots = Math.max(SLOTS_MIN, Math.min(wanted, Math.floor(bytesMax / SLOT_BYTES)));
    this.#hashes = new Uint32Array(HASH_WORDS * this.#slots);
    this.#offsets = new Float64Array(this.#slots).fill(EMPTY);
    this.#sizeMax = Math.floor(this.#slots * LOAD_MAX);
  }

  get size(): number {
    return this.#size;
  }
  get isFull(): boolean {
    return this.#size >= this.#sizeMax;
  }

  /** Offsets are put in rising order. */
  put(key: Uint8Array, offset: Offset): void {
    assert(!this.isFull, "a full map takes no key");
    const hash = viewOf(md5(key));
    const slot = this.#find(hash);
    if (this.#offsets[slot] === EMPTY) this.#size++;
    for (let i = 0; i < HASH_WORDS; i++) {
      this.#hashes[HASH_WORDS * slot + i] = hash.getUint32(4 * i);
    }
    this.#offsets[slot] = offset;
  }

  /** -1 when the key was never put. */
  get(key: Uint8Array): Offset {
    return this.#offsets[this.#find(viewOf(md5(key)))]!;
  }

  /** The key's slot, or the free one where it belongs; some are always free. */
  #find(hash: DataView): number {
    let slot = hash.getUint32(0) % this.#slots;
    while (this.#offsets[slot] !== EMPTY && !this.#holds(slot, hash)) {
      slot = (slot + 1) % this.#slots;
    }
    return slot;
  }

  #holds(slot: number, hash: DataView): boolean {
    for (let i = 0; i < HASH_WORDS; i++) {
      if (this.#hashes[HASH_WORDS * slot + i] !== hash.getUint32(4 * i)) return false;
    }
    return true;
  }
}
