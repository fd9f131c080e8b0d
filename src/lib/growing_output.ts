/** Output of a decoder whose length is not known before: grows by doubling, never past a cap. */
import { corrupt } from "./corrupt.ts";

export class GrowingOutput {
  readonly #bytesMax: number;
  #bytes: Uint8Array;
  /** How much of `bytes` is output; set by the decoder that wrote there. */
  length = 0;

  /** `expected` is a hint, often from untrusted input: it is capped, and growth goes on from there. */
  constructor(bytesMax: number, expected: number) {
    this.#bytesMax = bytesMax;
    this.#bytes = new Uint8Array(Math.max(0, Math.min(bytesMax, expected)));
  }

  /** The buffer, with room for at most `count` more bytes, fewer where the cap is nearer. */
  room(count: number): Uint8Array {
    const end = Math.min(this.length + count, this.#bytesMax);
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.min(this.#bytesMax, Math.max(end, this.#bytes.length * 2)));
      grown.set(this.#bytes.subarray(0, this.length));
      this.#bytes = grown;
    }
    return this.#bytes;
  }

  append(part: Uint8Array): void {
    if (part.length > this.#bytesMax - this.length) {
      throw corrupt(`Cannot decompress: more than ${this.#bytesMax} bytes`);
    }
    this.room(part.length).set(part, this.length);
    this.length += part.length;
  }

  result(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }
}
