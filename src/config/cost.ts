/** What a node's requests to its store cost, from the counters that it shows. Pure. */

import type { StorePrices } from "./prices.ts";

/** Requests and their bytes. */
export interface Requests {
  /** PUT, parts of multipart uploads, LIST. */
  readonly writes: number;
  /** GET, HEAD. */
  readonly reads: number;
  readonly deletes: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** Counters of a node at one moment. */
export interface Usage extends Requests {
  /** Bytes of records that became durable. */
  readonly produced: number;
  /** Requests by operation. */
  readonly byOp: Readonly<Record<string, number>>;
  /** By what they are for: the WAL, uploads, cold reads and so on. */
  readonly byClass: Readonly<Record<string, Requests>>;
}

export interface Money {
  /** Dollars for all that was counted. */
  readonly total: number;
  /** Null while nothing was produced. */
  readonly perGib: number | null;
  /** At the rate between two looks; null after a single one. */
  readonly perMonth: number | null;
}

export interface StoreCost extends Money {
  readonly store: string;
  /** Its parts; their sum is the whole. */
  readonly byClass: Readonly<Record<string, Money>>;
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
/** Of samples without a class. */
const NO_CLASS = "other";

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

/** Counts by operation, of one class or of all. */
class Tally {
  readonly requests: Record<string, number> = {};
  readonly bytes: Record<string, number> = {};

  total(): Requests {
    const { requests, bytes } = this;
    return {
      writes: sumOf(requests, WRITES),
      reads: sumOf(requests, READS),
      deletes: requests["delete"] ?? 0,
      bytesIn: sumOf(bytes, WRITES),
      bytesOut: sumOf(bytes, READS),
    };
  }
}

/** Null when the text is not the metrics of a node of ours. */
export function readUsage(metrics: string): Usage | null {
  const all = new Tally();
  const classes = new Map<string, Tally>();
  let produced = 0;
  for (const line of metrics.split("\n")) {
    const [, name, labels = "", text] = SAMPLE.exec(line) ?? [];
    const value = Number(text);
    if (!Number.isFinite(value)) continue;
    if (name === PRODUCED) produced += value;
    const op = labelOf(labels, "op");
    if (op === null || name !== REQUESTS && name !== BYTES) continue;
    const kind = labelOf(labels, "class") ?? NO_CLASS;
    const one = classes.get(kind) ?? new Tally();
    classes.set(kind, one);
    for (const tally of [all, one]) add(name === BYTES ? tally.bytes : tally.requests, op, value);
  }
  if (Object.keys(all.requests).length === 0) return null;
  const byClass = Object.fromEntries([...classes].map(([kind, one]) => [kind, one.total()]));
  return { ...all.total(), produced, byOp: all.requests, byClass };
}

const NONE: Requests = { writes: 0, reads: 0, deletes: 0, bytesIn: 0, bytesOut: 0 };

function minus(after: Requests, before: Requests): Requests {
  return {
    writes: after.writes - before.writes,
    reads: after.reads - before.reads,
    deletes: after.deletes - before.deletes,
    bytesIn: after.bytesIn - before.bytesIn,
    bytesOut: after.bytesOut - before.bytesOut,
  };
}

/** What happened between two looks; null when the node was started anew in between. */
function between(before: Usage, after: Usage): Usage | null {
  const produced = after.produced - before.produced;
  const difference = minus(after, before);
  if ([produced, ...Object.values(difference)].some((value) => value < 0)) return null;
  const byOp = Object.fromEntries(
    Object.entries(after.byOp).map(([op, count]) => [op, count - (before.byOp[op] ?? 0)]),
  );
  const byClass = Object.fromEntries(
    Object.entries(after.byClass)
      .map(([kind, one]) => [kind, minus(one, before.byClass[kind] ?? NONE)]),
  );
  return { ...difference, produced, byOp, byClass };
}

function dollars(requests: Requests, prices: StorePrices): number {
  return (requests.writes * prices.perMillionWrites + requests.reads * prices.perMillionReads) /
      1e6 +
    (requests.bytesIn * prices.perGibIn + requests.bytesOut * prices.perGibOut) / GIB;
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
  const money = (table: StorePrices, all: Requests, lately: Requests | undefined): Money => {
    const total = dollars(all, table);
    return {
      total,
      perGib: usage.produced === 0 ? null : total / (usage.produced / GIB),
      perMonth: rate === null || lately === undefined
        ? null
        : dollars(lately, table) / rate.seconds * MONTH_SECONDS,
    };
  };
  const costs = prices.map((table) => {
    const byClass = Object.fromEntries(
      Object.entries(usage.byClass)
        .map(([kind, all]) => [kind, money(table, all, rate?.usage.byClass[kind])]),
    );
    return { store: table.store, ...money(table, usage, rate?.usage), byClass };
  });
  return { usage, rate, costs };
}

function inDollars(amount: number | null): string {
  return amount === null ? "-" : `$${amount.toFixed(amount !== 0 && amount < 0.01 ? 6 : 2)}`;
}

const NAME_COLUMNS = 24;
const COLUMNS = 12;

function row(name: string, cells: readonly (string | number)[]): string {
  return name.padEnd(NAME_COLUMNS) + cells.map((cell) => String(cell).padStart(COLUMNS)).join("");
}

function moneyCells({ total, perGib, perMonth }: Money): string[] {
  return [total, perGib, perMonth].map(inDollars);
}

/** Classes with their money at the first table, the dearest one first. */
function classLines({ usage, costs: [first] }: CostReport): string[] {
  if (first === undefined) return [];
  const classes = Object.entries(usage.byClass)
    .toSorted(([a], [b]) => first.byClass[b]!.total - first.byClass[a]!.total || (a < b ? -1 : 1));
  return [
    "",
    row(`at ${first.store}`, ["writes", "reads", "deletes", ...MONEY]),
    ...classes.map(([kind, { writes, reads, deletes }]) =>
      row(kind, [writes, reads, deletes, ...moneyCells(first.byClass[kind]!)])
    ),
  ];
}

const MONEY = ["so far", "per GiB", "per month"];

export function costLines(report: CostReport): string[] {
  const { usage, rate, costs } = report;
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
    ...classLines(report),
    "",
    row("requests at prices of", MONEY),
    ...costs.map((one) => row(one.store, moneyCells(one))),
  ];
}
