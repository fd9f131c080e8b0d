/**
 * JoinGroup, key 11, versions 0-9, flexible from 6.
 * 1 adds the rebalance time-out, 4 requires a member id first (KIP-394), 5 has static members
 * (KIP-345), 7 answers the protocol type (KIP-559), 8 takes a reason (KIP-800), 9 lets a leader
 * skip the assignment (KIP-814). 0 and 1 stay: old librdkafka looks for version 0 before it uses
 * groups at all.
 */
import { api } from "../api.ts";
import { bool, bytes, int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 9, flexibleFrom: 6 };

const joinGroupRequestProtocol = struct({
  name: string,
  metadata: bytes,
});

export const joinGroupRequest = message("JoinGroupRequest", VERSIONS, {
  groupId: string,
  sessionTimeoutMs: int32,
  rebalanceTimeoutMs: since(1, int32, { default: -1 }),
  memberId: string,
  groupInstanceId: since(5, string, { nullableSince: 5, default: null }),
  protocolType: string,
  protocols: array(joinGroupRequestProtocol),
  reason: since(8, string, { nullableSince: 8, default: null }),
});

const joinGroupResponseMember = struct({
  memberId: string,
  groupInstanceId: since(5, string, { nullableSince: 5, default: null }),
  metadata: bytes,
});

export const joinGroupResponse = message("JoinGroupResponse", VERSIONS, {
  throttleTimeMs: since(2, int32),
  errorCode: int16,
  generationId: since(0, int32, { default: -1 }),
  protocolType: since(7, string, { nullableSince: 7, default: null }),
  protocolName: since(0, string, { nullableSince: 7 }),
  leader: string,
  skipAssignment: since(9, bool),
  memberId: string,
  members: array(joinGroupResponseMember),
});

export type JoinGroupRequest = Infer<typeof joinGroupRequest>;
export type JoinGroupResponse = InferInput<typeof joinGroupResponse>;
export const joinGroupApi = api(11, joinGroupRequest, joinGroupResponse);
