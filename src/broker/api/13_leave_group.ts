/**
 * LeaveGroup (key 13), versions 0-5.
 * Behaviour: members that stay gather again at once. The answer waits until the group without the member
 * is durable, so that a crash does not bring it back for a whole session timeout.
 * Out of a consumer group go classic members, and static ones by their instance id.
 * Version notes: 3 a list of members, also by instance id alone (KIP-345) · 5 reasons (KIP-800), not used.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  leaveGroupApi,
  type LeaveGroupRequest,
  type LeaveGroupResponse,
} from "../../protocol/message/13_leave_group.ts";
import { faultToCode } from "../fault_to_code.ts";
import { staticMemberOf } from "../group/consumer/group.ts";
import type { LiveGroup } from "../group/consumer/live.ts";
import { leave } from "../group/membership.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { Shard } from "../group/shard.ts";
import type { Handler } from "../handler.ts";

const LIST_SINCE = 3;

/** Of the consumer protocol's members, tools take out static ones by instance id; others leave by heartbeat. */
async function leaveConsumers(
  group: LiveGroup,
  memberId: string,
  instanceId: string | null,
): Promise<ErrorName> {
  const member = instanceId === null
    ? group.group.members.get(memberId)
    : staticMemberOf(group.group, instanceId);
  if (member === undefined) return "UNKNOWN_MEMBER_ID";
  if (memberId !== "") {
    if (member.profile.classic === null) return "UNKNOWN_MEMBER_ID";
    if (member.memberId !== memberId) return "FENCED_INSTANCE_ID";
  }
  try {
    await group.remove([member.memberId]);
    return "NONE";
  } catch (error) {
    return faultToCode(error, "coordinator");
  }
}

async function leaveOne(
  shard: Shard,
  groupId: string,
  memberId: string,
  instanceId: string | null,
): Promise<ErrorName> {
  const entry = shard.find(groupId);
  if (entry === undefined || entry.share !== null) return "UNKNOWN_MEMBER_ID";
  if (entry.consumer !== null) {
    const removed = leaveConsumers(entry.consumer, memberId, instanceId);
    shard.reschedule(entry);
    return await removed;
  }
  const error = leave(entry.group, shard.host, memberId, instanceId);
  shard.reschedule(entry);
  return error;
}

export function leaveGroupHandler(
  services: GroupServices,
): Handler<LeaveGroupRequest, LeaveGroupResponse> {
  return {
    api: leaveGroupApi,
    min: 0,
    max: 5,
    async handle(request, { version }) {
      if (request.groupId === "") return { errorCode: errorCode("INVALID_GROUP_ID") };
      const found = stillOpen(await services.coordinator.shardOf(request.groupId));
      if (!found.ok) return { errorCode: errorCode(found.error) };
      const { shard } = found;
      if (version < LIST_SINCE) {
        const error = await leaveOne(shard, request.groupId, request.memberId, null);
        await shard.stored;
        return { errorCode: errorCode(error) };
      }
      const members = await Promise.all(
        request.members.map(async ({ memberId, groupInstanceId }) => ({
          memberId,
          groupInstanceId,
          errorCode: errorCode(await leaveOne(shard, request.groupId, memberId, groupInstanceId)),
        })),
      );
      await shard.stored;
      return { errorCode: errorCode("NONE"), members };
    },
  };
}
