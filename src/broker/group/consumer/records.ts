/**
 * The difference of two states of a group as records, and records back into a state. A crash between two
 * batches leaves a group epoch above the target's: the next heartbeat then makes the target again.
 */
import { decodeGrowing, encodeVersioned } from "../../../protocol/versioned.ts";
import {
  consumerGroupCurrentMemberAssignmentKey,
  consumerGroupCurrentMemberAssignmentValue,
  type ConsumerGroupKey,
  consumerGroupMemberMetadataKey,
  type ConsumerGroupMemberMetadataValue,
  consumerGroupMemberMetadataValue,
  consumerGroupMetadataKey,
  consumerGroupMetadataValue,
  consumerGroupRegularExpressionKey,
  consumerGroupRegularExpressionValue,
  consumerGroupTargetAssignmentMemberKey,
  consumerGroupTargetAssignmentMemberValue,
  consumerGroupTargetAssignmentMetadataKey,
  consumerGroupTargetAssignmentMetadataValue,
} from "../../../protocol/message/consumer_group_records.ts";
import type { KeyValue } from "../../shard/shard_log.ts";
import { type Assignment, assignmentOf, listOf, NOTHING } from "./assignment.ts";
import {
  type ClassicSide,
  type ConsumerGroup,
  type ConsumerMember,
  NEW_PLACE,
  type Place,
  type PlaceState,
  type Profile,
  type Resolved,
  sharedNames,
} from "./group.ts";

const STATES: readonly PlaceState[] = ["stable", "unrevoked", "unreleased"];

/** A group while it is read from the log: the same shape, and nobody else has it yet. */
export interface Draft extends ConsumerGroup {
  epoch: number;
  metadataHash: number;
  targetEpoch: number;
  readonly members: Map<string, ConsumerMember>;
  readonly target: Map<string, Assignment>;
  readonly regexes: Map<string, Resolved>;
}

export function emptyDraft(groupId: string): Draft {
  return {
    groupId,
    epoch: 0,
    metadataHash: 0,
    members: new Map(),
    targetEpoch: 0,
    target: new Map(),
    regexes: new Map(),
  };
}

function memberRecord(groupId: string, memberId: string, profile: Profile | null): KeyValue {
  return {
    key: encodeVersioned(consumerGroupMemberMetadataKey, 5, { groupId, memberId }),
    value: profile === null ? null : encodeVersioned(consumerGroupMemberMetadataValue, 0, {
      instanceId: profile.instanceId,
      rackId: profile.rackId,
      clientId: profile.clientId,
      clientHost: profile.clientHost,
      subscribedTopicNames: profile.topicNames,
      subscribedTopicRegex: profile.topicRegex,
      rebalanceTimeoutMs: profile.rebalanceTimeoutMs,
      serverAssignor: profile.assignor,
      classicMemberMetadata: profile.classic === null ? null : {
        sessionTimeoutMs: profile.classic.sessionTimeoutMs,
        supportedProtocols: profile.classic.protocols,
      },
    }),
  };
}

function placeRecord(groupId: string, memberId: string, place: Place | null): KeyValue {
  return {
    key: encodeVersioned(consumerGroupCurrentMemberAssignmentKey, 8, { groupId, memberId }),
    value: place === null ? null : encodeVersioned(consumerGroupCurrentMemberAssignmentValue, 0, {
      memberEpoch: place.epoch,
      previousMemberEpoch: place.previousEpoch,
      state: STATES.indexOf(place.state),
      assignedPartitions: listOf(place.assigned),
      partitionsPendingRevocation: listOf(place.revoking),
    }),
  };
}

function targetRecord(groupId: string, memberId: string, target: Assignment | null): KeyValue {
  return {
    key: encodeVersioned(consumerGroupTargetAssignmentMemberKey, 7, { groupId, memberId }),
    value: target === null ? null : encodeVersioned(consumerGroupTargetAssignmentMemberValue, 0, {
      topicPartitions: listOf(target),
    }),
  };
}

function targetEpochRecord(groupId: string, assignmentEpoch: number | null): KeyValue {
  return {
    key: encodeVersioned(consumerGroupTargetAssignmentMetadataKey, 6, { groupId }),
    value: assignmentEpoch === null
      ? null
      : encodeVersioned(consumerGroupTargetAssignmentMetadataValue, 0, { assignmentEpoch }),
  };
}

function regexRecord(groupId: string, pattern: string, resolved: Resolved | null): KeyValue {
  const key = { groupId, regularExpression: pattern };
  return {
    key: encodeVersioned(consumerGroupRegularExpressionKey, 16, key),
    value: resolved === null ? null : encodeVersioned(consumerGroupRegularExpressionValue, 0, {
      topics: resolved.topics,
      version: resolved.version,
      timestamp: resolved.resolvedAtMs,
    }),
  };
}

function groupRecord({ groupId }: ConsumerGroup, group: ConsumerGroup | null): KeyValue {
  return {
    key: encodeVersioned(consumerGroupMetadataKey, 3, { groupId }),
    value: group === null ? null : encodeVersioned(consumerGroupMetadataValue, 0, {
      epoch: group.epoch,
      metadataHash: group.metadataHash,
    }),
  };
}

