/**
 * What consumers put into the opaque bytes of JoinGroup and SyncGroup: an int16 version, then the
 * body. 1 adds owned partitions (KIP-429), 2 the generation, 3 the rack (KIP-881). Later versions
 * may only append fields: read them with `decodeGrowing`.
 */
import { bytes, int32, string } from "../primitive.ts";
import { array, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 3, flexibleFrom: null };

const topicPartition = struct({
  topic: string,
  partitions: array(int32),
});

export const consumerProtocolSubscription = message("ConsumerProtocolSubscription", VERSIONS, {
  topics: array(string),
  userData: since(0, bytes, { nullableSince: 0, default: null }),
  ownedPartitions: since(1, array(topicPartition)),
  generationId: since(2, int32, { default: -1 }),
  rackId: since(3, string, { nullableSince: 3, default: null }),
});

export const consumerProtocolAssignment = message("ConsumerProtocolAssignment", VERSIONS, {
  assignedPartitions: array(topicPartition),
  userData: since(0, bytes, { nullableSince: 0, default: null }),
});
