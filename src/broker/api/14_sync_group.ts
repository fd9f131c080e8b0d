/**
 * SyncGroup (key 14), versions 0-5.
 * Behaviour: held until the leader's assignment is durable in the offsets topic.
 * Version notes: 3 static members (KIP-345) · 5 protocol type and name are checked (KIP-559).
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  syncGroupApi,
  type SyncGroupRequest,
  type SyncGroupResponse,
} from "../../protocol/message/14_sync_group.ts";
import type { SyncAnswer } from "../group/group.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { Shard } from "../group/shard.ts";
import { failed, sync } from "../group/sync.ts";
import type { Handler } from "../handler.ts";

function synced(shard: Shard, request: SyncGroupRequest): Promise<SyncAnswer> {
  const entry = shard.find(request.groupId);
  if (entry === undefined) return Promise.resolve(failed("UNKNOWN_MEMBER_ID"));
  return new Promise((resolve) => {
    const { memberId, groupInstanceId: instanceId, generationId: generation } = request;
    const { protocolType, protocolName, assignments } = request;
    const asked = { memberId, instanceId, generation, protocolType, protocolName, assignments };
    sync(entry.group, shard.host, asked, (answer) => {
      resolve(answer);
      shard.reschedule(entry);
    });
    shard.reschedule(entry);
  });
}

export function syncGroupHandler(
  services: GroupServices,
): Handler<SyncGroupRequest, SyncGroupResponse> {
  async function answer(request: SyncGroupRequest): Promise<SyncAnswer> {
    if (request.groupId === "") return failed("INVALID_GROUP_ID");
    const found = stillOpen(await services.coordinator.shardOf(request.groupId));
    return found.ok ? await synced(found.shard, request) : failed(found.error);
  }

  return {
    api: syncGroupApi,
    min: 0,
    max: 5,
    async handle(request) {
      const { error, protocolType, protocolName, assignment } = await answer(request);
      return { errorCode: errorCode(error), protocolType, protocolName, assignment };
    },
  };
}
