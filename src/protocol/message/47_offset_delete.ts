/**
 * OffsetDelete, key 47, version 0, never flexible (KIP-496).
 */
import { api } from "../api.ts";
import { int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 0, flexibleFrom: null };

const offsetDeleteRequestPartition = struct({
  partitionIndex: int32,
});

const offsetDeleteRequestTopic = struct({
  name: string,
  partitions: array(offsetDeleteRequestPartition),
});

export const offsetDeleteRequest = message("OffsetDeleteRequest", VERSIONS, {
  groupId: string,
  topics: array(offsetDeleteRequestTopic),
});

const offsetDeleteResponsePartition = struct({
  partitionIndex: int32,
  errorCode: int16,
});

const offsetDeleteResponseTopic = struct({
  name: string,
  partitions: array(offsetDeleteResponsePartition),
});

export const offsetDeleteResponse = message("OffsetDeleteResponse", VERSIONS, {
  errorCode: int16,
  throttleTimeMs: int32,
  topics: array(offsetDeleteResponseTopic),
});

export type OffsetDeleteRequest = Infer<typeof offsetDeleteRequest>;
export type OffsetDeleteResponse = InferInput<typeof offsetDeleteResponse>;
export const offsetDeleteApi = api(47, offsetDeleteRequest, offsetDeleteResponse);
