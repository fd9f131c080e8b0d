/** The cluster's feature level as the operator sets it: kept, or raised once and for all. */
import type { BrokerConfig } from "../broker/broker_config.ts";
import type { Requester } from "../controller/command.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import { FaultError } from "../lib/errors.ts";

const PROPERTY = "skerry.feature.level";

function refused(level: number, why: string): FaultError {
  return new FaultError("config", `Cannot use ${PROPERTY} = ${level}: ${why}`, {
    retriable: false,
  });
}

/** Null: the cluster's level stays. Throws FaultError `config` above what this build knows. */
export function levelOf(config: BrokerConfig, known: number): number | null {
  const level = config.integer(PROPERTY);
  if (level === 0) return null;
  if (level <= known) return level;
  throw refused(level, `this build knows levels up to ${known}`);
}

/** Before anything is registered or written. */
export function checkLevel(level: number | null, metadata: MetadataStore): void {
  const now = metadata.view().featureLevel;
  if (level === null || level >= now) return;
  throw refused(level, `the cluster is at level ${now}, and levels never fall`);
}

/** From here on builds that do not know the level are refused. */
export async function raiseLevel(
  level: number | null,
  metadata: MetadataStore,
  by: Requester,
): Promise<void> {
  if (level === null || level <= metadata.view().featureLevel) return;
  const decided = await metadata.submit({ type: "raise-feature-level", by, level });
  if (!decided.ok) throw refused(level, decided.detail);
}
