/**
 * What the design allows: requests per hour and dollars per month (S3 Standard, 730 hours) of one node with
 * a hundred active streams whose consumers read from memory, by rate and by the spacing that its budget buys.
 */
import type { Arrivals, CostOptions } from "./cost_world.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

export const RATES = {
  "1 KiB/s": { perSecond: 1, bytes: KIB },
  "1 MiB/s": { perSecond: 64, bytes: 16 * KIB },
  "10 MiB/s": { perSecond: 160, bytes: 64 * KIB },
  "100 MiB/s": { perSecond: 1_600, bytes: 64 * KIB },
} satisfies Record<string, Arrivals>;

export const BUDGETS = { "250 ms": 14_400, "1 s": 3_600, "5 s": 720 } as const;

export type Rate = keyof typeof RATES;
export type Budget = keyof typeof BUDGETS;

export interface Allowed {
  readonly puts: number;
  readonly gets: number;
  readonly dollars: number;
}

function row(puts: number, gets: number): Allowed {
  return { puts, gets, dollars: (puts * 5 + gets * 0.4) / 1e6 * 730 };
}

export const ALLOWED: Readonly<Record<Budget, Readonly<Record<Rate, Allowed>>>> = {
  "250 ms": {
    "1 KiB/s": row(3_634, 360),
    "1 MiB/s": row(14_685, 473),
    "10 MiB/s": row(16_075, 1_485),
    "100 MiB/s": row(38_097, 11_610),
  },
  "1 s": {
    "1 KiB/s": row(3_634, 360),
    "1 MiB/s": row(3_883, 473),
    "10 MiB/s": row(5_275, 1_485),
    "100 MiB/s": row(26_847, 11_610),
  },
  "5 s": {
    "1 KiB/s": row(754, 360),
    "1 MiB/s": row(1_003, 473),
    "10 MiB/s": row(2_395, 1_485),
    "100 MiB/s": row(21_222, 11_610),
  },
};

/** A node that is set up for 10 MiB/s and more: blocks of 256 MiB, and memory to rewrite 24 of them at once. */
export const LARGE_NODE: Pick<CostOptions, "engine" | "compaction"> = {
  engine: { logCacheBytesMax: 1_024 * MIB, uploadBytes: 256 * MIB },
  compaction: { memoryBytes: 256 * MIB, objectsMin: 24 },
};
