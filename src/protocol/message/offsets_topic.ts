/**
 * Records of `__consumer_offsets` in Kafka's own format, so that Kafka's tools can read them. Key
 * and value each begin with an int16 version; the key's tells what the record is: 0 and 1 a
 * committed offset, 2 the state of a classic group. A null value is a tombstone.
 */
import { DecodeError, viewOf } from "../../lib/bytes.ts";
import { bytes, int32, int64, string, uuid } from "../primitive.ts";
import { array, type Infer, message, since, struct } from "../schema.ts";
import { decodeVersioned } from "../versioned.ts";

const GROUP_METADATA_KEY = 2;

/** 0 is the same layout; its meaning of the offset went away with ZooKeeper. */
export const offsetCommitKey = message(
  "OffsetCommitKey",
  { min: 0, max: 1, flexibleFrom: null },
  { group: string, topic: string, partition: int32 },
);

export const groupMetadataKey = message(
  "GroupMetadataKey",
  { min: GROUP_METADATA_KEY, max: GROUP_METADATA_KEY, flexibleFrom: null },
  { group: string },
);

/** 1 alone has an expiry per commit (before KIP-211), 3 adds the leader epoch, 4 the topic id. */
export const offsetCommitValue = message(
  "OffsetCommitValue",
  { min: 0, max: 4, flexibleFrom: 4 },
  {
    offset: int64,
    leaderEpoch: since(3, int32, { default: -1 }),
    metadata: string,
    commitTimestamp: int64,
    expireTimestamp: since(1, int64, { until: 1, default: -1 }),
    topicId: since(4, uuid, { tag: 0 }),
  },
);

const memberMetadata = struct({
  memberId: string,
  groupInstanceId: since(3, string, { nullableSince: 3, default: null }),
  clientId: string,
  clientHost: string,
  rebalanceTimeout: since(1, int32),
  sessionTimeout: int32,
  subscription: bytes,
  assignment: bytes,
});

/** 1 adds the rebalance time-out, 2 the time of the last change, 3 static members (KIP-345). */
export const groupMetadataValue = message(
  "GroupMetadataValue",
  { min: 0, max: 4, flexibleFrom: 4 },
  {
    protocolType: string,
    generation: int32,
    protocol: since(0, string, { nullableSince: 0 }),
    leader: since(0, string, { nullableSince: 0 }),
    currentStateTimestamp: since(2, int64, { default: -1 }),
    members: array(memberMetadata),
  },
);

export type OffsetCommitKey = Infer<typeof offsetCommitKey>;
export type GroupMetadataKey = Infer<typeof groupMetadataKey>;

export type OffsetsTopicKey =
  | { readonly kind: "offset"; readonly key: OffsetCommitKey }
  | { readonly kind: "group"; readonly key: GroupMetadataKey }
  /** Written by something newer, for instance a group of the consumer protocol (KIP-848). */
  | { readonly kind: "unknown"; readonly version: number };

export function decodeOffsetsTopicKey(key: Uint8Array): OffsetsTopicKey {
  if (key.length < 2) throw new DecodeError("Cannot decode key: no version");
  const version = viewOf(key).getInt16(0);
  if (version === GROUP_METADATA_KEY) {
    return { kind: "group", key: decodeVersioned(groupMetadataKey, key) };
  }
  if (version < 0 || version > GROUP_METADATA_KEY) return { kind: "unknown", version };
  return { kind: "offset", key: decodeVersioned(offsetCommitKey, key) };
}
