/**
 * Hides what transactions aborted, as Kafka's consumers do: a producer's transactional batches from the
 * offset where the aborted transaction began up to its marker.
 */
import type { AbortedTransaction } from "./partition_log.ts";
import { readMarker } from "../protocol/control_record.ts";
import {
  type BatchHeader,
  isControlBatch,
  isTransactionalBatch,
  lastOffset,
} from "../protocol/record_batch.ts";

export class AbortedFilter {
  /** By first offset. */
  readonly #aborted: readonly AbortedTransaction[];
  #next = 0;
  readonly #producers = new Set<number>();

  constructor(aborted: readonly AbortedTransaction[]) {
    this.#aborted = aborted;
  }

  /** Asked for each batch, in order. Markers are hidden too. */
  hides(header: BatchHeader, batch: Uint8Array): boolean {
    for (; this.#next < this.#aborted.length; this.#next++) {
      const { firstOffset, producerId } = this.#aborted[this.#next]!;
      if (firstOffset > lastOffset(header)) break;
      this.#producers.add(producerId);
    }
    if (isControlBatch(header)) {
      if (readMarker(batch)?.commit === false) this.#producers.delete(header.producerId);
      return true;
    }
    return isTransactionalBatch(header) && this.#producers.has(header.producerId);
  }
}
