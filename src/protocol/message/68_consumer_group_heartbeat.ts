/**
 * ConsumerGroupHeartbeat, key 68, versions 0-1, flexible (KIP-848).
 * 1 adds the regular expression and lets the client choose its member id (KIP-1082).
 */
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

const VERSIONS = { min: 0, max: 1, flexibleFrom: 0 };

const topicPartitions = struct({ topicId: uuid, partitions: array(int32) });

const nullString = { nullableSince: 0, default: null };

export const consumerGroupHeartbeatRequest = message("ConsumerGroupHeartbeatRequest", VERSIONS, {
  groupId: string,
  memberId: string,
  memberEpoch: int32,
  instanceId: since(0, string, nullString),
  rackId: since(0, string, nullString),
  rebalanceTimeoutMs: since(0, int32, { default: -1 }),
  subscribedTopicNames: since(0, array(string), { nullableSince: 0, default: null }),
  subscribedTopicRegex: since(1, string, { nullableSince: 1, default: null }),
  serverAssignor: since(0, string, nullString),
  topicPartitions: since(0, array(topicPartitions), { nullableSince: 0, default: null }),
});

export const consumerGroupHeartbeatResponse = message("ConsumerGroupHeartbeatResponse", VERSIONS, {
  throttleTimeMs: since(0, int32, { default: 0 }),
  errorCode: int16,
  errorMessage: since(0, string, nullString),
  memberId: since(0, string, nullString),
  memberEpoch: int32,
  heartbeatIntervalMs: int32,
  assignment: since(0, nullableStruct({ topicPartitions: array(topicPartitions) }), {
    nullableSince: 0,
    default: null,
  }),
});

export type ConsumerGroupHeartbeatRequest = Infer<typeof consumerGroupHeartbeatRequest>;
export type ConsumerGroupHeartbeatResponse = InferInput<typeof consumerGroupHeartbeatResponse>;
export const consumerGroupHeartbeatApi = api(
  68,
  consumerGroupHeartbeatRequest,
  consumerGroupHeartbeatResponse,
);
