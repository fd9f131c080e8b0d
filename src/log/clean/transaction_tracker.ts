/**
 * Follows transactions while a log is read from its start, as Kafka's cleaner does: data of an aborted one can go
 * at once, a marker once none of its transaction's batches is left before it.
 */
import { type BatchHeader, isTransactionalBatch, lastOffset } from "../../protocol/record_batch.ts";
import type { EndMarker } from "../../protocol/control_record.ts";
import type { AbortedTransaction } from "../partition_log.ts";

export class TransactionTracker {
  /** By first offset. */
  #aborted: readonly AbortedTransaction[] = [];
  #next = 0;
  readonly #aborting = new Set<number>();
  /** Producers with a batch of their current transaction in the log. */
  readonly #seen = new Set<number>();

  /** All aborted transactions that overlap what is read next; those that began before may come again. */
  enter(aborted: readonly AbortedTransaction[]): void {
    this.#aborted = aborted;
    this.#next = 0;
  }

  #advance(header: BatchHeader): void {
    for (; this.#next < this.#aborted.length; this.#next++) {
      const { firstOffset, producerId } = this.#aborted[this.#next]!;
      if (firstOffset > lastOffset(header)) break;
      this.#aborting.add(producerId);
    }
  }

  /** Whether the data was aborted. */
  onData(header: BatchHeader): boolean {
    if (!isTransactionalBatch(header)) return false;
    this.#advance(header);
    this.#seen.add(header.producerId);
    return this.#aborting.has(header.producerId);
  }

  /** Whether nothing of the transaction is left before its marker. */
  onMarker(header: BatchHeader, marker: EndMarker): boolean {
    this.#advance(header);
    if (!marker.commit) this.#aborting.delete(header.producerId);
    return !this.#seen.delete(header.producerId);
  }
}
