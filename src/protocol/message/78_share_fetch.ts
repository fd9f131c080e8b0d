/**
 * ShareFetch, key 78, versions 1-2, flexible (KIP-932).
 * 2 adds the acquire mode (KIP-1206) and renewals of locks (KIP-1222).
 */
import { api } from "../api.ts";
import {
  bool,
  int16,
  int32,
  int64,
  int64Clamped,
  int8,
  records,
  string,
  uuid,
} from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 1, max: 2, flexibleFrom: 0 };
const nullString = { nullableSince: 0, default: null };

/** Offsets are compared with ours only, so that one out of range is unknown, not malformed. */
export const acknowledgementBatch = struct({
  firstOffset: int64Clamped,
  lastOffset: int64Clamped,
  acknowledgeTypes: array(int8),
});

const fetchTopic = struct({
  topicId: uuid,
  partitions: array(struct({
    partitionIndex: int32,
    acknowledgementBatches: array(acknowledgementBatch),
  })),
});

export const shareFetchRequest = message("ShareFetchRequest", VERSIONS, {
  groupId: since(0, string, nullString),
  memberId: since(0, string, { nullableSince: 0 }),
  shareSessionEpoch: int32,
  maxWaitMs: int32,
  minBytes: int32,
  maxBytes: since(0, int32, { default: 0x7fffffff }),
  maxRecords: int32,
  batchSize: int32,
  shareAcquireMode: since(2, int8, { default: 0 }),
  isRenewAck: since(2, bool, { default: false }),
  topics: array(fetchTopic),
  forgottenTopicsData: array(struct({ topicId: uuid, partitions: array(int32) })),
});

export const leaderIdAndEpoch = struct({ leaderId: int32, leaderEpoch: int32 });

export const shareNodeEndpoint = struct({
  nodeId: int32,
  host: string,
  port: int32,
  rack: since(0, string, nullString),
});

const partitionData = struct({
  partitionIndex: int32,
  errorCode: int16,
  errorMessage: since(0, string, nullString),
  acknowledgeErrorCode: int16,
  acknowledgeErrorMessage: since(0, string, nullString),
  currentLeader: leaderIdAndEpoch,
  records,
  acquiredRecords: array(
    struct({ firstOffset: int64, lastOffset: int64, deliveryCount: int16 }),
  ),
});

export const shareFetchResponse = message("ShareFetchResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
  errorMessage: since(0, string, nullString),
  acquisitionLockTimeoutMs: int32,
  responses: array(struct({ topicId: uuid, partitions: array(partitionData) })),
  nodeEndpoints: array(shareNodeEndpoint),
});

export type ShareFetchRequest = Infer<typeof shareFetchRequest>;
export type ShareFetchResponse = InferInput<typeof shareFetchResponse>;
export const shareFetchApi = api(78, shareFetchRequest, shareFetchResponse);
