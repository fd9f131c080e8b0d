/** The fixed workloads. Their numbers are comparable over time only while these stay as they are. */

export interface Workload {
  readonly kind: "produce" | "fetch" | "http-produce" | "http-fetch";
  readonly connections: number;
  /** Requests of one connection that are under way at a time; over HTTP always one. */
  readonly inFlight: number;
  /** Records of one request, and bytes of one record's value. */
  readonly records: number;
  readonly valueBytes: number;
  readonly requests: number;
  /** Sent before the clock starts: code is compiled then, and the log cache has its memory. */
  readonly warmUp?: number;
  /** The workload that writes what this one reads. */
  readonly fill?: string;
  /** The broker starts anew between writing and reading: nothing is in memory. */
  readonly cold?: boolean;
}

const MIB_BATCHES = { connections: 4, records: 64, valueBytes: 16_384 };
const KIB_16_BATCHES = { records: 16, valueBytes: 1_024, requests: 30_000, warmUp: 30_000 };
const HTTP_100 = { connections: 8, inFlight: 1, records: 100, valueBytes: 170, requests: 1_000 };

export const WORKLOADS: Readonly<Record<string, Workload>> = {
  "produce-1MiB": {
    kind: "produce",
    ...MIB_BATCHES,
    inFlight: 4,
    requests: 2_000,
    warmUp: 500,
  },
  "produce-16KiB": { kind: "produce", connections: 4, inFlight: 16, ...KIB_16_BATCHES },
  // As many clients with five requests each, the most that they keep under way by default.
  "produce-16KiB-wide": { kind: "produce", connections: 64, inFlight: 5, ...KIB_16_BATCHES },
  "produce-200B": {
    kind: "produce",
    connections: 1,
    inFlight: 1,
    records: 1,
    valueBytes: 200,
    requests: 2_000,
  },
  // As much as the log cache holds: more would be read from objects.
  "fetch-hot": { kind: "fetch", ...MIB_BATCHES, inFlight: 1, requests: 160, fill: "fill-hot" },
  "fetch-cold": {
    kind: "fetch",
    ...MIB_BATCHES,
    inFlight: 1,
    requests: 800,
    fill: "fill-cold",
    cold: true,
  },
  "http-1": {
    kind: "http-produce",
    connections: 8,
    inFlight: 1,
    records: 1,
    valueBytes: 200,
    requests: 4_000,
  },
  "http-100": { kind: "http-produce", ...HTTP_100 },
  "http-read-100": { kind: "http-fetch", ...HTTP_100, fill: "http-100" },
};

/** Not measured themselves. */
const FILLS: Readonly<Record<string, Workload>> = {
  "fill-hot": { kind: "produce", ...MIB_BATCHES, inFlight: 4, requests: 160 },
  "fill-cold": { kind: "produce", ...MIB_BATCHES, inFlight: 4, requests: 800 },
};

export function fillOf({ fill }: Workload): Workload | null {
  if (fill === undefined) return null;
  const found = WORKLOADS[fill] ?? FILLS[fill];
  if (found === undefined) throw new Error(`no workload ${fill}`);
  return found;
}
