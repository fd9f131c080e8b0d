/**
 * What a record does to the tables. Pure and total: a record was checked when it was decided, so every
 * replica builds the same picture from the same log. Streams and objects have files of their own.
 */
import { nodeEpoch, type NodeId, type Position, streamEpoch } from "../lib/brand.ts";
import { unreachable } from "../lib/assert.ts";
import type { Uuid } from "../lib/uuid.ts";
import { applyCompacted, applyPurged, applySwept, applyUploaded } from "./apply_objects.ts";
import {
  applyStreamClosed,
  applyStreamCreated,
  applyStreamDeleted,
  applyStreamOpened,
  applyStreamTrimmed,
} from "./apply_streams.ts";
import { idBlockKey, partitionKey, walKey } from "./image.ts";
import type { MetadataRecord, RecordOf } from "./record.ts";
import type { Draft } from "./state.ts";

/** Partitions of a node stay without a leader until somebody takes them with the next epoch. */
function dropLeader(draft: Draft, node: NodeId): void {
  for (const [key, row] of draft.partitions.entries()) {
    if (row.leader === node) draft.partitions.set(key, { ...row, leader: null });
  }
}

/** The node's epoch is the position of this very entry: unique, growing, no clock. */
function applyRegistered(draft: Draft, record: RecordOf<"node-registered">, at: Position): void {
  const { nodeId, incarnation, host, port } = record;
  const epoch = nodeEpoch(at);
  dropLeader(draft, nodeId);
  draft.nodes.set(nodeId, { nodeId, epoch, incarnation, host, port, state: "live" });
  const state = { kind: "open" } as const;
  draft.wals.set(walKey(nodeId, epoch), { nodeId, epoch, walTrim: 0, state });
}

function applyRecoveryBegun(draft: Draft, record: RecordOf<"recovery-begun">, at: Position): void {
  const { nodeId, epoch, by } = record;
  const key = walKey(nodeId, epoch);
  const state = { kind: "recovering", by, recovery: at } as const;
  draft.wals.set(key, { ...draft.wals.get(key)!, state });
  const node = draft.nodes.get(nodeId);
  if (node?.epoch !== epoch || node.state === "gone") return;
  draft.nodes.set(nodeId, { ...node, state: "gone" });
  dropLeader(draft, nodeId);
}

function applyRecovered(draft: Draft, record: RecordOf<"recovery-finished">, at: Position): void {
  const { nodeId, epoch, slot } = record;
  applyUploaded(draft, record, at);
  for (const row of draft.streams.values()) {
    const owned = row.owner.nodeId === nodeId && row.owner.epoch === epoch;
    if (row.open && owned) applyStreamClosed(draft, row.streamId, row.end);
  }
  const state = { kind: "sealed", slot } as const;
  draft.wals.set(walKey(nodeId, epoch), { nodeId, epoch, walTrim: slot, state });
}

function applyLeaders(draft: Draft, record: RecordOf<"leaders-assigned">): void {
  for (const { topicId, partitions } of record.partitions) {
    for (const partition of partitions) {
      const key = partitionKey(topicId, partition);
      const row = draft.partitions.get(key)!;
      const leaderEpoch = streamEpoch(row.leaderEpoch + 1);
      draft.partitions.set(key, { ...row, leader: record.nodeId, leaderEpoch });
    }
  }
}

function addPartitions(
  draft: Draft,
  topicId: Uuid,
  first: number,
  leaders: readonly (NodeId | null)[],
): void {
  for (const [i, leader] of leaders.entries()) {
    const partition = first + i;
    const row = { topicId, partition, leader, leaderEpoch: streamEpoch(0), metaStream: null };
    draft.partitions.set(partitionKey(topicId, partition), row);
  }
}

function applyTopicCreated(draft: Draft, record: RecordOf<"topic-created">): void {
  const { topicId, name, replicationFactor, configs, internal, leaders } = record;
  const partitions = leaders.length;
  draft.topics.set(topicId, { topicId, name, partitions, replicationFactor, configs, internal });
  draft.topicIds.set(name, topicId);
  addPartitions(draft, topicId, 0, leaders);
}

function applyPartitionsCreated(draft: Draft, record: RecordOf<"partitions-created">): void {
  const topic = draft.topics.get(record.topicId)!;
  addPartitions(draft, record.topicId, topic.partitions, record.leaders);
  const partitions = topic.partitions + record.leaders.length;
  draft.topics.set(record.topicId, { ...topic, partitions });
}

