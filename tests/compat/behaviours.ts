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

export const KINDS = { client: CLIENT, tools: TOOLS, streams: STREAMS } as const;
export type Kind = keyof typeof KINDS;
