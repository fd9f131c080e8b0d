/**
 * DeleteGroups, key 42, versions 0-2, flexible from 2.
 */
import { api } from "../api.ts";
import { int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 2, flexibleFrom: 2 };

export const deleteGroupsRequest = message("DeleteGroupsRequest", VERSIONS, {
  groupsNames: array(string),
});

const deletableGroupResult = struct({
  groupId: string,
  errorCode: int16,
});

export const deleteGroupsResponse = message("DeleteGroupsResponse", VERSIONS, {
  throttleTimeMs: int32,
  results: array(deletableGroupResult),
});

export type DeleteGroupsRequest = Infer<typeof deleteGroupsRequest>;
export type DeleteGroupsResponse = InferInput<typeof deleteGroupsResponse>;
export const deleteGroupsApi = api(42, deleteGroupsRequest, deleteGroupsResponse);
