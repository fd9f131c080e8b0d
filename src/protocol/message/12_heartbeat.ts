/**
 * Heartbeat, key 12, versions 0-4, flexible from 4. 3 adds static members (KIP-345).
 */
import { api } from "../api.ts";
import { int16, int32, string } from "../primitive.ts";
import { type Infer, type InferInput, message, since } from "../schema.ts";

const VERSIONS = { min: 0, max: 4, flexibleFrom: 4 };

export const heartbeatRequest = message("HeartbeatRequest", VERSIONS, {
  groupId: string,
  generationId: int32,
  memberId: string,
  groupInstanceId: since(3, string, { nullableSince: 3, default: null }),
});

export const heartbeatResponse = message("HeartbeatResponse", VERSIONS, {
  throttleTimeMs: since(1, int32),
  errorCode: int16,
});

export type HeartbeatRequest = Infer<typeof heartbeatRequest>;
export type HeartbeatResponse = InferInput<typeof heartbeatResponse>;
export const heartbeatApi = api(12, heartbeatRequest, heartbeatResponse);
