/**
 * The aborted transactions of a log, the newest ones in memory. Each goes to the transaction index, a stream
 * of Kafka's 34-byte entries addressed by bytes (i16 version 0 · i64 producer id · i64 first offset · i64 last
 * offset · i64 last stable offset), at the next checkpoint, and leaves memory only once it is durable there.
 * Entries are in the order of their markers.
 */
import type { Offset } from "../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError } from "../lib/bytes.ts";
import { ABORTED_RECENT_MAX } from "../lib/limits.ts";
import { partitionPoint } from "../lib/partition_point.ts";
import type { EndedTransaction } from "./open_transactions.ts";

const VERSION = 0;

export const ABORTED_ENTRY_BYTES = 34;

export function encodeAborted(entries: readonly EndedTransaction[]): Uint8Array {
  const writer = new ByteWriter(entries.length * ABORTED_ENTRY_BYTES);
  for (const { producerId, firstOffset, lastOffset, lastStableOffset } of entries) {
    writer.i16(VERSION);
    writer.i64(producerId);
    writer.i64(firstOffset);
    writer.i64(lastOffset);
    writer.i64(lastStableOffset);
  }
  return writer.view();
}

/** Throws DecodeError: an entry that is passed over would show what was aborted. */
export function decodeAborted(bytes: Uint8Array): readonly EndedTransaction[] {
  const reader = new ByteReader(bytes);
  const entries: EndedTransaction[] = [];
  while (reader.remaining > 0) {
    const version = reader.i16();
    if (version !== VERSION) {
      throw new DecodeError(`Cannot read aborted transaction: version ${version}`);
    }
    entries.push({
      producerId: reader.i64(),
      firstOffset: reader.i64(),
      lastOffset: reader.i64(),
      lastStableOffset: reader.i64(),
    });
  }
  return entries;
}

export class AbortedTransactions {
  #entries: EndedTransaction[] = [];
  /** So many of the oldest entries were given to the stream. */
  #streamed = 0;
  #completeFrom: Offset;

  constructor(completeFrom: Offset) {
    this.#completeFrom = completeFrom;
  }

  /** Every aborted transaction whose marker is at or above this offset is in memory. */
  get completeFrom(): Offset {
    return this.#completeFrom;
  }

  get hasUnstreamed(): boolean {
    return this.#entries.length > this.#streamed;
  }
  /** A checkpoint would free memory. */
  get isFull(): boolean {
    return this.#entries.length - this.#streamed > ABORTED_RECENT_MAX;
  }

  add(entry: EndedTransaction): void {
    this.#entries.push(entry);
  }

  /** In memory, with the marker at or above an offset. */
  from(offset: Offset): readonly EndedTransaction[] {
    const first = partitionPoint(
      this.#entries.length,
      (i) => this.#entries[i]!.lastOffset < offset,
    );
    return this.#entries.slice(first);
  }

  /** The oldest that the index does not have yet, with markers below an offset. */
  unstreamedBelow(offset: Offset, countMax: number): readonly EndedTransaction[] {
    const below = partitionPoint(
      this.#entries.length,
      (i) => this.#entries[i]!.lastOffset < offset,
    );
    return this.#entries.slice(this.#streamed, Math.min(below, this.#streamed + countMax));
  }

  markStreamed(count: number): void {
    this.#streamed += count;
  }

  /** What was streamed below this offset is durable: the oldest of it need not stay in memory. */
  forget(below: Offset): void {
    const streamed = partitionPoint(
      this.#streamed,
      (i) => this.#entries[i]!.lastOffset < below,
    );
    this.#drop(Math.min(streamed, this.#entries.length - ABORTED_RECENT_MAX));
  }

  /** Transactions that ended below the log's first segment concern no reader. */
  trim(start: Offset): void {
    this.#drop(partitionPoint(this.#entries.length, (i) => this.#entries[i]!.lastOffset < start));
  }

  #drop(count: number): void {
    const last = this.#entries[count - 1];
    if (count <= 0 || last === undefined) return;
    this.#entries = this.#entries.slice(count);
    this.#streamed = Math.max(0, this.#streamed - count);
    this.#completeFrom = Math.max(this.#completeFrom, last.lastOffset + 1);
  }
}
