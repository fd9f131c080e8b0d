/**
 * ShareGroupHeartbeat (key 76), version 1.
 * Behaviour: joins, keeps alive and leaves (KIP-932). Members share partitions: each topic's partitions are spread
 * over those who subscribe to it, and a partition has several members when there are fewer partitions. A
 * partition is given to members once its share state is made, which happens behind the answer that finds it
 * missing. What an answer says is durable; a heartbeat that changes nothing writes nothing. A name that a group
 * of another kind has is GROUP_ID_NOT_FOUND, with members or without; so is an unknown group but to who joins.
 * While the feature share.version is 0, the answer is UNSUPPORTED_VERSION.
 * Version notes: 1 the first one; 0 was an early one that Kafka took back.
 */
import {
  shareGroupHeartbeatApi,
  type ShareGroupHeartbeatRequest,
  type ShareGroupHeartbeatResponse,
} from "../../protocol/message/76_share_group_heartbeat.ts";
import { faultToCode } from "../fault_to_code.ts";
import { beatAnswer, beatRefused } from "../group/answers.ts";
import { type ConsumerRefused, JOIN, LEAVE, refused } from "../group/consumer/group.ts";
import { stillOpen } from "../group/coordinator.ts";
import { isStorable } from "../group/group.ts";
import type { GroupServices } from "../group/services.ts";
import type { Shard } from "../group/shard.ts";
import type { Handler, RequestContext } from "../handler.ts";

/** Of a UUID with its dashes. */
const MEMBER_ID_CHARS_MAX = 36;

function invalid(message: string): ConsumerRefused {
  return refused("INVALID_REQUEST", message);
}

/** Kafka's rules for what must stand in a request, in its order. */
function requestProblem(
  { groupId, memberId, memberEpoch, rackId, subscribedTopicNames }: ShareGroupHeartbeatRequest,
  { clientId }: RequestContext,
): ConsumerRefused | null {
  if (memberId === "" || memberId.length > MEMBER_ID_CHARS_MAX) {
    return invalid("Invalid member id in the request.");
  }
  if (memberId.trim() === "") return invalid("MemberId can't be empty.");
  if (groupId.trim() === "") return invalid("GroupId can't be empty.");
  if (rackId?.trim() === "") return invalid("RackId can't be empty.");
  if (memberEpoch === JOIN && (subscribedTopicNames ?? []).length === 0) {
    return invalid("SubscribedTopicNames must be set in first request.");
  }
  if (memberEpoch < LEAVE) return invalid("MemberEpoch is invalid.");
  // A text that cannot be written back would break the group's record.
  const texts = [groupId, memberId, clientId, rackId ?? "", ...subscribedTopicNames ?? []];
  return texts.every(isStorable) ? null : invalid("A text is too long.");
}

/** Throws FaultError. */
async function beat(
  { coordinator: { shares } }: GroupServices,
  shard: Shard,
  request: ShareGroupHeartbeatRequest,
  { clientId, session }: RequestContext,
): Promise<ShareGroupHeartbeatResponse> {
  const { groupId, memberId, memberEpoch, rackId, subscribedTopicNames } = request;
  const group = shard.shares.of(groupId, memberEpoch === JOIN);
  if (group === null) {
    const isOther = shard.find(groupId) !== undefined;
    const message = `Group ${groupId} ${isOther ? "is not a share group" : "not found"}.`;
    return beatRefused(refused("GROUP_ID_NOT_FOUND", message));
  }
  const done = memberEpoch === LEAVE ? group.leave(memberId) : group.heartbeat({
    memberId,
    epoch: memberEpoch,
    rackId,
    topicNames: subscribedTopicNames,
    clientId,
    clientHost: `/${session.clientHost}`,
  });
  const entry = shard.find(groupId);
  if (entry !== undefined) shard.reschedule(entry);
  const { heartbeatIntervalMs } = shares.membership.settingsOf(groupId);
  return beatAnswer(await done, memberEpoch, heartbeatIntervalMs);
}

export function shareGroupHeartbeatHandler(
  services: GroupServices,
): Handler<ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse> {
  return {
    api: shareGroupHeartbeatApi,
    min: 1,
    max: 1,
    async handle(request, context) {
      if (services.features.levelOf("share.version") < 1) {
        return beatRefused(refused("UNSUPPORTED_VERSION", "Share groups are off."));
      }
      const problem = requestProblem(request, context);
      if (problem !== null) return beatRefused(problem);
      const found = stillOpen(await services.coordinator.shardOf(request.groupId));
      if (!found.ok) return beatRefused(refused(found.error, "The group cannot be used here now."));
      try {
        return await beat(services, found.shard, request, context);
      } catch (error) {
        const name = faultToCode(error, "coordinator");
        return beatRefused(refused(name, "The group cannot be stored now."));
      }
    },
  };
}
