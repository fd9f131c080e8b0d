/**
 * ListPartitionReassignments, key 46, version 0, flexible (KIP-455). A null topic list means all.
 */
import { api } from "../api.ts";
import { int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 0, flexibleFrom: 0 };

const listPartitionReassignmentsTopics = struct({
  name: string,
  partitionIndexes: array(int32),
});

export const listPartitionReassignmentsRequest = message(
  "ListPartitionReassignmentsRequest",
  VERSIONS,
  {
    timeoutMs: since(0, int32, { default: 60000 }),
    topics: since(0, array(listPartitionReassignmentsTopics), { nullableSince: 0, default: null }),
  },
);

const ongoingPartitionReassignment = struct({
  partitionIndex: int32,
  replicas: array(int32),
  addingReplicas: array(int32),
  removingReplicas: array(int32),
});

const ongoingTopicReassignment = struct({
  name: string,
  partitions: array(ongoingPartitionReassignment),
});

export const listPartitionReassignmentsResponse = message(
  "ListPartitionReassignmentsResponse",
  VERSIONS,
  {
    throttleTimeMs: int32,
    errorCode: int16,
    errorMessage: since(0, string, { nullableSince: 0 }),
    topics: array(ongoingTopicReassignment),
  },
);

export type ListPartitionReassignmentsRequest = Infer<typeof listPartitionReassignmentsRequest>;
export type ListPartitionReassignmentsResponse = InferInput<
  typeof listPartitionReassignmentsResponse
>;
export const listPartitionReassignmentsApi = api(
  46,
  listPartitionReassignmentsRequest,
  listPartitionReassignmentsResponse,
);
