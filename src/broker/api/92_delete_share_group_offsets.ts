/**
 * DeleteShareGroupOffsets (key 92), version 0.
 * Behaviour: takes away the share states of topics, so that the group begins in them by its own rule again. Only while
 * nobody is in the group: else NON_EMPTY_GROUP. A topic that is not there, or that the group has no state of, is
 * UNKNOWN_TOPIC_OR_PARTITION; a group that never had any state names no topic at all, as in Kafka. While
 * share.version is 0, the answer is UNSUPPORTED_VERSION.
 */
import { type Uuid, ZERO_UUID } from "../../lib/uuid.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  deleteShareGroupOffsetsApi,
  type DeleteShareGroupOffsetsRequest,
  type DeleteShareGroupOffsetsResponse,
} from "../../protocol/message/92_delete_share_group_offsets.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { TopicView } from "../group/consumer/group.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { LiveShareGroup } from "../group/share/live.ts";
import { NO_STATES } from "../group/share/state_partitions.ts";
import type { Handler } from "../handler.ts";

type Answered = DeleteShareGroupOffsetsResponse["responses"][number];

function failed(error: ErrorName, errorMessage: string) {
  return { errorCode: errorCode(error), errorMessage, responses: [] };
}

function unknown(topicName: string, errorMessage: string): Answered {
  const code = errorCode("UNKNOWN_TOPIC_OR_PARTITION");
  return { topicName, topicId: ZERO_UUID, errorCode: code, errorMessage };
}

/** The topic's id if the group has states of it, or what to say of the topic. */
function judge(topics: TopicView, group: LiveShareGroup, topicName: string): Uuid | Answered {
  const { initialized, deleting } = group.group.states;
  const topic = topics.find(topicName);
  if (topic === undefined) {
    return unknown(topicName, "There is no such topic.");
  }
  const { topicId } = topic;
  if (initialized.has(topicId) || deleting.has(topicId)) return topicId;
  return unknown(topicName, "There is no offset information to delete.");
}

export function deleteShareGroupOffsetsHandler(
  services: GroupServices,
): Handler<DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse> {
  const { coordinator, features } = services;
  const { topics } = coordinator.shares;

  /** Throws FaultError. */
  async function remove(
    group: LiveShareGroup,
    names: readonly string[],
  ): Promise<DeleteShareGroupOffsetsResponse> {
    if (group.group.members.size > 0) return failed("NON_EMPTY_GROUP", "The group has members.");
    if (group.group.states === NO_STATES) return { errorCode: 0, responses: [] };
    const judged = [...new Set(names)].map((name) => judge(topics, group, name));
    const topicIds = judged.filter((one) => typeof one === "string");
    const outcome = await group.removeStates(topicIds);
    if (typeof outcome === "string") return failed(outcome, "The group cannot be used here now.");
    const removed = topicIds.map((topicId): Answered => {
      const error = outcome.get(topicId);
      return {
        topicName: topics.findById(topicId)?.name ?? "",
        topicId,
        errorCode: errorCode(error ?? "NONE"),
        errorMessage: error === undefined ? null : "Its states cannot be taken away now.",
      };
    });
    const others = judged.filter((one) => typeof one !== "string");
    return { errorCode: 0, responses: [...removed, ...others] };
  }

  return {
    api: deleteShareGroupOffsetsApi,
    min: 0,
    max: 0,
    async handle({ groupId, topics: asked }) {
      if (features.levelOf("share.version") < 1) {
        return failed("UNSUPPORTED_VERSION", "Share groups are off.");
      }
      if (groupId === "") return failed("INVALID_GROUP_ID", "The group id is empty.");
      const found = stillOpen(await coordinator.shardOf(groupId));
      if (!found.ok) return failed(found.error, "The group cannot be used here now.");
      const entry = found.shard.find(groupId);
      if (entry === undefined || entry.share === null) {
        const problem = entry === undefined ? "not found" : "is not a share group";
        return failed("GROUP_ID_NOT_FOUND", `Group ${groupId} ${problem}.`);
      }
      try {
        return await remove(entry.share, asked.map(({ topicName }) => topicName));
      } catch (error) {
        return failed(faultToCode(error, "coordinator"), "The group cannot be stored now.");
      }
    },
  };
}
