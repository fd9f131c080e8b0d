/** What a node's requests to its store cost, from the counters that it shows. Pure. */

/** Prices of one store; the table stands in the configuration. */
export interface StorePrices {
  readonly store: string;
  readonly perMillionWrites: number;
  readonly perMillionReads: number;
  readonly perGibIn: number;
  readonly perGibOut: number;
}

/** Counters of a node at one moment. */
export interface Usage {
  /** PUT, parts of multipart uploads, LIST. */
  readonly writes: number;
  /** GET, HEAD. */
  readonly reads: number;
  readonly deletes: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Bytes of records that became durable. */
  readonly produced: number;
  /** Requests by operation. */
  readonly byOp: Readonly<Record<string, number>>;
}

export interface StoreCost {
  readonly store: string;
  /** Dollars for all that was counted. */
  readonly total: number;
  /** Null while nothing was produced. */
  readonly perGib: number | null;
  /** At the rate between two looks; null after a single one. */
  readonly perMonth: number | null;
}

export interface CostReport {
  readonly usage: Usage;
  /** Between two looks; null after a single one. */
  readonly rate: { readonly seconds: number; readonly usage: Usage } | null;
  readonly costs: readonly StoreCost[];
}

const GIB = 2 ** 30;
const MONTH_SECONDS = 730 * 3_600;
const REQUESTS = "skerry_object_store_requests_total";
const BYTES = "skerry_object_store_bytes_total";
const PRODUCED = "skerry_append_bytes_total";
const WRITES = ["put", "put_parts", "list"];
const READS = ["get", "head"];

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})?\s+(\S+)/;

function labelOf(labels: string, name: string): string | null {
  return new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? null;
}

function add(table: Record<string, number>, key: string, value: number): void {
  table[key] = (table[key] ?? 0) + value;
}

function sumOf(table: Readonly<Record<string, number>>, ops: readonly string[]): number {
  return ops.reduce((sum, op) => sum + (table[op] ?? 0), 0);
}

/** Null when the text is not the metrics of a node of ours. */
export function readUsage(metrics: string): Usage | null {
  const requests: Record<string, number> = {};
  const bytes: Record<string, number> = {};
  let produced = 0;
  let found = false;
  for (const line of metrics.split("\n")) {
    const [, name, labels = "", text] = SAMPLE.exec(line) ?? [];
    const value = Number(text);
    if (!Number.isFinite(value)) continue;
    const op = labelOf(labels, "op");
    if (name === REQUESTS && op !== null) {
      add(requests, op, value);
      found = true;
    }
    if (name === BYTES && op !== null) add(bytes, op, value);
    if (name === PRODUCED) produced += value;
  }
  if (!found) return null;
  return {
    writes: sumOf(requests, WRITES),
    reads: sumOf(requests, READS),
    deletes: requests["delete"] ?? 0,
    bytesIn: sumOf(bytes, WRITES),
    bytesOut: sumOf(bytes, READS),
    produced,
    byOp: requests,
  };
}

/** What happened between two looks; null when the node was started anew in between. */
function between(before: Usage, after: Usage): Usage | null {
  const difference = {
    writes: after.writes - before.writes,
    reads: after.reads - before.reads,
    deletes: after.deletes - before.deletes,
    bytesIn: after.bytesIn - before.bytesIn,
    bytesOut: after.bytesOut - before.bytesOut,
    produced: after.produced - before.produced,
  };
  if (Object.values(difference).some((value) => value < 0)) return null;
  const byOp = Object.fromEntries(
    Object.entries(after.byOp).map(([op, count]) => [op, count - (before.byOp[op] ?? 0)]),
  );
  return { ...difference, byOp };
}

function dollars(usage: Usage, prices: StorePrices): number {
  return (usage.writes * prices.perMillionWrites + usage.reads * prices.perMillionReads) / 1e6 +
    (usage.bytesIn * prices.perGibIn + usage.bytesOut * prices.perGibOut) / GIB;
}

export interface CostInput {
  /** The first look, when there were two. */
  readonly before: { readonly usage: Usage; readonly seconds: number } | null;
  readonly usage: Usage;
  readonly prices: readonly StorePrices[];
}

export function costOf({ before, usage, prices }: CostInput): CostReport {
  const delta = before === null ? null : between(before.usage, usage);
  const rate = delta === null || before === null || before.seconds <= 0
    ? null
    : { seconds: before.seconds, usage: delta };
  const costs = prices.map((table) => {
    const total = dollars(usage, table);
    return {
      store: table.store,
      total,
      perGib: usage.produced === 0 ? null : total / (usage.produced / GIB),
      perMonth: rate === null ? null : dollars(rate.usage, table) / rate.seconds * MONTH_SECONDS,
    };
  });
  return { usage, rate, costs };
}

function money(amount: number | null): string {
  return amount === null ? "-" : `$${amount.toFixed(amount !== 0 && amount < 0.01 ? 6 : 2)}`;
}

export function costLines({ usage, rate, costs }: CostReport): string[] {
  const gib = (bytes: number) => `${(bytes / GIB).toFixed(3)} GiB`;
  const ops = Object.entries(usage.byOp).toSorted(([a], [b]) => a < b ? -1 : 1);
  return [
    `produced  ${gib(usage.produced)}`,
    `writes    ${usage.writes} requests, ${gib(usage.bytesIn)}`,
    `reads     ${usage.reads} requests, ${gib(usage.bytesOut)}`,
    `deletes   ${usage.deletes} requests`,
    `by op     ${ops.map(([op, count]) => `${op} ${count}`).join(", ")}`,
    rate === null
      ? "rate      unknown: it takes two looks at a running node"
      : `rate      ${rate.usage.writes} writes, ${rate.usage.reads} reads in ${
        rate.seconds.toFixed(1)
      } s`,
    "",
    `${"requests at list prices".padEnd(24)}${"so far".padStart(12)}${"per GiB".padStart(12)}${
      "per month".padStart(12)
    }`,
    ...costs.map(({ store, total, perGib, perMonth }) =>
      `${store.padEnd(24)}${
        [total, perGib, perMonth].map((one) => money(one).padStart(12)).join("")
      }`
    ),
  ];
}
