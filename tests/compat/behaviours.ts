/** What clients are asked for, by the names that their programs print. The order is that of the tables. */

/** For clients: libraries and kcat. */
const CLIENT = [
  "metadata",
  "produce none",
  "produce gzip",
  "produce snappy",
  "produce lz4",
  "produce zstd",
  "acks 0",
  "acks 1",
  "acks all",
  "keys, headers, nulls",
  "large batch",
  "idempotent producer",
  "consume from an offset",
  "consume from a time",
  "list offsets",
  "group: two members",
  "group: resume",
  "group: KIP-848",
  "committed offsets",
  "txn: commit",
  "txn: abort",
  "txn: read_committed",
  "txn: fencing",
  "txn: consume-transform-produce",
  "admin: cluster",
  "admin: topics",
  "admin: partitions",
  "admin: configs",
  "admin: delete records",
  "admin: groups",
  "admin: delete offsets",
  "admin: describe producers",
  "admin: describe transactions",
  "admin: quotas",
  "admin: log dirs",
] as const;

/** For Kafka's own command line tools, one each. */
const TOOLS = [
  "kafka-broker-api-versions",
  "kafka-cluster",
  "kafka-features",
  "kafka-topics",
  "kafka-configs",
  "kafka-console-producer",
  "kafka-console-consumer",
  "kafka-get-offsets",
  "kafka-delete-records",
  "kafka-consumer-groups",
  "kafka-groups",
  "kafka-share-groups",
  "kafka-console-share-consumer",
  "kafka-transactions",
  "kafka-log-dirs",
  "kafka-verifiable-producer",
  "kafka-verifiable-consumer",
  "kafka-producer-perf-test",
  "kafka-consumer-perf-test",
] as const;

const STREAMS = [
  "word count, exactly once",
  "goes on after a crash",
  "its state after a restart",
] as const;

/** Consumers of share groups (KIP-932); the broker is one of its own. */
const SHARE = [
  "share: two consumers",
  "share: accept, release, reject",
  "share: delivery count",
  "share: takeover",
  "share: offsets by admin",
  "share: restart of the broker",
] as const;

/** Two workers, a source and a sink; the broker is one of its own. */
const CONNECT = [
  "connect: internal topics",
  "connect: two workers",
  "connect: source and sink",
  "connect: exactly-once",
  "connect: restart of the broker",
  "connect: restart of the workers",
] as const;

/** A registry of schemas whose store is a topic; the broker is one of its own. */
const REGISTRY = [
  "registry: register",
  "registry: compatibility check",
  "registry: two instances",
  "registry: leader election",
  "registry: compacted journal, restart",
] as const;

export const KINDS = {
  client: CLIENT,
  tools: TOOLS,
  streams: STREAMS,
  share: SHARE,
  connect: CONNECT,
  registry: REGISTRY,
} as const;
export type Kind = keyof typeof KINDS;
