/**
 * Records of `__consumer_offsets` for share groups (KIP-932), in Kafka's own format. The key's version tells what
 * a record is: 10 a member, 11 the group, 12 and 13 the target assignment, 14 what a member has been given, 15
 * the partitions whose share state is there, or on its way in or out. A null value is a tombstone.
 */
import { viewOf } from "../../lib/bytes.ts";
import { int32, int64Clamped, int8, string, uuid } from "../primitive.ts";
import { array, type Infer, message, type Schema, since, struct } from "../schema.ts";
import { decodeVersioned } from "../versioned.ts";

const VALUE = { min: 0, max: 0, flexibleFrom: 0 };

function keyVersions(version: number) {
  return { min: version, max: version, flexibleFrom: null };
}

const OF_MEMBER = { groupId: string, memberId: string };
const OF_GROUP = { groupId: string };

export const shareGroupMemberMetadataKey = message(
  "ShareGroupMemberMetadataKey",
  keyVersions(10),
  OF_MEMBER,
);
export const shareGroupMetadataKey = message("ShareGroupMetadataKey", keyVersions(11), OF_GROUP);
export const shareGroupTargetAssignmentMetadataKey = message(
  "ShareGroupTargetAssignmentMetadataKey",
  keyVersions(12),
  OF_GROUP,
);
export const shareGroupTargetAssignmentMemberKey = message(
  "ShareGroupTargetAssignmentMemberKey",
  keyVersions(13),
  OF_MEMBER,
);
export const shareGroupCurrentMemberAssignmentKey = message(
  "ShareGroupCurrentMemberAssignmentKey",
  keyVersions(14),
  OF_MEMBER,
);
export const shareGroupStatePartitionMetadataKey = message(
  "ShareGroupStatePartitionMetadataKey",
  keyVersions(15),
  OF_GROUP,
);

export const shareGroupMemberMetadataValue = message("ShareGroupMemberMetadataValue", VALUE, {
  rackId: since(0, string, { nullableSince: 0 }),
  clientId: string,
  clientHost: string,
  subscribedTopicNames: array(string),
});

/** The hash is each writer's own: another one's only starts a rebalance. */
export const shareGroupMetadataValue = message("ShareGroupMetadataValue", VALUE, {
  epoch: int32,
  metadataHash: int64Clamped,
});

const topicPartitions = struct({ topicId: uuid, partitions: array(int32) });

export const shareGroupTargetAssignmentMetadataValue = message(
  "ShareGroupTargetAssignmentMetadataValue",
  VALUE,
  { assignmentEpoch: int32 },
);
export const shareGroupTargetAssignmentMemberValue = message(
  "ShareGroupTargetAssignmentMemberValue",
  VALUE,
  { topicPartitions: array(topicPartitions) },
);
export const shareGroupCurrentMemberAssignmentValue = message(
  "ShareGroupCurrentMemberAssignmentValue",
  VALUE,
  {
    memberEpoch: int32,
    previousMemberEpoch: int32,
    state: int8,
    assignedPartitions: array(topicPartitions),
  },
);

const namedPartitions = struct({ topicId: uuid, topicName: string, partitions: array(int32) });

export const shareGroupStatePartitionMetadataValue = message(
  "ShareGroupStatePartitionMetadataValue",
  VALUE,
  {
    initializingTopics: array(namedPartitions),
    initializedTopics: array(namedPartitions),
    deletingTopics: array(struct({ topicId: uuid, topicName: string })),
  },
);

export type ShareGroupStatePartitionMetadataValue = Infer<
  typeof shareGroupStatePartitionMetadataValue
>;

export type ShareGroupKey =
  | { readonly kind: "group" | "target-epoch" | "state-partitions"; readonly groupId: string }
  | {
    readonly kind: "member" | "target" | "current";
    readonly groupId: string;
    readonly memberId: string;
  };

function reader<const K extends string, T>(kind: K, schema: Schema<T, never>) {
  return (key: Uint8Array) => ({ kind, ...decodeVersioned(schema, key) });
}

const KEYS: ReadonlyMap<number, (key: Uint8Array) => ShareGroupKey> = new Map([
  [10, reader("member", shareGroupMemberMetadataKey)],
  [11, reader("group", shareGroupMetadataKey)],
  [12, reader("target-epoch", shareGroupTargetAssignmentMetadataKey)],
  [13, reader("target", shareGroupTargetAssignmentMemberKey)],
  [14, reader("current", shareGroupCurrentMemberAssignmentKey)],
  [15, reader("state-partitions", shareGroupStatePartitionMetadataKey)],
] as [number, (key: Uint8Array) => ShareGroupKey][]);

/** Null when the record is of another kind, or of something newer. Throws DecodeError. */
export function decodeShareGroupKey(key: Uint8Array): ShareGroupKey | null {
  return key.length < 2 ? null : KEYS.get(viewOf(key).getInt16(0))?.(key) ?? null;
}
