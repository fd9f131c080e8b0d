/**
 * DeleteTopics, key 20, versions 1-6, flexible from 4.
 * 5 adds error messages (KIP-599), 6 deletes by name or id (KIP-516).
 */
import { api } from "../api.ts";
import { int16, int32, string, uuid } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 1, max: 6, flexibleFrom: 4 };

const deleteTopicState = struct({
  name: since(0, string, { nullableSince: 0, default: null }),
  topicId: uuid,
});

export const deleteTopicsRequest = message("DeleteTopicsRequest", VERSIONS, {
  topics: since(6, array(deleteTopicState)),
  topicNames: since(0, array(string), { until: 5 }),
  timeoutMs: int32,
});

const deletableTopicResult = struct({
  name: since(0, string, { nullableSince: 6 }),
  topicId: since(6, uuid),
  errorCode: int16,
  errorMessage: since(5, string, { nullableSince: 5, default: null }),
});

export const deleteTopicsResponse = message("DeleteTopicsResponse", VERSIONS, {
  throttleTimeMs: int32,
  responses: array(deletableTopicResult),
});

export type DeleteTopicsRequest = Infer<typeof deleteTopicsRequest>;
export type DeleteTopicsResponse = InferInput<typeof deleteTopicsResponse>;
export const deleteTopicsApi = api(20, deleteTopicsRequest, deleteTopicsResponse);
