/**
 * ConsumerGroupHeartbeat (key 68), versions 0-1.
 * Behaviour: joins, keeps alive, reconciles and leaves (KIP-848). The broker assigns; a partition is given to
 * a member only when nobody else has it any more. What an answer says is durable; a heartbeat that
 * changes nothing writes nothing. Regular expressions are RE2's, match whole names, and never mean
 * internal topics; a group has 100 different ones at most, one more is GROUP_MAX_SIZE_REACHED. The first member
 * makes a classic group of consumers a consumer group, and the last one that leaves makes it a classic group again,
 * as group.consumer.migration.policy allows; else a classic group with members is GROUP_ID_NOT_FOUND.
 * A group's own consumer.session.timeout.ms and consumer.heartbeat.interval.ms stand above the broker's.
 * Version notes: 1 regular expressions, and the client chooses its member id (KIP-1082).
 */
import { randomUuid } from "../../env/random.ts";
import { toBase64Url } from "../../lib/base64.ts";
import { TOPIC_REGEXES_PER_GROUP_MAX } from "../../lib/limits.ts";
import {
  consumerGroupHeartbeatApi,
  type ConsumerGroupHeartbeatRequest,
  type ConsumerGroupHeartbeatResponse,
} from "../../protocol/message/68_consumer_group_heartbeat.ts";
import { faultToCode } from "../fault_to_code.ts";
import { beatAnswer, beatRefused } from "../group/answers.ts";
import { assignmentOf } from "../group/consumer/assignment.ts";
import {
  type ConsumerRefused,
  JOIN,
  LEAVE,
  LEFT_FOR_A_WHILE,
  refused,
} from "../group/consumer/group.ts";
import type { HeartbeatRequest } from "../group/consumer/heartbeat.ts";
import { stillOpen } from "../group/coordinator.ts";
import { isStorable } from "../group/group.ts";
import type { GroupServices } from "../group/services.ts";
import type { Shard } from "../group/shard.ts";
import type { Handler, RequestContext } from "../handler.ts";
import { listOf as itemsOf } from "../property.ts";

const OWN_ID_SINCE = 1;
const NOT_GIVEN = -1;

function invalid(message: string): ConsumerRefused {
  return refused("INVALID_REQUEST", message);
}

/** Kafka's rules for what must stand in a request, in its order. */
function requestProblem(
  request: ConsumerGroupHeartbeatRequest,
  version: number,
  assignors: readonly string[],
): ConsumerRefused | null {
  const { memberId, memberEpoch, instanceId, serverAssignor } = request;
  const needsId = version >= OWN_ID_SINCE || memberEpoch > JOIN || memberEpoch === LEAVE;
  if (needsId && memberId.trim() === "") return invalid("MemberId can't be empty.");
  if (request.groupId.trim() === "") return invalid("GroupId can't be empty.");
  if (instanceId?.trim() === "") return invalid("InstanceId can't be empty.");
  if (request.rackId?.trim() === "") return invalid("RackId can't be empty.");
  if (memberEpoch === JOIN) {
    const problem = joinProblem(request);
    if (problem !== null) return problem;
  } else if (memberEpoch === LEFT_FOR_A_WHILE && instanceId === null) {
    return invalid("InstanceId can't be null.");
  } else if (memberEpoch < LEFT_FOR_A_WHILE) return invalid("MemberEpoch is invalid.");
  if (serverAssignor === null || assignors.includes(serverAssignor)) return null;
  const message = `ServerAssignor ${serverAssignor} is not supported. ` +
    `Supported assignors: ${assignors.join(", ")}.`;
  return refused("UNSUPPORTED_ASSIGNOR", message);
}

