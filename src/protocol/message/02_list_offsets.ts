/**
 * ListOffsets, key 2, versions 1-11, flexible from 6.
 * 2 adds the isolation level, 4 the leader epoch (KIP-320), 7 the target -3 for the largest
 * timestamp (KIP-734), 8 the target -4 for the local log start (KIP-405), 9 the target -5 for the
 * last tiered offset (KIP-1005), 10 a time-out (KIP-1075), 11 the target -6 for the earliest
 * pending upload (KIP-1023).
 */
import { api } from "../api.ts";
import { int16, int32, int64, int64Clamped, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 1, max: 11, flexibleFrom: 6 };

const listOffsetsPartition = struct({
  partitionIndex: int32,
  currentLeaderEpoch: since(4, int32, { default: -1 }),
  timestamp: int64Clamped,
});

const listOffsetsTopic = struct({
  name: string,
  partitions: array(listOffsetsPartition),
});

export const listOffsetsRequest = message("ListOffsetsRequest", VERSIONS, {
  replicaId: int32,
  isolationLevel: since(2, int8),
  topics: array(listOffsetsTopic),
  timeoutMs: since(10, int32),
});

const listOffsetsPartitionResponse = struct({
  partitionIndex: int32,
  errorCode: int16,
  timestamp: since(0, int64, { default: -1 }),
  offset: since(0, int64, { default: -1 }),
  leaderEpoch: since(4, int32, { default: -1 }),
});

const listOffsetsTopicResponse = struct({
  name: string,
  partitions: array(listOffsetsPartitionResponse),
});

export const listOffsetsResponse = message("ListOffsetsResponse", VERSIONS, {
  throttleTimeMs: since(2, int32),
  topics: array(listOffsetsTopicResponse),
});

export type ListOffsetsRequest = Infer<typeof listOffsetsRequest>;
export type ListOffsetsResponse = InferInput<typeof listOffsetsResponse>;
export const listOffsetsApi = api(2, listOffsetsRequest, listOffsetsResponse);
