/** Bytes that are read by range: an object of a store, or a file. Nothing here holds a large object whole. */
import { assert } from "../lib/assert.ts";
import { concatBytes } from "../lib/bytes.ts";
import { corrupt } from "../lib/corrupt.ts";
import { crc32c } from "../lib/crc32c.ts";
import { FaultError } from "../lib/errors.ts";
import { RANGE_READ_BYTES_MAX } from "../lib/limits.ts";
import type { ObjectInfo, ObjectStore } from "../object/object_store.ts";

export interface ByteSource {
  /** The object's key, or a file's path. */
  readonly name: string;
  readonly size: number;
  /** Exactly [start, end). Throws FaultError. */
  read(start: number, end: number): Promise<Uint8Array>;
}

export function storeSource(
  store: ObjectStore,
  { key, size }: Pick<ObjectInfo, "key" | "size">,
): ByteSource {
  return {
    name: key,
    size,
    async read(start, end) {
      if (start >= end) return new Uint8Array(0);
      const got = await store.get(key, { range: { start, end } });
      if (got === null) {
        throw new FaultError("object-missing", `Object ${key} vanished`, { retriable: true });
      }
      if (got.bytes.length === end - start) return got.bytes;
      throw corrupt(`Object ${key} gave ${got.bytes.length} bytes at ${start}, not ${end - start}`);
    },
  };
}

/** Reads a source from its begin on, in large steps, and keeps the CRC-32C of all that was taken. */
export class SequentialReader {
  readonly #source: ByteSource;
  #buffer: Uint8Array = new Uint8Array(0);
  /** Place of the next byte in the buffer, and in the source. */
  #used = 0;
  #at = 0;
  #crc = 0;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  get position(): number {
    return this.#at;
  }
  get crc(): number {
    return this.#crc;
  }

  /** The next bytes, as a view that stays valid. */
  async take(count: number): Promise<Uint8Array> {
    assert(this.#at + count <= this.#source.size, `Read past the end of ${this.#source.name}`);
    if (this.#buffer.length - this.#used < count) await this.#fill(count);
    const bytes = this.#buffer.subarray(this.#used, this.#used + count);
    this.#used += count;
    this.#at += count;
    this.#crc = crc32c(bytes, this.#crc);
    return bytes;
  }

  async #fill(count: number): Promise<void> {
    const kept = this.#buffer.subarray(this.#used);
    const from = this.#at + kept.length;
    const to = Math.min(this.#source.size, Math.max(this.#at + count, from + RANGE_READ_BYTES_MAX));
    const more = await this.#source.read(from, to);
    this.#buffer = kept.length === 0 ? more : concatBytes([kept, more]);
    this.#used = 0;
  }

  /** Takes, and forgets, all bytes up to a position. */
  async skipTo(position: number): Promise<void> {
    while (this.#at < position) {
      await this.take(Math.min(RANGE_READ_BYTES_MAX, position - this.#at));
    }
  }
}
