/** What differs per seed: bounds so small that every mechanism has work within some minutes of virtual time. */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { METADATA_POLL_MS } from "../../../src/lib/limits.ts";
import {
  type CompactionOptions,
  DEFAULT_COMPACTION_OPTIONS,
} from "../../../src/storage/compaction/options.ts";
import { DEFAULT_ENGINE_OPTIONS, type EngineOptions } from "../../../src/storage/engine_options.ts";
import type { WalPolicy } from "../../../src/storage/wal/batching.ts";
import { between, chance } from "../world.ts";

export interface Settings {
  readonly nodes: number;
  readonly streams: number;
  /** Pauses of days; then everything that looks at regular times does so once an hour, and at the log after changes. */
  readonly ages: boolean;
  readonly lookMs: number;
  /** Null: only after changes, which the fleet tells of. */
  readonly pollMs: number | null;
  readonly engine: EngineOptions;
  readonly compaction: CompactionOptions | null;
  readonly walPolicy: WalPolicy;
  readonly snapshotEntries: number;
  readonly recoveryBytesMax: number;
  readonly audit: { readonly intervalMs: number; readonly inStorm: boolean };
}

export const HOUR_MS = 3_600_000;

export function settingsOf(random: Random): Settings {
  const ages = chance(random, 0.15);
  const lookMs = ages ? HOUR_MS : between(random, 5_000, 90_000);
  return {
    nodes: 2 + randomInt(random, 3),
    streams: 2 + randomInt(random, 5),
    ages,
    lookMs,
    pollMs: ages ? null : between(random, 2_000, METADATA_POLL_MS),
    engine: {
      ...DEFAULT_ENGINE_OPTIONS,
      logCacheBytesMax: 6_000 + randomInt(random, 100_000),
      uploadBytes: 500 + randomInt(random, 20_000),
      uploadIntervalMs: between(random, 500, 30_000),
      slotsMax: 12 + randomInt(random, 200),
      ageMsMax: between(random, 60_000, 600_000),
      splitBytes: 100 + randomInt(random, 2_000),
      blockCacheBytesMax: 1_000 + randomInt(random, 50_000),
      indexCacheBytesMax: 500 + randomInt(random, 20_000),
      rangeIndexBytesMax: 500 + randomInt(random, 20_000),
      sparseObjectsMin: 1 + randomInt(random, 6),
      idBlock: 1 + randomInt(random, 12),
    },
    compaction: chance(random, 0.8) ? compactionOf(random, lookMs) : null,
    walPolicy: chance(random, 0.6)
      ? { kind: "unmetered" }
      : { kind: "metered", putsPerHour: 14_400 },
    snapshotEntries: 10 + randomInt(random, 80),
    recoveryBytesMax: 500 + randomInt(random, 20_000),
    audit: { intervalMs: between(random, 5_000, 60_000), inStorm: chance(random, 0.5) },
  };
}

/** For runs that end at every store call in turn: short, and with work for every mechanism. */
export const SMALL: Settings = {
  nodes: 2,
  streams: 2,
  ages: false,
  lookMs: 60_000,
  pollMs: null,
  engine: {
    ...DEFAULT_ENGINE_OPTIONS,
    logCacheBytesMax: 50_000,
    uploadBytes: 1_500,
    uploadIntervalMs: 2_000,
    splitBytes: 600,
    sparseObjectsMin: 2,
    idBlock: 8,
  },
  compaction: {
    ...DEFAULT_COMPACTION_OPTIONS,
    intervalMs: 5_000,
    objectsMin: 2,
    splitBytes: 600,
    mergeBytesMax: 4_000,
  },
  walPolicy: { kind: "unmetered" },
  snapshotEntries: 20,
  recoveryBytesMax: 2_000,
  audit: { intervalMs: 60_000, inStorm: true },
};

function compactionOf(random: Random, lookMs: number): CompactionOptions {
  return {
    ...DEFAULT_COMPACTION_OPTIONS,
    intervalMs: lookMs,
    objectsMin: 2 + randomInt(random, 3),
    splitBytes: 100 + randomInt(random, 2_000),
    forceSplitMs: between(random, 30_000, 1_200_000),
    mergeBytesMax: 300 + randomInt(random, 3_000),
    linkBytesMin: randomInt(random, 300),
    deadBytesMin: 1 + randomInt(random, 500),
    deadBytesMax: 1 + randomInt(random, 2_000),
    // Some are read whole, some by ranges; a generator of its own leaves the seeds as they were.
    wholeBytesMax: randomInt(random.derive("whole"), 2_000),
  };
}
