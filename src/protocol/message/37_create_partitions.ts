/**
 * CreatePartitions, key 37, versions 0-3, flexible from 2. 3 may be throttled (KIP-599).
 */
import { api } from "../api.ts";
import { bool, int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 3, flexibleFrom: 2 };

const createPartitionsAssignment = struct({
  brokerIds: array(int32),
});

const createPartitionsTopic = struct({
  name: string,
  count: int32,
  assignments: since(0, array(createPartitionsAssignment), { nullableSince: 0 }),
});

export const createPartitionsRequest = message("CreatePartitionsRequest", VERSIONS, {
  topics: array(createPartitionsTopic),
  timeoutMs: int32,
  validateOnly: bool,
});

const createPartitionsTopicResult = struct({
  name: string,
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0, default: null }),
});

export const createPartitionsResponse = message("CreatePartitionsResponse", VERSIONS, {
  throttleTimeMs: int32,
  results: array(createPartitionsTopicResult),
});

export type CreatePartitionsRequest = Infer<typeof createPartitionsRequest>;
export type CreatePartitionsResponse = InferInput<typeof createPartitionsResponse>;
export const createPartitionsApi = api(37, createPartitionsRequest, createPartitionsResponse);
