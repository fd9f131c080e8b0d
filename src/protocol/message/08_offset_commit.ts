/**
 * OffsetCommit, key 8, versions 2-10, flexible from 8.
 * 2-4 carry a retention time (before KIP-211), 6 adds the leader epoch (KIP-320), 7
 * static members (KIP-345), 9 the errors of the newer group protocol (KIP-848), 10 topic ids
 * instead of names.
 */
import { api } from "../api.ts";
import { int16, int32, int64Clamped, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 2, max: 10, flexibleFrom: 8 };

const offsetCommitRequestPartition = struct({
  partitionIndex: int32,
  committedOffset: int64Clamped,
  committedLeaderEpoch: since(6, int32, { default: -1 }),
  committedMetadata: since(0, string, { nullableSince: 0 }),
});

const offsetCommitRequestTopic = struct({
  name: since(0, string, { until: 9 }),
  topicId: since(10, uuid),
  partitions: array(offsetCommitRequestPartition),
});

export const offsetCommitRequest = message("OffsetCommitRequest", VERSIONS, {
  groupId: string,
  generationIdOrMemberEpoch: since(0, int32, { default: -1 }),
  memberId: string,
  groupInstanceId: since(7, string, { nullableSince: 7, default: null }),
  retentionTimeMs: since(0, int64Clamped, { until: 4, default: -1 }),
  topics: array(offsetCommitRequestTopic),
});

const offsetCommitResponsePartition = struct({
  partitionIndex: int32,
  errorCode: int16,
});

const offsetCommitResponseTopic = struct({
  name: since(0, string, { until: 9 }),
  topicId: since(10, uuid),
  partitions: array(offsetCommitResponsePartition),
});

export const offsetCommitResponse = message("OffsetCommitResponse", VERSIONS, {
  throttleTimeMs: since(3, int32),
  topics: array(offsetCommitResponseTopic),
});

export type OffsetCommitRequest = Infer<typeof offsetCommitRequest>;
export type OffsetCommitResponse = InferInput<typeof offsetCommitResponse>;
export const offsetCommitApi = api(8, offsetCommitRequest, offsetCommitResponse);
