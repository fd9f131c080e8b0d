/**
 * Decoded data blocks in memory, up to a number of bytes. What was read goes first, the least recently used
 * one before others; what was read ahead and still waits for its reader goes last, or with its age.
 */
import { UNREAD_BLOCK_MS } from "../../lib/limits.ts";
import type { StreamRecord } from "../stream_record.ts";

export interface DataBlock {
  readonly records: readonly StreamRecord[];
  readonly bytes: number;
}

interface Unread {
  readonly block: DataBlock;
  readonly sinceMs: number;
  /** Called when it had to go before anybody read it. */
  readonly onDropped: () => void;
}

export class BlockStore {
  readonly #bytesMax: number;
  /** Least recently used first. */
  readonly #read = new Map<string, DataBlock>();
  /** Oldest first. */
  readonly #unread = new Map<string, Unread>();
  #readBytes = 0;
  #unreadBytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytes(): number {
    return this.#readBytes + this.#unreadBytes;
  }
  get unreadBytes(): number {
    return this.#unreadBytes;
  }

  has(key: string): boolean {
    return this.#read.has(key) || this.#unread.has(key);
  }

  /** For a reader: from now on it is one that was read. */
  take(key: string): DataBlock | null {
    const block = this.#read.get(key) ?? this.#unread.get(key)?.block ?? null;
    if (block === null) return null;
    this.#remove(key);
    this.#keep(key, block);
    return block;
  }

  add(key: string, block: DataBlock): void {
    this.#remove(key);
    this.#keep(key, block);
    this.#fit();
  }

  addUnread(key: string, unread: Unread): void {
    this.#remove(key);
    this.#unread.set(key, unread);
    this.#unreadBytes += unread.block.bytes;
    this.#fit();
  }

  /** Drops what nobody came for. */
  expire(nowMs: number): void {
    for (const [key, { sinceMs }] of this.#unread) {
      if (nowMs - sinceMs <= UNREAD_BLOCK_MS) return;
      this.#drop(key);
    }
  }

  #keep(key: string, block: DataBlock): void {
    this.#read.set(key, block);
    this.#readBytes += block.bytes;
  }

  #remove(key: string): void {
    this.#readBytes -= this.#read.get(key)?.bytes ?? 0;
    this.#unreadBytes -= this.#unread.get(key)?.block.bytes ?? 0;
    this.#read.delete(key);
    this.#unread.delete(key);
  }

  #drop(key: string): void {
    const unread = this.#unread.get(key);
    this.#remove(key);
    unread?.onDropped();
  }

  #fit(): void {
    for (const key of this.#read.keys()) {
      if (this.bytes <= this.#bytesMax) return;
      this.#remove(key);
    }
    for (const key of this.#unread.keys()) {
      if (this.bytes <= this.#bytesMax) return;
      this.#drop(key);
    }
  }
}
