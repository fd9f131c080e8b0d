/** The bounds of transactions; used through limits.ts. */

const MIB = 1024 * 1024;

/** Transactions open at once per partition: their producers are never forgotten, and leave room for others. */
export const OPEN_TRANSACTIONS_MAX = 50_000;
/** Producers per partition that are about to open a transaction; the oldest asks again. */
export const VERIFICATIONS_MAX = 10_000;
/** Aborted transactions per partition kept in memory, so that readers near the end read no index: 64 KiB. */
export const ABORTED_RECENT_MAX = 1_024;
/** Transactional ids in one partition of the transaction log: some 500 bytes each. */
export const TXN_IDS_PER_PARTITION_MAX = 100_000;
/** Transactional ids and their open partitions on a node; beyond it nothing new is begun: about 300,000 ids. */
export const TXN_STATE_BYTES_MAX = 256 * MIB;
/** Requests that wait for the same transactional id: one client has a handful in flight. */
export const TXN_QUEUE_MAX = 100;
/** Markers that a node writes at the same time: each is one small append. */
export const TXN_MARKERS_AT_ONCE = 500;
/** First pause before a marker or the end of a transaction is tried again; doubles up to the cap. */
export const TXN_RETRY_FIRST_MS = 50;
/** Longest such pause: a partition that is back after an outage is not left with an open transaction for long. */
export const TXN_RETRY_CAP_MS = 5_000;
/** Pause between looks whether the transaction before has ended, while a producer's next one begins (Kafka's value). */
export const TXN_ADD_RETRY_MS = 20;
/** How long a broker looks before it lets the client ask again: markers and their record take two writes of the store. */
export const TXN_ADD_RETRIES_MS_MAX = 1_000;
/** A partition of the transaction log below this size is not worth rewriting. */
export const TXN_COMPACT_BYTES_MIN = MIB;
