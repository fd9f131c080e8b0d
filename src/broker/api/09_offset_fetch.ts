/**
 * OffsetFetch (key 9), versions 1-10.
 * Behaviour: a partition without a commit has offset -1 and no error; so has an unknown group. Who asks for stable
 * offsets is told UNSTABLE_OFFSET_COMMIT for a partition with an offset in an open transaction.
 * Version notes: 2 all topics (KIP-88) · 7 requireStable (KIP-447) · 8 many groups (KIP-709) · 9 member and epoch (KIP-848)
 * · 10 topic ids.
 */
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  offsetFetchApi,
  type OffsetFetchRequest,
  type OffsetFetchResponse,
} from "../../protocol/message/09_offset_fetch.ts";
import type { TopicRow } from "../../controller/image.ts";
import { checkFetch } from "../group/consumer/caller.ts";
import type { OffsetTable, TopicPartition } from "../group/offset_table.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { inGroups } from "../many.ts";

const BY_ID_SINCE = 10;
const MANY_GROUPS_SINCE = 8;
const ERROR_SINCE = 2;

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

/** What one group has: its offsets, and which of them are in open transactions when that matters. */
interface Known {
  readonly offsets: OffsetTable | undefined;
  readonly isUnstable: (at: TopicPartition) => boolean;
  /** Partitions that are unstable, where all are asked for. */
  readonly unstable: readonly TopicPartition[];
}

function partitionOf(
  { offsets, isUnstable }: Known,
  row: TopicRow | undefined,
  partition: number,
): AnsweredPartition {
  if (row !== undefined && isUnstable({ topic: row.name, partition })) {
    return none(partition, "UNSTABLE_OFFSET_COMMIT");
  }
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
  { topics }: GroupServices,
  asked: readonly Asked[],
  known: Known,
  version: number,
): AnsweredTopic[] {
  const byId = version >= BY_ID_SINCE;
  return asked.map(({ name, topicId, partitionIndexes }) => {
    const row = byId ? topics.findById(topicId) : topics.find(name);
    const unknownId = byId && row === undefined;
    return {
      name,
      topicId,
      partitions: partitionIndexes.map((partition) =>
        unknownId ? none(partition, "UNKNOWN_TOPIC_ID") : partitionOf(known, row, partition)
      ),
    };
  });
}

function allTopics({ topics }: GroupServices, known: Known): AnsweredTopic[] {
  const byTopic = new Map<string, { topicId: string; partitions: AnsweredPartition[] }>();
  function show(row: TopicRow, partition: number): void {
    const answered = byTopic.get(row.name) ?? { topicId: row.topicId, partitions: [] };
    answered.partitions.push(partitionOf(known, row, partition));
    byTopic.set(row.name, answered);
  }
  for (const { topic, partition } of known.offsets?.entries() ?? []) {
    const row = topics.find(topic);
    if (row !== undefined && known.offsets?.get(topic, partition, row.topicId) !== undefined) {
      show(row, partition);
    }
  }
  for (const { topic, partition } of known.unstable) {
    const row = topics.find(topic);
    const isShown = row === undefined ||
      known.offsets?.get(topic, partition, row.topicId) !== undefined;
    if (!isShown) show(row, partition);
  }
  return [...byTopic].map(([name, answered]) => ({ name, ...answered }));
}

/** Who asks: members of consumer groups say who they are from v9 on. */
interface Caller {
  readonly groupId: string;
  readonly memberId: string | null;
  readonly memberEpoch: number;
  readonly requireStable: boolean;
}

async function fetchGroup(
  services: GroupServices,
  { groupId, memberId, memberEpoch, requireStable }: Caller,
  asked: readonly Asked[] | null,
  version: number,
): Promise<AnsweredGroup> {
  const found = stillOpen(await services.coordinator.shardOf(groupId));
  if (!found.ok) return { topics: [], error: found.error };
  const entry = found.shard.find(groupId);
  const consumer = entry?.consumer?.group;
  const refused = consumer === undefined ? "NONE" : checkFetch(consumer, memberId, memberEpoch);
  if (refused !== "NONE") return { topics: [], error: refused };
  const { pending } = found.shard;
  const known: Known = {
    offsets: entry?.offsets,
    isUnstable: (at) => requireStable && pending.has(groupId, at),
    unstable: requireStable && asked === null ? pending.of(groupId) : [],
  };
  const topics = asked === null
    ? allTopics(services, known)
    : askedTopics(services, asked, known, version);
  return { topics, error: "NONE" };
}

/** The form of v1-7: one group. v1 has no place for an error of the whole answer. */
async function fetchOne(
  services: GroupServices,
  request: OffsetFetchRequest,
  version: number,
): Promise<OffsetFetchResponse> {
  const asked = request.topics?.map((topic) => ({ ...topic, topicId: ZERO_UUID })) ?? null;
  const { groupId, requireStable } = request;
  const caller = { groupId, memberId: null, memberEpoch: -1, requireStable };
  const answered = await fetchGroup(services, caller, asked, version);
  if (answered.error === "NONE" || version >= ERROR_SINCE) {
    return { topics: answered.topics, errorCode: errorCode(answered.error) };
  }
  return {
    topics: (asked ?? []).map(({ name, partitionIndexes }) => ({
      name,
      partitions: partitionIndexes.map((partition) => none(partition, answered.error)),
    })),
  };
}

/** Without the repeats of groups whose offsets are all asked for: the answer may be large. */
function distinct(groups: OffsetFetchRequest["groups"]): OffsetFetchRequest["groups"] {
  const seen = new Set<string>();
  return groups.filter(({ groupId, topics }) => {
    if (topics !== null) return true;
    if (seen.has(groupId)) return false;
    seen.add(groupId);
    return true;
  });
}

export function offsetFetchHandler(
  services: GroupServices,
): Handler<OffsetFetchRequest, OffsetFetchResponse> {
  return {
    api: offsetFetchApi,
    min: 1,
    max: 10,
    async handle(request, { version }) {
      if (version < MANY_GROUPS_SINCE) return await fetchOne(services, request, version);
      const asked = distinct(request.groups);
      const groups = await inGroups(services.env.clock, asked, async (group) => {
        const { groupId, topics } = group;
        const caller = { ...group, requireStable: request.requireStable };
        const answered = await fetchGroup(services, caller, topics, version);
        return { groupId, topics: answered.topics, errorCode: errorCode(answered.error) };
      });
      return { groups };
    },
  };
}
