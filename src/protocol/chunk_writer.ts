/**
 * A writer that passes large byte fields on as they are instead of copying them, so that a fetch
 * answer goes from the log cache to the socket without a copy.
 */
import { ByteWriter } from "../lib/bytes.ts";
import { UNCOPIED_BYTES_MIN } from "../lib/limits.ts";

export class ChunkWriter extends ByteWriter {
  /** Foreign bytes, each with the place in our own buffer in front of which it stands. */
  readonly #foreign: { readonly at: number; readonly bytes: Uint8Array }[] = [];
  #foreignBytes = 0;

  /** Own and foreign bytes together. */
  get total(): number {
    return this.length + this.#foreignBytes;
  }

  /** The writer may keep a view: the bytes must not change until the chunks are sent. */
  override bytes(value: Uint8Array): void {
    if (value.length < UNCOPIED_BYTES_MIN) {
      super.bytes(value);
      return;
    }
    this.#foreign.push({ at: this.length, bytes: value });
    this.#foreignBytes += value.length;
  }

  /** Everything written, in order; none of the chunks is empty. */
  chunks(): Uint8Array[] {
    const own = this.view();
    const out: Uint8Array[] = [];
    let from = 0;
    for (const { at, bytes } of this.#foreign) {
      if (at > from) out.push(own.subarray(from, at));
      out.push(bytes);
      from = at;
    }
    if (own.length > from) out.push(own.subarray(from));
    return out;
  }
}
