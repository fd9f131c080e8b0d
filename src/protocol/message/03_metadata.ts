/**
 * Metadata, key 3, versions 0-13, flexible from 9.
 * In 0 an empty topic list means all topics; from 1 on null does, and empty means none. 4 says
 * whether topics may be created, 7 has leader epochs, 8-10 cluster operations (then KIP-700), 10
 * topic ids, 12 lookup by id (KIP-516), 13 an error for the whole answer.
 */
import { api } from "../api.ts";
import { bool, int16, int32, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 13, flexibleFrom: 9 };

const metadataRequestTopic = struct({
  topicId: since(10, uuid),
  name: since(0, string, { nullableSince: 10 }),
});

export const metadataRequest = message("MetadataRequest", VERSIONS, {
  topics: since(0, array(metadataRequestTopic), { nullableSince: 1 }),
  allowAutoTopicCreation: since(4, bool, { default: true }),
  includeClusterAuthorizedOperations: since(8, bool, { until: 10 }),
  includeTopicAuthorizedOperations: since(8, bool),
});

const metadataResponseBroker = struct({
  nodeId: int32,
  host: string,
  port: int32,
  rack: since(1, string, { nullableSince: 1, default: null }),
});

const metadataResponsePartition = struct({
  errorCode: int16,
  partitionIndex: int32,
  leaderId: int32,
  leaderEpoch: since(7, int32, { default: -1 }),
  replicaNodes: array(int32),
  isrNodes: array(int32),
  offlineReplicas: since(5, array(int32)),
});

const metadataResponseTopic = struct({
  errorCode: int16,
  name: since(0, string, { nullableSince: 12 }),
  topicId: since(10, uuid),
  isInternal: since(1, bool),
  partitions: array(metadataResponsePartition),
  topicAuthorizedOperations: since(8, int32, { default: -(2 ** 31) }),
});

export const metadataResponse = message("MetadataResponse", VERSIONS, {
  throttleTimeMs: since(3, int32),
  brokers: array(metadataResponseBroker),
  clusterId: since(2, string, { nullableSince: 2, default: null }),
  controllerId: since(1, int32, { default: -1 }),
  topics: array(metadataResponseTopic),
  clusterAuthorizedOperations: since(8, int32, { until: 10, default: -(2 ** 31) }),
  errorCode: since(13, int16),
});

export type MetadataRequest = Infer<typeof metadataRequest>;
export type MetadataResponse = InferInput<typeof metadataResponse>;
export const metadataApi = api(3, metadataRequest, metadataResponse);
