/**
 * TxnOffsetCommit, key 28, versions 0-5, flexible from 3.
 * 2 adds leader epochs, 3 names the member (KIP-447), 5 adds the offsets partition to the transaction
 * by itself (KIP-890); 4 changes errors only.
 */
import { api } from "../api.ts";
import { int16, int32, int64Clamped, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 5, flexibleFrom: 3 };

const txnOffsetCommitRequestPartition = struct({
  partitionIndex: int32,
  committedOffset: int64Clamped,
  committedLeaderEpoch: since(2, int32, { default: -1 }),
  committedMetadata: since(0, string, { nullableSince: 0 }),
});

const txnOffsetCommitRequestTopic = struct({
  name: string,
  partitions: array(txnOffsetCommitRequestPartition),
});

export const txnOffsetCommitRequest = message("TxnOffsetCommitRequest", VERSIONS, {
  transactionalId: string,
  groupId: string,
  producerId: int64Clamped,
  producerEpoch: int16,
  generationId: since(3, int32, { default: -1 }),
  memberId: since(3, string, { default: "" }),
  groupInstanceId: since(3, string, { nullableSince: 3, default: null }),
  topics: array(txnOffsetCommitRequestTopic),
});

const txnOffsetCommitResponsePartition = struct({ partitionIndex: int32, errorCode: int16 });

const txnOffsetCommitResponseTopic = struct({
  name: string,
  partitions: array(txnOffsetCommitResponsePartition),
});

export const txnOffsetCommitResponse = message("TxnOffsetCommitResponse", VERSIONS, {
  throttleTimeMs: int32,
  topics: array(txnOffsetCommitResponseTopic),
});

export type TxnOffsetCommitRequest = Infer<typeof txnOffsetCommitRequest>;
export type TxnOffsetCommitResponse = InferInput<typeof txnOffsetCommitResponse>;
export const txnOffsetCommitApi = api(28, txnOffsetCommitRequest, txnOffsetCommitResponse);
