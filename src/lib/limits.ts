/** Every bound of the system, its unit and its reason. Units stand last in the name. */

export * from "./clean_limits.ts";
export * from "./compaction_limits.ts";
export * from "./transaction_limits.ts";
export * from "./http_limits.ts";
export * from "./producer_limits.ts";
export * from "./read_limits.ts";
export * from "./share_limits.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

/** A WAL object occupies one slot of this size in the WAL's address space (AutoMQ's alignment). */
export const SLOT_BYTES = 64 * MIB;
/** Header of a record in a WAL object. */
export const WAL_RECORD_HEADER_BYTES = 24;
/** Header of a stream record. */
export const STREAM_RECORD_HEADER_BYTES = 33;
/** Largest payload that still fits a slot with its two headers: the cap of max.message.bytes. */
export const PAYLOAD_BYTES_MAX = SLOT_BYTES - WAL_RECORD_HEADER_BYTES - STREAM_RECORD_HEADER_BYTES;
/** Largest Kafka request frame, as Kafka's socket.request.max.bytes. */
export const REQUEST_BYTES_MAX = 100 * MIB;
/** Metadata log entries stay below this, so that one PUT carries one entry with ease. */
export const METADATA_ENTRY_BYTES_MAX = 512 * KIB;
/** Un-acknowledged WAL bytes past which new produces are refused with a retriable error. */
export const WAL_UNACKNOWLEDGED_BYTES_MAX = 256 * MIB;
/** What an un-acknowledged record counts beside its bytes: promises and what waits for them, 730 bytes as measured. */
export const WAL_WAITING_RECORD_BYTES = KIB;
/** Header of a WAL object; it stands before the slot's address space, so a body may fill the slot. */
export const WAL_OBJECT_HEADER_BYTES = 48;
/**
 * WAL PUTs in flight. Recovery relies on it: an object this far above the first empty slot proves that
 * the empty slot was acknowledged once. Raising it needs a new format version.
 */