/** In Kafka's order: who is there, the group's epoch, the target and then its epoch, what members have. */
export function recordsBetween(before: ConsumerGroup, after: ConsumerGroup): KeyValue[] {
  const { groupId } = after;
  const records: KeyValue[] = goneRecords(before, after);
  for (const { memberId, profile } of after.members.values()) {
    if (before.members.get(memberId)?.profile !== profile) {
      records.push(memberRecord(groupId, memberId, profile));
    }
  }
  for (const [pattern, resolved] of after.regexes) {
    if (before.regexes.get(pattern) !== resolved) {
      records.push(regexRecord(groupId, pattern, resolved));
    }
  }
  if (before.epoch !== after.epoch || before.metadataHash !== after.metadataHash) {
    records.push(groupRecord(after, after));
  }
  for (const [memberId, target] of after.target) {
    if (before.target.get(memberId) !== target) {
      records.push(targetRecord(groupId, memberId, target));
    }
  }
  if (before.targetEpoch !== after.targetEpoch) {
    records.push(targetEpochRecord(groupId, after.targetEpoch));
  }
  for (const { memberId, place } of after.members.values()) {
    if ((before.members.get(memberId)?.place ?? NEW_PLACE) !== place) {
      records.push(placeRecord(groupId, memberId, place));
    }
  }
  return records;
}

function goneRecords(before: ConsumerGroup, after: ConsumerGroup): KeyValue[] {
  const { groupId } = before;
  const gone = [...before.members.keys()].filter((memberId) => !after.members.has(memberId));
  const regexes = [...before.regexes.keys()].filter((pattern) => !after.regexes.has(pattern));
  return [
    ...gone.flatMap((memberId) => [
      placeRecord(groupId, memberId, null),
      targetRecord(groupId, memberId, null),
      memberRecord(groupId, memberId, null),
    ]),
    ...regexes.map((pattern) => regexRecord(groupId, pattern, null)),
  ];
}

/** All of a group, for a log that is written anew. */
export function recordsOf(group: ConsumerGroup): KeyValue[] {
  return recordsBetween(emptyDraft(group.groupId), group);
}

/** The end of a group that has no members; the tombstone of the group itself comes last. */
export function tombstonesOf(group: ConsumerGroup): KeyValue[] {
  return [
    ...goneRecords(group, emptyDraft(group.groupId)),
    targetEpochRecord(group.groupId, null),
    groupRecord(group, null),
  ];
}

/** Applies a record; null removes what its key names. Throws DecodeError. The group's own tombstone is the caller's. */
export function applyRecord(draft: Draft, key: ConsumerGroupKey, value: Uint8Array | null): void {
  switch (key.kind) {
    case "group":
      return applyGroup(draft, value);
    case "member":
      return applyMember(draft, key.memberId, value);
    case "target":
      return applyTarget(draft, key.memberId, value);
    case "current":
      return applyPlace(draft, key.memberId, value);
    case "target-epoch":
      draft.targetEpoch = value === null
        ? 0
        : decodeGrowing(consumerGroupTargetAssignmentMetadataValue, value).assignmentEpoch;
      return;
    case "regex":
      return applyRegex(draft, key.regularExpression, value);
    case "partition-metadata":
      // Written before the hash took its place (KIP-1101): topics are looked at in any case.
      return;
  }
}

function applyGroup(draft: Draft, value: Uint8Array | null): void {
  if (value === null) return;
  const { epoch, metadataHash } = decodeGrowing(consumerGroupMetadataValue, value);
  draft.epoch = epoch;
  draft.metadataHash = metadataHash;
}

/** Views of the batch would pin all of it for as long as the member lives. */
function classicOf(
  stored: ConsumerGroupMemberMetadataValue["classicMemberMetadata"],
): ClassicSide | null {
  if (stored === null) return null;
  const protocols = stored.supportedProtocols
    .map(({ name, metadata }) => ({ name, metadata: metadata.slice() }));
  return { sessionTimeoutMs: stored.sessionTimeoutMs, protocols };
}

function applyMember(draft: Draft, memberId: string, value: Uint8Array | null): void {
  if (value === null) return void draft.members.delete(memberId);
  const stored = decodeGrowing(consumerGroupMemberMetadataValue, value);
  const profile: Profile = {
    instanceId: stored.instanceId,
    rackId: stored.rackId,
    clientId: stored.clientId,
    clientHost: stored.clientHost,
    topicNames: sharedNames(draft.members.values(), stored.subscribedTopicNames),
    topicRegex: stored.subscribedTopicRegex,
    rebalanceTimeoutMs: stored.rebalanceTimeoutMs,
    assignor: stored.serverAssignor,
    classic: classicOf(stored.classicMemberMetadata),
  };
  const place = draft.members.get(memberId)?.place ?? NEW_PLACE;
  draft.members.set(memberId, { memberId, profile, place });
}

function applyTarget(draft: Draft, memberId: string, value: Uint8Array | null): void {
  if (value === null) return void draft.target.delete(memberId);
  const stored = decodeGrowing(consumerGroupTargetAssignmentMemberValue, value);
  draft.target.set(memberId, assignmentOf(stored.topicPartitions));
}

function applyPlace(draft: Draft, memberId: string, value: Uint8Array | null): void {
  const member = draft.members.get(memberId);
  if (member === undefined) return;
  if (value === null) return void draft.members.set(memberId, { ...member, place: NEW_PLACE });
  const stored = decodeGrowing(consumerGroupCurrentMemberAssignmentValue, value);
  const place: Place = {
    epoch: stored.memberEpoch,
    previousEpoch: stored.previousMemberEpoch,
    state: STATES[stored.state] ?? "unrevoked",
    assigned: assignmentOf(stored.assignedPartitions),
    revoking: stored.partitionsPendingRevocation.length === 0
      ? NOTHING
      : assignmentOf(stored.partitionsPendingRevocation),
  };
  draft.members.set(memberId, { ...member, place });
}

function applyRegex(draft: Draft, pattern: string, value: Uint8Array | null): void {
  if (value === null) return void draft.regexes.delete(pattern);
  const { topics, version, timestamp } = decodeGrowing(consumerGroupRegularExpressionValue, value);
  draft.regexes.set(pattern, { topics, version, resolvedAtMs: timestamp });
}
