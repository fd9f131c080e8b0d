/**
 * SyncGroup (key 14), versions 0-5.
 * Behaviour: held until the leader's assignment is durable in the offsets topic.
 * In a consumer group the broker has assigned, and answers at once (KIP-848).
 * Version notes: 3 static members (KIP-345) · 5 protocol type and name are checked (KIP-559).
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  syncGroupApi,
  type SyncGroupRequest,
  type SyncGroupResponse,
} from "../../protocol/message/14_sync_group.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { LiveGroup } from "../group/consumer/live.ts";
import type { SyncAnswer, SyncRequest } from "../group/group.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { Shard } from "../group/shard.ts";
import { failed, sync } from "../group/sync.ts";
import type { Handler } from "../handler.ts";

/** From here on a member must say which protocol it syncs. */
const NAMES_SINCE = 5;

async function syncedByBroker(group: LiveGroup, request: SyncRequest): Promise<SyncAnswer> {
  try {
    return await group.syncClassic(request);
  } catch (error) {
    return failed(faultToCode(error, "coordinator"));
  }
}

function synced(shard: Shard, request: SyncGroupRequest): Promise<SyncAnswer> {
  const entry = shard.find(request.groupId);
  if (entry === undefined || entry.share !== null) {
    return Promise.resolve(failed("UNKNOWN_MEMBER_ID"));
  }
  const { memberId, groupInstanceId: instanceId, generationId: generation } = request;
  const { protocolType, protocolName, assignments } = request;
  const asked = { memberId, instanceId, generation, protocolType, protocolName, assignments };
  if (entry.consumer !== null) {
    const answered = syncedByBroker(entry.consumer, asked);
    shard.reschedule(entry);
    return answered;
  }
  return new Promise((resolve) => {
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
  async function answer(request: SyncGroupRequest, version: number): Promise<SyncAnswer> {
    const { protocolType, protocolName } = request;
    if (version >= NAMES_SINCE && (protocolType === null || protocolName === null)) {
      return failed("INCONSISTENT_GROUP_PROTOCOL");
    }
    if (request.groupId === "") return failed("INVALID_GROUP_ID");
    const found = stillOpen(await services.coordinator.shardOf(request.groupId));
    return found.ok ? await synced(found.shard, request) : failed(found.error);
  }

  return {
    api: syncGroupApi,
    min: 0,
    max: 5,
    async handle(request, { version }) {
      const { error, protocolType, protocolName, assignment } = await answer(request, version);
      return { errorCode: errorCode(error), protocolType, protocolName, assignment };
    },
  };
}
