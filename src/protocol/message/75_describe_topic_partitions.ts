/**
 * DescribeTopicPartitions, key 75, version 0, flexible (KIP-966). A cursor says where an answer goes on.
 */
import { api } from "../api.ts";
import { bool, int16, int32, string, uuid } from "../primitive.ts";
import {
  array,
  type Infer,
  type InferInput,
  message,
  nullableStruct,
  since,
  struct,
} from "../schema.ts";

const VERSIONS = { min: 0, max: 0, flexibleFrom: 0 };

const topicRequest = struct({
  name: string,
});

const cursor = nullableStruct({
  topicName: string,
  partitionIndex: int32,
});

export const describeTopicPartitionsRequest = message("DescribeTopicPartitionsRequest", VERSIONS, {
  topics: array(topicRequest),
  responsePartitionLimit: since(0, int32, { default: 2000 }),
  cursor: since(0, cursor, { nullableSince: 0, default: null }),
});

const responsePartition = struct({
  errorCode: int16,
  partitionIndex: int32,
  leaderId: int32,
  leaderEpoch: since(0, int32, { default: -1 }),
  replicaNodes: array(int32),
  isrNodes: array(int32),
  eligibleLeaderReplicas: since(0, array(int32), { nullableSince: 0, default: null }),
  lastKnownElr: since(0, array(int32), { nullableSince: 0, default: null }),
  offlineReplicas: array(int32),
});

const responseTopic = struct({
  errorCode: int16,
  name: since(0, string, { nullableSince: 0 }),
  topicId: uuid,
  isInternal: bool,
  partitions: array(responsePartition),
  topicAuthorizedOperations: since(0, int32, { default: -(2 ** 31) }),
});

export const describeTopicPartitionsResponse = message(
  "DescribeTopicPartitionsResponse",
  VERSIONS,
  {
    throttleTimeMs: int32,
    topics: array(responseTopic),
    nextCursor: since(0, cursor, { nullableSince: 0, default: null }),
  },
);

export type DescribeTopicPartitionsRequest = Infer<typeof describeTopicPartitionsRequest>;
export type DescribeTopicPartitionsResponse = InferInput<typeof describeTopicPartitionsResponse>;
export const describeTopicPartitionsApi = api(
  75,
  describeTopicPartitionsRequest,
  describeTopicPartitionsResponse,
);
