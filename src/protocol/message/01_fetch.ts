/**
 * Fetch, key 1, versions 4-18, flexible from 12.
 * 5 adds log start offsets, 7 fetch sessions (KIP-227), 9 the leader epoch check (KIP-320), 10 zstd
 * (KIP-110), 11 the client's rack (KIP-392), 12 divergence detection, 13 topic ids (KIP-516), 15
 * the replica state (KIP-903), 16 the leaders' addresses (KIP-951), 17 directory ids (KIP-853), 18
 * a follower's high watermark (KIP-1166). Offsets that only get compared are clamped, so that
 * Long.MAX is out of range, not malformed.
 */
import { api } from "../api.ts";
import { int16, int32, int64, int64Clamped, int8, records, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 4, max: 18, flexibleFrom: 12 };

const replicaState = struct({
  replicaId: since(0, int32, { default: -1 }),
  replicaEpoch: since(0, int64Clamped, { default: -1 }),
});

const fetchPartition = struct({
  partition: int32,
  currentLeaderEpoch: since(9, int32, { default: -1 }),
  fetchOffset: int64Clamped,
  lastFetchedEpoch: since(12, int32, { default: -1 }),
  logStartOffset: since(5, int64Clamped, { default: -1 }),
  partitionMaxBytes: int32,
  replicaDirectoryId: since(17, uuid, { tag: 0 }),
  highWatermark: since(18, int64Clamped, { default: Number.MAX_SAFE_INTEGER, tag: 1 }),
});

const fetchTopic = struct({
  topic: since(0, string, { until: 12 }),
  topicId: since(13, uuid),
  partitions: array(fetchPartition),
});

const forgottenTopic = struct({
  topic: since(0, string, { until: 12 }),
  topicId: since(13, uuid),
  partitions: array(int32),
});

export const fetchRequest = message("FetchRequest", VERSIONS, {
  clusterId: since(12, string, { nullableSince: 12, default: null, tag: 0 }),
  replicaId: since(0, int32, { until: 14, default: -1 }),
  replicaState: since(15, replicaState, { tag: 1 }),
  maxWaitMs: int32,
  minBytes: int32,
  maxBytes: since(0, int32, { default: 0x7fffffff }),
  isolationLevel: since(0, int8, { default: 0 }),
  sessionId: since(7, int32),
  sessionEpoch: since(7, int32, { default: -1 }),
  topics: array(fetchTopic),
  forgottenTopicsData: since(7, array(forgottenTopic)),
  rackId: since(11, string),
});

const epochEndOffset = struct({
  epoch: since(0, int32, { default: -1 }),
  endOffset: since(0, int64, { default: -1 }),
});

const leaderIdAndEpoch = struct({
  leaderId: since(0, int32, { default: -1 }),
  leaderEpoch: since(0, int32, { default: -1 }),
});

const snapshotId = struct({
  endOffset: since(0, int64, { default: -1 }),
  epoch: since(0, int32, { default: -1 }),
});

const abortedTransaction = struct({
  producerId: int64,
  firstOffset: int64,
});

const partitionData = struct({
  partitionIndex: int32,
  errorCode: int16,
  highWatermark: int64,
  lastStableOffset: since(0, int64, { default: -1 }),
  logStartOffset: since(5, int64, { default: -1 }),
  divergingEpoch: since(12, epochEndOffset, { tag: 0 }),
  currentLeader: since(12, leaderIdAndEpoch, { tag: 1 }),
  snapshotId: since(12, snapshotId, { tag: 2 }),
  abortedTransactions: since(0, array(abortedTransaction), { nullableSince: 0 }),
  preferredReadReplica: since(11, int32, { default: -1 }),
  records: since(0, records, { nullableSince: 0 }),
});

const fetchableTopicResponse = struct({
  topic: since(0, string, { until: 12 }),
  topicId: since(13, uuid),
  partitions: array(partitionData),
});

const nodeEndpoint = struct({
  nodeId: int32,
  host: string,
  port: int32,
  rack: since(0, string, { nullableSince: 0, default: null }),
});

export const fetchResponse = message("FetchResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: since(7, int16),
  sessionId: since(7, int32),
  responses: array(fetchableTopicResponse),
  nodeEndpoints: since(16, array(nodeEndpoint), { tag: 0 }),
});

export type FetchRequest = Infer<typeof fetchRequest>;
export type FetchResponse = InferInput<typeof fetchResponse>;
export const fetchApi = api(1, fetchRequest, fetchResponse);
