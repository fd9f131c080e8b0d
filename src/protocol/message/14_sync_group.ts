/**
 * SyncGroup, key 14, versions 0-5, flexible from 4.
 * 3 adds static members (KIP-345), 5 protocol type and name on both sides (KIP-559).
 */
import { api } from "../api.ts";
import { bytes, int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 5, flexibleFrom: 4 };

const syncGroupRequestAssignment = struct({
  memberId: string,
  assignment: bytes,
});

export const syncGroupRequest = message("SyncGroupRequest", VERSIONS, {
  groupId: string,
  generationId: int32,
  memberId: string,
  groupInstanceId: since(3, string, { nullableSince: 3, default: null }),
  protocolType: since(5, string, { nullableSince: 5, default: null }),
  protocolName: since(5, string, { nullableSince: 5, default: null }),
  assignments: array(syncGroupRequestAssignment),
});

export const syncGroupResponse = message("SyncGroupResponse", VERSIONS, {
  throttleTimeMs: since(1, int32),
  errorCode: int16,
  protocolType: since(5, string, { nullableSince: 5, default: null }),
  protocolName: since(5, string, { nullableSince: 5, default: null }),
  assignment: bytes,
});

export type SyncGroupRequest = Infer<typeof syncGroupRequest>;
export type SyncGroupResponse = InferInput<typeof syncGroupResponse>;
export const syncGroupApi = api(14, syncGroupRequest, syncGroupResponse);
