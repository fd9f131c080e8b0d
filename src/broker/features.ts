/**
 * Kafka's features: what clients read from ApiVersions to choose their behaviour. A level is a promise of the
 * whole cluster; level 0 means that the feature is off, and is then not shown as finalized. Levels that somebody
 * has set stand in the metadata; the epoch that clients compare is the version of that value.
 *
 *     key     kafka/features
 *     value   a JSON object of levels, as texts, by feature name
 */
import type { MetadataStore } from "../controller/metadata_store.ts";
import { changeKv, type KvRefused, readTexts } from "./metadata_kv.ts";

export interface Feature {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** The level while nobody has set one. */
  readonly fallback: number;
  /** Without this API there is nothing to promise, and the feature is not shown. */
  readonly apiKey: number;
}

export type FeatureName = "group.version" | "share.version" | "transaction.version";

export const FEATURES: readonly (Feature & { readonly name: FeatureName })[] = [
  // ConsumerGroupHeartbeat.
  { name: "group.version", min: 0, max: 1, fallback: 1, apiKey: 68 },
  // ShareGroupHeartbeat.
  { name: "share.version", min: 0, max: 1, fallback: 1, apiKey: 76 },
  // EndTxn.
  { name: "transaction.version", min: 0, max: 2, fallback: 2, apiKey: 26 },
];

const KEY = "kafka/features";

/** The levels that hold now. */
export interface FinalizedFeatures {
  /** Grows with each change; clients take features only from one that is at least 0. */
  readonly epoch: number;
  levelOf(name: FeatureName): number;
}

function fallbackOf(name: FeatureName): number {
  return FEATURES.find((one) => one.name === name)?.fallback ?? 0;
}

export const DEFAULT_FEATURES: FinalizedFeatures = { epoch: 0, levelOf: fallbackOf };

/** Always as the local replica has them. */
export function finalizedFeatures(metadata: MetadataStore): FinalizedFeatures {
  const row = () => metadata.view().kv.get(KEY);
  return {
    get epoch() {
      return row()?.version ?? 0;
    },
    levelOf(name) {
      const set = readTexts(row()?.value ?? null)[name];
      return set === undefined ? fallbackOf(name) : Number(set);
    },
  };
}

export async function setFeatureLevels(
  metadata: MetadataStore,
  levels: ReadonlyMap<string, number>,
): Promise<KvRefused | null> {
  const texts = Object.fromEntries([...levels].map(([name, level]) => [name, String(level)]));
  return await changeKv(
    metadata,
    KEY,
    (value) => JSON.stringify({ ...readTexts(value), ...texts }),
  );
}

/** From this level of `transaction.version` on every end raises the producer's epoch (KIP-890). */
export const TRANSACTIONS_V2 = 2;
