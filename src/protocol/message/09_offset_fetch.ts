/**
 * OffsetFetch, key 9, versions 1-10, flexible from 6.
 * From 2 on a null topic list means all topics, and errors have a place at the top. 5 adds leader
 * epochs (KIP-320), 7 asks for stable offsets (KIP-447), 8 takes many groups and moves everything
 * below them (KIP-709), 9 names the member (KIP-848), 10 has topic ids instead of names.
 */
import { api } from "../api.ts";
import { bool, int16, int32, int64, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 1, max: 10, flexibleFrom: 6 };

const offsetFetchRequestTopic = struct({
  name: string,
  partitionIndexes: array(int32),
});

const offsetFetchRequestTopics = struct({
  name: since(0, string, { until: 9 }),
  topicId: since(10, uuid),
  partitionIndexes: array(int32),
});

const offsetFetchRequestGroup = struct({
  groupId: string,
  memberId: since(9, string, { nullableSince: 9, default: null }),
  memberEpoch: since(9, int32, { default: -1 }),
  topics: since(0, array(offsetFetchRequestTopics), { nullableSince: 0 }),
});

export const offsetFetchRequest = message("OffsetFetchRequest", VERSIONS, {
  groupId: since(0, string, { until: 7 }),
  topics: since(0, array(offsetFetchRequestTopic), { until: 7, nullableSince: 2 }),
  groups: since(8, array(offsetFetchRequestGroup)),
  requireStable: since(7, bool),
});

const offsetFetchResponsePartition = struct({
  partitionIndex: int32,
  committedOffset: int64,
  committedLeaderEpoch: since(5, int32, { default: -1 }),
  metadata: since(0, string, { nullableSince: 0 }),
  errorCode: int16,
});

const offsetFetchResponseTopic = struct({
  name: string,
  partitions: array(offsetFetchResponsePartition),
});

const offsetFetchResponsePartitions = struct({
  partitionIndex: int32,
  committedOffset: int64,
  committedLeaderEpoch: since(0, int32, { default: -1 }),
  metadata: since(0, string, { nullableSince: 0 }),
  errorCode: int16,
});

const offsetFetchResponseTopics = struct({
  name: since(0, string, { until: 9 }),
  topicId: since(10, uuid),
  partitions: array(offsetFetchResponsePartitions),
});

const offsetFetchResponseGroup = struct({
  groupId: string,
  topics: array(offsetFetchResponseTopics),
  errorCode: since(0, int16, { default: 0 }),
});

export const offsetFetchResponse = message("OffsetFetchResponse", VERSIONS, {
  throttleTimeMs: since(3, int32),
  topics: since(0, array(offsetFetchResponseTopic), { until: 7 }),
  errorCode: since(2, int16, { until: 7 }),
  groups: since(8, array(offsetFetchResponseGroup)),
});

export type OffsetFetchRequest = Infer<typeof offsetFetchRequest>;
export type OffsetFetchResponse = InferInput<typeof offsetFetchResponse>;
export const offsetFetchApi = api(9, offsetFetchRequest, offsetFetchResponse);
