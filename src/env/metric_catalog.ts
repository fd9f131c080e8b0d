/**
 * Every metric that a node shows: what it is, and what to do when it is bad. `/metrics` takes its HELP lines
 * from here and docs/operations.md its table, so none is emitted without a row.
 */

export type MetricKind = "counter" | "gauge" | "histogram";

export interface MetricRow {
  readonly kind: MetricKind;
  readonly labels: readonly string[];
  /** One sentence without its full stop. The unit is the end of the name: seconds, bytes, else a number of things. */
  readonly help: string;
  /** When to look, and what to do; absent where the number is only for the picture. */
  readonly bad?: string;
}

function row(kind: MetricKind, labels: string, help: string, bad?: string): MetricRow {
  const names = labels === "" ? [] : labels.split(" ");
  return { kind, labels: names, help, ...(bad === undefined ? {} : { bad }) };
}

export const METRICS: Readonly<Record<string, MetricRow>> = {
  skerry_object_store_requests_total: row(
    "counter",
    "op class outcome",
    "requests to the store, as it bills them",
    "outcome throttled (503, 429): ask for a higher rate, or set a budget for the WAL; store-denied: rights; store-full: space",
  ),
  skerry_object_store_bytes_total: row("counter", "op class", "bytes in their bodies"),
  skerry_object_store_request_seconds: row(
    "histogram",
    "op class",
    "how long they took",
    "class wal above 1 s: producers wait as long; the store or the way to it is slow",
  ),
  skerry_object_store_retries_total: row(
    "counter",
    "op class",
    "requests that were sent again after a failure",
    "more than a few in a minute: the store is in trouble; requests by outcome tell which",
  ),
  skerry_object_store_active: row(
    "gauge",
    "permit",
    "requests under way: read (of data), log (reads of metadata and WAL), compaction and open (their reads of data), write, upload",
  ),
  skerry_object_store_waiting: row(
    "gauge",
    "permit",
    "requests that wait for one of them to end",
    "write above 0 for long: the store is too slow for what is produced",
  ),
  skerry_wal_put_seconds: row(
    "histogram",
    "",
    "from the first attempt of a WAL write to its answer",
    "the latency of producers; compare with the store's own",
  ),
  skerry_wal_hedges_total: row(
    "counter",
    "outcome",
    "slow WAL writes that were sent a second time; won when the second answer came first",
  ),
  skerry_wal_bulk_bytes: row("histogram", "", "sizes of WAL objects"),
  skerry_wal_records_total: row("counter", "", "stream records written to the WAL"),
  skerry_wal_unacknowledged_bytes: row(
    "gauge",
    "",
    "in the WAL's memory, not durable yet",
    "grows: WAL writes do not come through; at 256 MiB producers are refused",
  ),
  skerry_wal_uncommitted_slots: row(
    "gauge",
    "",
    "WAL objects that a recovery would have to read",
    "near 1,000 (64,000 on a directory) producers are refused: see upload failures",
  ),
  skerry_log_cache_bytes: row("gauge", "", "records in memory"),
  skerry_log_cache_uncommitted_bytes: row(
    "gauge",
    "",
    "of these, not uploaded",
    "at 256 MiB producers are refused: see upload failures",
  ),
  skerry_log_cache_uncommitted_since_seconds: row(
    "gauge",
    "",
    "when the oldest record that is not uploaded became durable, Unix time; 0 when there is none",
    "more than ten minutes ago: uploads or the metadata log fail",
  ),
  skerry_log_cache_reads_total: row(
    "counter",
    "outcome",
    "reads of streams: hit, part when older records had to come from objects, miss",
    "many misses: consumers lag behind memory; a larger `skerry.log.cache.bytes` may help",
  ),
  skerry_block_cache_bytes: row("gauge", "", "blocks, indexes and ranges read back from objects"),
  skerry_block_cache_blocks_total: row(
    "counter",
    "outcome",
    "blocks that reads wanted: hit when they were in memory, miss when the read had to wait",
    "many misses: more consumers than the cache has room for, or a store slower than they are",
  ),
  skerry_read_ahead_bytes_total: row("counter", "", "bytes asked for ahead of sequential readers"),
  skerry_data_loss_total: row(
    "counter",
    "reason",
    "reads of data that metadata promises and no object holds",
    "above 0: stop deletions, look for `data-lost` in the log (it names stream, offset and key), run `skerry fsck`",
  ),
  skerry_append_bytes_total: row("counter", "", "bytes that became durable"),
  skerry_read_bytes_total: row(
    "counter",
    "source",
    "bytes read from the log cache or from objects",
  ),
  skerry_upload_bytes_total: row("counter", "", "bytes of committed data objects"),
  skerry_upload_seconds: row("histogram", "", "from a full block to its commit"),
  skerry_upload_failures_total: row(
    "counter",
    "step",
    "failed attempts to reserve, upload or commit; repeated until they succeed",
    "grows for minutes: the log names the cause, `/readyz` too",
  ),
  skerry_recovery_seconds: row(
    "histogram",
    "",
    "how long the recovery of earlier incarnations, or of a node that is gone, took",
    "above a minute: many slots were left; stop nodes with SIGTERM where you can",
  ),
  skerry_recovery_wals_total: row(
    "counter",
    "",
    "WALs that this node recovered, of its earlier incarnations and of nodes that are gone",
  ),
  skerry_recovery_slots_total: row("counter", "", "WAL objects that recoveries read"),
  skerry_recovery_records_total: row("counter", "", "stream records in them"),
  skerry_recovery_objects_total: row("counter", "", "data objects that recoveries wrote"),
  skerry_recovery_pending_wals: row(
    "gauge",
    "",
    "WALs of this node that wait for recovery",
    "above 0 for minutes: a recovery fails again and again; the log names the key",
  ),
  skerry_successions_failed_total: row(
    "counter",
    "",
    "recoveries of nodes that are gone which did not come to an end",
    "the log names the node and why; its data stays in its WAL until a node of that id starts",
  ),
  skerry_compaction_runs_total: row(
    "counter",
    "kind outcome",
    "rewrites: join, split, tidy and drop of stream set objects; merge, link and cleanup of stream objects; done, nothing, wait, conflict or failed",
    "failed grows: the log names the object; `skerry fsck` tells whether it is damaged",
  ),
  skerry_compaction_read_bytes_total: row("counter", "", "bytes that compaction read"),
  skerry_compaction_written_bytes_total: row(
    "counter",
    "",
    "bytes behind the objects that it committed; links count as what they link to",
  ),
  skerry_compaction_seconds: row("histogram", "", "how long a rewrite took"),
  skerry_compaction_backlog_bytes: row(
    "gauge",
    "",
    "bytes that the last look left for the next one",
    "grows for hours: compaction is too slow; raise `skerry.compaction.memory.bytes`, then `skerry.compaction.bytes.per.second`",
  ),
  skerry_compaction_backlog_objects: row(
    "gauge",
    "",
    "objects that the last look left for the next one",
  ),
  skerry_audit_runs_total: row("counter", "outcome", "audits: done or failed"),
  skerry_audit_last_run_seconds: row("gauge", "", "when the last one ended, Unix time"),
  skerry_audit_found_total: row(
    "counter",
    "kind",
    "objects that no metadata names or can ever name: data, wal, metadata or probe",
  ),
  skerry_audit_deleted_total: row("counter", "kind", "of these, deleted"),
  skerry_audit_deleted_bytes_total: row("counter", "", "their bytes"),
  skerry_audit_ahead_objects: row(
    "gauge",
    "",
    "objects that the metadata does not know yet",
    "not 0: the end of the metadata is lost; audits delete nothing, ask `skerry fsck`",
  ),
  skerry_objects_deleted_total: row("counter", "", "data objects deleted by the collector"),
  skerry_garbage_objects: row(
    "gauge",
    "",
    "objects and reserved ids that wait for deletion, as the collector saw them last",
    "grows for hours: deletions fail or are not allowed (`s3:DeleteObject`)",
  ),
  skerry_metadata_entries_total: row("counter", "", "entries written to the metadata log"),
  skerry_metadata_commit_seconds: row("histogram", "", "how long a batch of commands took"),
  skerry_metadata_races_lost_total: row("counter", "", "positions that somebody else took first"),
  skerry_metadata_snapshots_corrupt_total: row(
    "counter",
    "",
    "snapshots that could not be read; an older one was used",
    "any: run `skerry fsck` on a copy; something changes objects in the bucket",
  ),
  skerry_metadata_feature_level: row("gauge", "", "feature level of the cluster"),
  skerry_open_streams: row("gauge", "", "streams that are open"),
  skerry_partitions_open: row("gauge", "", "partitions that are open"),
  skerry_transactions: row(
    "gauge",
    "state",
    "transactions of this coordinator that are open, or ending (decided, with markers still to write)",
    "ending above 0 for minutes: a partition cannot be written, or another node leads it; the log names it",
  ),
  skerry_partitions_unreadable: row(
    "gauge",
    "",
    "partitions whose last opening failed; they are tried again after a pause",
    "above 0: the log has the reason (`partition-open-failed`)",
  ),
  skerry_log_cleaner_runs_total: row(
    "counter",
    "outcome",
    "passes of topic compaction: done, overtaken (the log closed or lost what was read) or failed",
    "failed: the log has the reason (`log-cleaning-failed`); tried again after pauses, of up to a day after damage",
  ),
  skerry_log_cleaner_seconds: row("histogram", "", "how long a pass took"),
  skerry_log_cleaner_read_bytes_total: row("counter", "", "bytes that topic compaction read"),
  skerry_log_cleaner_written_bytes_total: row("counter", "", "bytes that it kept and wrote anew"),
  skerry_log_cleaner_dirty_ratio_max: row(
    "gauge",
    "",
    "largest share of dirty bytes of a compacted partition",
    "stays above `min.cleanable.dirty.ratio`: raise `log.cleaner.io.max.bytes.per.second`, or the passes fail",
  ),
  skerry_log_cleaner_due: row("gauge", "", "partitions that wait for their pass"),
  skerry_partitions_unlisted: row(
    "gauge",
    "",
    "open partitions without rows of their own in this page",
    "above 0: raise `skerry.metrics.partitions.max` if you need them",
  ),
  skerry_partition_log_start_offset: row(
    "gauge",
    "topic partition",
    "first offset of an open partition",
  ),
  skerry_partition_log_end_offset: row(
    "gauge",
    "topic partition",
    "its next offset",
    "runs away from the high watermark: WAL writes do not come through",
  ),
  skerry_partition_high_watermark: row(
    "gauge",
    "topic partition",
    "offset below which all is durable",
  ),
  skerry_partition_last_stable_offset: row(
    "gauge",
    "topic partition",
    "offset below which no transaction is open",
    "stays behind the high watermark: a transaction hangs; read_committed gets nothing above it",
  ),
  skerry_partition_size_bytes: row(
    "gauge",
    "topic partition",
    "bytes between its start and its end",
  ),
  skerry_produce_bytes_total: row("counter", "", "bytes of batches from Kafka producers"),
  skerry_produce_records_total: row("counter", "", "records in them"),
  skerry_fetch_bytes_total: row("counter", "", "bytes of batches to Kafka consumers"),
  skerry_share_sessions: row(
    "gauge",
    "",
    "share sessions: members of share groups that read from this node",
    "at group.share.max.share.sessions new members are refused",
  ),
  skerry_share_partitions: row(
    "gauge",
    "",
    "partitions that share groups read here, one for each group",
  ),
  skerry_share_records_in_flight: row(
    "gauge",
    "",
    "records between the first and the last one that share groups have under way",
    "at 2,000,000 nothing new is given out: members do not acknowledge",
  ),
  skerry_share_records_acquired_total: row(
    "counter",
    "",
    "records given to members of share groups",
  ),
  skerry_share_locks_expired_total: row(
    "counter",
    "",
    "of those, records that were not acknowledged in time",
    "members are slower than share.record.lock.duration.ms, or they die",
  ),
  skerry_fetch_sessions: row("gauge", "", "incremental fetch sessions that are kept"),
  skerry_permits_used_bytes: row(
    "gauge",
    "class",
    "memory of requests: produce, and answers out of memory (hot_fetch) or objects (cold_fetch)",
    "at its limit: clients are slower than the broker, or the store is; their sockets wait",
  ),
  skerry_permits_limit_bytes: row("gauge", "class", "most of it"),
  skerry_permits_waiting: row(
    "gauge",
    "class",
    "requests that wait for it",
    "produce above 0 for long: back-pressure reaches the sockets of producers",
  ),
  skerry_kafka_requests_total: row("counter", "api", "requests"),
  skerry_kafka_request_seconds: row("histogram", "api", "how long they took, waiting included"),
  skerry_kafka_errors_total: row(
    "counter",
    "api error",
    "error codes in answers",
    "NOT_ENOUGH_REPLICAS: back-pressure; KAFKA_STORAGE_ERROR: reads of objects fail",
  ),
  skerry_kafka_connections: row("gauge", "", "open connections"),
  skerry_kafka_connections_accepted_total: row("counter", "", "connections served"),
  skerry_kafka_connections_refused_total: row(
    "counter",
    "",
    "connections above `max.connections`",
    "grows: a client opens too many, or the bound is too low",
  ),
  skerry_kafka_connections_closed_total: row("counter", "ending", "why they ended"),
  skerry_kafka_received_bytes_total: row("counter", "", "bytes from Kafka clients"),
  skerry_kafka_sent_bytes_total: row("counter", "", "bytes to them"),
  skerry_http_requests_active: row(
    "gauge",
    "",
    "requests at the port that have no answer yet, long polls and this one included",
  ),
  skerry_http_requests_total: row("counter", "method status", "requests, by class of status"),
  skerry_http_request_seconds: row("histogram", "", "how long they took"),
  skerry_http_group_records_total: row(
    "counter",
    "delivery",
    "records that polls of groups were given: for the first time, or again",
    "again grows as fast as first: leases end before the work is done; ask for longer ones",
  ),
  skerry_http_group_offsets_lost_total: row(
    "counter",
    "",
    "offsets that were acknowledged when others had them already",
    "as above: the work was done twice",
  ),
  skerry_http_group_polls_waiting: row("gauge", "", "polls of groups that wait for records"),
  skerry_http_sockets: row("gauge", "kind", "WebSockets that are open, by what they carry"),
  skerry_http_instances: row(
    "gauge",
    "",
    "consumer instances of HTTP clients that this node serves",
  ),
  skerry_http_streams_open: row("gauge", "", "live streams (SSE, NDJSON) that are open"),
  skerry_http_streams_holding: row(
    "gauge",
    "",
    "streams that hold records which their readers have not taken",
  ),
  skerry_http_streams_bytes: row("gauge", "", "bytes of those records"),
  skerry_http_streams_total: row("counter", "ending", "streams that ended, by how"),
  skerry_push_subscriptions: row("gauge", "", "subscriptions that this node delivers"),
  skerry_push_requests_total: row(
    "counter",
    "outcome",
    "deliveries sent to handlers, by class of status, or why there was none",
  ),
  skerry_push_request_seconds: row("histogram", "", "how long they took"),
  skerry_push_records_total: row("counter", "outcome", "records that were delivered, or given up"),
  skerry_push_held_bytes: row("gauge", "", "bytes of records that handlers have not taken"),
  skerry_push_bodies_bytes: row("gauge", "", "bytes of deliveries under way"),
};
