/**
 * The difference of two states of a share group as records, and records back into a state. A crash between two
 * batches leaves a group epoch above the target's: the next heartbeat then makes the target again.
 */
import type { Uuid } from "../../../lib/uuid.ts";
import { decodeGrowing, encodeVersioned } from "../../../protocol/versioned.ts";
import {
  shareGroupCurrentMemberAssignmentKey,
  shareGroupCurrentMemberAssignmentValue,
  type ShareGroupKey,
  shareGroupMemberMetadataKey,
  shareGroupMemberMetadataValue,
  shareGroupMetadataKey,
  shareGroupMetadataValue,
  shareGroupStatePartitionMetadataKey,
  type ShareGroupStatePartitionMetadataValue,
  shareGroupStatePartitionMetadataValue,
  shareGroupTargetAssignmentMemberKey,
  shareGroupTargetAssignmentMemberValue,
  shareGroupTargetAssignmentMetadataKey,
  shareGroupTargetAssignmentMetadataValue,
} from "../../../protocol/message/share_group_records.ts";
import type { KeyValue } from "../../shard/shard_log.ts";
import { type Assignment, assignmentOf, listOf } from "../consumer/assignment.ts";
import {
  emptyShareGroup,
  NEW_SHARE_PLACE,
  type ShareGroup,
  type ShareMember,
  type SharePlace,
  type ShareProfile,
} from "./group.ts";
import { NO_STATES, type StatePartitions } from "./state_partitions.ts";

/** Members of share groups have one state only. */
const STABLE = 0;

function profileRecord(groupId: string, memberId: string, of: ShareProfile | null): KeyValue {
  return {
    key: encodeVersioned(shareGroupMemberMetadataKey, 10, { groupId, memberId }),
    value: of === null ? null : encodeVersioned(shareGroupMemberMetadataValue, 0, {
      rackId: of.rackId,
      clientId: of.clientId,
      clientHost: of.clientHost,
      subscribedTopicNames: of.topicNames,
    }),
  };
}

function groupRecord(groupId: string, group: ShareGroup | null): KeyValue {
  return {
    key: encodeVersioned(shareGroupMetadataKey, 11, { groupId }),
    value: group === null ? null : encodeVersioned(shareGroupMetadataValue, 0, {
      epoch: group.epoch,
      metadataHash: group.metadataHash,
    }),
  };
}

function targetEpochRecord(groupId: string, assignmentEpoch: number | null): KeyValue {
  return {
    key: encodeVersioned(shareGroupTargetAssignmentMetadataKey, 12, { groupId }),
    value: assignmentEpoch === null
      ? null
      : encodeVersioned(shareGroupTargetAssignmentMetadataValue, 0, { assignmentEpoch }),
  };
}

function targetRecord(groupId: string, memberId: string, target: Assignment | null): KeyValue {
  return {
    key: encodeVersioned(shareGroupTargetAssignmentMemberKey, 13, { groupId, memberId }),
    value: target === null ? null : encodeVersioned(shareGroupTargetAssignmentMemberValue, 0, {
      topicPartitions: listOf(target),
    }),
  };
}

function placeRecord(groupId: string, memberId: string, place: SharePlace | null): KeyValue {
  return {
    key: encodeVersioned(shareGroupCurrentMemberAssignmentKey, 14, { groupId, memberId }),
    value: place === null ? null : encodeVersioned(shareGroupCurrentMemberAssignmentValue, 0, {
      memberEpoch: place.epoch,
      previousMemberEpoch: place.previousEpoch,
      state: STABLE,
      assignedPartitions: listOf(place.assigned),
    }),
  };
}

function statesRecord(groupId: string, states: StatePartitions | null): KeyValue {
  const key = encodeVersioned(shareGroupStatePartitionMetadataKey, 15, { groupId });
  if (states === null) return { key, value: null };
  const nameOf = (topicId: Uuid) => states.names.get(topicId) ?? "";
  const named = (of: Assignment) =>
    listOf(of).map((one) => ({ ...one, topicName: nameOf(one.topicId) }));
  const value = encodeVersioned(shareGroupStatePartitionMetadataValue, 0, {
    initializingTopics: named(states.initializing),
    initializedTopics: named(states.initialized),
    deletingTopics: [...states.deleting].map((topicId) => ({
      topicId,
      topicName: nameOf(topicId),
    })),
  });
  return { key, value };
}

/** In Kafka's order: who is there, the group's epoch, the target and then its epoch, what members have, states. */
export function shareRecordsBetween(before: ShareGroup, after: ShareGroup): KeyValue[] {
  const { groupId } = after;
  const gone = [...before.members.keys()].filter((memberId) => !after.members.has(memberId));
  const records = gone.flatMap((memberId) => memberTombstones(groupId, memberId));
  const members = [...after.members.values()];
  for (const { memberId, profile } of members) {
    if (before.members.get(memberId)?.profile !== profile) {
      records.push(profileRecord(groupId, memberId, profile));
    }
  }
  if (before.epoch !== after.epoch || before.metadataHash !== after.metadataHash) {
    records.push(groupRecord(groupId, after));
  }
  for (const [memberId, target] of after.target) {
    if (before.target.get(memberId) !== target) {
      records.push(targetRecord(groupId, memberId, target));
    }
  }
  if (before.targetEpoch !== after.targetEpoch) {
    records.push(targetEpochRecord(groupId, after.targetEpoch));
  }
  for (const { memberId, place } of members) {
    if ((before.members.get(memberId)?.place ?? NEW_SHARE_PLACE) !== place) {
      records.push(placeRecord(groupId, memberId, place));
    }
  }
  if (before.states !== after.states) records.push(statesRecord(groupId, after.states));
  return records;
}

