/**
 * OffsetCommit (key 8), versions 2-10.
 * Behaviour: an offset counts once its record is durable; a commit that changes nothing is answered
 * without a write until its time has to be refreshed. A retention time of v2-4 is obeyed. An offset of
 * 2^53-1 or more, and what the node has no memory for, is INVALID_COMMIT_OFFSET_SIZE for its partition.
 * Version notes: 7 static members (KIP-345) · 9 GROUP_ID_NOT_FOUND (KIP-848) · 10 topic ids (KIP-516).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import { isClamped } from "../../protocol/primitive.ts";
import {
  offsetCommitApi,
  type OffsetCommitRequest,
  type OffsetCommitResponse,
} from "../../protocol/message/08_offset_commit.ts";
import { partitionKey, type TopicRow } from "../../controller/image.ts";
import { faultToCode } from "../fault_to_code.ts";
import { checkCommit } from "../group/consumer/caller.ts";
import { checkIdentity, type Group, isStorable, touch } from "../group/group.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import { isRepeat, NEVER, type OffsetEntry } from "../group/offset_table.ts";
import type { GroupEntry, Shard } from "../group/shard.ts";
import type { Handler } from "../handler.ts";

/** Of the retention: how old a commit may get before a repeat is written again. */
const REFRESH_FRACTION = 10;
const BY_ID_SINCE = 10;
const GROUP_NOT_FOUND_SINCE = 9;

type RequestTopic = OffsetCommitRequest["topics"][number];
type RequestPartition = RequestTopic["partitions"][number];

/** Whether the caller may commit for the group, in Kafka's order of checks. */
function checkCaller(
  entry: GroupEntry | undefined,
  request: OffsetCommitRequest,
  version: number,
): ErrorName {
  const generation = request.generationIdOrMemberEpoch;
  if (entry !== undefined && entry.consumer !== null) {
    return checkCommit(entry.consumer.group, request.memberId, generation, version);
  }
  if (entry !== undefined && entry.share !== null) return "GROUP_ID_NOT_FOUND";
  const group = entry?.group;
  if (group === undefined || group.state === "Dead") {
    if (generation < 0) return "NONE";
    return version >= GROUP_NOT_FOUND_SINCE ? "GROUP_ID_NOT_FOUND" : "ILLEGAL_GENERATION";
  }
  if (generation < 0 && group.members.size === 0) return "NONE";
  return checkMember(group, request);
}

function checkMember(group: Group, request: OffsetCommitRequest): ErrorName {
  const identity = checkIdentity(group, request.memberId, request.groupInstanceId);
  if (identity !== "NONE") return identity;
  if (request.generationIdOrMemberEpoch !== group.generation) return "ILLEGAL_GENERATION";
  return group.state === "CompletingRebalance" ? "REBALANCE_IN_PROGRESS" : "NONE";
}

function answer(
  request: OffsetCommitRequest,
  errorOf: (topic: RequestTopic, partition: RequestPartition) => ErrorName,
): OffsetCommitResponse {
  return {
    topics: request.topics.map((topic) => ({
      name: topic.name,
      topicId: topic.topicId,
      partitions: topic.partitions.map((partition) => ({
        partitionIndex: partition.partitionIndex,
        errorCode: errorCode(errorOf(topic, partition)),
      })),
    })),
  };
}

interface Checked {
  readonly offsets: readonly OffsetEntry[];
  readonly errors: ReadonlyMap<RequestPartition, ErrorName>;
}

/** What the steps of one commit look things up in. */
export interface Rules {
  readonly services: GroupServices;
  readonly metadataBytesMax: number;
  readonly refreshMs: number;
}

function topicOf(
  { services: { topics } }: Rules,
  topic: RequestTopic,
  version: number,
): TopicRow | undefined {
  return version >= BY_ID_SINCE ? topics.findById(topic.topicId) : topics.find(topic.name);
}

