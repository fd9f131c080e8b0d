/**
 * ShareGroupDescribe (key 77), version 1.
 * Behaviour: share groups (KIP-932) with their epochs, members and what each has. A group of another kind is
 * GROUP_ID_NOT_FOUND. While the feature share.version is 0, every group is UNSUPPORTED_VERSION.
 * Version notes: 1 the first one; 0 was an early one that Kafka took back.
 */
import {
  shareGroupDescribeApi,
  type ShareGroupDescribeRequest,
  type ShareGroupDescribeResponse,
} from "../../protocol/message/77_share_group_describe.ts";
import { stillOpen } from "../group/coordinator.ts";
import { describeEach, namedPartitions, notDescribed } from "../group/answers.ts";
import type { GroupServices } from "../group/services.ts";
import { shareStateOf } from "../group/share/group.ts";
import type { Handler } from "../handler.ts";

type Described = ShareGroupDescribeResponse["groups"][number];

const ASSIGNOR = "simple";

export function shareGroupDescribeHandler(
  services: GroupServices,
): Handler<ShareGroupDescribeRequest, ShareGroupDescribeResponse> {
  const { coordinator, features } = services;
  const { topics } = coordinator.shares;

  async function describe(groupId: string): Promise<Described> {
    if (features.levelOf("share.version") < 1) {
      return notDescribed(groupId, "UNSUPPORTED_VERSION", null);
    }
    if (groupId === "") return notDescribed(groupId, "INVALID_GROUP_ID", null);
    const found = stillOpen(await coordinator.shardOf(groupId));
    if (!found.ok) return notDescribed(groupId, found.error, null);
    const entry = found.shard.find(groupId);
    if (entry === undefined || entry.share === null) {
      const problem = entry === undefined ? "not found" : "is not a share group";
      return notDescribed(groupId, "GROUP_ID_NOT_FOUND", `Group ${groupId} ${problem}.`);
    }
    const { group } = entry.share;
    return {
      errorCode: 0,
      groupId,
      groupState: shareStateOf(group),
      groupEpoch: group.epoch,
      assignmentEpoch: group.targetEpoch,
      assignorName: ASSIGNOR,
      members: [...group.members.values()].map(({ memberId, profile, place }) => ({
        memberId,
        rackId: profile.rackId,
        memberEpoch: place.epoch,
        clientId: profile.clientId,
        clientHost: profile.clientHost,
        subscribedTopicNames: profile.topicNames,
        assignment: namedPartitions(topics, place.assigned),
      })),
    };
  }

  return {
    api: shareGroupDescribeApi,
    min: 1,
    max: 1,
    async handle(request) {
      return { groups: await describeEach(services.env.clock, request, describe) };
    },
  };
}
