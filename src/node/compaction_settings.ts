/** The broker's properties of compaction as the storage layer takes them. */
import type { BrokerConfig } from "../broker/broker_config.ts";
import {
  type CompactionOptions,
  DEFAULT_COMPACTION_OPTIONS,
  pricedCompaction,
} from "../storage/compaction/options.ts";

/** Empty when compaction is off. */
export function compactionOf(
  config: BrokerConfig,
  storeHasPrices: boolean,
): { readonly compaction?: CompactionOptions } {
  if (!config.flag("skerry.compaction.enable")) return {};
  const memoryBytes = config.integer("skerry.compaction.memory.bytes");
  return {
    compaction: {
      ...DEFAULT_COMPACTION_OPTIONS,
      ...(storeHasPrices ? pricedCompaction(memoryBytes) : {}),
      memoryBytes,
      intervalMs: config.integer("skerry.compaction.interval.ms"),
      bytesPerSecond: config.integer("skerry.compaction.bytes.per.second"),
      objectsMin: config.integer("skerry.compaction.objects.min"),
      splitBytes: config.integer("skerry.compaction.split.bytes"),
      forceSplitMs: config.integer("skerry.compaction.force.split.ms"),
      setObjectsMax: config.integer("skerry.compaction.set.objects.max"),
      streamsMax: config.integer("skerry.compaction.set.streams.max"),
      streamObjectsMax: config.integer("skerry.compaction.stream.objects.max"),
      mergeBytesMax: config.integer("skerry.compaction.merge.bytes.max"),
      linkBytesMin: config.integer("skerry.compaction.link.bytes.min"),
      linkBytesMax: config.integer("skerry.compaction.link.bytes.max"),
      deadBytesMax: config.integer("skerry.compaction.dead.bytes.max"),
      clusterObjectsMax: config.integer("skerry.compaction.cluster.objects.max"),
    },
  };
}