export const WAL_BULKS_IN_FLIGHT_MAX = 8;
/** Bytes of WAL PUTs in flight; one bulk may always go, however large. */
export const WAL_IN_FLIGHT_BYTES_MAX = 128 * MIB;
/** First allocation of WAL memory; doubles with demand, so that a quiet node stays small. */
export const WAL_SLAB_BYTES_MIN = 64 * KIB;
/** Largest allocation of WAL memory that bulks share: the soft cap of an unmetered bulk and its header; a larger bulk gets memory of its own. */
export const WAL_SLAB_BYTES_MAX = 8 * MIB + 4 * KIB;
/** Slabs kept for the next bulks: what one upload sets free, about a third of the log cache. */
export const WAL_KEPT_SLABS_MAX = 16;
/** Largest WAL body that is sent a second time when it is slow: hedging large ones would double the traffic under load. */
export const WAL_HEDGE_BYTES_MAX = MIB;
/** PUTs whose times say what is slow, and how many of them are needed. */
export const WAL_HEDGE_SAMPLES = 64;
export const WAL_HEDGE_SAMPLES_MIN = 16;
/** No PUT is slow before: below, the jitter of the host decides. */
export const WAL_HEDGE_DELAY_MS_MIN = 20;
/** A WAL write that waits this long for the store makes the node unready; a retried 503 does not. */
export const WAL_STALLED_MS = 5_000;
/** The same of one, or of a metadata entry, that the store answers with errors: an answer says more than silence. */
export const WAL_REFUSED_MS = 1_000;
/** Age of objects of another start's probe past which they are left over: no probe takes this long. */
export const PROBE_LEFT_AGE_MS_MIN = 3_600_000;
/** UTF-8 bytes of a cluster id: percent-encoded it fits one path segment of 255 bytes, `_kafka_` included. */
export const CLUSTER_ID_BYTES_MAX = 80;
/** How long a start waits for a store that does not answer, or answers that it cannot now; then it fails in one line. */
export const STORE_START_WAIT_MS = 20_000;
/** How long a node that closes tries to upload; then it leaves the rest in the WAL. Below the 30 s of a whole shutdown. */
export const CLOSE_MS_MAX = 20_000;
/** How long it then waits for what is under way to notice. */
export const CLOSE_GRACE_MS = 5_000;
/** How long a server that closes waits for handlers whose connections are gone. */
export const HANDLERS_END_MS = 2_000;
/** Age of the last proof of ownership past which the WAL asks before it acknowledges; far below T_SEAL. */
export const WAL_EVIDENCE_AGE_MS_MAX = 12 * 3_600_000;
/** T_SEAL: how long a seal stays after its recovery; zombies older than this meet the age rule instead. */
export const WAL_SEAL_AGE_MS_MIN = 7 * 24 * 3_600_000;
/** Slots that recovery reads at the same time: hides latency, and holds at most 4 x 64 MiB. */
export const WAL_RECOVERY_READ_AHEAD_SLOTS = 4;
/** Bytes that recovery keeps between checking the slots and replaying them; the rest is read again. */
export const WAL_RECOVERY_KEPT_BYTES_MAX = 64 * MIB;
/** Keys in one delete call, as S3's DeleteObjects. */
export const WAL_DELETE_KEYS_MAX = 1_000;
/** Connections that wait for a node which still starts: each may hold what a client has sent ahead. */
export const CONNECTIONS_WAITING_MAX = 1_000;
/** First pause before a store request is repeated; doubles with each attempt, with full jitter. */
export const STORE_BACKOFF_FIRST_MS = 50;
/** Longest such pause: short enough that a store that is back is noticed within seconds. */
export const STORE_BACKOFF_CAP_MS = 2_000;
/** Attempts of an idempotent store request before its caller hears of the fault. */
export const STORE_ATTEMPTS_MAX = 5;
/** Silence after which an attempt counts as lost, whatever its size. */
export const STORE_REQUEST_TIMEOUT_MS = 30_000;
/** Slowest link that a request is given time for, in bytes per millisecond (1 Mbit/s). */
export const STORE_SLOWEST_BYTES_PER_MS = 125;
/** Keys in one batch delete: half of S3's limit, because some stores fail close to it. */
export const STORE_DELETE_BATCH_KEYS_MAX = 500;
/** Single deletes at once where a store has no batch delete. */
export const STORE_SINGLE_DELETES_MAX = 16;
/** Keys in one page of a listing, as S3 bills it. */
export const STORE_LIST_PAGE_KEYS = 1_000;
/** Payload bytes after which a data block closes: the unit of a cold read (AutoMQ's default). */
export const DATA_BLOCK_PAYLOAD_BYTES = 512 * KIB;
/** Streams with at least this much in an upload get an object of their own. */
export const STREAM_OBJECT_SPLIT_BYTES = 8 * MIB;
/** Objects above this size are written in parts. */
export const SINGLE_PUT_BYTES_MAX = 32 * MIB;
/** The same where requests cost money, at least: a block of a third of the log cache and one bulk are one PUT. */
export const PRICED_PUT_BYTES_MIN = 96 * MIB;
/** And at most: S3 takes five times as much, but a PUT that fails is sent again as a whole. */
export const PRICED_PUT_BYTES_MAX = 1_024 * MIB;
/** The same for compaction, which has less memory: its largest merge is one PUT. */
export const PRICED_COMPACTION_PUT_BYTES_MAX = 128 * MIB;
/** Bytes of an object that are encoded in one go: about a millisecond in which nothing else runs. */
export const ENCODE_STEP_BYTES = 2 * MIB;
/** Objects from this size on are encoded into memory that is kept for the next one. */
export const UPLOAD_MEMORY_BYTES_MIN = 1 * MIB;
/** Part of a multi-part object; all parts but the last are equal. */
export const PUT_PART_BYTES = 16 * MIB;
/** The same where requests cost money. */
export const PRICED_PUT_PART_BYTES = 64 * MIB;
/**
 * What one cached record costs beside its bytes, so that a million tiny records stay bounded: its WAL header
 * (24 bytes) and its place, a number in an array that grows by half.
 */
