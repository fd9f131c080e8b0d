/**
 * AlterShareGroupOffsets (key 91), version 0.
 * Behaviour: starts partitions of a share group anew at the given offsets; what was delivered or acknowledged from
 * there on is forgotten. Only while nobody is in the group: else NON_EMPTY_GROUP. A group that is not there yet
 * is made; one of another kind is GROUP_ID_NOT_FOUND. While share.version is 0, the answer is UNSUPPORTED_VERSION.
 * Deviations: a start offset below -1 or from 2^53 - 1 on is INVALID_REQUEST for its partition; -1 leaves it to
 * the group's rule.
 */
import { type Uuid, ZERO_UUID } from "../../lib/uuid.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import { isClamped } from "../../protocol/primitive.ts";
import {
  alterShareGroupOffsetsApi,
  type AlterShareGroupOffsetsRequest,
  type AlterShareGroupOffsetsResponse,
} from "../../protocol/message/91_alter_share_group_offsets.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { SubscribedTopic, TopicView } from "../group/consumer/group.ts";
import { stillOpen } from "../group/coordinator.ts";
import { isStorable } from "../group/group.ts";
import type { GroupServices } from "../group/services.ts";
import type { ShareStart } from "../group/share/live.ts";
import type { Shard } from "../group/shard.ts";
import type { Handler } from "../handler.ts";

interface Judged {
  readonly topicName: string;
  readonly topicId: Uuid;
  readonly partitions: { readonly partition: number; readonly judged: ShareStart | ErrorName }[];
}

const BY_RULE = -1;

const TEXTS: ReadonlyMap<ErrorName, string> = new Map([
  ["UNKNOWN_TOPIC_OR_PARTITION", "There is no such partition."],
  ["INVALID_REQUEST", "There is no such start offset."],
  ["NON_EMPTY_GROUP", "The group has members."],
]);

function failed(error: ErrorName, errorMessage: string) {
  return { errorCode: errorCode(error), errorMessage, responses: [] };
}

/** What became of one partition. */
function partitionAnswer(partitionIndex: number, error: ErrorName) {
  const errorMessage = error === "NONE" ? null : TEXTS.get(error) ?? "It cannot be stored now.";
  return { partitionIndex, errorCode: errorCode(error), errorMessage };
}

function judge(
  topic: SubscribedTopic | undefined,
  partition: number,
  startOffset: number,
): ShareStart | ErrorName {
  if (topic === undefined || partition < 0 || partition >= topic.partitions) {
    return "UNKNOWN_TOPIC_OR_PARTITION";
  }
  return startOffset < BY_RULE || isClamped(startOffset)
    ? "INVALID_REQUEST"
    : { topicId: topic.topicId, partition, startOffset };
}

function judgeAll({ topics }: AlterShareGroupOffsetsRequest, known: TopicView): Judged[] {
  return topics.map(({ topicName, partitions }) => {
    const topic = known.find(topicName);
    return {
      topicName,
      topicId: topic?.topicId ?? ZERO_UUID,
      partitions: partitions.map(({ partitionIndex, startOffset }) => ({
        partition: partitionIndex,
        judged: judge(topic, partitionIndex, startOffset),
      })),
    };
  });
}

/** The last one of each partition counts. */
function startsOf(judged: readonly Judged[]): ShareStart[] {
  const starts = new Map<string, ShareStart>();
  for (const { partitions } of judged) {
    for (const { judged: one } of partitions) {
      if (typeof one !== "string") starts.set(`${one.topicId}/${one.partition}`, one);
    }
  }
  return [...starts.values()];
}

function answered(
  judged: readonly Judged[],
  refused: ReadonlyMap<ShareStart, ErrorName>,
): AlterShareGroupOffsetsResponse {
  return {
    errorCode: 0,
    responses: judged.map(({ topicName, topicId, partitions }) => ({
      topicName,
      topicId,
      partitions: partitions.map(({ partition, judged: one }) =>
        partitionAnswer(partition, typeof one === "string" ? one : refused.get(one) ?? "NONE")
      ),
    })),
  };
}

export function alterShareGroupOffsetsHandler(
  services: GroupServices,
): Handler<AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse> {
  const { coordinator, features } = services;

  /** Throws FaultError. */
  async function alter(
    shard: Shard,
    request: AlterShareGroupOffsetsRequest,
  ): Promise<AlterShareGroupOffsetsResponse> {
    const { groupId } = request;
    const group = shard.shares.of(groupId, true);
    if (group === null) {
      return failed("GROUP_ID_NOT_FOUND", `Group ${groupId} is not a share group.`);
    }
    const judged = judgeAll(request, coordinator.shares.topics);
    const outcome = await group.restart(startsOf(judged));
    const entry = shard.find(groupId);
    if (entry !== undefined) shard.reschedule(entry);
    return typeof outcome === "string"
      ? failed(outcome, TEXTS.get(outcome) ?? "The group cannot be used here now.")
      : answered(judged, outcome);
  }

  return {
    api: alterShareGroupOffsetsApi,
    min: 0,
    max: 0,
    async handle(request) {
      if (features.levelOf("share.version") < 1) {
        return failed("UNSUPPORTED_VERSION", "Share groups are off.");
      }
      if (request.groupId === "" || !isStorable(request.groupId)) {
        return failed("INVALID_GROUP_ID", "The group id is empty or too long.");
      }
      const found = stillOpen(await coordinator.shardOf(request.groupId));
      if (!found.ok) return failed(found.error, "The group cannot be used here now.");
      try {
        return await alter(found.shard, request);
      } catch (error) {
        return failed(faultToCode(error, "coordinator"), "The group cannot be stored now.");
      }
    },
  };
}
