/**
 * JoinGroup (key 11), versions 0-9.
 * Behaviour: the answer is held back until the join phase ends; other requests of the connection wait
 * behind it, as with Kafka. GROUP_MAX_SIZE_REACHED is also the answer when the groups of the node hold
 * all the memory that they may; members that are in come again with no more than they have.
 * In a consumer group classic members have no leader: the broker assigns (KIP-848). An empty one becomes classic.
 * Version notes: 1 rebalance timeout (KIP-62) · 4 member id first (KIP-394) · 5 static members (KIP-345) ·
 * 7 protocol type (KIP-559) · 9 skipAssignment (KIP-814).
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  joinGroupApi,
  type JoinGroupRequest,
  type JoinGroupResponse,
} from "../../protocol/message/11_join_group.ts";
import { stillOpen } from "../group/coordinator.ts";
import { CONSUMER_TYPE } from "../group/consumer/classic_member.ts";
import type { LiveGroup } from "../group/consumer/live.ts";
import { type GroupEntry, isEmptyGroup } from "../group/group_entry.ts";
import type { GroupServices } from "../group/services.ts";
import { isMemberName, isStorable, type JoinAnswer, type JoinRequest } from "../group/group.ts";
import { join } from "../group/join.ts";
import { joinError } from "../group/rebalance.ts";
import type { Shard } from "../group/shard.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { Handler, RequestContext } from "../handler.ts";

const KNOWN_ID_SINCE = 4;
const NULL_NAME_SINCE = 7;
const SKIP_SINCE = 9;

function joinRequest(request: JoinGroupRequest, context: RequestContext): JoinRequest {
  const { sessionTimeoutMs, rebalanceTimeoutMs } = request;
  return {
    memberId: request.memberId,
    instanceId: request.groupInstanceId,
    clientId: context.clientId,
    clientHost: context.session.clientHost,
    sessionTimeoutMs,
    rebalanceTimeoutMs: rebalanceTimeoutMs < 0 ? sessionTimeoutMs : rebalanceTimeoutMs,
    protocolType: request.protocolType,
    // Views of the frame would pin all of it while the member lives.
    protocols: request.protocols.map(({ name, metadata }) => ({
      name,
      metadata: metadata.slice(),
    })),
    needsKnownId: context.version >= KNOWN_ID_SINCE,
    canSkipAssignment: context.version >= SKIP_SINCE,
  };
}

function response(answer: JoinAnswer, version: number): JoinGroupResponse {
  return {
    errorCode: errorCode(answer.error),
    generationId: answer.generation,
    protocolType: answer.protocolType,
    protocolName: answer.protocolName ?? (version >= NULL_NAME_SINCE ? null : ""),
    leader: answer.leader,
    skipAssignment: answer.skipAssignment,
    memberId: answer.memberId,
    members: answer.members.map(({ memberId, instanceId, metadata }) => ({
      memberId,
      groupInstanceId: instanceId,
      metadata,
    })),
  };
}

/** A text that cannot be stored would break the group's record, and with it the whole group. */
function isStorableRequest(request: JoinGroupRequest, { clientId }: RequestContext): boolean {
  const { groupId, groupInstanceId, protocolType, protocols } = request;
  return isMemberName(clientId) && (groupInstanceId === null || isMemberName(groupInstanceId)) &&
    [groupId, protocolType, ...protocols.map(({ name }) => name)].every(isStorable);
}

/** A classic member of a group of the consumer protocol: the broker assigns, so that nobody leads (KIP-848). */
async function joinedConsumers(
  shard: Shard,
  entry: GroupEntry,
  group: LiveGroup,
  request: JoinRequest,
): Promise<JoinAnswer> {
  const { instanceId, clientId, needsKnownId } = request;
  const isNew = request.memberId === "";
  const memberId = isNew ? shard.host.newMemberId(instanceId ?? clientId) : request.memberId;
  if (isNew && instanceId === null && needsKnownId) {
    return joinError("MEMBER_ID_REQUIRED", memberId);
  }
  const joining = group.joinClassic(request, memberId);
  shard.reschedule(entry);
  try {
    const answered = await joining;
    if (!answered.ok) return joinError(answered.error, request.memberId);
    return {
      ...joinError("NONE", memberId),
      generation: answered.member.place.epoch,
      protocolType: CONSUMER_TYPE,
      protocolName: request.protocols[0]!.name,
    };
  } catch (error) {
    return joinError(faultToCode(error, "coordinator"), request.memberId);
  }
}

/** The function's answer as a promise; the group's timer follows the change. */
async function joined(shard: Shard, groupId: string, request: JoinRequest): Promise<JoinAnswer> {
  const known = shard.find(groupId);
  if (known !== undefined && known.share !== null) {
    return joinError("INCONSISTENT_GROUP_PROTOCOL", "");
  }
  if (known !== undefined && known.consumer !== null) {
    if (!isEmptyGroup(known)) return await joinedConsumers(shard, known, known.consumer, request);
    const stored = shard.consumers.becomeClassic(known);
    shard.reschedule(known);
    try {
      await stored;
    } catch (error) {
      return joinError(faultToCode(error, "coordinator"), request.memberId);
    }
    if (shard.closed) return joinError("NOT_COORDINATOR", request.memberId);
  }
  if (request.memberId !== "" && shard.find(groupId) === undefined) {
    return joinError("UNKNOWN_MEMBER_ID", request.memberId);
  }
  const entry = shard.findOrCreate(groupId);
  return await new Promise((resolve) => {
    join(entry.group, shard.host, request, resolve);
    shard.reschedule(entry);
  });
}

export function joinGroupHandler(
  services: GroupServices,
): Handler<JoinGroupRequest, JoinGroupResponse> {
  return {
    api: joinGroupApi,
    min: 0,
    max: 9,
    async handle(request, context) {
      const { version } = context;
      const refuse = (error: JoinAnswer["error"]) =>
        response(joinError(error, request.memberId), version);
      if (request.groupId === "") return refuse("INVALID_GROUP_ID");
      if (!isStorableRequest(request, context)) return refuse("INVALID_REQUEST");
      const found = stillOpen(await services.coordinator.shardOf(request.groupId));
      if (!found.ok) return refuse(found.error);
      const { sessionTimeoutMsMin, sessionTimeoutMsMax } = found.shard.host.settings;
      if (
        request.sessionTimeoutMs < sessionTimeoutMsMin ||
        request.sessionTimeoutMs > sessionTimeoutMsMax
      ) {
        return refuse("INVALID_SESSION_TIMEOUT");
      }
      return response(
        await joined(found.shard, request.groupId, joinRequest(request, context)),
        version,
      );
    },
  };
}
