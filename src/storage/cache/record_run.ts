/** Searching records that are sorted by offset: log cache and block cache share it. */
import type { Offset } from "../../lib/brand.ts";
import { partitionPoint } from "../../lib/partition_point.ts";
import { listOf, type RecordList } from "../record_list.ts";
import type { StreamRecord } from "../stream_record.ts";

/** Index of the first record that ends behind the offset. */
export function firstEndingAfter(records: RecordList, offset: Offset): number {
  return partitionPoint(records.length, (i) => records.endAt(i) <= offset);
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

  /** Adds from sorted records what continues the collection; stops at a gap. */
  addAll(records: readonly StreamRecord[]): void {
    const list = listOf(records);
    this.addFrom(list, firstEndingAfter(list, this.#next));
  }

  /** The same from an index on, which the caller has searched; returns the index behind the last one added. */
  addFrom(list: RecordList, from: number): number {
    let i = from;
    for (; i < list.length && !this.done; i++) {
      if (list.startAt(i) > this.#next) break;
      const bytes = list.payloadBytesAt(i);
      if (this.records.length > 0 && bytes > this.bytesLeft) {
        this.#full = true;
        break;
      }
      this.records.push(list.at(i));
      this.#bytes += bytes;
      this.#next = list.endAt(i);
      if (this.#bytes >= this.#bytesMax) this.#full = true;
    }
    return i;
  }
}
