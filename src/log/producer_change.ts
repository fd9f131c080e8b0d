/** What a batch in the log changes in the entry of its producer: nothing is refused here. */
import { PRODUCER_BATCHES_MAX } from "../lib/limits.ts";
import type { EndMarker } from "../protocol/control_record.ts";
import type { ProducerBatch, ProducerEntry, StoredBatch } from "./producer_state.ts";
import { sequenceAfter } from "./sequence.ts";

/** A marker ends the transaction and may raise the epoch; it carries no sequence. */
export function marked(
  earlier: ProducerEntry | undefined,
  batch: StoredBatch,
  { coordinatorEpoch }: EndMarker,
  appendedMs: number,
): ProducerEntry {
  return {
    producerId: batch.producerId,
    epoch: batch.producerEpoch,
    batches: earlier?.epoch === batch.producerEpoch ? earlier.batches : [],
    lastTimestampMs: batch.maxTimestamp,
    appendedMs: Math.max(appendedMs, earlier?.appendedMs ?? appendedMs),
    coordinatorEpoch,
    currentTxnFirstOffset: null,
  };
}

export function extended(
  earlier: ProducerEntry | undefined,
  batch: StoredBatch,
  appendedMs: number,
): ProducerEntry {
  const known = earlier?.epoch === batch.producerEpoch ? earlier.batches : [];
  const added: ProducerBatch[] = batch.baseSequence < 0 ? [] : [{
    lastSequence: sequenceAfter(batch.baseSequence, batch.lastOffsetDelta),
    lastOffset: batch.baseOffset + batch.lastOffsetDelta,
    offsetDelta: batch.lastOffsetDelta,
    timestampMs: batch.maxTimestamp,
  }];
  const txnStart = earlier?.currentTxnFirstOffset ?? null;
  return {
    producerId: batch.producerId,
    epoch: batch.producerEpoch,
    batches: [...known, ...added].slice(-PRODUCER_BATCHES_MAX),
    lastTimestampMs: batch.maxTimestamp,
    appendedMs: Math.max(appendedMs, earlier?.appendedMs ?? appendedMs),
    coordinatorEpoch: earlier?.coordinatorEpoch ?? -1,
    currentTxnFirstOffset: batch.isTransactional ? txnStart ?? batch.baseOffset : txnStart,
  };
}
