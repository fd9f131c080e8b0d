/** The broker's properties of the write-ahead log and the upload as the storage layer takes them. */
import type { BrokerConfig } from "../broker/broker_config.ts";
import { METERED_PUTS_PER_HOUR } from "../lib/limits.ts";
import type { EngineOptions } from "../storage/engine_options.ts";
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

export function engineOptionsOf(config: BrokerConfig): Partial<EngineOptions> {
  const bytesPerSecond = config.integer("skerry.upload.bytes.per.second");
  return {
    logCacheBytesMax: config.integer("skerry.log.cache.bytes"),
    uploadBytes: config.integer("skerry.upload.block.bytes"),
    uploadIntervalMs: config.integer("skerry.upload.interval.ms"),
    ageMsMax: config.integer("skerry.upload.age.ms.max"),
    splitBytes: config.integer("skerry.upload.split.bytes"),
    uploadBytesPerSecond: bytesPerSecond === 0 ? null : bytesPerSecond,
  };
}
