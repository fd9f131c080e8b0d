/**
 * AddPartitionsToTxn, key 24, versions 0-5, flexible from 3.
 * 4 and 5 carry many transactions, each of which may ask only whether it holds the partitions (KIP-890);
 * 2 and 5 change errors only.
 */
import { api } from "../api.ts";
import { bool, int16, int32, int64Clamped, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 5, flexibleFrom: 3 };

const addPartitionsToTxnTopic = struct({ name: string, partitions: array(int32) });

const addPartitionsToTxnTransaction = struct({
  transactionalId: string,
  producerId: int64Clamped,
  producerEpoch: int16,
  verifyOnly: since(0, bool, { default: false }),
  topics: array(addPartitionsToTxnTopic),
});

export const addPartitionsToTxnRequest = message("AddPartitionsToTxnRequest", VERSIONS, {
  transactions: since(4, array(addPartitionsToTxnTransaction)),
  v3AndBelowTransactionalId: since(0, string, { until: 3 }),
  v3AndBelowProducerId: since(0, int64Clamped, { until: 3 }),
  v3AndBelowProducerEpoch: since(0, int16, { until: 3 }),
  v3AndBelowTopics: since(0, array(addPartitionsToTxnTopic), { until: 3 }),
});

const addPartitionsToTxnPartitionResult = struct({
  partitionIndex: int32,
  partitionErrorCode: int16,
});

const addPartitionsToTxnTopicResult = struct({
  name: string,
  resultsByPartition: array(addPartitionsToTxnPartitionResult),
});

const addPartitionsToTxnResult = struct({
  transactionalId: string,
  topicResults: array(addPartitionsToTxnTopicResult),
});

export const addPartitionsToTxnResponse = message("AddPartitionsToTxnResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: since(4, int16),
  resultsByTransaction: since(4, array(addPartitionsToTxnResult)),
  resultsByTopicV3AndBelow: since(0, array(addPartitionsToTxnTopicResult), { until: 3 }),
});

export type AddPartitionsToTxnRequest = Infer<typeof addPartitionsToTxnRequest>;
export type AddPartitionsToTxnResponse = InferInput<typeof addPartitionsToTxnResponse>;
export const addPartitionsToTxnApi = api(24, addPartitionsToTxnRequest, addPartitionsToTxnResponse);
