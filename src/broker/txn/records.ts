/** Transactions as records of `__transaction_state`, in Kafka's own format, and back. */
import { DecodeError } from "../../lib/bytes.ts";
import { transactionLogKey, transactionLogValue } from "../../protocol/message/transaction_log.ts";
import { decodeGrowing, decodeVersioned, encodeVersioned } from "../../protocol/versioned.ts";
import type { KeyValue } from "../shard/shard_log.ts";
import {
  NO_EPOCH,
  partitionsOf,
  type Transaction,
  TXN_STATUSES,
  type TxnPartition,
} from "./transaction.ts";

const KEY_VERSION = 0;
const VALUE_VERSION = 1;
/** Kafka's number of the rules of KIP-890 part 2. */
const V2 = 2;

function byTopic(partitions: Iterable<TxnPartition>) {
  const topics = new Map<string, number[]>();
  for (const { topic, partition } of partitions) {
    const known = topics.get(topic);
    if (known === undefined) topics.set(topic, [partition]);
    else known.push(partition);
  }
  return [...topics].map(([topic, partitionIds]) => ({ topic, partitionIds }));
}

export function transactionKey(transactionalId: string): Uint8Array {
  return encodeVersioned(transactionLogKey, KEY_VERSION, { transactionalId });
}

export function transactionRecord(row: Transaction): KeyValue {
  return {
    key: transactionKey(row.transactionalId),
    value: encodeVersioned(transactionLogValue, VALUE_VERSION, {
      producerId: row.producerId,
      previousProducerId: row.previousProducerId,
      nextProducerId: row.nextProducerId,
      producerEpoch: row.producerEpoch,
      transactionTimeoutMs: row.timeoutMs,
      transactionStatus: TXN_STATUSES.indexOf(row.status),
      transactionPartitions: row.status === "Empty" ? null : byTopic(row.partitions.values()),
      transactionLastUpdateTimestampMs: row.updatedAtMs,
      transactionStartTimestampMs: row.startedAtMs,
      clientTransactionVersion: row.isV2 ? V2 : 0,
    }),
  };
}

export function transactionTombstone(transactionalId: string): KeyValue {
  return { key: transactionKey(transactionalId), value: null };
}

export interface TransactionRecord {
  readonly transactionalId: string;
  readonly row: Transaction | null;
}

/** Throws DecodeError on a record that nothing of ours or Kafka's has written. */
export function readTransactionRecord(
  key: Uint8Array,
  value: Uint8Array | null,
): TransactionRecord {
  const { transactionalId } = decodeVersioned(transactionLogKey, key);
  if (value === null) return { transactionalId, row: null };
  const stored = decodeGrowing(transactionLogValue, value);
  const status = TXN_STATUSES[stored.transactionStatus];
  if (status === undefined || status === "Dead" || status === "PrepareEpochFence") {
    throw new DecodeError(`Cannot read a transaction in status ${stored.transactionStatus}`);
  }
  const partitions = (stored.transactionPartitions ?? []).flatMap(({ topic, partitionIds }) =>
    partitionIds.map((partition) => ({ topic, partition }))
  );
  const row: Transaction = {
    transactionalId,
    producerId: stored.producerId,
    previousProducerId: stored.previousProducerId,
    nextProducerId: stored.nextProducerId,
    producerEpoch: stored.producerEpoch,
    lastProducerEpoch: NO_EPOCH,
    timeoutMs: stored.transactionTimeoutMs,
    status,
    partitions: partitionsOf(partitions),
    startedAtMs: stored.transactionStartTimestampMs,
    updatedAtMs: stored.transactionLastUpdateTimestampMs,
    isV2: stored.clientTransactionVersion >= V2,
  };
  return { transactionalId, row };
}
