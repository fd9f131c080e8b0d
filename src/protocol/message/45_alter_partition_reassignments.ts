/**
 * AlterPartitionReassignments, key 45, versions 0-1, flexible (KIP-455). Null replicas cancel.
 * 1 says whether the number of replicas may change (KIP-860).
 */
import { api } from "../api.ts";
import { bool, int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 1, flexibleFrom: 0 };

const reassignablePartition = struct({
  partitionIndex: int32,
  replicas: since(0, array(int32), { nullableSince: 0, default: null }),
});

const reassignableTopic = struct({
  name: string,
  partitions: array(reassignablePartition),
});

export const alterPartitionReassignmentsRequest = message(
  "AlterPartitionReassignmentsRequest",
  VERSIONS,
  {
    timeoutMs: since(0, int32, { default: 60000 }),
    allowReplicationFactorChange: since(1, bool, { default: true }),
    topics: array(reassignableTopic),
  },
);

const reassignablePartitionResponse = struct({
  partitionIndex: int32,
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
});

const reassignableTopicResponse = struct({
  name: string,
  partitions: array(reassignablePartitionResponse),
});

export const alterPartitionReassignmentsResponse = message(
  "AlterPartitionReassignmentsResponse",
  VERSIONS,
  {
    throttleTimeMs: int32,
    allowReplicationFactorChange: since(1, bool, { default: true }),
    errorCode: int16,
    errorMessage: since(0, string, { nullableSince: 0 }),
    responses: array(reassignableTopicResponse),
  },
);

export type AlterPartitionReassignmentsRequest = Infer<typeof alterPartitionReassignmentsRequest>;
export type AlterPartitionReassignmentsResponse = InferInput<
  typeof alterPartitionReassignmentsResponse
>;
export const alterPartitionReassignmentsApi = api(
  45,
  alterPartitionReassignmentsRequest,
  alterPartitionReassignmentsResponse,
);
