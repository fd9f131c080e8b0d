/** Searching records that are sorted by offset: log cache and block cache share it. */
import type { Offset } from "../../lib/brand.ts";
import { endOffset, type StreamRecord } from "../stream_record.ts";

/** Index of the first record that ends behind the offset. */
export function firstEndingAfter(records: readonly StreamRecord[], offset: Offset): number {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (endOffset(records[middle]!) <= offset) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Collects records up to an end offset and a byte budget; the first record always fits. */
export class Collector {
  readonly records: StreamRecord[] = [];
  readonly #end: Offset;
  readonly #bytesMax: number;
  #bytes = 0;
  #next: Offset;
  #full = false;

  constructor(start: Offset, end: Offset, bytesMax: number) {
    this.#next = start;
    this.#end = end;
    this.#bytesMax = bytesMax;
  }

  /** Offset that the next record must cover. */
  get next(): Offset {
    return this.#next;
  }
  get bytesLeft(): number {
    return Math.max(0, this.#bytesMax - this.#bytes);
  }
  /** Nothing more to collect: the end or the byte budget is reached. */
  get done(): boolean {
    return this.#full || this.#next >= this.#end;
  }

  /** Adds from a sorted run what continues the collection; stops at a gap. */
  addAll(run: readonly StreamRecord[]): void {
    for (let i = firstEndingAfter(run, this.#next); i < run.length && !this.done; i++) {
      const record = run[i]!;
      if (record.baseOffset > this.#next) return;
      if (this.records.length > 0 && record.payload.length > this.bytesLeft) {
        this.#full = true;
        return;
      }
      this.records.push(record);
      this.#bytes += record.payload.length;
      this.#next = endOffset(record);
      if (this.#bytes >= this.#bytesMax) this.#full = true;
    }
  }
}