export const LOG_CACHE_RECORD_OVERHEAD_BYTES = 40;
/** What one stream costs in a log cache block: a run, an array and a map entry. */
export const LOG_CACHE_STREAM_OVERHEAD_BYTES = 256;
/** Committed log cache blocks are merged up to this size: a merge stays below a millisecond or two. */
export const LOG_CACHE_MERGED_BYTES_MAX = 8 * MIB;
/** Sequential readers whose place is remembered per stream and log cache block. */
export const LOG_CACHE_CURSORS_MAX = 64;
/** Log cache of a node: past it appends are refused until an upload is committed. */
export const LOG_CACHE_BYTES_MAX = 256 * MIB;
/** Blocks in the log cache, committed ones included: a lookup walks over all of them. */
export const LOG_CACHE_BLOCKS_MAX = 64;
/** Streams in one log cache block: its commit must fit one metadata entry. */
export const LOG_CACHE_BLOCK_STREAMS_MAX = 10_000;
/** A log cache block is uploaded at this size, or at a third of the cache, so that two more fit. */
export const UPLOAD_BLOCK_BYTES = 256 * MIB;
/** A dirty log cache block is uploaded after this time; a clean one causes no request. */
export const UPLOAD_INTERVAL_MS = 600_000;
/** WAL slots that hold records which are not in data objects: bounds recovery (64,000 on a directory). */
export const UNCOMMITTED_SLOTS_MAX = 1_000;
/** Age past which uncommitted records refuse new ones: half of T_ACK_WAL, so that clients learn of it before the WAL's own proof is old. */
export const UNCOMMITTED_AGE_MS_MAX = 6 * 3_600_000;
/** A block that was filled in less is written as fast as it can be: it is a burst, or forced. */
export const UPLOAD_PACED_MS_MIN = 100;
/** A block's objects are written in half of this time at the latest, however long it took to fill (AutoMQ's value). */
export const UPLOAD_SPREAD_MS_MAX = 20_000;
/** Records of an object that are laid out in one go: a few milliseconds in which nothing else runs. */
export const LAYOUT_STEP_RECORDS = 65_536;
/** Uploads of one node that run at the same time; their commits stay in order. */
export const UPLOADS_IN_FLIGHT_MAX = 4;
/** Object ids are reserved in blocks of this size: one metadata entry each. */
export const OBJECT_ID_BLOCK = 4_096;
/** WAL records that a recovery holds in memory before it writes them to objects. */
export const RECOVERY_BYTES_MAX = 512 * MIB;
/** Bytes read at once while groups are rebuilt from their log. */
export const GROUP_LOAD_BYTES = 4 * MIB;
/** Records of one batch of group state: keeps batches far below max.message.bytes. */
export const GROUP_RECORDS_PER_BATCH = 1000;
/** Bytes of one batch of group state: below any max.message.bytes that a group could be stored with. */
export const GROUP_BATCH_BYTES = 256 * KIB;
/** A partition of the offsets topic below this size is not worth rewriting. */
export const GROUP_COMPACT_BYTES_MIN = MIB;
/** Members, assignments and committed offsets of all groups of a node: about a million offsets. */
export const GROUP_STATE_BYTES_MAX = 256 * MIB;
/** How long a request waits for its groups to load before it is told to come again. */
export const GROUP_LOAD_WAIT_MS = 2000;
/** Characters of a regular expression that subscribes to topics. */
export const TOPIC_REGEX_CHARS_MAX = 4_096;
/** What RE2 allows for one repeat count. */
export const TOPIC_REGEX_REPEAT_MAX = 1_000;
/** Steps of its program; each character of a topic's name costs as many at most. */
export const TOPIC_REGEX_STEPS_MAX = 4_096;
/** Steps of matching in one go: some milliseconds in which nothing else runs. */
export const TOPIC_REGEX_SLICE_STEPS = 2_000_000;
/** Resolved regular expressions that a node keeps beside those in its groups. */
export const TOPIC_REGEXES_KEPT = 1_000;
/** Different expressions in one group: each is matched against all topics whenever topics change. */
export const TOPIC_REGEXES_PER_GROUP_MAX = 100;
/** Bytes appended between two entries of the time index. */
export const TIME_INDEX_INTERVAL_BYTES = MIB;
/** Bytes appended after which a log writes a checkpoint: bounds what a crash has to replay. */
export const CHECKPOINT_BYTES = 50 * MIB;
/** One read while a log is replayed or searched by time. */
export const LOG_SCAN_BYTES = MIB;
/** One read while a meta stream is loaded. */
export const META_SCAN_BYTES = 64 * KIB;
/** Share of dead bytes at which a meta stream is rewritten. */
export const META_HOLLOW_SHARE = 0.6;
/** A meta stream below this size is not worth rewriting. */
export const META_COMPACT_BYTES_MIN = 64 * KIB;
/** Difference of offsets within one segment: relative offsets have 31 bits (strictly below). */
export const SEGMENT_OFFSETS_MAX = 2 ** 31 - 1;
/** Object ids in one reservation. */
export const OBJECT_IDS_RESERVED_MAX = 65_536;
/** Producer ids in one allocation: a node takes a block and serves clients from it. */
export const PRODUCER_IDS_MAX = 100_000;
/** Characters of a key in the metadata's key-value table. */
export const KV_KEY_CHARS_MAX = 1_024;
/** Characters of a value there: several must fit one metadata entry, even escaped. */
export const KV_VALUE_CHARS_MAX = 64 * KIB;
/** Characters of a setting: all those of a topic must fit one metadata entry with ease. */
export const PROPERTY_CHARS_MAX = 16 * KIB;
/** Attempts to change a value that others change as well: each time at least one of them gets through. */
export const KV_CHANGES_MAX = 64;
/** Reads of the metadata log in a row for names that a node does not know, before they wait for their turn. */
export const LOOKS_AT_ONCE_MAX = 20;
/** One more such read may be had after so long: what made-up names cost at most. */
export const LOOK_REFILL_MS = 1_000;
/** A name that was looked for and is not there is looked for again after this, and then after twice as long ... */
export const LOOK_PAUSE_FIRST_MS = 100;
/** ... up to this: an idle node reads the log as often anyway. */
export const LOOK_PAUSE_CAP_MS = 10_000;
/** A client waits so long for such a read, before it is told that the name is unknown. */
export const LOOK_WAIT_MS = 1_000;
/** Names whose pause is remembered; about 200 bytes each. */
export const LOOKED_FOR_MAX = 10_000;
/** Entities with client quotas: each is a row of the metadata. */
export const QUOTA_ENTITIES_MAX = 10_000;
/** Groups with settings of their own: each is a row of the metadata. */
export const GROUP_CONFIGS_MAX = 10_000;
/** Partitions in one answer of DescribeTopicPartitions: max.request.partition.size.limit of Kafka. */
export const DESCRIBED_PARTITIONS_MAX = 2_000;
/** T_ACK: age of the last proof that we saw the log's end past which a commit is checked; far below T_TRIM. */
export const METADATA_EVIDENCE_AGE_MS_MAX = 60_000;
/** T_TRIM: how long a snapshot stands before the entries below it may be deleted. */
export const METADATA_TRIM_AGE_MS_MIN = 24 * 3_600_000;
/** Entries since the last snapshot that call for a new one: a cold start then reads at most about these. */
export const METADATA_SNAPSHOT_ENTRIES = 500;
/** Bytes of entries since the last snapshot that call for a new one. */
export const METADATA_SNAPSHOT_LOG_BYTES = 4 * MIB;
/** Snapshots that are kept: a corrupt one leaves two to fall back on. */
export const METADATA_SNAPSHOTS_KEPT = 3;
/** Rows that are written into a snapshot in one go, and characters that are compressed in one: a few milliseconds each. */
export const METADATA_SNAPSHOT_STEP_ROWS = 2_000;
export const METADATA_SNAPSHOT_STEP_CHARS = 512 * KIB;
/** Largest snapshot that is unpacked; past it a bug is more likely than a cluster of that size. */
export const METADATA_SNAPSHOT_BYTES_MAX = 1_024 * MIB;
/** Log entries that are read at the same time while catching up. */
export const METADATA_READS_IN_FLIGHT = 16;
/** How often a node that is alone looks for entries of others: it finds out that it was superseded. */
export const METADATA_POLL_MS = 10_000;
/** How long one log entry is tried before its commands fail; the position is not skipped. */
export const METADATA_APPEND_TIMEOUT_MS = 30_000;
/** Commands that share one entry. */
export const METADATA_BATCH_COMMANDS_MAX = 1_000;
/** Commands that wait; past it callers are refused. */
export const METADATA_QUEUE_MAX = 10_000;
/** T_RETAIN: how long a destroyed object stays in the store: longer than the longest fetch. */
export const OBJECT_RETAIN_AGE_MS_MIN = 15 * 60_000;
/** How often a node looks for objects to delete; without any it does no request. */
export const COLLECT_INTERVAL_MS = 60_000;
/** How often a node looks whether old WALs may be forgotten: a listing for each. */
export const WAL_FORGET_INTERVAL_MS = 24 * 3_600_000;
/** Pages of the node's WAL keys that a start lists to see whether its metadata is whole: a WAL on S3 has one. */
export const TAIL_LIST_PAGES_MAX = 3;
/** What a start reads of the newest WAL objects for that: their header and their first records. */
export const TAIL_SLOT_BYTES = 256 * KIB;
/** Ids after the last used one that a start asks for, per block: an upload may have left some out. */
export const TAIL_PROBE_IDS = 2;
/** Blocks of ids, the newest ones, in which it asks: one of uploads and one of compaction are in use. */
export const TAIL_BLOCKS_MAX = 2;
/** How often a node looks for objects that nobody names; without a change of the metadata it does not. */
export const AUDIT_INTERVAL_MS = 24 * 3_600_000;
/** The first audit of a process: a node that restarts every day is audited too. */
export const AUDIT_FIRST_MS = 3_600_000;
/** Younger objects are left for the next audit: a write that was repeated may still be under way. */
export const AUDIT_AGE_MS_MIN = 24 * 3_600_000;
/** Keys that one audit remembers, some 200 bytes each; more are found by the next. */
export const AUDIT_FOUND_MAX = 50_000;
/** Keys that one audit names in the log. */
export const AUDIT_LINES_MAX = 20;
/** How long a node has for its answer to a roll call: three looks at the metadata log, and some. */
export const ROLL_CALL_MS = 35_000;
/** Looks that a node must have within it: one may fail, and the answer takes time. */
export const ROLL_CALL_LOOKS = 3;
/** How often the caller looks for answers; it reads nothing for that. */
export const ROLL_CALL_LOOK_MS = 1_000;
/** Attempts to write a call or an answer while others write the same row. */
export const ROLL_CALL_ANSWER_ATTEMPTS = 5;
/** How often a start begins to recover its own WALs anew after another recoverer of them was later. */
export const RECOVERIES_OVERTAKEN_MAX = 5;
/** Records in memory while another node's WAL is recovered: beside a broker that works. */
export const SUCCESSION_BYTES_MAX = 128 * MIB;
/** Pause before a take-over that met a failing store begins anew. */
export const SUCCESSION_PAUSE_MS = 10_000;
/** Objects that one look deletes at most. */
export const COLLECT_OBJECTS_MAX = 5_000;
/** A frame up to this gets its buffer at once; a larger one only as its bytes arrive. */
export const FRAME_BYTES_TRUSTED_MAX = 4 * MIB;
/** Elements of all arrays of one request: each takes up to 2 KiB of memory until its answer. Metadata of 100,000 topics, or a fetch of 100,000 partitions of 20,000 topics; clients send a tenth of it at most. */
export const REQUEST_ELEMENTS_MAX = 120_000;
/** Larger frames that are still arriving, node-wide: without it each connection could hold a whole frame. */
export const LARGE_FRAMES_BYTES_MAX = 256 * MIB;
/** From this size on a byte field is sent as a piece of its own; below, a copy is cheaper. */
export const UNCOPIED_BYTES_MIN = 4 * KIB;
/** Partitions of one topic: their leaders fit one metadata entry with ease. */
export const TOPIC_PARTITIONS_MAX = 10_000;
/** Replication factor: the wire has 16 bits for it. */
export const REPLICATION_FACTOR_MAX = 32_767;
/** Topics that one request may create or grow: Kafka's controller takes as many records at once. */
export const TOPICS_PER_REQUEST_MAX = 10_000;
/** Topics or groups of one request that are worked on side by side: their commands share metadata entries, then others get their turn. */
export const REQUEST_PARTS_AT_ONCE = 500;
/** A batch's records may inflate to this many bytes whatever its size; clients batch a few MiB at most. */
export const INFLATED_BATCH_BYTES = 64 * MIB;
/** Above that, to this many times the batch's size: what inflates further is a bomb. */
export const INFLATED_BATCH_RATIO = 10;
/** What a record or a header adds to its bytes at most, for estimates before it is encoded. */
export const RECORD_OVERHEAD_BYTES_MAX = 64;
/** Reads of data at once: enough to hide the store's latency, few enough to keep its connections alive. */
export const STORE_READS_MAX = 64;
/** Reads of the metadata log and of WAL slots at once, beside those of data: what a start reads ahead. */
export const STORE_LOG_READS_MAX = 16;
/** Puts and deletes at once. */
export const STORE_WRITES_MAX = 32;
/** Multipart uploads at once; each holds a part in memory. */
export const STORE_UPLOADS_MAX = 4;
/** Uncommitted WAL slots on a directory, where a slot costs a file instead of money. */
export const SLOTS_MAX_DIR = 64_000;
/** PUTs per hour that a store with prices is given: one bulk each 250 ms under load. */
export const METERED_PUTS_PER_HOUR = 14_400;
/** How often an open partition looks at retention, expiry and its checkpoint; nothing dirty, nothing written. */
export const PARTITION_TICK_MS = 30_000;
/** First pause before what could not be opened is tried again: about a client's own back-off. */
export const REOPEN_FIRST_MS = 250;
/** Longest such pause after a fault that may pass by itself; as for store requests. */
export const REOPEN_PASSING_CAP_MS = 2_000;
/** Longest one after damage: a repair is noticed within this time, and each try costs metadata entries. */
export const REOPEN_LASTING_CAP_MS = 30_000;
/** Such a pause lasts at least so many times the work that failed: what fails late must not fill the time. */
export const FAILED_WORK_SHARE = 10;
/** Requests of one connection between socket and answer; clients of ours and theirs keep at most 5. */
export const CONNECTION_REQUESTS_MAX = 32;
/** A frame may take this long whatever its size; afterwards it must keep FRAME_BYTES_PER_S_MIN. */
export const FRAME_GRACE_MS = 30_000;
/** Slowest arrival of a frame past its grace; a slow uplink has more, a slow-loris less. */
export const FRAME_BYTES_PER_S_MIN = 1024;
/** Answers are written in pieces up to this, so that progress of a slow reader can be seen. */
export const WRITE_BYTES_MAX = MIB;
/** Small answers that are ready together are copied into one write up to this size. */
export const WRITE_COALESCED_BYTES_MAX = 64 * KIB;
/** A reader that takes no WRITE_BYTES_MAX piece for this long loses its connection and its permits. */
export const WRITE_STALL_MS = 60_000;
/** Answers in flight get this long when the server closes; below the 30 s of a whole shutdown. */
export const CONNECTION_DRAIN_MS = 10_000;
/** Produce bytes between sockets and the WAL, node-wide. */
export const PRODUCE_PERMIT_BYTES = 256 * MIB;
/** Fetch answers out of memory, node-wide, until they have left. */
export const HOT_FETCH_PERMIT_BYTES = 128 * MIB;
/** Fetch answers out of objects, node-wide, until they have left. */
export const COLD_FETCH_PERMIT_BYTES = 128 * MIB;
/** A produce waits at least this long for the store, however small its time-out: a PUT takes its time. */
export const PRODUCE_TIMEOUT_MS_MIN = 1_000;
/** How long ListOffsets looks for a time when the client does not say: Kafka's value for remote lookups. */
export const LIST_OFFSETS_TIMEOUT_MS = 30_000;
/** A fetch session idle for this long ends when the next request comes (Kafka's value). */
export const FETCH_SESSION_IDLE_MS = 120_000;
/** Partitions that one fetch session remembers. */
export const FETCH_SESSION_PARTITIONS_MAX = 10_000;
/** Partitions that all fetch sessions of a node remember: about 500 bytes each at most. */
export const FETCH_SESSIONS_PARTITIONS_MAX = 200_000;
/** Longest wait of one long poll; longer ones are answered empty and asked again. */
export const FETCH_WAIT_MS_MAX = 300_000;
/** Producer ids are reserved in blocks of this size, as Kafka's: one metadata entry each. */
export const PRODUCER_ID_BLOCK = 1_000;
/** Bytes received ahead of the reader on one connection: one large socket chunk, so reads rarely wait. */
export const CONNECTION_READ_AHEAD_BYTES = 256 * KIB;
/** How long a connection that we closed may still take its last answers; then it is cut. */
export const CONNECTION_LINGER_MS = 1_000;
/** Silence after which the kernel starts to probe whether a peer is still there. */
export const CONNECTION_KEEP_ALIVE_MS = 60_000;
/** Data block that a tool reads at once: 512 KiB of payload, one record of a slot's size, headers. Larger ones are damage. */
export const DATA_BLOCK_BYTES_MAX = 128 * MIB;
/** Data objects that `fsck` reads at the same time: hides latency, and holds a block of each. */
export const FSCK_OBJECTS_AT_ONCE = 4;
/** Orphans that one repair deletes; more need another run. */
export const FSCK_ORPHANS_MAX = 100_000;

/** Open partitions with rows of their own in the metrics: four lines each, so a page of some 300 KiB. */
export const METRIC_PARTITIONS_MAX = 1_000;

/** How often a node looks whether its store still holds the cluster: 60 GETs an hour. */
export const CLUSTER_LOOK_MS = 60_000;

/** The second look, before a node ends: one wrong answer is no proof. */
export const CLUSTER_LOOK_AGAIN_MS = 2_000;

/** Looks at the metadata of a store that is copied while nodes write to it, until a look and the copy agree. */
export const COPY_ROUNDS_MAX = 10;
