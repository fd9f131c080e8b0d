/**
 * ShareAcknowledge, key 79, versions 1-2, flexible (KIP-932).
 * 2 adds renewals of locks (KIP-1222).
 */
import { api } from "../api.ts";
import { bool, int16, int32, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";
import { acknowledgementBatch, leaderIdAndEpoch, shareNodeEndpoint } from "./78_share_fetch.ts";

const VERSIONS = { min: 1, max: 2, flexibleFrom: 0 };
const nullString = { nullableSince: 0, default: null };

export const shareAcknowledgeRequest = message("ShareAcknowledgeRequest", VERSIONS, {
  groupId: since(0, string, nullString),
  memberId: since(0, string, { nullableSince: 0 }),
  shareSessionEpoch: int32,
  isRenewAck: since(2, bool, { default: false }),
  topics: array(struct({
    topicId: uuid,
    partitions: array(struct({
      partitionIndex: int32,
      acknowledgementBatches: array(acknowledgementBatch),
    })),
  })),
});

export const shareAcknowledgeResponse = message("ShareAcknowledgeResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
  errorMessage: since(0, string, nullString),
  acquisitionLockTimeoutMs: since(2, int32),
  responses: array(struct({
    topicId: uuid,
    partitions: array(struct({
      partitionIndex: int32,
      errorCode: int16,
      errorMessage: since(0, string, nullString),
      currentLeader: leaderIdAndEpoch,
    })),
  })),
  nodeEndpoints: array(shareNodeEndpoint),
});

export type ShareAcknowledgeRequest = Infer<typeof shareAcknowledgeRequest>;
export type ShareAcknowledgeResponse = InferInput<typeof shareAcknowledgeResponse>;
export const shareAcknowledgeApi = api(79, shareAcknowledgeRequest, shareAcknowledgeResponse);
