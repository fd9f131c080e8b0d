/**
 * ListGroups, key 16, versions 0-5, flexible from 3.
 * 4 filters by state (KIP-518), 5 by type (KIP-848).
 */
import { api } from "../api.ts";
import { int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 5, flexibleFrom: 3 };

export const listGroupsRequest = message("ListGroupsRequest", VERSIONS, {
  statesFilter: since(4, array(string)),
  typesFilter: since(5, array(string)),
});

const listedGroup = struct({
  groupId: string,
  protocolType: string,
  groupState: since(4, string),
  groupType: since(5, string),
});

export const listGroupsResponse = message("ListGroupsResponse", VERSIONS, {
  throttleTimeMs: since(1, int32),
  errorCode: int16,
  groups: array(listedGroup),
});

export type ListGroupsRequest = Infer<typeof listGroupsRequest>;
export type ListGroupsResponse = InferInput<typeof listGroupsResponse>;
export const listGroupsApi = api(16, listGroupsRequest, listGroupsResponse);
