/** Cuts a byte stream into Kafka's frames: an int32 length, then that many bytes. */
import { DecodeError, viewOf } from "../lib/bytes.ts";
import { FRAME_BYTES_TRUSTED_MAX } from "../lib/limits.ts";

export const FRAME_PREFIX_BYTES = 4;

/**
 * Push in, frames out. A frame that lies in one chunk is a view of it, so a pushed chunk belongs to
 * the decoder; any other is gathered in one buffer. Above a bound, what is held grows with what was
 * received, not with what a length promises.
 */
export class FrameDecoder {
  readonly #bytesMax: number;
  readonly #prefix = new Uint8Array(FRAME_PREFIX_BYTES);
  #prefixLength = 0;
  /** Length of the frame that is being gathered; -1 while its prefix is incomplete. */
  #expected = -1;
  #body = new Uint8Array(0);
  #bodyLength = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes held of an incomplete frame. */
  get pendingBytes(): number {
    return this.#prefixLength + this.#bodyLength;
  }

  /** Length of the frame that is being gathered; 0 while none is known. */
  get expectedBytes(): number {
    return Math.max(0, this.#expected);
  }

  /** Throws DecodeError on a bad length; the stream is useless then, earlier frames included. */
  push(chunk: Uint8Array): Uint8Array[] {
    const frames: Uint8Array[] = [];
    let at = 0;
    while (at < chunk.length) {
      if (this.#expected < 0) {
        at = this.#readPrefix(chunk, at);
        if (this.#expected < 0) break;
      }
      at = this.#readBody(chunk, at, frames);
    }
    return frames;
  }

  #readPrefix(chunk: Uint8Array, at: number): number {
    const count = Math.min(FRAME_PREFIX_BYTES - this.#prefixLength, chunk.length - at);
    this.#prefix.set(chunk.subarray(at, at + count), this.#prefixLength);
    this.#prefixLength += count;
    if (this.#prefixLength === FRAME_PREFIX_BYTES) {
      const length = viewOf(this.#prefix).getInt32(0);
      if (length < 0 || length > this.#bytesMax) {
        throw new DecodeError(
          `Cannot read frame: its length ${length} is not in 0-${this.#bytesMax}`,
        );
      }
      this.#expected = length;
    }
    return at + count;
  }

  #readBody(chunk: Uint8Array, at: number, frames: Uint8Array[]): number {
    const count = Math.min(this.#expected - this.#bodyLength, chunk.length - at);
    const part = chunk.subarray(at, at + count);
    if (count === this.#expected) {
      frames.push(part);
      this.#reset();
      return at + count;
    }
    this.#gather(part);
    if (this.#bodyLength === this.#expected) {
      frames.push(this.#body);
      this.#reset();
    }
    return at + count;
  }

  #gather(part: Uint8Array): void {
    const needed = this.#bodyLength + part.length;
    if (needed > this.#body.length) {
      const capacity = Math.max(FRAME_BYTES_TRUSTED_MAX, 2 * needed);
      const grown = new Uint8Array(Math.min(this.#expected, capacity));
      grown.set(this.#body.subarray(0, this.#bodyLength));
      this.#body = grown;
    }
    this.#body.set(part, this.#bodyLength);
    this.#bodyLength = needed;
  }

  #reset(): void {
    this.#prefixLength = 0;
    this.#expected = -1;
    this.#body = new Uint8Array(0);
    this.#bodyLength = 0;
  }
}
