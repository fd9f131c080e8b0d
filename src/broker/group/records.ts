/** Groups and offsets as records of `__consumer_offsets`, in Kafka's own format, and back. */
import { decodeGrowing, encodeVersioned } from "../../protocol/versioned.ts";
import {
  decodeOffsetsTopicKey,
  groupMetadataKey,
  groupMetadataValue,
  offsetCommitKey,
  offsetCommitValue,
} from "../../protocol/message/offsets_topic.ts";
import type { KeyValue } from "../shard/shard_log.ts";
import { createGroup, type Group, type Member, metadataOf, NO_BYTES } from "./group.ts";
import { NEVER, type OffsetEntry, type TopicPartition } from "./offset_table.ts";

const OFFSET_KEY_VERSION = 1;
const OFFSET_VALUE_VERSION = 4;
/** The only one with an expiry of its own; it has neither leader epoch nor topic id, as in Kafka. */
const EXPIRING_VALUE_VERSION = 1;
const GROUP_KEY_VERSION = 2;
const GROUP_VALUE_VERSION = 3;

export type GroupRecord =
  | {
    readonly kind: "offset";
    readonly groupId: string;
    readonly at: TopicPartition;
    readonly entry: OffsetEntry | null;
  }
  | { readonly kind: "group"; readonly groupId: string; readonly group: Group | null }
  | { readonly kind: "unknown" };

export function offsetRecord(groupId: string, entry: OffsetEntry): KeyValue {
  return {
    key: offsetKey(groupId, entry),
    value: encodeVersioned(offsetCommitValue, valueVersion(entry), {
      offset: entry.offset,
      leaderEpoch: entry.leaderEpoch,
      metadata: entry.metadata,
      commitTimestamp: entry.committedAtMs,
      expireTimestamp: entry.expireAtMs,
      topicId: entry.topicId,
    }),
  };
}

function valueVersion({ expireAtMs }: OffsetEntry): number {
  return expireAtMs === NEVER ? OFFSET_VALUE_VERSION : EXPIRING_VALUE_VERSION;
}

function offsetKey(group: string, { topic, partition }: TopicPartition): Uint8Array {
  return encodeVersioned(offsetCommitKey, OFFSET_KEY_VERSION, { group, topic, partition });
}

export function offsetTombstone(groupId: string, at: TopicPartition): KeyValue {
  return { key: offsetKey(groupId, at), value: null };
}

export function groupRecord(group: Group): KeyValue {
  return {
    key: encodeVersioned(groupMetadataKey, GROUP_KEY_VERSION, { group: group.groupId }),
    value: encodeVersioned(groupMetadataValue, GROUP_VALUE_VERSION, {
      protocolType: group.protocolType ?? "",
      generation: group.generation,
      protocol: group.protocolName,
      leader: group.leader,
      currentStateTimestamp: group.stateChangedAtMs,
      members: [...group.members.values()].map((member) => memberValue(group, member)),
    }),
  };
}

function memberValue(group: Group, member: Member) {
  return {
    memberId: member.memberId,
    groupInstanceId: member.instanceId,
    clientId: member.clientId,
    clientHost: member.clientHost,
    rebalanceTimeout: member.rebalanceTimeoutMs,
    sessionTimeout: member.sessionTimeoutMs,
    subscription: metadataOf(member, group.protocolName),
    assignment: member.assignment,
  };
}

export function groupTombstone(groupId: string): KeyValue {
  return {
    key: encodeVersioned(groupMetadataKey, GROUP_KEY_VERSION, { group: groupId }),
    value: null,
  };
}

/** A stored group comes back stable with its members, each of which has a whole session to be heard of. */
function loadGroup(groupId: string, value: Uint8Array, monotonicMs: number): Group {
  const stored = decodeGrowing(groupMetadataValue, value);
  const group = createGroup(groupId, Math.max(0, stored.currentStateTimestamp));
  group.generation = stored.generation;
  group.protocolType = stored.protocolType === "" ? null : stored.protocolType;
  group.protocolName = stored.protocol;
  group.leader = stored.leader;
  for (const each of stored.members) {
    group.members.set(each.memberId, {
      memberId: each.memberId,
      instanceId: each.groupInstanceId,
      clientId: each.clientId,
      clientHost: each.clientHost,
      sessionTimeoutMs: each.sessionTimeout,
      rebalanceTimeoutMs: each.rebalanceTimeout,
      protocols: stored.protocol === null
        ? []
        : [{ name: stored.protocol, metadata: each.subscription.slice() }],
      assignment: each.assignment.length === 0 ? NO_BYTES : each.assignment.slice(),
      joining: null,
      syncing: null,
      deadlineMs: monotonicMs + each.sessionTimeout,
      isNew: false,
    });
  }
  group.state = group.members.size === 0 ? "Empty" : "Stable";
  return group;
}

/** Throws DecodeError on a record that nothing of ours or Kafka's has written. */
export function readGroupRecord(
  key: Uint8Array,
  value: Uint8Array | null,
  monotonicMs: number,
): GroupRecord {
  const found = decodeOffsetsTopicKey(key);
  if (found.kind === "unknown") return { kind: "unknown" };
  if (found.kind === "group") {
    const groupId = found.key.group;
    return {
      kind: "group",
      groupId,
      group: value === null ? null : loadGroup(groupId, value, monotonicMs),
    };
  }
  const { group: groupId, topic, partition } = found.key;
  const at = { topic, partition };
  if (value === null) return { kind: "offset", groupId, at, entry: null };
  const stored = decodeGrowing(offsetCommitValue, value);
  const { offset, leaderEpoch, metadata, topicId } = stored;
  const { commitTimestamp: committedAtMs, expireTimestamp: expireAtMs } = stored;
  return {
    kind: "offset",
    groupId,
    at,
    entry: { ...at, offset, leaderEpoch, metadata, committedAtMs, expireAtMs, topicId },
  };
}
