/**
 * ConsumerGroupDescribe (key 69), versions 0-1.
 * Behaviour: groups of the consumer protocol (KIP-848) with their epochs, and with what each member has and shall
 * have. A classic group is GROUP_ID_NOT_FOUND, on which tools ask DescribeGroups.
 * Version notes: 1 the type of a member (KIP-1099).
 */
import {
  consumerGroupDescribeApi,
  type ConsumerGroupDescribeRequest,
  type ConsumerGroupDescribeResponse,
} from "../../protocol/message/69_consumer_group_describe.ts";
import { NOTHING } from "../group/consumer/assignment.ts";
import { assignorOf } from "../group/consumer/assignors.ts";
import {
  type ConsumerGroup,
  type ConsumerMember,
  stateOf,
  type TopicView,
} from "../group/consumer/group.ts";
import { stillOpen } from "../group/coordinator.ts";
import { describeEach, namedPartitions, notDescribed } from "../group/answers.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";

const CLASSIC_MEMBER = 0;
const CONSUMER_MEMBER = 1;

type Described = ConsumerGroupDescribeResponse["groups"][number];
type DescribedMember = Described["members"][number];

function describedMember(
  topics: TopicView,
  group: ConsumerGroup,
  { memberId, profile, place }: ConsumerMember,
): DescribedMember {
  return {
    memberId,
    instanceId: profile.instanceId,
    rackId: profile.rackId,
    memberEpoch: place.epoch,
    clientId: profile.clientId,
    clientHost: profile.clientHost,
    subscribedTopicNames: profile.topicNames,
    subscribedTopicRegex: profile.topicRegex ?? "",
    assignment: namedPartitions(topics, place.assigned),
    targetAssignment: namedPartitions(topics, group.target.get(memberId) ?? NOTHING),
    memberType: profile.classic === null ? CONSUMER_MEMBER : CLASSIC_MEMBER,
  };
}

export function consumerGroupDescribeHandler(
  services: GroupServices,
): Handler<ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse> {
  const { coordinator } = services;
  const { topics, settings } = coordinator.consumers;

  async function describe(groupId: string): Promise<Described> {
    if (groupId === "") return notDescribed(groupId, "INVALID_GROUP_ID", null);
    const found = stillOpen(await coordinator.shardOf(groupId));
    if (!found.ok) return notDescribed(groupId, found.error, null);
    const entry = found.shard.find(groupId);
    if (entry === undefined) {
      return notDescribed(groupId, "GROUP_ID_NOT_FOUND", `Group ${groupId} not found.`);
    }
    if (entry.consumer === null) {
      return notDescribed(
        groupId,
        "GROUP_ID_NOT_FOUND",
        `Group ${groupId} is not a consumer group.`,
      );
    }
    const { group } = entry.consumer;
    return {
      errorCode: 0,
      groupId,
      groupState: stateOf(group),
      groupEpoch: group.epoch,
      assignmentEpoch: group.targetEpoch,
      assignorName: assignorOf(group, settings.assignors),
      members: [...group.members.values()].map((member) => describedMember(topics, group, member)),
    };
  }

  return {
    api: consumerGroupDescribeApi,
    min: 0,
    max: 1,
    async handle(request) {
      return { groups: await describeEach(services.env.clock, request, describe) };
    },
  };
}
