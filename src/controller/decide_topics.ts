/** Topics, partitions and their meta streams. Names and configs are checked where clients come in. */
import type { NodeId } from "../lib/brand.ts";
import { TOPIC_PARTITIONS_MAX } from "../lib/limits.ts";
import { areSameTexts } from "../lib/texts.ts";
import type { Uuid } from "../lib/uuid.ts";
import { partitionKey } from "./image.ts";
import type { CommandOf } from "./metadata_store.ts";
import { placePartition } from "./placement.ts";
import type { StateImage } from "./state.ts";
import {
  approve,
  checkRequester,
  countProblem,
  liveNodes,
  refuse,
  type Verdict,
} from "./verdict.ts";

/** New partitions get a leader at once, so that a produce right after the answer works. */
function leadersOf(
  image: StateImage,
  topicId: Uuid,
  first: number,
  count: number,
): (NodeId | null)[] {
  const nodes = liveNodes(image);
  return Array.from(
    { length: count },
    (_, i) => placePartition(partitionKey(topicId, first + i), nodes),
  );
}

export function decideCreateTopic(
  image: StateImage,
  command: CommandOf<"create-topic">,
): Verdict<"create-topic"> {
  const { topicId, name, partitions, replicationFactor, configs, internal } = command;
  if (image.topicIds.has(name)) return refuse("exists", `Topic ${name} exists`);
  if (image.topics.has(topicId)) return refuse("exists", `Topic id ${topicId} exists`);
  const problem = countProblem(partitions, TOPIC_PARTITIONS_MAX);
  if (problem !== null) return problem;
  const leaders = leadersOf(image, topicId, 0, partitions);
  return approve({
    type: "topic-created",
    topicId,
    name,
    replicationFactor,
    configs,
    internal,
    leaders,
  });
}

function unknownTopic(topicId: Uuid) {
  return refuse("not-found", `Topic id ${topicId} does not exist`);
}

export function decideCreatePartitions(
  image: StateImage,
  { topicId, partitions }: CommandOf<"create-partitions">,
): Verdict<"create-partitions"> {
  const topic = image.topics.get(topicId);
  if (topic === undefined) return unknownTopic(topicId);
  const problem = countProblem(partitions, TOPIC_PARTITIONS_MAX);
  if (problem !== null) return problem;
  const added = partitions - topic.partitions;
  if (added <= 0) {
    return refuse("invalid", `Topic ${topic.name} has ${topic.partitions} partitions already`);
  }
  const leaders = leadersOf(image, topicId, topic.partitions, added);
  return approve({ type: "partitions-created", topicId, leaders });
}

export function decideDeleteTopic(
  image: StateImage,
  { topicId }: CommandOf<"delete-topic">,
): Verdict<"delete-topic"> {
  return image.topics.has(topicId)
    ? approve({ type: "topic-deleted", topicId })
    : unknownTopic(topicId);
}

export function decideAlterConfigs(
  image: StateImage,
  { topicId, changes, expected }: CommandOf<"alter-topic-configs">,
): Verdict<"alter-topic-configs"> {
  const topic = image.topics.get(topicId);
  if (topic === undefined) return unknownTopic(topicId);
  if (expected !== undefined && !areSameTexts(topic.configs, expected)) {
    return refuse("conflict", `The settings of topic ${topic.name} have changed meanwhile`);
  }
  const own = (key: string) => Object.hasOwn(topic.configs, key) ? topic.configs[key] : null;
  const real = Object.entries(changes).filter(([key, value]) => value !== own(key));
  if (real.length === 0) return approve();
  return approve({ type: "topic-configured", topicId, changes: Object.fromEntries(real) });
}

export function decideSetMetaStream(
  image: StateImage,
  command: CommandOf<"set-meta-stream">,
): Verdict<"set-meta-stream"> {
  const { by, topicId, partition, leaderEpoch, streamId } = command;
  const fenced = checkRequester(image, by);
  if (fenced !== null) return fenced;
  const row = image.partitions.get(partitionKey(topicId, partition));
  if (row === undefined) {
    return refuse("not-found", `Partition ${partition} of topic id ${topicId} does not exist`);
  }
  if (row.leader !== by.nodeId || row.leaderEpoch !== leaderEpoch) {
    return refuse("fenced", `Partition is led by ${row.leader} with epoch ${row.leaderEpoch}`);
  }
  if (row.metaStream === streamId) return approve();
  if (row.metaStream !== null) {
    return refuse("conflict", `Partition has the meta stream ${row.metaStream} already`);
  }
  if (!image.streams.has(streamId)) {
    return refuse("not-found", `Stream ${streamId} does not exist`);
  }
  return approve({ type: "meta-stream-set", topicId, partition, streamId });
}
