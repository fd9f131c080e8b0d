/**
 * Leases of groups over HTTP as records of `__consumer_offsets`. The key's version is far above Kafka's, whose
 * tools pass over what they do not know. A null value: nothing is under way in the partition.
 */
import { viewOf } from "../../lib/bytes.ts";
import { int32, int64, int8, string, uuid } from "../primitive.ts";
import { array, type Infer, message, struct } from "../schema.ts";
import { decodeVersioned } from "../versioned.ts";

const LEASE_KEY = 20_480;

export const leaseKey = message(
  "LeaseKey",
  { min: LEASE_KEY, max: LEASE_KEY, flexibleFrom: null },
  { group: string, topic: string, partition: int32 },
);

/** Spans stand side by side, the first one at `start`; state 0 is acknowledged, 1 leased, 2 given back. */
export const leaseValue = message(
  "LeaseValue",
  { min: 0, max: 0, flexibleFrom: 0 },
  {
    topicId: uuid,
    committedOffset: int64,
    startOffset: int64,
    spans: array(struct({
      lastOffset: int64,
      state: int8,
      holder: int64,
      untilTimestamp: int64,
      deliveries: int32,
    })),
  },
);

export type LeaseKey = Infer<typeof leaseKey>;

/** Null for a record of another kind. Throws DecodeError. */
export function decodeLeaseKey(key: Uint8Array): LeaseKey | null {
  const isLease = key.length >= 2 && viewOf(key).getInt16(0) === LEASE_KEY;
  return isLease ? decodeVersioned(leaseKey, key) : null;
}

export const LEASE_KEY_VERSION = LEASE_KEY;
