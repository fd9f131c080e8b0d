/** The table of topic configuration: keys, types, defaults, bounds, and which broker properties set a default. */
import { PAYLOAD_BYTES_MAX } from "../lib/limits.ts";
import { STREAM_PROPERTIES } from "./stream_properties.ts";
import { INT_MAX, LONG_MAX, type Property } from "./property.ts";

/** A broker property that gives the default of a topic key; the factor turns its unit into the key's. */
export interface Synonym {
  readonly name: string;
  readonly factor: number;
}

export interface TopicProperty extends Property {
  /** In order of precedence. */
  readonly synonyms: readonly Synonym[];
  /** In Kafka the broker property has no default: it follows another one. */
  readonly noBrokerDefault?: true;
  /** Part of what a topic is: clients see it, and neither set nor remove it. */
  readonly byBroker?: true;
}

function as(...names: readonly string[]): readonly Synonym[] {
  return names.map((name) => ({ name, factor: 1 }));
}

const FOREVER = String(LONG_MAX);
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** Kafka's form of a list of replicas. */
const REPLICAS = {
  like: /^(?:\*|\d+:\d+)$/,
  words: "* or a list of partition:broker",
} as const;
const THROTTLED = "Stored and shown; there is no replication traffic to throttle.";

export const TOPIC_PROPERTIES: readonly TopicProperty[] = [
  {
    name: "cleanup.policy",
    type: "list",
    fallback: "delete",
    words: ["delete", "compact"],
    synonyms: as("log.cleanup.policy"),
    documentation:
      "delete drops old records by time and size; compact wants a key in each record and keeps the newest of each.",
  },
  {
    name: "compression.type",
    type: "string",
    fallback: "producer",
    words: ["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"],
    synonyms: as("compression.type"),
    documentation: "The codec of stored batches; producer keeps what was sent.",
  },
  {
    name: "compression.gzip.level",
    type: "int",
    fallback: "-1",
    min: -1n,
    max: 9n,
    except: 0n,
    synonyms: as("compression.gzip.level"),
    documentation: "Level for gzip where compression.type makes the broker compress; -1 is 6.",
  },
  {
    name: "compression.lz4.level",
    type: "int",
    fallback: "9",
    min: 1n,
    max: 17n,
    synonyms: as("compression.lz4.level"),
    shownOnly: true,
    documentation: "Stored and shown; our lz4 has one level.",
  },
  {
    name: "compression.zstd.level",
    type: "int",
    fallback: "3",
    min: -131_072n,
    max: 22n,
    synonyms: as("compression.zstd.level"),
    documentation: "Level for zstd where compression.type makes the broker compress.",
  },
  {
    name: "delete.retention.ms",
    type: "long",
    fallback: "86400000",
    min: 0n,
    synonyms: as("log.cleaner.delete.retention.ms"),
    documentation: "How long the deletion of a key stays visible after the pass that first met it.",
  },
  {
    name: "file.delete.delay.ms",
    type: "long",
    fallback: "60000",
    min: 0n,
    synonyms: as("log.segment.delete.delay.ms"),
    shownOnly: true,
    documentation: "Stored and shown; objects are deleted by the collector's own rules.",
  },
  {
    name: "flush.messages",
    type: "long",
    fallback: FOREVER,
    min: 1n,
    synonyms: as("log.flush.interval.messages"),
    shownOnly: true,
    documentation: "Stored and shown; every acknowledged record is durable.",
  },
  {
    name: "flush.ms",
    type: "long",
    fallback: FOREVER,
    min: 0n,
    synonyms: as("log.flush.interval.ms"),
    noBrokerDefault: true,
    shownOnly: true,
    documentation: "Stored and shown; every acknowledged record is durable.",
  },
  {
    name: "follower.replication.throttled.replicas",
    type: "list",
    fallback: "",
    items: REPLICAS,
    synonyms: [],
    shownOnly: true,
    documentation: THROTTLED,
  },
  {
    name: "index.interval.bytes",
    type: "int",
    fallback: "4096",
    min: 0n,
    synonyms: as("log.index.interval.bytes"),
    shownOnly: true,
    documentation: "Stored and shown; indexes follow data blocks.",
  },
  {
    name: "leader.replication.throttled.replicas",
    type: "list",
    fallback: "",
    items: REPLICAS,
    synonyms: [],
    shownOnly: true,
    documentation: THROTTLED,
  },
  {
    name: "local.retention.bytes",
    type: "long",
    fallback: "-2",
    min: -2n,
    synonyms: as("log.local.retention.bytes"),
    shownOnly: true,
    documentation: "Stored and shown; there is no local tier.",
  },
  {
    name: "local.retention.ms",
    type: "long",
    fallback: "-2",
    min: -2n,
    synonyms: as("log.local.retention.ms"),
    shownOnly: true,
    documentation: "Stored and shown; there is no local tier.",
  },
  {
    name: "max.compaction.lag.ms",
    type: "long",
    fallback: FOREVER,
    min: 1n,
    synonyms: as("log.cleaner.max.compaction.lag.ms"),
    documentation:
      "Age from which a record is compacted whatever the share of dirty bytes; segments are closed by then.",
  },
  {
    name: "max.message.bytes",
    type: "int",
    fallback: "1048588",
    min: 0n,
    max: BigInt(PAYLOAD_BYTES_MAX),
    synonyms: as("message.max.bytes"),
    documentation: "Largest record batch; at most what fits one WAL slot.",
  },
  {
    name: "message.timestamp.after.max.ms",
    type: "long",
    fallback: "3600000",
    min: 0n,
    synonyms: as("log.message.timestamp.after.max.ms"),
    documentation: "How far a record's time may lie in the future.",
  },
  {
    name: "message.timestamp.before.max.ms",
    type: "long",
    fallback: FOREVER,
    min: 0n,
    synonyms: as("log.message.timestamp.before.max.ms"),
    documentation: "How far a record's time may lie in the past.",
  },
  {
    name: "message.timestamp.type",
    type: "string",
    fallback: "CreateTime",
    words: ["CreateTime", "LogAppendTime"],
    synonyms: as("log.message.timestamp.type"),
    documentation: "Whether records carry the producer's time or the time of arrival.",
  },
  {
    name: "min.cleanable.dirty.ratio",
    type: "double",
    fallback: "0.5",
    min: 0n,
    max: 1n,
    synonyms: as("log.cleaner.min.cleanable.ratio"),
    documentation: "Share of dirty bytes above which a topic is compacted.",
  },
  {
    name: "min.compaction.lag.ms",
    type: "long",
    fallback: "0",
    min: 0n,
    synonyms: as("log.cleaner.min.compaction.lag.ms"),
    documentation: "Age below which a record is not compacted.",
  },
  {
    name: "min.insync.replicas",
    type: "int",
    fallback: "1",
    min: 1n,
    synonyms: as("min.insync.replicas"),
    shownOnly: true,
    documentation: "Stored and shown; the object store is the replica, whatever is asked.",
  },
  {
    name: "preallocate",
    type: "boolean",
    fallback: "false",
    synonyms: as("log.preallocate"),
    shownOnly: true,
    documentation: "Stored and shown; there are no files to allocate.",
  },
  {
    name: "remote.log.copy.disable",
    type: "boolean",
    fallback: "false",
    synonyms: [],
    shownOnly: true,
    documentation: "Stored and shown; there is no second tier.",
  },
  {
    name: "remote.log.delete.on.disable",
    type: "boolean",
    fallback: "false",
    synonyms: [],
    shownOnly: true,
    documentation: "Stored and shown; there is no second tier.",
  },
  {
    name: "remote.storage.enable",
    type: "boolean",
    fallback: "false",
    words: ["false"],
    synonyms: [],
    shownOnly: true,
    documentation:
      "Stored and shown, always false; all data is in the object store without a second tier.",
  },
  {
    name: "retention.bytes",
    type: "long",
    fallback: "-1",
    min: -1n,
    synonyms: as("log.retention.bytes"),
    documentation: "Bytes kept per partition; -1 for no limit.",
  },
  {
    name: "retention.ms",
    type: "long",
    fallback: "604800000",
    min: -1n,
    synonyms: [
      { name: "log.retention.ms", factor: 1 },
      { name: "log.retention.minutes", factor: MINUTE_MS },
      { name: "log.retention.hours", factor: HOUR_MS },
    ],
    documentation: "How long records are kept; -1 for ever.",
  },
  {
    name: "segment.bytes",
    type: "int",
    fallback: "1073741824",
    min: 1_048_576n,
    max: INT_MAX,
    synonyms: as("log.segment.bytes"),
    documentation: "Bytes after which a segment is closed; retention drops whole segments.",
  },
  {
    name: "segment.index.bytes",
    type: "int",
    fallback: "10485760",
    min: 4n,
    synonyms: as("log.index.size.max.bytes"),
    shownOnly: true,
    documentation: "Stored and shown; indexes grow with their segment.",
  },
  {
    name: "segment.jitter.ms",
    type: "long",
    fallback: "0",
    min: 0n,
    synonyms: [
      { name: "log.roll.jitter.ms", factor: 1 },
      { name: "log.roll.jitter.hours", factor: HOUR_MS },
    ],
    shownOnly: true,
    documentation: "Stored and shown; segments do not roll together.",
  },
  {
    name: "segment.ms",
    type: "long",
    fallback: "604800000",
    min: 1n,
    synonyms: [
      { name: "log.roll.ms", factor: 1 },
      { name: "log.roll.hours", factor: HOUR_MS },
    ],
    documentation: "Age after which a segment is closed.",
  },
  {
    name: "skerry.produce.validate",
    type: "string",
    fallback: "header",
    words: ["header", "full"],
    synonyms: as("skerry.produce.validate"),
    documentation:
      "What produce checks of a batch: header, checksum, uncompressed records; or, inflated, each record.",
  },
  ...STREAM_PROPERTIES,
  {
    name: "unclean.leader.election.enable",
    type: "boolean",
    fallback: "false",
    synonyms: as("unclean.leader.election.enable"),
    shownOnly: true,
    documentation: "Stored and shown; a leader always has all acknowledged records.",
  },
];