export function partitionError(
  rules: Rules,
  row: TopicRow | undefined,
  partition: RequestPartition,
  version: number,
): ErrorName {
  if (row === undefined) {
    return version >= BY_ID_SINCE ? "UNKNOWN_TOPIC_ID" : "UNKNOWN_TOPIC_OR_PARTITION";
  }
  const { partitionIndex, committedMetadata } = partition;
  if (partitionIndex < 0 || partitionIndex >= row.partitions) return "UNKNOWN_TOPIC_OR_PARTITION";
  if (isClamped(partition.committedOffset)) return "INVALID_COMMIT_OFFSET_SIZE";
  const metadata = committedMetadata ?? "";
  // offset.metadata.max.bytes counts UTF-16 units in Kafka, whatever its name says.
  return metadata.length > rules.metadataBytesMax ? "OFFSET_METADATA_TOO_LARGE" : "NONE";
}

export function entryOf(
  row: TopicRow,
  partition: RequestPartition,
  nowMs: number,
  retentionMs: number,
): OffsetEntry {
  return {
    topic: row.name,
    partition: partition.partitionIndex,
    offset: partition.committedOffset,
    leaderEpoch: partition.committedLeaderEpoch,
    metadata: partition.committedMetadata ?? "",
    committedAtMs: nowMs,
    expireAtMs: retentionMs < 0 ? NEVER : Math.min(nowMs + retentionMs, Number.MAX_SAFE_INTEGER),
    topicId: row.topicId,
  };
}

function check(rules: Rules, request: OffsetCommitRequest, version: number): Checked {
  const nowMs = rules.services.env.clock.nowMs();
  // As in Kafka, the last one counts of a partition that is named again.
  const offsets = new Map<string, OffsetEntry>();
  const errors = new Map<RequestPartition, ErrorName>();
  for (const topic of request.topics) {
    const row = topicOf(rules, topic, version);
    for (const partition of topic.partitions) {
      const error = partitionError(rules, row, partition, version);
      errors.set(partition, error);
      if (error !== "NONE") continue;
      const entry = entryOf(row!, partition, nowMs, request.retentionTimeMs);
      offsets.set(partitionKey(row!.topicId, partition.partitionIndex), entry);
    }
  }
  return { offsets: [...offsets.values()], errors };
}

async function commit(
  { refreshMs }: Rules,
  shard: Shard,
  request: OffsetCommitRequest,
  offsets: readonly OffsetEntry[],
): Promise<ErrorName> {
  const entry = shard.findOrCreate(request.groupId);
  if (!shard.hasRoomFor(entry, offsets)) {
    shard.reschedule(entry);
    return "INVALID_COMMIT_OFFSET_SIZE";
  }
  const member = entry.group.members.get(request.memberId);
  if (member !== undefined) {
    touch(member, shard.host);
    shard.reschedule(entry);
  }
  // What is stored is no answer while a write is under way, which may be of another offset.
  const isSettled = entry.writes === 0;
  const changed = offsets.filter((next) =>
    !isSettled ||
    // Unlike what is stored, it wins over the offset of an open transaction.
    shard.pending.has(request.groupId, next) ||
    !isRepeat(entry.offsets.get(next.topic, next.partition, next.topicId), next, refreshMs)
  );
  if (changed.length === 0) return "NONE";
  try {
    await shard.commit(entry, changed);
    return "NONE";
  } catch (error) {
    return faultToCode(error, "coordinator");
  }
}

export function rulesOf(services: GroupServices): Rules {
  const { config } = services;
  return {
    services,
    metadataBytesMax: config.integer("offset.metadata.max.bytes"),
    refreshMs: config.integer("offsets.retention.minutes") * 60_000 / REFRESH_FRACTION,
  };
}

export function offsetCommitHandler(
  services: GroupServices,
): Handler<OffsetCommitRequest, OffsetCommitResponse> {
  const { coordinator } = services;
  const rules = rulesOf(services);
  return {
    api: offsetCommitApi,
    min: 2,
    max: 10,
    async handle(request, { version }) {
      if (!isStorable(request.groupId)) return answer(request, () => "INVALID_GROUP_ID");
      const found = stillOpen(await coordinator.shardOf(request.groupId));
      if (!found.ok) return answer(request, () => found.error);
      const refused = checkCaller(found.shard.find(request.groupId), request, version);
      if (refused !== "NONE") return answer(request, () => refused);
      const { offsets, errors } = check(rules, request, version);
      const stored = offsets.length === 0
        ? "NONE"
        : await commit(rules, found.shard, request, offsets);
      return answer(request, (_topic, partition) => {
        const error = errors.get(partition)!;
        return error === "NONE" ? stored : error;
      });
    },
  };
}
