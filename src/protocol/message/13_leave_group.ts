/**
 * LeaveGroup, key 13, versions 0-5, flexible from 4.
 * 3 takes a list of members in place of one (KIP-345), 5 a reason for each (KIP-800).
 */
import { api } from "../api.ts";
import { int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 5, flexibleFrom: 4 };

const memberIdentity = struct({
  memberId: string,
  groupInstanceId: since(0, string, { nullableSince: 0, default: null }),
  reason: since(5, string, { nullableSince: 5, default: null }),
});

export const leaveGroupRequest = message("LeaveGroupRequest", VERSIONS, {
  groupId: string,
  memberId: since(0, string, { until: 2 }),
  members: since(3, array(memberIdentity)),
});

const memberResponse = struct({
  memberId: string,
  groupInstanceId: since(0, string, { nullableSince: 0 }),
  errorCode: int16,
});

export const leaveGroupResponse = message("LeaveGroupResponse", VERSIONS, {
  throttleTimeMs: since(1, int32),
  errorCode: int16,
  members: since(3, array(memberResponse)),
});

export type LeaveGroupRequest = Infer<typeof leaveGroupRequest>;
export type LeaveGroupResponse = InferInput<typeof leaveGroupResponse>;
export const leaveGroupApi = api(13, leaveGroupRequest, leaveGroupResponse);
