/**
 * OffsetDelete (key 47), version 0.
 * Behaviour: forgets committed offsets, durably. A partition without one is no error. A topic that members of
 * the group subscribe to keeps its offsets: GROUP_SUBSCRIBED_TO_TOPIC. A group with members of another protocol
 * type than consumer is NON_EMPTY_GROUP, because nobody knows what they read.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  offsetDeleteApi,
  type OffsetDeleteRequest,
  type OffsetDeleteResponse,
} from "../../protocol/message/47_offset_delete.ts";
import { faultToCode } from "../fault_to_code.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { TopicPartition } from "../group/offset_table.ts";
import { subscriptionOf } from "../group/group_entry.ts";
import type { GroupServices } from "../group/services.ts";
import type { GroupEntry, Shard } from "../group/shard.ts";
import type { Handler } from "../handler.ts";

function failed(error: ErrorName): OffsetDeleteResponse {
  return { errorCode: errorCode(error), throttleTimeMs: 0, topics: [] };
}

/** Topics that must not lose their offsets, or why none may. */
function protectedTopics(entry: GroupEntry): ((topic: string) => boolean) | ErrorName {
  if (entry.group.state === "Dead" || entry.share !== null) return "GROUP_ID_NOT_FOUND";
  if (entry.consumer === null && entry.group.members.size === 0) return () => false;
  const isKept = subscriptionOf(entry);
  if (isKept !== null) return isKept;
  // Consumers whose subscriptions cannot be read may be at any topic.
  return entry.group.protocolType === "consumer" ? () => true : "NON_EMPTY_GROUP";
}

async function remove(
  shard: Shard,
  entry: GroupEntry,
  offsets: readonly TopicPartition[],
): Promise<ErrorName> {
  try {
    await shard.deleteOffsets(entry, offsets);
    return "NONE";
  } catch (error) {
    return faultToCode(error, "coordinator");
  }
}

export function offsetDeleteHandler(
  services: GroupServices,
): Handler<OffsetDeleteRequest, OffsetDeleteResponse> {
  function errorOf(name: string, partition: number, isKept: (topic: string) => boolean): ErrorName {
    const count = services.topics.find(name)?.partitions ?? 0;
    if (partition < 0 || partition >= count) return "UNKNOWN_TOPIC_OR_PARTITION";
    return isKept(name) ? "GROUP_SUBSCRIBED_TO_TOPIC" : "NONE";
  }

  return {
    api: offsetDeleteApi,
    min: 0,
    max: 0,
    async handle({ groupId, topics }) {
      if (groupId === "") return failed("INVALID_GROUP_ID");
      const found = stillOpen(await services.coordinator.shardOf(groupId));
      if (!found.ok) return failed(found.error);
      const entry = found.shard.find(groupId);
      if (entry === undefined) return failed("GROUP_ID_NOT_FOUND");
      const kept = protectedTopics(entry);
      if (typeof kept === "string") return failed(kept);
      const judged = topics.map(({ name, partitions }) => ({
        name,
        partitions: partitions.map(({ partitionIndex }) => ({
          partition: partitionIndex,
          error: errorOf(name, partitionIndex, kept),
        })),
      }));
      const gone = judged.flatMap(({ name, partitions }) =>
        partitions.filter(({ error }) => error === "NONE")
          .map(({ partition }) => ({ topic: name, partition }))
      );
      const removed = await remove(found.shard, entry, gone);
      if (removed !== "NONE") return failed(removed);
      return {
        errorCode: errorCode("NONE"),
        throttleTimeMs: 0,
        topics: judged.map(({ name, partitions }) => ({
          name,
          partitions: partitions.map(({ partition, error }) => ({
            partitionIndex: partition,
            errorCode: errorCode(error),
          })),
        })),
      };
    },
  };
}