function memberTombstones(groupId: string, memberId: string): KeyValue[] {
  return [
    placeRecord(groupId, memberId, null),
    targetRecord(groupId, memberId, null),
    profileRecord(groupId, memberId, null),
  ];
}

/** All of a group, for a log that is written anew. */
export function shareRecordsOf(group: ShareGroup): KeyValue[] {
  return shareRecordsBetween(emptyShareGroup(group.groupId), group);
}

/** The end of a group; the tombstone of the group itself comes last. */
export function shareTombstonesOf({ groupId, members }: ShareGroup): KeyValue[] {
  return [
    ...[...members.keys()].flatMap((memberId) => memberTombstones(groupId, memberId)),
    targetEpochRecord(groupId, null),
    statesRecord(groupId, null),
    groupRecord(groupId, null),
  ];
}

/** A group while it is read from the log: the same shape, and nobody else has it yet. */
export interface ShareDraft extends ShareGroup {
  epoch: number;
  metadataHash: number;
  targetEpoch: number;
  states: StatePartitions;
  readonly members: Map<string, ShareMember>;
  readonly target: Map<string, Assignment>;
}

export function emptyShareDraft(groupId: string): ShareDraft {
  return { ...emptyShareGroup(groupId), members: new Map(), target: new Map() };
}

/** Whether anything of it is stored: states may be set before the first member comes. */
export function isStored({ epoch, states }: ShareGroup): boolean {
  return epoch > 0 || states !== NO_STATES;
}

/** Applies a record; null removes what its key names. Throws DecodeError. The group's own tombstone is the caller's. */
export function applyShareRecord(
  draft: ShareDraft,
  key: ShareGroupKey,
  value: Uint8Array | null,
): void {
  switch (key.kind) {
    case "member":
      return applyProfile(draft, key.memberId, value);
    case "group": {
      if (value === null) return;
      const { epoch, metadataHash } = decodeGrowing(shareGroupMetadataValue, value);
      draft.epoch = epoch;
      draft.metadataHash = metadataHash;
      return;
    }
    case "target-epoch":
      draft.targetEpoch = value === null
        ? 0
        : decodeGrowing(shareGroupTargetAssignmentMetadataValue, value).assignmentEpoch;
      return;
    case "target":
      return applyTarget(draft, key.memberId, value);
    case "current":
      return applyPlace(draft, key.memberId, value);
    case "state-partitions":
      draft.states = value === null
        ? NO_STATES
        : statesOf(decodeGrowing(shareGroupStatePartitionMetadataValue, value));
      return;
  }
}

function applyProfile(draft: ShareDraft, memberId: string, value: Uint8Array | null): void {
  if (value === null) return void draft.members.delete(memberId);
  const stored = decodeGrowing(shareGroupMemberMetadataValue, value);
  const profile: ShareProfile = {
    rackId: stored.rackId,
    clientId: stored.clientId,
    clientHost: stored.clientHost,
    topicNames: stored.subscribedTopicNames,
  };
  const place = draft.members.get(memberId)?.place ?? NEW_SHARE_PLACE;
  draft.members.set(memberId, { memberId, profile, place });
}

function applyTarget(draft: ShareDraft, memberId: string, value: Uint8Array | null): void {
  if (value === null) return void draft.target.delete(memberId);
  const { topicPartitions } = decodeGrowing(shareGroupTargetAssignmentMemberValue, value);
  draft.target.set(memberId, assignmentOf(topicPartitions));
}

function applyPlace(draft: ShareDraft, memberId: string, value: Uint8Array | null): void {
  const member = draft.members.get(memberId);
  if (member === undefined) return;
  if (value === null) {
    return void draft.members.set(memberId, { ...member, place: NEW_SHARE_PLACE });
  }
  const stored = decodeGrowing(shareGroupCurrentMemberAssignmentValue, value);
  const place: SharePlace = {
    epoch: stored.memberEpoch,
    previousEpoch: stored.previousMemberEpoch,
    assigned: assignmentOf(stored.assignedPartitions),
  };
  draft.members.set(memberId, { ...member, place });
}

function statesOf(stored: ShareGroupStatePartitionMetadataValue): StatePartitions {
  const { initializingTopics, initializedTopics, deletingTopics } = stored;
  const all = [...initializingTopics, ...initializedTopics, ...deletingTopics];
  return {
    initializing: assignmentOf(initializingTopics),
    initialized: assignmentOf(initializedTopics),
    deleting: new Set(deletingTopics.map(({ topicId }) => topicId)),
    names: new Map(all.map(({ topicId, topicName }) => [topicId, topicName])),
  };
}
