/**
 * ListPartitionReassignments (key 46), version 0.
 * Behaviour: always empty, which is the truth: partitions have no replicas that could move.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  listPartitionReassignmentsApi,
  type ListPartitionReassignmentsRequest,
  type ListPartitionReassignmentsResponse,
} from "../../protocol/message/46_list_partition_reassignments.ts";
import type { Handler } from "../handler.ts";

export function listPartitionReassignmentsHandler(): Handler<
  ListPartitionReassignmentsRequest,
  ListPartitionReassignmentsResponse
> {
  return {
    api: listPartitionReassignmentsApi,
    min: 0,
    max: 0,
    handle: () =>
      Promise.resolve({
        throttleTimeMs: 0,
        errorCode: errorCode("NONE"),
        errorMessage: null,
        topics: [],
      }),
  };
}
