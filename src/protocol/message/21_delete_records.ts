/**
 * DeleteRecords, key 21, versions 0-2, flexible from 2 (KIP-107). Offset -1 stands for the high watermark.
 */
import { api } from "../api.ts";
import { int16, int32, int64, int64Clamped, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 2, flexibleFrom: 2 };

const deleteRecordsPartition = struct({
  partitionIndex: int32,
  offset: int64Clamped,
});

const deleteRecordsTopic = struct({
  name: string,
  partitions: array(deleteRecordsPartition),
});

export const deleteRecordsRequest = message("DeleteRecordsRequest", VERSIONS, {
  topics: array(deleteRecordsTopic),
  timeoutMs: int32,
});

const deleteRecordsPartitionResult = struct({
  partitionIndex: int32,
  lowWatermark: int64,
  errorCode: int16,
});

const deleteRecordsTopicResult = struct({
  name: string,
  partitions: array(deleteRecordsPartitionResult),
});

export const deleteRecordsResponse = message("DeleteRecordsResponse", VERSIONS, {
  throttleTimeMs: int32,
  topics: array(deleteRecordsTopicResult),
});

export type DeleteRecordsRequest = Infer<typeof deleteRecordsRequest>;
export type DeleteRecordsResponse = InferInput<typeof deleteRecordsResponse>;
export const deleteRecordsApi = api(21, deleteRecordsRequest, deleteRecordsResponse);
