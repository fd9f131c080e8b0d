/**
 * Heartbeat (key 12), versions 0-4.
 * Behaviour: during a rebalance the session is kept alive and the member is told to join again.
 * Classic members of a consumer group are told to join again whenever there is something for them (KIP-848).
 * Version notes: 3 static members (KIP-345).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  heartbeatApi,
  type HeartbeatRequest,
  type HeartbeatResponse,
} from "../../protocol/message/12_heartbeat.ts";
import { heartbeat } from "../group/membership.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";

export function heartbeatHandler(
  services: GroupServices,
): Handler<HeartbeatRequest, HeartbeatResponse> {
  async function beat(request: HeartbeatRequest): Promise<ErrorName> {
    if (request.groupId === "") return "INVALID_GROUP_ID";
    const found = stillOpen(await services.coordinator.shardOf(request.groupId));
    if (!found.ok) return found.error;
    const entry = found.shard.find(request.groupId);
    if (entry === undefined || entry.share !== null) return "UNKNOWN_MEMBER_ID";
    const { memberId, groupInstanceId, generationId } = request;
    const error = entry.consumer === null
      ? heartbeat(entry.group, found.shard.host, memberId, groupInstanceId, generationId)
      : entry.consumer.beatClassic(memberId, groupInstanceId, generationId);
    found.shard.reschedule(entry);
    return error;
  }

  return {
    api: heartbeatApi,
    min: 0,
    max: 4,
    handle: async (request) => ({ errorCode: errorCode(await beat(request)) }),
  };
}
