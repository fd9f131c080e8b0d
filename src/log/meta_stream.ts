/**
 * A compacted key-value log over one stream: what a partition must remember beside its records.
 * The last value of a key wins. Once most of it is dead the live values are appended again and the rest
 * is trimmed.
 */
import type { Offset } from "../lib/brand.ts";
import { DecodeError, equalBytes } from "../lib/bytes.ts";
import { FaultError } from "../lib/errors.ts";
import { META_COMPACT_BYTES_MIN, META_HOLLOW_SHARE, META_SCAN_BYTES } from "../lib/limits.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import type { Stream } from "../stream/stream.ts";
import { decodeMetaKeyValue, encodeMetaKeyValue, type MetaKeyValue } from "./meta_codec.ts";
import { scan, scanToOpen } from "./slice.ts";

export type MetaKey =
  | "LOG"
  | "PARTITION"
  | "PRODUCER_SNAPSHOTS"
  | "LEADER_EPOCH_CHECKPOINT"
  | "REQUESTS"
  | "WRITERS";

interface Live {
  readonly value: Uint8Array;
  readonly offset: Offset;
  readonly bytes: number;
}

/** What can be read of a stream, from its first offset to its last one. */
export type WholeStream = Pick<Stream, "streamId" | "fetch" | "startOffset" | "confirmOffset">;

/** The newest value of each key in a meta stream that nobody has open. */
export async function storedValues(
  stream: WholeStream,
): Promise<ReadonlyMap<string, Uint8Array>> {
  const values = new Map<string, Uint8Array>();
  const { startOffset, confirmOffset } = stream;
  for await (const record of scan(stream, startOffset, confirmOffset, META_SCAN_BYTES)) {
    const { key, value } = decode(record);
    values.set(key, value.slice());
  }
  return values;
}

function decode(record: StreamRecord): MetaKeyValue {
  try {
    return decodeMetaKeyValue(record.payload);
  } catch (cause) {
    if (!(cause instanceof DecodeError)) throw cause;
    const where = `meta stream ${record.streamId} at ${record.baseOffset}`;
    throw new FaultError("corrupt", `Cannot load ${where}`, { retriable: false, cause });
  }
}

export class MetaStream {
  readonly #stream: Stream;
  readonly #live = new Map<string, Live>();
  #totalBytes = 0;
  #compacting = false;

  constructor(stream: Stream) {
    this.#stream = stream;
  }

  /** Replays the stream. Keys of later releases are carried along. */
  async load(): Promise<void> {
    const { startOffset, confirmOffset } = this.#stream;
    for await (
      const record of scanToOpen(this.#stream, startOffset, confirmOffset, META_SCAN_BYTES)
    ) {
      const { key, value } = decode(record);
      // The payload may be a view of a whole block: keep only the value.
      this.#keep(key, value.slice(), record.baseOffset, record.payload.length);
    }
  }

  #keep(key: string, value: Uint8Array, offset: Offset, bytes: number): void {
    this.#live.delete(key);
    this.#live.set(key, { value, offset, bytes });
    this.#totalBytes += bytes;
  }

  get(key: MetaKey): Uint8Array | undefined {
    return this.#live.get(key)?.value;
  }

  /** Resolves when durable; writes nothing when the value is the stored one. */
  async put(key: MetaKey, value: Uint8Array): Promise<void> {
    const stored = this.get(key);
    if (stored !== undefined && equalBytes(stored, value)) return;
    await this.#append(key, value);
  }

  #append(key: string, value: Uint8Array): Promise<void> {
    const payload = encodeMetaKeyValue(key, value);
    const { baseOffset, durable } = this.#stream.append(1, payload);
    this.#keep(key, value, baseOffset, payload.length);
    return durable;
  }

  get #hollowShare(): number {
    let live = 0;
    for (const { bytes } of this.#live.values()) live += bytes;
    return this.#totalBytes === 0 ? 0 : 1 - live / this.#totalBytes;
  }

  /** Rewrites and trims when it is worth it; everything live must be durable by now or after. */
  async compactIfHollow(): Promise<void> {
    if (this.#compacting || this.#totalBytes < META_COMPACT_BYTES_MIN) return;
    if (this.#hollowShare < META_HOLLOW_SHARE) return;
    this.#compacting = true;
    try {
      await this.#compact();
    } finally {
      this.#compacting = false;
    }
  }

  async #compact(): Promise<void> {
    const before = [...this.#live];
    const rewrites = before.slice(0, -1).map(([key, { value }]) => this.#append(key, value));
    // Taken now, not after the wait: a value put meanwhile may not be durable yet (AutoMQ 3056).
    const oldest = Math.min(...[...this.#live.values()].map(({ offset }) => offset));
    const totalBytes = [...this.#live.values()].reduce((sum, { bytes }) => sum + bytes, 0);
    const grownFrom = this.#totalBytes;
    await Promise.all(rewrites);
    await this.#stream.trim(oldest);
    this.#totalBytes = totalBytes + (this.#totalBytes - grownFrom);
  }

  close(): Promise<void> {
    return this.#stream.close();
  }
}
