/**
 * CreateTopics, key 19, versions 2-7, flexible from 5.
 * From 4 on -1 asks for the default partition count or replication factor (KIP-464), 5 answers the
 * topic's settings (KIP-525), 6 may be throttled (KIP-599), 7 answers the topic id (KIP-516).
 */
import { api } from "../api.ts";
import { bool, int16, int32, int8, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 2, max: 7, flexibleFrom: 5 };

const creatableReplicaAssignment = struct({
  partitionIndex: int32,
  brokerIds: array(int32),
});

const creatableTopicConfig = struct({
  name: string,
  value: since(0, string, { nullableSince: 0 }),
});

const creatableTopic = struct({
  name: string,
  numPartitions: int32,
  replicationFactor: int16,
  assignments: array(creatableReplicaAssignment),
  configs: array(creatableTopicConfig),
});

export const createTopicsRequest = message("CreateTopicsRequest", VERSIONS, {
  topics: array(creatableTopic),
  timeoutMs: since(0, int32, { default: 60000 }),
  validateOnly: since(0, bool, { default: false }),
});

const creatableTopicConfigs = struct({
  name: string,
  value: since(0, string, { nullableSince: 0 }),
  readOnly: bool,
  configSource: since(0, int8, { default: -1 }),
  isSensitive: bool,
});

const creatableTopicResult = struct({
  name: string,
  topicId: since(7, uuid),
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
  topicConfigErrorCode: since(5, int16, { tag: 0 }),
  numPartitions: since(5, int32, { default: -1 }),
  replicationFactor: since(5, int16, { default: -1 }),
  configs: since(5, array(creatableTopicConfigs), { nullableSince: 5 }),
});

export const createTopicsResponse = message("CreateTopicsResponse", VERSIONS, {
  throttleTimeMs: int32,
  topics: array(creatableTopicResult),
});

export type CreateTopicsRequest = Infer<typeof createTopicsRequest>;
export type CreateTopicsResponse = InferInput<typeof createTopicsResponse>;
export const createTopicsApi = api(19, createTopicsRequest, createTopicsResponse);
