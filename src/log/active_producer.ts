/** What DescribeProducers shows of a producer's entry. */
import type { ActiveProducer } from "./partition_log.ts";
import type { ProducerEntry } from "./producer_state.ts";

export function activeProducer(entry: ProducerEntry): ActiveProducer {
  return {
    producerId: entry.producerId,
    producerEpoch: entry.epoch,
    lastSequence: entry.batches.at(-1)?.lastSequence ?? -1,
    lastTimestampMs: entry.lastTimestampMs,
    coordinatorEpoch: entry.coordinatorEpoch,
    currentTxnFirstOffset: entry.currentTxnFirstOffset,
  };
}