/** Rows, streams and their objects go at once; what is still written to the streams becomes dead bytes. */
function applyTopicDeleted(draft: Draft, topicId: Uuid, at: Position): void {
  const topic = draft.topics.get(topicId)!;
  for (let partition = 0; partition < topic.partitions; partition++) {
    const key = partitionKey(topicId, partition);
    const metaStream = draft.partitions.get(key)?.metaStream ?? null;
    if (metaStream !== null) applyStreamDeleted(draft, metaStream, at);
    draft.partitions.delete(key);
  }
  for (const streamId of draft.streamsOf(topicId)) applyStreamDeleted(draft, streamId, at);
  draft.topics.delete(topicId);
  draft.topicIds.delete(topic.name);
}

function applyConfigured(draft: Draft, record: RecordOf<"topic-configured">): void {
  const topic = draft.topics.get(record.topicId)!;
  const configs = Object.fromEntries(
    Object.entries({ ...topic.configs, ...record.changes })
      .filter((entry): entry is [string, string] => entry[1] !== null),
  );
  draft.topics.set(record.topicId, { ...topic, configs });
}

function applyMetaStream(draft: Draft, record: RecordOf<"meta-stream-set">): void {
  const key = partitionKey(record.topicId, record.partition);
  draft.partitions.set(key, { ...draft.partitions.get(key)!, metaStream: record.streamId });
}

function applyReserved(draft: Draft, record: RecordOf<"ids-reserved">): void {
  const { nodeId, epoch, from, to } = record;
  const block = { nodeId, epoch, from, to, purged: [], sweptAt: null };
  draft.idBlocks.set(idBlockKey(nodeId, epoch, from), block);
  draft.nextObjectId = to;
}

function applyKv(draft: Draft, { key, value }: RecordOf<"kv-put">): void {
  draft.kv.set(key, { value, version: (draft.kv.get(key)?.version ?? 0) + 1 });
}

/** `at` is the position of the entry that holds the record. */
export function apply(draft: Draft, record: MetadataRecord, at: Position): void {
  switch (record.type) {
    case "node-registered":
      return applyRegistered(draft, record, at);
    case "recovery-begun":
      return applyRecoveryBegun(draft, record, at);
    case "recovery-finished":
      return applyRecovered(draft, record, at);
    case "wal-forgotten":
      return draft.wals.delete(walKey(record.nodeId, record.epoch));
    case "leaders-assigned":
      return applyLeaders(draft, record);
    case "topic-created":
      return applyTopicCreated(draft, record);
    case "partitions-created":
      return applyPartitionsCreated(draft, record);
    case "topic-deleted":
      return applyTopicDeleted(draft, record.topicId, at);
    case "topic-configured":
      return applyConfigured(draft, record);
    case "meta-stream-set":
      return applyMetaStream(draft, record);
    case "stream-created":
      return applyStreamCreated(draft, record);
    case "stream-opened":
      return applyStreamOpened(draft, record);
    case "stream-closed":
      return applyStreamClosed(draft, record.streamId, record.end);
    case "stream-trimmed":
      return applyStreamTrimmed(draft, record, at);
    case "stream-deleted":
      return applyStreamDeleted(draft, record.streamId, at);
    case "ids-reserved":
      return applyReserved(draft, record);
    case "uploaded":
      return applyUploadAndTrim(draft, record, at);
    case "compacted":
      return applyCompacted(draft, record, at);
    case "epoch-swept":
      return applySwept(draft, record, at);
    case "purged":
      return applyPurged(draft, record);
    case "kv-put":
      return applyKv(draft, record);
    case "kv-deleted":
      return draft.kv.delete(record.key);
    case "producer-ids":
      draft.nextProducerId = record.next;
      return;
    case "feature-level":
      draft.featureLevel = record.level;
      return;
    default:
      return unreachable(record);
  }
}

function applyUploadAndTrim(draft: Draft, record: RecordOf<"uploaded">, at: Position): void {
  applyUploaded(draft, record, at);
  const key = walKey(record.nodeId, record.epoch);
  draft.wals.set(key, { ...draft.wals.get(key)!, walTrim: record.walTrim });
}
