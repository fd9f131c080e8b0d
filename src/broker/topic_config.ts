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
export const CONFIG_SOURCES = {
  topic: 1,
  dynamicBroker: 2,
  dynamicDefault: 3,
  staticBroker: 4,
  default: 5,
  group: 8,
} as const;
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

/** What clients must leave to the broker. */
export function isBrokersKey(name: string): boolean {
  return BY_NAME.get(name)?.byBroker === true;
}

/** What is wrong with what a client says of the broker's own keys: they must be what they are. */
export function brokersOwn(
  changes: Iterable<readonly [string, string | null]>,
  present: TopicConfigs,
): string | null {
  for (const [name, value] of changes) {
    if (!isBrokersKey(name) || value === null || value === present[name]) continue;
    return `${name} is set by the broker alone`;
  }
  return null;
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

/** As in Kafka the source counts more than the name: what was set last for this broker stands first. */
function brokerSynonyms(property: TopicProperty, broker: BrokerConfig): ConfigSynonym[] {
  const found: ConfigSynonym[] = [];
  for (const { source, get } of broker.layers) {
    for (const { name, factor } of property.synonyms) {
      const value = get(name);
      if (value === undefined) continue;
      found.push({ name, value: factor === 1 ? value : scaled(value, factor), source });
    }
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

/** Values that are fine alone and not together, or null. */
export function configConflict(overrides: TopicConfigs, broker: BrokerConfig): string | null {
  const lag = (name: string): bigint => {
    const property = BY_NAME.get(name);
    return property === undefined ? 0n : BigInt(effectiveConfig(property, overrides, broker).value);
  };
  const [min, max] = [lag("min.compaction.lag.ms"), lag("max.compaction.lag.ms")];
  return min <= max
    ? null
    : `conflict topic config setting min.compaction.lag.ms (${min}) > max.compaction.lag.ms (${max})`;
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
    cleaning: {
      minDirtyRatio: number("min.cleanable.dirty.ratio"),
      minLagMs: number("min.compaction.lag.ms"),
      maxLagMs: number("max.compaction.lag.ms"),
      deleteRetentionMs: number("delete.retention.ms"),
    },
    retentionMs: number("retention.ms"),
    retentionBytes: number("retention.bytes"),
    segmentBytes: number("segment.bytes"),
    // So that the newest segment, which is never compacted, does not outlast the lag.
    segmentMs: Math.min(
      number("segment.ms"),
      policy.includes("compact") ? number("max.compaction.lag.ms") : Infinity,
    ),
    producerExpirationMs: broker.integer("producer.id.expiration.ms"),
    retentionCheckMs: broker.integer("log.retention.check.interval.ms"),
  };
}
