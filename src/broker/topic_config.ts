/**
 * Topic configuration, pure: checks what clients ask for, fills in defaults from the broker's
 * properties and Kafka's, and turns the result into what the log obeys.
 */
import type { LogConfig } from "../log/partition_log.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { checkProperty, listOf, numberOf } from "./property.ts";
import { TOPIC_PROPERTIES, type TopicProperty } from "./topic_properties.ts";

export type TopicConfigs = Readonly<Record<string, string>>;

/** Where an effective value comes from, with Kafka's numbers for DescribeConfigs. */
export const CONFIG_SOURCES = { topic: 1, staticBroker: 4, default: 5 } as const;
export type ConfigSource = keyof typeof CONFIG_SOURCES;

export interface ConfigSynonym {
  readonly name: string;
  readonly value: string;
  readonly source: ConfigSource;
}

export interface EffectiveConfig {
  readonly property: TopicProperty;
  readonly value: string;
  readonly source: ConfigSource;
  /** All values that the key could have, most specific first; the first one holds. */
  readonly synonyms: readonly ConfigSynonym[];
}

export type ConfigsChecked =
  | { readonly ok: true; readonly configs: TopicConfigs }
  | { readonly ok: false; readonly message: string };

/** Kafka 4 does not know these any more; old tools still send them with every CreateTopics. */
const REMOVED: ReadonlySet<string> = new Set([
  "message.format.version",
  "message.downconversion.enable",
  "message.timestamp.difference.max.ms",
]);

const BY_NAME: ReadonlyMap<string, TopicProperty> = new Map(
  TOPIC_PROPERTIES.map((property) => [property.name, property]),
);

export function topicProperty(name: string): TopicProperty | undefined {
  return BY_NAME.get(name);
}

export function isRemovedKey(name: string): boolean {
  return REMOVED.has(name);
}

/** Canonical texts of known keys; removed keys are left out, unknown ones and bad values refused. */
export function checkTopicConfigs(
  entries: Iterable<readonly [string, string | null]>,
): ConfigsChecked {
  const configs: Record<string, string> = {};
  for (const [name, value] of entries) {
    if (REMOVED.has(name)) continue;
    const property = BY_NAME.get(name);
    if (property === undefined) return { ok: false, message: `Unknown topic config name: ${name}` };
    if (value === null) {
      return { ok: false, message: `Null value not supported for topic configs: ${name}` };
    }
    const checked = checkProperty(property, value);
    if (!checked.ok) return checked;
    configs[name] = checked.value;
  }
  return { ok: true, configs };
}

/** `-1` stays what it is in every unit. */
function scaled(value: string, factor: number): string {
  const wide = BigInt(value);
  return factor === 1 || wide < 0n ? value : String(wide * BigInt(factor));
}

function brokerSynonyms(property: TopicProperty, broker: BrokerConfig): ConfigSynonym[] {
  const found: ConfigSynonym[] = [];
  for (const { name, factor } of property.synonyms) {
    const value = broker.explicit.get(name);
    if (value === undefined) continue;
    const scaledValue = factor === 1 ? value : scaled(value, factor);
    found.push({ name, value: scaledValue, source: "staticBroker" });
  }
  return found;
}

export function effectiveConfig(
  property: TopicProperty,
  overrides: TopicConfigs,
  broker: BrokerConfig,
): EffectiveConfig {
  const synonyms = brokerSynonyms(property, broker);
  const override = overrides[property.name];
  if (override !== undefined) {
    synonyms.unshift({ name: property.name, value: override, source: "topic" });
  }
  const name = property.synonyms[0]?.name ?? property.name;
  synonyms.push({ name, value: property.fallback, source: "default" });
  const first = synonyms[0]!;
  return { property, value: first.value, source: first.source, synonyms };
}

export function effectiveConfigs(
  overrides: TopicConfigs,
  broker: BrokerConfig,
): readonly EffectiveConfig[] {
  return TOPIC_PROPERTIES.map((property) => effectiveConfig(property, overrides, broker));
}

function compressionOf(text: string): LogConfig["compression"] {
  switch (text) {
    case "uncompressed":
    case "gzip":
    case "snappy":
    case "lz4":
    case "zstd":
      return text;
    default:
      return "producer";
  }
}

/** Undefined for codecs without levels. */
function levelOf(compression: LogConfig["compression"], number: (name: string) => number) {
  return compression === "gzip" || compression === "zstd"
    ? { compressionLevel: number(`compression.${compression}.level`) }
    : {};
}

export function logConfigOf(overrides: TopicConfigs, broker: BrokerConfig): LogConfig {
  const values = new Map(
    effectiveConfigs(overrides, broker).map(({ property, value }) => [property.name, value]),
  );
  const number = (name: string): number => numberOf(values.get(name) ?? "");
  const policy = listOf(values.get("cleanup.policy") ?? "");
  const compression = compressionOf(values.get("compression.type") ?? "");
  return {
    messageBytesMax: number("max.message.bytes"),
    timestampType: values.get("message.timestamp.type") === "LogAppendTime"
      ? "log-append"
      : "create",
    timestampBeforeMsMax: number("message.timestamp.before.max.ms"),
    timestampAfterMsMax: number("message.timestamp.after.max.ms"),
    compression,
    ...levelOf(compression, number),
    validate: values.get("skerry.produce.validate") === "full" ? "full" : "header",
    cleanup: { delete: policy.includes("delete"), compact: policy.includes("compact") },
    retentionMs: number("retention.ms"),
    retentionBytes: number("retention.bytes"),
    segmentBytes: number("segment.bytes"),
    segmentMs: number("segment.ms"),
    producerExpirationMs: broker.integer("producer.id.expiration.ms"),
    retentionCheckMs: broker.integer("log.retention.check.interval.ms"),
  };
}
