/**
 * Records of `__transaction_state` in Kafka's own format, so that Kafka's tools can read them. Key and value
 * each begin with an int16 version; a null value is a tombstone.
 */
import { int16, int32, int64, int8, string } from "../primitive.ts";
import { array, message, since, struct } from "../schema.ts";

export const transactionLogKey = message(
  "TransactionLogKey",
  { min: 0, max: 0, flexibleFrom: null },
  { transactionalId: string },
);

const transactionPartitions = struct({ topic: string, partitionIds: array(int32) });

/** 1 is flexible and adds what KIP-890 needs: the ids around an overflow of the epoch and the client's rules. */
export const transactionLogValue = message(
  "TransactionLogValue",
  { min: 0, max: 1, flexibleFrom: 1 },
  {
    producerId: int64,
    previousProducerId: since(1, int64, { tag: 0, default: -1 }),
    nextProducerId: since(1, int64, { tag: 1, default: -1 }),
    producerEpoch: int16,
    transactionTimeoutMs: int32,
    transactionStatus: int8,
    transactionPartitions: since(0, array(transactionPartitions), { nullableSince: 0 }),
    transactionLastUpdateTimestampMs: int64,
    transactionStartTimestampMs: int64,
    clientTransactionVersion: since(1, int16, { tag: 2, default: 0 }),
  },
);
