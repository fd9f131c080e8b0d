/**
 * DescribeGroups, key 15, versions 0-6, flexible from 5.
 * 3 adds authorized operations (KIP-430), 4 static members (KIP-345), 6 says GROUP_ID_NOT_FOUND
 * with a message where earlier versions show a dead group (KIP-1043).
 */
import { api } from "../api.ts";
import { bool, bytes, int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 6, flexibleFrom: 5 };

export const describeGroupsRequest = message("DescribeGroupsRequest", VERSIONS, {
  groups: array(string),
  includeAuthorizedOperations: since(3, bool),
});

const describedGroupMember = struct({
  memberId: string,
  groupInstanceId: since(4, string, { nullableSince: 4, default: null }),
  clientId: string,
  clientHost: string,
  memberMetadata: bytes,
  memberAssignment: bytes,
});

const describedGroup = struct({
  errorCode: int16,
  errorMessage: since(6, string, { nullableSince: 6, default: null }),
  groupId: string,
  groupState: string,
  protocolType: string,
  protocolData: string,
  members: array(describedGroupMember),
  authorizedOperations: since(3, int32, { default: -(2 ** 31) }),
});

export const describeGroupsResponse = message("DescribeGroupsResponse", VERSIONS, {
  throttleTimeMs: since(1, int32),
  groups: array(describedGroup),
});

export type DescribeGroupsRequest = Infer<typeof describeGroupsRequest>;
export type DescribeGroupsResponse = InferInput<typeof describeGroupsResponse>;
export const describeGroupsApi = api(15, describeGroupsRequest, describeGroupsResponse);
