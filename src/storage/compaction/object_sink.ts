/**
 * Writes one object from front to back with the memory of a part or two. Its size is known before the
 * first byte: a small object is one put, a larger one goes out in equal parts while it is filled.
 */
import { assert } from "../../lib/assert.ts";
import { crc32c } from "../../lib/crc32c.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { DEFAULT_PUT_SIZES, type PutSizes } from "../put_sizes.ts";
import type { CompactionBudget } from "./budget.ts";
import { PartChannel } from "./part_channel.ts";

export interface SinkOptions {
  readonly store: ObjectStore;
  readonly budget: CompactionBudget;
  readonly puts?: PutSizes;
  readonly signal: AbortSignal;
}

export class ObjectSink {
  readonly #options: SinkOptions;
  readonly #puts: PutSizes;
  readonly #key: string;
  readonly #size: number;
  /** Null while the object fits one put. */
  readonly #parts: PartChannel | null;
  #part: Uint8Array<ArrayBuffer>;
  #filled = 0;
  #written = 0;
  #sent = 0;
  #crc = 0;
  #upload: Promise<void> | null = null;

  constructor(options: SinkOptions, key: string, size: number) {
    this.#options = options;
    this.#puts = options.puts ?? DEFAULT_PUT_SIZES;
    this.#key = key;
    this.#size = size;
    this.#parts = size <= this.#puts.singleBytesMax ? null : new PartChannel();
    this.#part = new Uint8Array(this.#parts === null ? size : this.#puts.partBytes);
  }

  async write(bytes: Uint8Array): Promise<void> {
    assert(
      this.#written + bytes.length <= this.#size,
      `Object ${this.#key} is longer than planned`,
    );
    this.#written += bytes.length;
    for (let at = 0; at < bytes.length;) {
      const taken = bytes.subarray(at, at + this.#part.length - this.#filled);
      this.#part.set(taken, this.#filled);
      this.#filled += taken.length;
      at += taken.length;
      if (this.#parts !== null && this.#filled === this.#part.length) await this.#send(this.#parts);
    }
  }

  /** The object is there when it resolves; its CRC-32C. */
  async finish(): Promise<number> {
    assert(this.#written === this.#size, `Object ${this.#key} is shorter than planned`);
    const { store, budget, signal } = this.#options;
    if (this.#parts === null) {
      this.#crc = crc32c(this.#part);
      await budget.write(signal, () => store.put(this.#key, this.#part, { signal }));
      return this.#crc;
    }
    this.#parts.end();
    await this.#upload;
    return this.#crc;
  }

  /** Nothing of it becomes visible: an upload that is under way fails when it asks for more. */
  cancel(reason: unknown): void {
    this.#parts?.fail(reason);
  }

  async #send(parts: PartChannel): Promise<void> {
    this.#crc = crc32c(this.#part, this.#crc);
    this.#upload ??= this.#start(parts);
    await parts.push(this.#part);
    // The store is done with the part before: two of them are in use at most.
    this.#sent += this.#part.length;
    const { partBytes } = this.#puts;
    this.#part = new Uint8Array(Math.min(partBytes, this.#size - this.#sent));
    this.#filled = 0;
  }

  #start(parts: PartChannel): Promise<void> {
    const { store, budget, signal } = this.#options;
    const upload = budget.write(signal, () => store.putParts(this.#key, parts));
    // Whoever pushes next hears of it; the outcome itself is awaited at the end.
    upload.catch((error: unknown) => parts.fail(error));
    return upload;
  }
}
