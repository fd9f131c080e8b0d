/** What differs from seed to seed: the network, and bounds of the node that are low enough for a short run. */
import { type Random, randomInt } from "../../src/env/random.ts";
import type { NetFaults } from "./sim_net.ts";
import { between, chance } from "./world.ts";

export function netFaults(random: Random): NetFaults {
  return {
    reset: chance(random, 0.5) ? random.float() * 0.03 : 0,
    split: chance(random, 0.3) ? 0.3 : 0,
    latencyMs: between(random, 0.2, 20),
  };
}

/** Objects so small and limits so low that every kind of compaction has work within a run. */
export function storageProperties(random: Random): Record<string, string> {
  if (!chance(random, 0.7)) return {};
  return {
    "skerry.upload.interval.ms": String(1_000 + randomInt(random, 10_000)),
    "skerry.upload.split.bytes": String(100 + randomInt(random, 2_000)),
    "skerry.compaction.interval.ms": String(1_000 + randomInt(random, 5_000)),
    "skerry.compaction.objects.min": "2",
    "skerry.compaction.split.bytes": String(100 + randomInt(random, 2_000)),
    "skerry.compaction.force.split.ms": "60000",
    "skerry.compaction.merge.bytes.max": String(300 + randomInt(random, 3_000)),
    "skerry.compaction.link.bytes.min": String(randomInt(random, 300)),
    "skerry.compaction.dead.bytes.max": String(1 + randomInt(random, 2_000)),
  };
}
