/** The broker's properties of the write-ahead log, the upload and what is kept as the layers below take them. */
import type { BrokerConfig } from "../broker/broker_config.ts";
import { COLLECT_INTERVAL_MS, METERED_PUTS_PER_HOUR } from "../lib/limits.ts";
import type { EngineOptions } from "../storage/engine_options.ts";
import { DEFAULT_PUT_SIZES, pricedPutSizes } from "../storage/put_sizes.ts";
import { putsPerHourFor, type WalPolicy } from "../storage/wal/batching.ts";

export function walPolicyOf(config: BrokerConfig, storeHasPrices: boolean): WalPolicy {
  const puts = config.integer("skerry.wal.puts.per.hour");
  const money = putsPerHourFor({
    dollarsPerMonth: Number(config.text("skerry.wal.dollars.per.month")),
    dollarsPerMillionPuts: Number(config.text("skerry.wal.dollars.per.million.puts")),
  });
  const limits = puts > 0 ? [puts, money] : [money];
  const putsPerHour = Math.min(...limits.filter((limit) => limit !== null));
  if (putsPerHour < Infinity) return { kind: "metered", putsPerHour };
  return puts < 0 && storeHasPrices
    ? { kind: "metered", putsPerHour: METERED_PUTS_PER_HOUR }
    : { kind: "unmetered" };
}

export function engineOptionsOf(
  config: BrokerConfig,
  storeHasPrices: boolean,
): Partial<EngineOptions> {
  const bytesPerSecond = config.integer("skerry.upload.bytes.per.second");
  return {
    logCacheBytesMax: config.integer("skerry.log.cache.bytes"),
    uploadBytes: config.integer("skerry.upload.block.bytes"),
    uploadIntervalMs: config.integer("skerry.upload.interval.ms"),
    ageMsMax: config.integer("skerry.upload.age.ms.max"),
    puts: storeHasPrices
      ? pricedPutSizes(config.integer("skerry.log.cache.bytes"))
      : DEFAULT_PUT_SIZES,
    splitBytes: config.integer("skerry.upload.split.bytes"),
    uploadBytesPerSecond: bytesPerSecond === 0 ? null : bytesPerSecond,
  };
}

export interface Retention {
  /** T_RETAIN, and how often it is looked at. */
  readonly collector: { readonly retainMs: number; readonly intervalMs: number };
  readonly metadata: { readonly snapshotEntries: number; readonly trimAgeMs: number };
}

/** What is kept of the past. An entry that was trimmed counts as older than T_RETAIN, so T_TRIM is no shorter. */
export function retentionOf(config: BrokerConfig): Retention {
  const retainMs = config.integer("skerry.objects.retain.ms");
  const trimAgeMs = config.integer("skerry.metadata.trim.age.ms");
  return {
    collector: { retainMs, intervalMs: Math.min(COLLECT_INTERVAL_MS, retainMs) },
    metadata: {
      snapshotEntries: config.integer("skerry.metadata.snapshot.entries"),
      trimAgeMs: Math.max(trimAgeMs, retainMs),
    },
  };
}
