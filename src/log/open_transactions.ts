/**
 * What holds the last stable offset down: transactions that are open, and those whose marker is not below
 * the high watermark yet (a crash may still take the marker away). Each answer costs the same, however many.
 */
import type { Offset } from "../lib/brand.ts";

/** A transaction with its marker; for an aborted one this is the entry of the index. */
export interface EndedTransaction {
  readonly producerId: number;
  readonly firstOffset: Offset;
  /** The marker's. */
  readonly lastOffset: Offset;
  /** What was stable once the marker was: no later entry begins below it. */
  readonly lastStableOffset: Offset;
}

interface Unconfirmed {
  readonly firstOffset: Offset;
  readonly markerOffset: Offset;
}

export class OpenTransactions {
  /** First offsets by producer, in their order: the log opens transactions in its own order. */
  readonly #open = new Map<number, Offset>();
  /**
   * Ended ones in the order of their markers. One that begins at or after a later one in this list is left
   * out, since the later one holds longer and lower: so the first has the lowest first offset.
   */
  #unconfirmed: Unconfirmed[] = [];
  #head = 0;

  get size(): number {
    return this.#open.size;
  }

  /** Sets what is open; from a snapshot, in any order. */
  load(open: readonly { readonly producerId: number; readonly firstOffset: Offset }[]): void {
    this.#open.clear();
    for (const one of open.toSorted((a, b) => a.firstOffset - b.firstOffset)) {
      this.#open.set(one.producerId, one.firstOffset);
    }
  }

  /** At the log's end. One that is open stays as it is. */
  begin(producerId: number, firstOffset: Offset): void {
    if (!this.#open.has(producerId)) this.#open.set(producerId, firstOffset);
  }

  /** Null when none was open. */
  end(producerId: number, markerOffset: Offset): EndedTransaction | null {
    const firstOffset = this.#open.get(producerId);
    if (firstOffset === undefined) return null;
    this.#open.delete(producerId);
    while (this.#unconfirmed.length > this.#head) {
      if (this.#unconfirmed.at(-1)!.firstOffset < firstOffset) break;
      this.#unconfirmed.pop();
    }
    this.#unconfirmed.push({ firstOffset, markerOffset });
    const lastStableOffset = this.#firstOpen() ?? markerOffset + 1;
    return { producerId, firstOffset, lastOffset: markerOffset, lastStableOffset };
  }

  #firstOpen(): Offset | null {
    for (const firstOffset of this.#open.values()) return firstOffset;
    return null;
  }

  #firstUnconfirmed(highWatermark: Offset): Offset | null {
    const list = this.#unconfirmed;
    while (this.#head < list.length && list[this.#head]!.markerOffset < highWatermark) this.#head++;
    const first = list[this.#head]?.firstOffset ?? null;
    if (this.#head * 2 > list.length) {
      this.#unconfirmed = list.slice(this.#head);
      this.#head = 0;
    }
    return first;
  }

  /** The lowest offset whose outcome is not settled; null for none. The watermark never goes back. */
  firstUnstable(highWatermark: Offset): Offset | null {
    const open = this.#firstOpen();
    const unconfirmed = this.#firstUnconfirmed(highWatermark);
    if (open === null || unconfirmed === null) return open ?? unconfirmed;
    return Math.min(open, unconfirmed);
  }
}
