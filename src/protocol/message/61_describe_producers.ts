/** DescribeProducers, key 61, version 0, flexible: the idempotent producers that partitions know (KIP-664). */
import { api } from "../api.ts";
import { int16, int32, int64, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 0, flexibleFrom: 0 };

const topicRequest = struct({ name: string, partitionIndexes: array(int32) });

export const describeProducersRequest = message("DescribeProducersRequest", VERSIONS, {
  topics: array(topicRequest),
});

const producerState = struct({
  producerId: int64,
  producerEpoch: int32,
  lastSequence: since(0, int32, { default: -1 }),
  lastTimestamp: since(0, int64, { default: -1 }),
  coordinatorEpoch: int32,
  currentTxnStartOffset: since(0, int64, { default: -1 }),
});

const partitionResponse = struct({
  partitionIndex: int32,
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0, default: null }),
  activeProducers: array(producerState),
});

const topicResponse = struct({ name: string, partitions: array(partitionResponse) });

export const describeProducersResponse = message("DescribeProducersResponse", VERSIONS, {
  throttleTimeMs: int32,
  topics: array(topicResponse),
});

export type DescribeProducersRequest = Infer<typeof describeProducersRequest>;
export type DescribeProducersResponse = InferInput<typeof describeProducersResponse>;
export const describeProducersApi = api(61, describeProducersRequest, describeProducersResponse);
