/**
 * DescribeShareGroupOffsets (key 90), versions 0-1.
 * Behaviour: where a share group's records begin in each partition; null topics are all that it has states of.
 * What has no state, and what cannot be read now, has start offset -1 and no error, as in Kafka; so has an unknown
 * group. While the feature share.version is 0, every group is UNSUPPORTED_VERSION.
 * Deviations: the lag of a partition that another broker leads is -1: its end is not known here.
 * Version notes: 1 the lag (KIP-1226).
 */
import { isFault } from "../../lib/errors.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  describeShareGroupOffsetsApi,
  type DescribeShareGroupOffsetsRequest,
  type DescribeShareGroupOffsetsResponse,
} from "../../protocol/message/90_describe_share_group_offsets.ts";
import { listOf } from "../group/consumer/assignment.ts";
import type { SubscribedTopic } from "../group/consumer/group.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { inGroups } from "../many.ts";
import type { ShareStateSummary } from "../share/share_states.ts";

type AskedGroup = DescribeShareGroupOffsetsRequest["groups"][number];
type DescribedGroup = DescribeShareGroupOffsetsResponse["groups"][number];
type DescribedTopic = DescribedGroup["topics"][number];
type DescribedPartition = DescribedTopic["partitions"][number];

/** A topic of the request, and the topic itself if it exists. */
interface Asked {
  readonly name: string;
  readonly topic: SubscribedTopic | undefined;
  readonly partitions: readonly number[];
}

const UNKNOWN = -1;

function failed(groupId: string, error: ErrorName): DescribedGroup {
  return { groupId, topics: [], errorCode: errorCode(error) };
}

function unread(partitionIndex: number): DescribedPartition {
  return { partitionIndex, startOffset: UNKNOWN, leaderEpoch: 0, lag: UNKNOWN, errorCode: 0 };
}

/** Everything that the group has states of. */
async function allOf(
  { coordinator }: GroupServices,
  groupId: string,
): Promise<readonly Asked[] | ErrorName> {
  const found = stillOpen(await coordinator.shardOf(groupId));
  if (!found.ok) return found.error;
  const states = found.shard.find(groupId)?.share?.group.states;
  return listOf(states?.initialized ?? new Map()).flatMap(({ topicId, partitions }) => {
    const topic = coordinator.shares.topics.findById(topicId);
    return topic === undefined ? [] : [{ name: topic.name, topic, partitions }];
  });
}

/** Throws FaultError. */
async function lagOf(
  { partitions }: GroupServices,
  { topicId }: SubscribedTopic,
  partition: number,
  { startOffset, deliveryCompleteCount }: ShareStateSummary,
): Promise<number> {
  if (startOffset < 0 || deliveryCompleteCount < 0) return UNKNOWN;
  const located = await partitions.open(topicId, partition);
  return located.ok ? located.log.highWatermark - startOffset - deliveryCompleteCount : UNKNOWN;
}

async function describePartition(
  services: GroupServices,
  groupId: string,
  topic: SubscribedTopic,
  partition: number,
): Promise<DescribedPartition> {
  if (partition < 0 || partition >= topic.partitions) return unread(partition);
  try {
    const summary = await services.coordinator.shares.shareGroups.summary({
      groupId,
      topicId: topic.topicId,
      partition,
    });
    if (summary === null || typeof summary === "string") return unread(partition);
    const { startOffset, leaderEpoch } = summary;
    const lag = await lagOf(services, topic, partition, summary);
    return { partitionIndex: partition, startOffset, leaderEpoch, lag, errorCode: 0 };
  } catch (error) {
    if (!isFault(error)) throw error;
    return unread(partition);
  }
}

async function describeTopic(
  services: GroupServices,
  groupId: string,
  { name, topic, partitions }: Asked,
): Promise<DescribedTopic> {
  return {
    topicName: name,
    topicId: topic?.topicId ?? ZERO_UUID,
    partitions: topic === undefined ? partitions.map(unread) : await inGroups(
      services.env.clock,
      partitions,
      (partition) => describePartition(services, groupId, topic, partition),
    ),
  };
}

export function describeShareGroupOffsetsHandler(
  services: GroupServices,
): Handler<DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse> {
  const { coordinator, features, env } = services;
  const { topics } = coordinator.shares;

  async function describe({ groupId, topics: asked }: AskedGroup): Promise<DescribedGroup> {
    if (features.levelOf("share.version") < 1) return failed(groupId, "UNSUPPORTED_VERSION");
    const wanted = asked === null
      ? await allOf(services, groupId)
      : asked.map(({ topicName: name, partitions }) => ({
        name,
        topic: topics.find(name),
        partitions,
      }));
    if (typeof wanted === "string") return failed(groupId, wanted);
    const described: DescribedTopic[] = [];
    for (const one of wanted) described.push(await describeTopic(services, groupId, one));
    return { groupId, topics: described, errorCode: 0 };
  }

  return {
    api: describeShareGroupOffsetsApi,
    min: 0,
    max: 1,
    handle: async ({ groups }) => ({ groups: await inGroups(env.clock, groups, describe) }),
  };
}
