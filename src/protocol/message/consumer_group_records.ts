/**
 * Records of `__consumer_offsets` for groups of the consumer protocol (KIP-848), in Kafka's own format. The
 * key's version tells what a record is: 3 the group, 4 and 16 topics it subscribes to, 5 a member, 6 and 7
 * the target assignment, 8 what a member has been given. A null value is a tombstone.
 */
import { viewOf } from "../../lib/bytes.ts";
import { bytes, int32, int64, int64Clamped, int8, string, uuid } from "../primitive.ts";
import {
  array,
  type Infer,
  message,
  nullableTaggedStruct,
  type Schema,
  since,
  struct,
} from "../schema.ts";
import { decodeVersioned } from "../versioned.ts";

const VALUE = { min: 0, max: 0, flexibleFrom: 0 };

function keyVersions(version: number) {
  return { min: version, max: version, flexibleFrom: null };
}

export const consumerGroupMetadataKey = message(
  "ConsumerGroupMetadataKey",
  keyVersions(3),
  { groupId: string },
);
export const consumerGroupPartitionMetadataKey = message(
  "ConsumerGroupPartitionMetadataKey",
  keyVersions(4),
  { groupId: string },
);
export const consumerGroupMemberMetadataKey = message(
  "ConsumerGroupMemberMetadataKey",
  keyVersions(5),
  { groupId: string, memberId: string },
);
export const consumerGroupTargetAssignmentMetadataKey = message(
  "ConsumerGroupTargetAssignmentMetadataKey",
  keyVersions(6),
  { groupId: string },
);
export const consumerGroupTargetAssignmentMemberKey = message(
  "ConsumerGroupTargetAssignmentMemberKey",
  keyVersions(7),
  { groupId: string, memberId: string },
);
export const consumerGroupCurrentMemberAssignmentKey = message(
  "ConsumerGroupCurrentMemberAssignmentKey",
  keyVersions(8),
  { groupId: string, memberId: string },
);
export const consumerGroupRegularExpressionKey = message(
  "ConsumerGroupRegularExpressionKey",
  keyVersions(16),
  { groupId: string, regularExpression: string },
);

/** The hash of the subscribed topics (KIP-1101) is each writer's own: another one's only starts a rebalance. */
export const consumerGroupMetadataValue = message("ConsumerGroupMetadataValue", VALUE, {
  epoch: int32,
  metadataHash: since(0, int64Clamped, { tag: 0, default: 0 }),
});

const classicProtocol = struct({ name: string, metadata: bytes });

export const consumerGroupMemberMetadataValue = message("ConsumerGroupMemberMetadataValue", VALUE, {
  instanceId: since(0, string, { nullableSince: 0 }),
  rackId: since(0, string, { nullableSince: 0 }),
  clientId: string,
  clientHost: string,
  subscribedTopicNames: array(string),
  subscribedTopicRegex: since(0, string, { nullableSince: 0 }),
  rebalanceTimeoutMs: int32,
  serverAssignor: since(0, string, { nullableSince: 0 }),
  classicMemberMetadata: since(
    0,
    nullableTaggedStruct({ sessionTimeoutMs: int32, supportedProtocols: array(classicProtocol) }),
    { nullableSince: 0, default: null, tag: 0 },
  ),
});

const topicPartitions = struct({ topicId: uuid, partitions: array(int32) });

export const consumerGroupTargetAssignmentMetadataValue = message(
  "ConsumerGroupTargetAssignmentMetadataValue",
  VALUE,
  { assignmentEpoch: int32 },
);
export const consumerGroupTargetAssignmentMemberValue = message(
  "ConsumerGroupTargetAssignmentMemberValue",
  VALUE,
  { topicPartitions: array(topicPartitions) },
);
export const consumerGroupCurrentMemberAssignmentValue = message(
  "ConsumerGroupCurrentMemberAssignmentValue",
  VALUE,
  {
    memberEpoch: int32,
    previousMemberEpoch: int32,
    state: int8,
    assignedPartitions: array(topicPartitions),
    partitionsPendingRevocation: array(topicPartitions),
  },
);
export const consumerGroupRegularExpressionValue = message(
  "ConsumerGroupRegularExpressionValue",
  VALUE,
  { topics: array(string), version: int64, timestamp: int64 },
);

export type ConsumerGroupMemberMetadataValue = Infer<typeof consumerGroupMemberMetadataValue>;

export type ConsumerGroupKey =
  | { readonly kind: "group" | "partition-metadata" | "target-epoch"; readonly groupId: string }
  | {
    readonly kind: "member" | "target" | "current";
    readonly groupId: string;
    readonly memberId: string;
  }
  | { readonly kind: "regex"; readonly groupId: string; readonly regularExpression: string };

function reader<const K extends string, T>(kind: K, schema: Schema<T, never>) {
  return (key: Uint8Array) => ({ kind, ...decodeVersioned(schema, key) });
}

const KEYS: ReadonlyMap<number, (key: Uint8Array) => ConsumerGroupKey> = new Map([
  [3, reader("group", consumerGroupMetadataKey)],
  [4, reader("partition-metadata", consumerGroupPartitionMetadataKey)],
  [5, reader("member", consumerGroupMemberMetadataKey)],
  [6, reader("target-epoch", consumerGroupTargetAssignmentMetadataKey)],
  [7, reader("target", consumerGroupTargetAssignmentMemberKey)],
  [8, reader("current", consumerGroupCurrentMemberAssignmentKey)],
  [16, reader("regex", consumerGroupRegularExpressionKey)],
] as [number, (key: Uint8Array) => ConsumerGroupKey][]);

/** Null when the record is of another kind, or of something newer. Throws DecodeError. */
export function decodeConsumerGroupKey(key: Uint8Array): ConsumerGroupKey | null {
  return key.length < 2 ? null : KEYS.get(viewOf(key).getInt16(0))?.(key) ?? null;
}
