/**
 * OffsetFetch (key 9), versions 1-10.
 * Behaviour: a partition without a commit has offset -1 and no error; so has an unknown group. What is
 * committed is durable, so `requireStable` changes nothing until there are transactions.
 * Version notes: 2 all topics (KIP-88) · 7 requireStable (KIP-447) · 8 many groups (KIP-709) · 10 topic ids.
 */
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  offsetFetchApi,
  type OffsetFetchRequest,
  type OffsetFetchResponse,
} from "../../protocol/message/09_offset_fetch.ts";
import type { TopicRow } from "../../controller/image.ts";
import type { OffsetTable } from "../group/offset_table.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";

const BY_ID_SINCE = 10;
const MANY_GROUPS_SINCE = 8;

interface Asked {
  readonly name: string;
  readonly topicId: string;
  readonly partitionIndexes: readonly number[];
}

interface AnsweredPartition {
  readonly partitionIndex: number;
  readonly committedOffset: number;
  readonly committedLeaderEpoch: number;
  readonly metadata: string;
  readonly errorCode: number;
}

interface AnsweredTopic {
  readonly name: string;
  readonly topicId: string;
  readonly partitions: readonly AnsweredPartition[];
}

interface AnsweredGroup {
  readonly topics: readonly AnsweredTopic[];
  readonly error: ErrorName;
}

function none(partitionIndex: number, error: ErrorName): AnsweredPartition {
  return {
    partitionIndex,
    committedOffset: -1,
    committedLeaderEpoch: -1,
    metadata: "",
    errorCode: errorCode(error),
  };
}

export function offsetFetchHandler(
  services: GroupServices,
): Handler<OffsetFetchRequest, OffsetFetchResponse> {
  const { topics } = services;

  function partitionOf(
    offsets: OffsetTable | undefined,
    row: TopicRow | undefined,
    partition: number,
  ): AnsweredPartition {
    const entry = row === undefined ? undefined : offsets?.get(row.name, partition, row.topicId);
    if (entry === undefined) return none(partition, "NONE");
    return {
      partitionIndex: partition,
      committedOffset: entry.offset,
      committedLeaderEpoch: entry.leaderEpoch,
      metadata: entry.metadata,
      errorCode: errorCode("NONE"),
    };
  }

  function askedTopics(
    asked: readonly Asked[],
    offsets: OffsetTable | undefined,
    version: number,
  ): AnsweredTopic[] {
    return asked.map(({ name, topicId, partitionIndexes }) => {
      const byId = version >= BY_ID_SINCE;
      const row = byId ? topics.findById(topicId) : topics.find(name);
      const unknownId = byId && row === undefined;
      return {
        name,
        topicId,
        partitions: partitionIndexes.map((partition) =>
          unknownId ? none(partition, "UNKNOWN_TOPIC_ID") : partitionOf(offsets, row, partition)
        ),
      };
    });
  }

  function allTopics(offsets: OffsetTable | undefined): AnsweredTopic[] {
    const byTopic = new Map<string, AnsweredPartition[]>();
    for (const { topic, partition } of offsets?.entries() ?? []) {
      const row = topics.find(topic);
      if (row === undefined || offsets!.get(topic, partition, row.topicId) === undefined) continue;
      byTopic.set(topic, [...(byTopic.get(topic) ?? []), partitionOf(offsets, row, partition)]);
    }
    return [...byTopic].map(([name, partitions]) => ({
      name,
      topicId: topics.find(name)?.topicId ?? ZERO_UUID,
      partitions,
    }));
  }

  async function fetchGroup(
    groupId: string,
    asked: readonly Asked[] | null,
    version: number,
  ): Promise<AnsweredGroup> {
    const found = await services.coordinator.shardOf(groupId);
    if (!found.ok) return { topics: [], error: found.error };
    const offsets = found.shard.find(groupId)?.offsets;
    return {
      topics: asked === null ? allTopics(offsets) : askedTopics(asked, offsets, version),
      error: "NONE",
    };
  }

  async function fetchOne(
    request: OffsetFetchRequest,
    version: number,
  ): Promise<OffsetFetchResponse> {
    const asked = request.topics?.map((topic) => ({ ...topic, topicId: ZERO_UUID })) ?? null;
    const answered = await fetchGroup(request.groupId, asked, version);
    if (answered.error === "NONE" || version >= 2) {
      return { topics: answered.topics, errorCode: errorCode(answered.error) };
    }
    // v1 has no place for an error of the whole answer.
    return {
      topics: (asked ?? []).map(({ name, partitionIndexes }) => ({
        name,
        partitions: partitionIndexes.map((partition) => none(partition, answered.error)),
      })),
    };
  }

  return {
    api: offsetFetchApi,
    min: 1,
    max: 10,
    async handle(request, { version }) {
      if (version < MANY_GROUPS_SINCE) return await fetchOne(request, version);
      const groups = await Promise.all(request.groups.map(async ({ groupId, topics: asked }) => {
        const answered = await fetchGroup(groupId, asked, version);
        return { groupId, topics: answered.topics, errorCode: errorCode(answered.error) };
      }));
      return { groups };
    },
  };
}
