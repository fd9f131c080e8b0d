/** ShareGroupHeartbeat, key 76, version 1, flexible (KIP-932). Version 0 was an early one that Kafka took back. */
import { api } from "../api.ts";
import { int16, int32, string, uuid } from "../primitive.ts";
import {
  array,
  type Infer,
  type InferInput,
  message,
  nullableStruct,
  since,
  struct,
} from "../schema.ts";

const VERSIONS = { min: 1, max: 1, flexibleFrom: 0 };
const nullString = { nullableSince: 0, default: null };

export const shareGroupHeartbeatRequest = message("ShareGroupHeartbeatRequest", VERSIONS, {
  groupId: string,
  memberId: string,
  memberEpoch: int32,
  rackId: since(0, string, nullString),
  subscribedTopicNames: since(0, array(string), nullString),
});

const topicPartitions = struct({ topicId: uuid, partitions: array(int32) });

export const shareGroupHeartbeatResponse = message("ShareGroupHeartbeatResponse", VERSIONS, {
  throttleTimeMs: since(0, int32, { default: 0 }),
  errorCode: int16,
  errorMessage: since(0, string, nullString),
  memberId: since(0, string, nullString),
  memberEpoch: int32,
  heartbeatIntervalMs: int32,
  assignment: since(0, nullableStruct({ topicPartitions: array(topicPartitions) }), nullString),
});

export type ShareGroupHeartbeatRequest = Infer<typeof shareGroupHeartbeatRequest>;
export type ShareGroupHeartbeatResponse = InferInput<typeof shareGroupHeartbeatResponse>;
export const shareGroupHeartbeatApi = api(
  76,
  shareGroupHeartbeatRequest,
  shareGroupHeartbeatResponse,
);