function joinProblem(request: ConsumerGroupHeartbeatRequest): ConsumerRefused | null {
  const { rebalanceTimeoutMs, topicPartitions } = request;
  if (rebalanceTimeoutMs === NOT_GIVEN) {
    return invalid("RebalanceTimeoutMs must be provided in first request.");
  }
  if (topicPartitions === null || topicPartitions.length > 0) {
    return invalid("TopicPartitions must be empty when (re-)joining.");
  }
  if (request.subscribedTopicNames === null && request.subscribedTopicRegex === null) {
    return invalid(
      "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    );
  }
  return null;
}

/** A text that cannot be written back would break the group's record. */
function isStorableRequest(request: ConsumerGroupHeartbeatRequest, clientId: string): boolean {
  const { groupId, memberId, instanceId, rackId, subscribedTopicNames, subscribedTopicRegex } =
    request;
  const texts = [groupId, memberId, clientId, ...subscribedTopicNames ?? []];
  const others = [instanceId, rackId, subscribedTopicRegex].filter((text) => text !== null);
  return [...texts, ...others].every(isStorable);
}

function heartbeatRequest(
  request: ConsumerGroupHeartbeatRequest,
  memberId: string,
  { clientId, session }: RequestContext,
): HeartbeatRequest {
  const { rebalanceTimeoutMs, topicPartitions } = request;
  return {
    memberId,
    epoch: request.memberEpoch,
    instanceId: request.instanceId,
    rackId: request.rackId,
    rebalanceTimeoutMs: rebalanceTimeoutMs === NOT_GIVEN ? null : rebalanceTimeoutMs,
    topicNames: request.subscribedTopicNames,
    topicRegex: request.subscribedTopicRegex,
    assignor: request.serverAssignor,
    owned: topicPartitions === null ? null : assignmentOf(topicPartitions),
    clientId,
    clientHost: `/${session.clientHost}`,
  };
}

/** Expressions that the coming decision looks at, made current; what is wrong with the new one. */
async function resolve(
  { coordinator: { consumers: { regexes } } }: GroupServices,
  shard: Shard,
  { groupId, subscribedTopicRegex: regex }: ConsumerGroupHeartbeatRequest,
): Promise<ConsumerRefused | null> {
  const live = shard.find(groupId)?.consumer ?? null;
  const known = live?.group.regexes ?? new Map<string, unknown>();
  const isNew = regex !== null && regex !== "" && !known.has(regex);
  if (isNew && known.size >= TOPIC_REGEXES_PER_GROUP_MAX) {
    const message = `The group has ${known.size} different regular expressions already.`;
    return refused("GROUP_MAX_SIZE_REACHED", message);
  }
  if (live?.isStale === true) {
    for (const pattern of Array.from(known.keys())) await regexes.resolve(pattern);
  }
  const problem = regex === null || regex === "" ? null : await regexes.resolve(regex);
  if (problem === null) return null;
  const message =
    `SubscribedTopicRegex \`${regex}\` is not a valid regular expression: ${problem}.`;
  return refused("INVALID_REGULAR_EXPRESSION", message);
}

/** Throws FaultError. */
async function beat(
  { coordinator, env }: GroupServices,
  shard: Shard,
  request: ConsumerGroupHeartbeatRequest,
  context: RequestContext,
): Promise<ConsumerGroupHeartbeatResponse> {
  const { groupId, memberEpoch, instanceId } = request;
  const group = shard.consumers.of(groupId, memberEpoch === JOIN);
  if (group === null) {
    return beatRefused(refused("GROUP_ID_NOT_FOUND", `Group ${groupId} is not a consumer group.`));
  }
  // As Kafka writes a UUID.
  const memberId = request.memberId === "" ? toBase64Url(randomUuid(env.random)) : request.memberId;
  const done = memberEpoch < JOIN
    ? group.leave({ memberId, instanceId, epoch: memberEpoch })
    : group.heartbeat(heartbeatRequest(request, memberId, context));
  const entry = shard.find(groupId);
  if (entry !== undefined) shard.reschedule(entry);
  const { heartbeatIntervalMs } = coordinator.consumers.timesOf(groupId);
  return beatAnswer(await done, memberEpoch, heartbeatIntervalMs);
}

async function answer(
  services: GroupServices,
  request: ConsumerGroupHeartbeatRequest,
  context: RequestContext,
): Promise<ConsumerGroupHeartbeatResponse> {
  const loaded = await services.coordinator.shardOf(request.groupId);
  if (!loaded.ok) return beatRefused(refused(loaded.error, "The group cannot be used here now."));
  const wrong = await resolve(services, loaded.shard, request);
  if (wrong !== null) return beatRefused(wrong);
  const found = stillOpen(loaded);
  if (!found.ok) return beatRefused(refused(found.error, "The group has moved."));
  return await beat(services, found.shard, request, context);
}

export function consumerGroupHeartbeatHandler(
  services: GroupServices,
): Handler<ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse> {
  const { coordinator, config, features } = services;
  const { assignors } = coordinator.consumers.settings;
  const isServed = itemsOf(config.text("group.coordinator.rebalance.protocols"))
    .includes("consumer");

  return {
    api: consumerGroupHeartbeatApi,
    min: 0,
    max: 1,
    async handle(request, context) {
      if (!isServed || features.levelOf("group.version") < 1) {
        return beatRefused(refused("UNSUPPORTED_VERSION", "The consumer group protocol is off."));
      }
      const problem = requestProblem(request, context.version, assignors);
      if (problem !== null) return beatRefused(problem);
      if (!isStorableRequest(request, context.clientId)) {
        return beatRefused(invalid("A text is too long."));
      }
      try {
        return await answer(services, request, context);
      } catch (error) {
        return beatRefused(
          refused(faultToCode(error, "coordinator"), "The group cannot be stored now."),
        );
      }
    },
  };
}
