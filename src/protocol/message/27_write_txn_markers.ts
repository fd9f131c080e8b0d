/**
 * WriteTxnMarkers, key 27, versions 1-2, flexible from 1. 2 says by which rules the epoch is judged (KIP-1228).
 */
import { api } from "../api.ts";
import { bool, int16, int32, int64, int64Clamped, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 1, max: 2, flexibleFrom: 1 };

const writableTxnMarkerTopic = struct({ name: string, partitionIndexes: array(int32) });

const writableTxnMarker = struct({
  producerId: int64Clamped,
  producerEpoch: int16,
  transactionResult: bool,
  topics: array(writableTxnMarkerTopic),
  coordinatorEpoch: int32,
  transactionVersion: since(2, int8, { default: 0 }),
});

export const writeTxnMarkersRequest = message("WriteTxnMarkersRequest", VERSIONS, {
  markers: array(writableTxnMarker),
});

const writableTxnMarkerPartitionResult = struct({ partitionIndex: int32, errorCode: int16 });

const writableTxnMarkerTopicResult = struct({
  name: string,
  partitions: array(writableTxnMarkerPartitionResult),
});

const writableTxnMarkerResult = struct({
  producerId: int64,
  topics: array(writableTxnMarkerTopicResult),
});

export const writeTxnMarkersResponse = message("WriteTxnMarkersResponse", VERSIONS, {
  markers: array(writableTxnMarkerResult),
});

export type WriteTxnMarkersRequest = Infer<typeof writeTxnMarkersRequest>;
export type WriteTxnMarkersResponse = InferInput<typeof writeTxnMarkersResponse>;
export const writeTxnMarkersApi = api(27, writeTxnMarkersRequest, writeTxnMarkersResponse);
