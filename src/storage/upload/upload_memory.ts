/** Memory that objects are encoded into: one large buffer that is used again and again. */
import { assert } from "../../lib/assert.ts";
import { freeMemory } from "../../lib/free_memory.ts";
import { SINGLE_PUT_BYTES_MAX, UPLOAD_MEMORY_BYTES_MIN } from "../../lib/limits.ts";

export class UploadMemory {
  readonly #bytesMax: number;
  #kept: Uint8Array<ArrayBuffer> | null = null;

  /** Of the largest object that is encoded as a whole; pages that nothing touches take no memory. */
  constructor(bytesMax = SINGLE_PUT_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Its content is whatever was there. */
  take(bytes: number): Uint8Array<ArrayBuffer> {
    assert(bytes <= this.#bytesMax, `Upload memory of ${this.#bytesMax} bytes, ${bytes} wanted`);
    if (bytes < UPLOAD_MEMORY_BYTES_MIN) return new Uint8Array(bytes);
    const buffer = this.#kept ?? new Uint8Array(this.#bytesMax);
    this.#kept = null;
    return buffer.subarray(0, bytes);
  }

  /** Call it only when the store is done with the bytes. */
  give({ buffer }: Uint8Array<ArrayBuffer>): void {
    const isLarge = buffer.byteLength === this.#bytesMax;
    if (isLarge && this.#kept === null) this.#kept = new Uint8Array(buffer);
    else freeMemory(buffer);
  }
}
