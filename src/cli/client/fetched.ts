/** Bytes of a fetch to records: whole batches, checked, without markers and aborted transactions. Pure. */
import type { Codecs } from "../../env/codecs.ts";
import { readMarker } from "../../protocol/control_record.ts";
import { type BatchRecord, readRecords } from "../../protocol/record.ts";
import {
  isControlBatch,
  isIntact,
  isTransactionalBatch,
  lastOffset,
  readBatchHeader,
  splitBatches,
} from "../../protocol/record_batch.ts";
import { dataFault } from "./fault.ts";

export interface AbortedTransaction {
  readonly producerId: number;
  readonly firstOffset: number;
}

export interface FetchedBatch {
  /** Where reading goes on behind it. */
  readonly nextOffset: number;
  readonly records: Iterable<BatchRecord>;
}

/**
 * The batches in order. `aborted` lists the aborted transactions that reach into these bytes, as a
 * read_committed fetch answers; an open one of a producer lasts until its marker.
 */
export function* fetchedBatches(
  bytes: Uint8Array,
  aborted: readonly AbortedTransaction[],
  codecs: Codecs,
): Generator<FetchedBatch, void> {
  const waiting = aborted.toSorted((a, b) => a.firstOffset - b.firstOffset);
  const open = new Set<number>();
  for (const batch of splitBatches(bytes)) {
    const header = readBatchHeader(batch);
    if (!isIntact(batch)) {
      throw dataFault(
        `Cannot read the batch at offset ${header.baseOffset}: its checksum is wrong`,
      );
    }
    const last = lastOffset(header);
    while (waiting[0] !== undefined && waiting[0].firstOffset <= last) {
      open.add(waiting.shift()!.producerId);
    }
    const isControl = isControlBatch(header);
    const isAborted = isTransactionalBatch(header) && open.has(header.producerId);
    // Only an abort ends it: the list names nothing of a transaction that was committed.
    if (isControl && readMarker(batch)?.commit === false) open.delete(header.producerId);
    const records = isControl || isAborted ? [] : readRecords(batch, codecs);
    yield { nextOffset: last + 1, records };
  }
}
