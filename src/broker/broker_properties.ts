/**
 * The table of broker properties that `--set` accepts and DescribeConfigs shows. Those that give
 * topics their defaults are derived from the topic table.
 */
import { REPLICATION_FACTOR_MAX, REQUEST_BYTES_MAX, TOPIC_PARTITIONS_MAX } from "../lib/limits.ts";
import { AUDIT_PROPERTIES } from "./audit_properties.ts";
import { COMPACTION_PROPERTIES } from "./compaction_properties.ts";
import { LOG_CLEANER_PROPERTIES } from "./log_cleaner_properties.ts";
import { OPERATION_PROPERTIES } from "./operation_properties.ts";
import { GROUP_CONSUMER_PROPERTIES } from "./group_consumer_properties.ts";
import { GROUP_SHARE_PROPERTIES } from "./group_share_properties.ts";
import { INT_MAX, type Property } from "./property.ts";
import { SHARE_PROPERTIES } from "./share_properties.ts";
import { STORAGE_PROPERTIES } from "./storage_properties.ts";
import { TOPIC_PROPERTIES, type TopicProperty } from "./topic_properties.ts";
import { TRANSACTION_PROPERTIES } from "./transaction_properties.ts";

function int(name: string, fallback: number, documentation: string, min = 0): Property {
  return { name, type: "int", fallback: String(fallback), min: BigInt(min), documentation };
}

function long(name: string, fallback: number, documentation: string, min = 0): Property {
  return { ...int(name, fallback, documentation, min), type: "long" };
}

function flag(name: string, fallback: boolean, documentation: string): Property {
  return { name, type: "boolean", fallback: String(fallback), documentation };
}

const OWN: readonly Property[] = [
  {
    ...int("num.partitions", 1, "Partitions of a topic that does not say how many.", 1),
    max: BigInt(TOPIC_PARTITIONS_MAX),
  },
  {
    ...int("default.replication.factor", 1, "Factor of topics that ask for none.", 1),
    max: BigInt(REPLICATION_FACTOR_MAX),
  },
  flag("auto.create.topics.enable", true, "Whether naming an unknown topic creates it."),
  flag("delete.topic.enable", true, "Whether topics can be deleted."),
  int("fetch.max.bytes", 57_671_680, "Most bytes of one fetch answer.", 1024),
  {
    ...int("socket.request.max.bytes", REQUEST_BYTES_MAX, "Largest request frame.", 1024),
    max: BigInt(REQUEST_BYTES_MAX),
  },
  long("connections.max.idle.ms", 600_000, "Silence after which a connection is closed.", 1000),
  { ...int("max.connections", 10_000, "Connections that are open at once.", 1), dynamic: true },
  int("max.incremental.fetch.session.cache.slots", 1000, "Fetch sessions that are kept."),
  {
    ...int(
      "producer.id.expiration.ms",
      86_400_000,
      "Idle time after which a producer is forgotten.",
      1,
    ),
    dynamic: true,
  },
  long("log.retention.check.interval.ms", 300_000, "How often retention is looked at.", 1000),
  {
    ...int(
      "offsets.topic.num.partitions",
      8,
      "Partitions of __consumer_offsets, fixed when it is created.",
      1,
    ),
    max: BigInt(TOPIC_PARTITIONS_MAX),
  },
  ...TRANSACTION_PROPERTIES,
  int("offsets.retention.minutes", 10_080, "How long offsets of a group without members live.", 1),
  long("offsets.retention.check.interval.ms", 600_000, "How often offsets are expired.", 1),
  {
    ...int("offset.metadata.max.bytes", 4096, "Longest metadata text of a committed offset."),
    // The length of a text in Kafka's records has 16 bits.
    max: 32_767n,
  },
  int("group.min.session.timeout.ms", 6000, "Shortest session timeout that members may ask for."),
  int("group.max.session.timeout.ms", 1_800_000, "Longest one."),
  int("group.initial.rebalance.delay.ms", 3000, "Wait for more members of an empty group."),
  int("group.max.size", Number(INT_MAX), "Members of one group at most.", 1),
  ...GROUP_CONSUMER_PROPERTIES,
  ...GROUP_SHARE_PROPERTIES,
  ...SHARE_PROPERTIES,
  {
    name: "skerry.acks.one",
    type: "string",
    fallback: "durable",
    words: ["durable", "log-end"],
    dynamic: true,
    documentation: "What acks=1 waits for: durable storage, or only a place in the log.",
  },
  {
    name: "skerry.http.cors.origins",
    type: "list",
    fallback: "",
    documentation:
      "Origins that browsers may call the HTTP gateway from; * for any, empty for none.",
  },
  {
    name: "skerry.http.mounts",
    type: "list",
    fallback: "",
    items: {
      like: /^\d{1,5}:(rest|upstash|streams)$/,
      words: "PORT:rest, PORT:upstash or PORT:streams",
    },
    documentation:
      "Ports at whose root a dialect of other gateways is spoken, as 8082:rest, on the host of http-listen.",
  },
  flag(
    "skerry.push.loopback",
    false,
    "Whether subscriptions may push to this machine, also without TLS.",
  ),
  ...COMPACTION_PROPERTIES,
  ...LOG_CLEANER_PROPERTIES,
  ...AUDIT_PROPERTIES,
  ...OPERATION_PROPERTIES,
  ...STORAGE_PROPERTIES,
];

/**
 * `log.retention.hours` and its like: same bounds, other unit. The default stands at the last of them,
 * as in Kafka; the more specific ones have none. Those in the topic's own unit may change while the broker runs.
 */
function fromTopic(property: TopicProperty): Property[] {
  return property.synonyms.map(({ name, factor }, at) => {
    const inUnit = factor === 1
      ? property.fallback
      : String(BigInt(property.fallback) / BigInt(factor));
    return {
      ...property,
      name,
      fallback: at === property.synonyms.length - 1 ? inUnit : "",
      ...(factor === 1 ? { dynamic: true } : { type: "int", max: INT_MAX }),
    };
  });
}

const ROWS = [...OWN, ...TOPIC_PROPERTIES.flatMap(fromTopic)].toSorted((a, b) =>
  a.name < b.name ? -1 : 1
);

export const BROKER_PROPERTIES: ReadonlyMap<string, Property> = new Map(
  ROWS.map((property) => [property.name, property]),
);
