/** What is told of a partition to those who look for its leader: Metadata and DescribeTopicPartitions. */
import { nodeId } from "../lib/brand.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import type { TopicRow } from "../controller/image.ts";
import type { BrokerServices } from "./handler.ts";

export interface PartitionState {
  readonly error: ErrorName;
  readonly leaderId: number;
  readonly leaderEpoch: number;
  readonly replicas: readonly number[];
  readonly isAlive: boolean;
}

/** The object store is the replica; the leader stands for it. */
export function partitionState(
  { partitions, metadata }: BrokerServices,
  topic: TopicRow,
  partition: number,
): PartitionState {
  const row = partitions.leaderOf(topic.topicId, partition);
  const leader = row?.leader ?? null;
  const node = leader === null ? undefined : metadata.view().nodes.get(nodeId(leader));
  const isAlive = node?.state === "live";
  return {
    error: isAlive ? "NONE" : "LEADER_NOT_AVAILABLE",
    leaderId: isAlive ? node.nodeId : -1,
    leaderEpoch: row?.leaderEpoch ?? 0,
    replicas: leader === null ? [] : [leader],
    isAlive,
  };
}

/** What is wrong with the brokers of one partition in a manual assignment, or null. */
export function replicasProblem(
  { metadata }: BrokerServices,
  brokerIds: readonly number[],
): string | null {
  if (brokerIds.length === 0) return "a partition has no replica";
  if (new Set(brokerIds).size < brokerIds.length) return "a broker is named twice";
  const { nodes } = metadata.view();
  const isKnown = (id: number) => id >= 0 && nodes.get(nodeId(id))?.state === "live";
  return brokerIds.every(isKnown) ? null : "a broker is not known";
}
