/**
 * LeaveGroup (key 13), versions 0-5.
 * Behaviour: members that stay gather again at once. The answer waits until the group without the member
 * is durable, so that a crash does not bring it back for a whole session timeout.
 * Version notes: 3 a list of members, also by instance id alone (KIP-345) · 5 reasons (KIP-800), not used.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  leaveGroupApi,
  type LeaveGroupRequest,
  type LeaveGroupResponse,
} from "../../protocol/message/13_leave_group.ts";
import { leave } from "../group/membership.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { Shard } from "../group/shard.ts";
import type { Handler } from "../handler.ts";

const LIST_SINCE = 3;

function leaveOne(
  shard: Shard,
  groupId: string,
  memberId: string,
  instanceId: string | null,
): ErrorName {
  const entry = shard.find(groupId);
  if (entry === undefined) return "UNKNOWN_MEMBER_ID";
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
        const error = leaveOne(shard, request.groupId, request.memberId, null);
        await shard.stored;
        return { errorCode: errorCode(error) };
      }
      const members = request.members.map(({ memberId, groupInstanceId }) => ({
        memberId,
        groupInstanceId,
        errorCode: errorCode(leaveOne(shard, request.groupId, memberId, groupInstanceId)),
      }));
      await shard.stored;
      return { errorCode: errorCode("NONE"), members };
    },
  };
}
