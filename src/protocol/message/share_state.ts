/**
 * Records of `__share_group_state` in Kafka's own format, so that Kafka's tools can read them. A key begins with the
 * number of its kind (0 snapshot, 1 update), a value with its version; a null value is a tombstone.
 */
import { int16, int32, int64, int8, string, uuid } from "../primitive.ts";
import { array, message, since, struct } from "../schema.ts";

const KEY = { groupId: string, topicId: uuid, partition: int32 };
const VALUE_VERSIONS = { min: 0, max: 0, flexibleFrom: 0 };

export const shareSnapshotKey = message(
  "ShareSnapshotKey",
  { min: 0, max: 0, flexibleFrom: null },
  KEY,
);
export const shareUpdateKey = message(
  "ShareUpdateKey",
  { min: 1, max: 1, flexibleFrom: null },
  KEY,
);

const stateBatch = struct({
  firstOffset: int64,
  lastOffset: int64,
  deliveryState: int8,
  deliveryCount: int16,
});

/** Final records at or above the start offset; left out when it is the default. */
const deliveryCompleteCount = since(0, int32, { tag: 0, default: -1 });

/** All that is known of a partition. */
export const shareSnapshotValue = message("ShareSnapshotValue", VALUE_VERSIONS, {
  snapshotEpoch: int32,
  stateEpoch: int32,
  leaderEpoch: int32,
  startOffset: int64,
  createTimestamp: int64,
  writeTimestamp: int64,
  stateBatches: array(stateBatch),
  deliveryCompleteCount,
});

/** What changed since the snapshot of the same epoch. */
export const shareUpdateValue = message("ShareUpdateValue", VALUE_VERSIONS, {
  snapshotEpoch: int32,
  leaderEpoch: int32,
  startOffset: int64,
  stateBatches: array(stateBatch),
  deliveryCompleteCount,
});
