/** DescribeTransactions, key 65, version 0, flexible: what the coordinator knows of transactional ids (KIP-664). */
import { api } from "../api.ts";
import { int16, int32, int64, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 0, flexibleFrom: 0 };

export const describeTransactionsRequest = message("DescribeTransactionsRequest", VERSIONS, {
  transactionalIds: array(string),
});

const topicData = struct({ topic: string, partitions: array(int32) });

const transactionState = struct({
  errorCode: int16,
  transactionalId: string,
  transactionState: string,
  transactionTimeoutMs: int32,
  transactionStartTimeMs: int64,
  producerId: int64,
  producerEpoch: int16,
  topics: array(topicData),
});

export const describeTransactionsResponse = message("DescribeTransactionsResponse", VERSIONS, {
  throttleTimeMs: int32,
  transactionStates: array(transactionState),
});

export type DescribeTransactionsRequest = Infer<typeof describeTransactionsRequest>;
export type DescribeTransactionsResponse = InferInput<typeof describeTransactionsResponse>;
export const describeTransactionsApi = api(
  65,
  describeTransactionsRequest,
  describeTransactionsResponse,
);
