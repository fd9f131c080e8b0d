/**
 * DescribeTopicPartitions (key 75), version 0.
 * Behaviour: topics in order of their names, all of them when none is named, with at most 2,000 partitions in
 * one answer; the cursor says where the next one goes on. A cursor at a topic that is gone goes on behind it. As
 * in Kafka it must be one of the topics that are named, if any, and no negative partition: else all of them are
 * INVALID_REQUEST.
 * Nobody but the leader could be an eligible one, so those lists are empty; null would break Java's admin client.
 */
import { DESCRIBED_PARTITIONS_MAX } from "../../lib/limits.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  describeTopicPartitionsApi,
  type DescribeTopicPartitionsRequest,
  type DescribeTopicPartitionsResponse,
} from "../../protocol/message/75_describe_topic_partitions.ts";
import type { TopicRow } from "../../controller/image.ts";
import { OPERATIONS_OMITTED, TOPIC_OPERATIONS } from "../authorized_operations.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { partitionState } from "../partition_state.ts";
import { topicNameProblem } from "../topic_name.ts";

type Topic = DescribeTopicPartitionsResponse["topics"][number];
type Partition = Topic["partitions"][number];
type Cursor = NonNullable<DescribeTopicPartitionsResponse["nextCursor"]>;

function partitionOf(services: BrokerServices, topic: TopicRow, partitionIndex: number): Partition {
  const state = partitionState(services, topic, partitionIndex);
  return {
    errorCode: errorCode(state.error),
    partitionIndex,
    leaderId: state.leaderId,
    leaderEpoch: state.leaderEpoch,
    replicaNodes: state.replicas,
    isrNodes: state.isAlive ? state.replicas : [],
    eligibleLeaderReplicas: [],
    lastKnownElr: [],
    offlineReplicas: state.isAlive ? [] : state.replicas,
  };
}

function failed(
  name: string,
  error: ErrorName,
  topicAuthorizedOperations = OPERATIONS_OMITTED,
): Topic {
  return {
    errorCode: errorCode(error),
    name,
    topicId: ZERO_UUID,
    isInternal: false,
    partitions: [],
    topicAuthorizedOperations,
  };
}

function part(services: BrokerServices, topic: TopicRow, from: number, to: number): Topic {
  return {
    errorCode: errorCode("NONE"),
    name: topic.name,
    topicId: topic.topicId,
    isInternal: topic.internal,
    partitions: Array.from(
      { length: Math.max(0, to - from) },
      (_, i) => partitionOf(services, topic, from + i),
    ),
    topicAuthorizedOperations: TOPIC_OPERATIONS,
  };
}

/** Names from the cursor on, in order. */
function namesOf(services: BrokerServices, request: DescribeTopicPartitionsRequest): string[] {
  const { topics, cursor } = request;
  const names = topics.length === 0
    ? [...services.metadata.view().topicIds.entries()].map(([name]) => name)
    : [...new Set(topics.map(({ name }) => name))];
  return names.filter((name) => cursor === null || name >= cursor.topicName).toSorted();
}

function isCursorValid({ topics, cursor }: DescribeTopicPartitionsRequest): boolean {
  if (cursor === null) return true;
  const isNamed = topics.length === 0 || topics.some(({ name }) => name === cursor.topicName);
  return cursor.partitionIndex >= 0 && isNamed;
}

function describe(
  services: BrokerServices,
  request: DescribeTopicPartitionsRequest,
): { readonly topics: Topic[]; readonly nextCursor: Cursor | null } {
  const { cursor, responsePartitionLimit } = request;
  if (!isCursorValid(request)) {
    const names = new Set(request.topics.map(({ name }) => name));
    return { topics: [...names].map((name) => failed(name, "INVALID_REQUEST")), nextCursor: null };
  }
  let left = Math.max(1, Math.min(responsePartitionLimit, DESCRIBED_PARTITIONS_MAX));
  const topics: Topic[] = [];
  for (const name of namesOf(services, request)) {
    if (left === 0) return { topics, nextCursor: { topicName: name, partitionIndex: 0 } };
    const topic = services.topics.find(name);
    if (topic === undefined) {
      const error = topicNameProblem(name) === null
        ? "UNKNOWN_TOPIC_OR_PARTITION"
        : "INVALID_TOPIC_EXCEPTION";
      topics.push(failed(name, error, TOPIC_OPERATIONS));
      continue;
    }
    const from = name === cursor?.topicName ? cursor.partitionIndex : 0;
    const to = Math.min(topic.partitions, from + left);
    topics.push(part(services, topic, from, to));
    if (to < topic.partitions) {
      return { topics, nextCursor: { topicName: name, partitionIndex: to } };
    }
    left -= Math.max(0, to - from);
  }
  return { topics, nextCursor: null };
}

export function describeTopicPartitionsHandler(
  services: BrokerServices,
): Handler<DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse> {
  return {
    api: describeTopicPartitionsApi,
    min: 0,
    max: 0,
    async handle(request) {
      await services.topics.look(request.topics.map(({ name }) => name));
      return { throttleTimeMs: 0, ...describe(services, request) };
    },
  };
}
