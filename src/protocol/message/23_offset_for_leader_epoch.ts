/**
 * OffsetForLeaderEpoch, key 23, versions 2-4, flexible from 4 (KIP-320).
 * 3 adds the replica id, -2 for a consumer that may see offsets past the high watermark.
 */
import { api } from "../api.ts";
import { int16, int32, int64, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 2, max: 4, flexibleFrom: 4 };

const offsetForLeaderPartition = struct({
  partition: int32,
  currentLeaderEpoch: since(0, int32, { default: -1 }),
  leaderEpoch: int32,
});

const offsetForLeaderTopic = struct({
  topic: string,
  partitions: array(offsetForLeaderPartition),
});

export const offsetForLeaderEpochRequest = message("OffsetForLeaderEpochRequest", VERSIONS, {
  replicaId: since(3, int32, { default: -2 }),
  topics: array(offsetForLeaderTopic),
});

const epochEndOffset = struct({
  errorCode: int16,
  partition: int32,
  leaderEpoch: since(0, int32, { default: -1 }),
  endOffset: since(0, int64, { default: -1 }),
});

const offsetForLeaderTopicResult = struct({
  topic: string,
  partitions: array(epochEndOffset),
});

export const offsetForLeaderEpochResponse = message("OffsetForLeaderEpochResponse", VERSIONS, {
  throttleTimeMs: int32,
  topics: array(offsetForLeaderTopicResult),
});

export type OffsetForLeaderEpochRequest = Infer<typeof offsetForLeaderEpochRequest>;
export type OffsetForLeaderEpochResponse = InferInput<typeof offsetForLeaderEpochResponse>;
export const offsetForLeaderEpochApi = api(
  23,
  offsetForLeaderEpochRequest,
  offsetForLeaderEpochResponse,
);
