/** Memory that objects are encoded into: one large buffer that is used again and again. */
import { freeMemory } from "../../lib/free_memory.ts";
import { SINGLE_PUT_BYTES_MAX, UPLOAD_MEMORY_BYTES_MIN } from "../../lib/limits.ts";

export class UploadMemory {
  #kept: Uint8Array<ArrayBuffer> | null = null;

  /** Its content is whatever was there. */
  take(bytes: number): Uint8Array<ArrayBuffer> {
    if (bytes < UPLOAD_MEMORY_BYTES_MIN) return new Uint8Array(bytes);
    const buffer = this.#kept ?? new Uint8Array(SINGLE_PUT_BYTES_MAX);
    this.#kept = null;
    return buffer.subarray(0, bytes);
  }

  /** Call it only when the store is done with the bytes. */
  give({ buffer }: Uint8Array<ArrayBuffer>): void {
    const isLarge = buffer.byteLength === SINGLE_PUT_BYTES_MAX;
    if (isLarge && this.#kept === null) this.#kept = new Uint8Array(buffer);
    else freeMemory(buffer);
  }
}
