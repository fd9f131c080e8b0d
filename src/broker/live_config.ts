/**
 * Broker settings that clients change while the broker runs: for one broker, or for all. They live in the
 * metadata, one value for each, and every reader of the configuration sees the newest.
 *
 *     key     kafka/config/broker/NODE-ID, or kafka/config/broker/ for all brokers
 *     value   a JSON object of texts by property name
 */
import type { NodeId } from "../lib/brand.ts";
import { areSameTexts } from "../lib/texts.ts";
import type { KvRow } from "../controller/image.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import { type BrokerConfig, type ConfigLayer, layeredConfig } from "./broker_config.ts";
import { BROKER_PROPERTIES } from "./broker_properties.ts";
import { changeKv, type KvRefused, readTexts, type Texts } from "./metadata_kv.ts";
import { checkProperty, type Property } from "./property.ts";

/** The resource name that stands for all brokers. */
export const ALL_BROKERS = "";

function keyOf(resource: string): string {
  return `kafka/config/broker/${resource}`;
}

/** What is set for one broker, or for all; keys of a build that knows other properties stay as they are. */
export function dynamicSettings(metadata: MetadataStore, resource: string): Texts {
  return readTexts(metadata.view().kv.get(keyOf(resource))?.value ?? null);
}

/** Null removes a setting. "stale", and nothing is done, when other settings than `seen` are there by now. */
export async function changeDynamicSettings(
  metadata: MetadataStore,
  resource: string,
  changes: Readonly<Record<string, string | null>>,
  seen: Texts,
): Promise<KvRefused | "stale" | null> {
  let isStale = false;
  const refused = await changeKv(metadata, keyOf(resource), (value) => {
    const texts = readTexts(value);
    isStale = !areSameTexts(texts, seen);
    if (isStale) return value;
    const next = Object.entries({ ...texts, ...changes }).filter(([, text]) => text !== null);
    return next.length === 0 ? null : JSON.stringify(Object.fromEntries(next));
  });
  return isStale ? "stale" : refused;
}

function isUsable(property: Property | undefined, text: string): boolean {
  return property?.dynamic === true && checkProperty(property, text).ok;
}

function layerOf(
  metadata: MetadataStore,
  source: ConfigLayer["source"],
  resource: string,
): ConfigLayer {
  const key = keyOf(resource);
  let row: KvRow | undefined;
  let values: ReadonlyMap<string, string> = new Map();
  return {
    source,
    get(name) {
      const now = metadata.view().kv.get(key);
      if (now !== row) {
        row = now;
        const texts = Object.entries(readTexts(now?.value ?? null));
        values = new Map(texts.filter(([one, text]) => isUsable(BROKER_PROPERTIES.get(one), text)));
      }
      return values.get(name);
    },
  };
}

/** The configuration of the start, below what the metadata says now. */
export function liveConfig(
  config: BrokerConfig,
  metadata: MetadataStore,
  nodeId: NodeId,
): BrokerConfig {
  const resources = [String(nodeId), ALL_BROKERS];
  const rows = () => resources.map((resource) => metadata.view().kv.get(keyOf(resource)));
  return layeredConfig(
    config.explicit,
    [
      layerOf(metadata, "dynamicBroker", String(nodeId)),
      layerOf(metadata, "dynamicDefault", ALL_BROKERS),
      ...config.layers,
    ],
    (listener) => {
      let known = rows();
      return metadata.onChange(() => {
        const now = rows();
        if (now.every((row, at) => row === known[at])) return;
        known = now;
        listener();
      });
    },
  );
}
