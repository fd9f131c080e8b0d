/** Bounds of what a partition remembers of those who write to it; used through limits.ts. */

/** Batches kept per idempotent producer: clients have at most five requests in flight (KIP-98). */
export const PRODUCER_BATCHES_MAX = 5;
/** Records of a refused batch that are named in the answer; a batch with more is refused as a whole. */
export const RECORD_ERRORS_MAX = 1_000;
/** Idempotent producers known per partition: about 15 MiB of snapshot; the longest silent one goes first. */
export const PRODUCERS_PER_PARTITION_MAX = 100_000;
/** A wall clock that leaves the monotonic one by this much has jumped, and idle times do not count the jump. */
export const CLOCK_JUMP_MS_MIN = 60_000;
/** How long later sequences wait for one that was refused with a retriable error: Kafka's delivery.timeout.ms. */
export const REFUSED_SEQUENCE_MS = 120_000;
/** Refused sequences remembered per partition. */
export const REFUSED_SEQUENCES_MAX = 10_000;
/** How long a partition remembers a request with an Idempotency-Key, from its last append: client retries end sooner. */
export const REQUEST_WINDOW_MS = 600_000;
/** Such requests that a partition remembers at most: some 200 bytes each in memory, 70 in a checkpoint. */
export const REQUESTS_PER_PARTITION_MAX = 65_536;
/** Named writers that a partition remembers: 300 bytes each at most, in every checkpoint. */
export const WRITERS_PER_PARTITION_MAX = 1_024;
/** Producer snapshots kept: the newest, and one in case it is damaged. */
export const PRODUCER_SNAPSHOTS_MAX = 2;
