/** The bounds of share groups (KIP-932); used through limits.ts. */

const MIB = 1024 * 1024;

/** Records of one batch that are acquired at once; of a larger batch the rest comes later. */
export const SHARE_ACQUIRE_RECORDS_MAX = 10_000;
/** Records between the first and the last one under way, of all share partitions of a node: some 100 bytes each if every one has a fate of its own. */
export const SHARE_RECORDS_IN_FLIGHT_MAX = 2_000_000;
/** Partitions that share groups read on one node, each with a timer: about 1 KiB without records. */
export const SHARE_PARTITIONS_MAX = 50_000;
/** Characters of a member id, as in Kafka: a UUID's text. */
export const SHARE_MEMBER_ID_CHARS_MAX = 36;
/** Durable states of share partitions on a node: about 300,000 of them without records under way; past it only what makes one smaller is taken. */
export const SHARE_STATE_BYTES_MAX = 128 * MIB;
/** A partition of the state topic below this size is not worth rewriting. */
export const SHARE_STATE_COMPACT_BYTES_MIN = MIB;
/** How often hollow state logs and states of deleted topics are looked for; without any nothing is written. */
export const SHARE_MAINTENANCE_MS = 60_000;
