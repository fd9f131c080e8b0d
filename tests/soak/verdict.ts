/** After the storm: everything acknowledged is there, nothing grew, the store is proven. */
import {
  BLOCK_CACHE_BYTES_MAX,
  INDEX_CACHE_BYTES_MAX,
  RANGE_INDEX_BYTES_MAX,
  SPARSE_INDEX_BYTES_MAX,
} from "../../src/lib/limits.ts";
import type { PartitionBook } from "./book.ts";
import { pause, type Soak, WireClient } from "./cluster.ts";
import { type Gauges, quarters, type StoreSample } from "./gauges.ts";
import { readWhole } from "./readers.ts";
import { LOG_CACHE_BYTES, PARTITIONS, SEGMENT_BYTES } from "./settings.ts";
import type { Workload } from "./workload.ts";

const CATCH_UP_MS_MAX = 90_000;
const SETTLE_MS_MAX = 60_000;
const STEP_MS = 200;
const LOOKS_AT_ONCE = 4;
const MIB = 1024 * 1024;

async function until(ms: number, isTrue: () => boolean | Promise<boolean>): Promise<boolean> {
  const endMs = performance.now() + ms;
  while (!await isTrue()) {
    if (performance.now() > endMs) return false;
    await pause(STEP_MS);
  }
  return true;
}

function problemOf(book: PartitionBook): string | null {
  try {
    book.checkAcknowledged();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What was acknowledged has come to the tail readers, and everything in that topic to each group. */
export async function checkDelivered(soak: Soak, { groups, grouped }: Workload): Promise<void> {
  const behind = () => [...soak.books].map(problemOf).filter((problem) => problem !== null);
  if (!await until(CATCH_UP_MS_MAX, () => behind().length === 0)) {
    for (const problem of behind()) soak.violation(problem);
  }
  for (const group of groups) {
    if (await until(CATCH_UP_MS_MAX, () => group.missing(grouped).length === 0)) continue;
    soak.violation(`${group.name} stays behind: ${group.missing(grouped).slice(0, 5).join("; ")}`);
  }
}

/** Every log from its start to its end, which is where the tail reader is; the bytes of all. */
export async function checkWhole(soak: Soak): Promise<number> {
  const books = [...soak.books].filter(({ deleted }) => !deleted);
  const sums = await Promise.all(Array.from({ length: LOOKS_AT_ONCE }, async (_, i) => {
    return await checkSome(soak, books.filter((_, at) => at % LOOKS_AT_ONCE === i));
  }));
  return sums.reduce((sum, one) => sum + one, 0);
}

async function checkSome(soak: Soak, books: readonly PartitionBook[]): Promise<number> {
  const client = new WireClient(soak.address);
  let live = 0;
  for (const book of books) {
    let bytes = 0;
    const done = await until(CATCH_UP_MS_MAX, async () => {
      try {
        bytes = await readWhole(soak, client, book);
        return true;
      } catch (error) {
        soak.guard("last look", error);
        return false;
      }
    });
    if (!done) soak.violation(`${book.name} cannot be read to its end`);
    live += bytes;
    checkSize(soak, book, bytes);
  }
  client.close();
  return live;
}

function checkSize(soak: Soak, book: PartitionBook, bytes: number): void {
  const { retentionBytes } = book.topic;
  if (retentionBytes === null || book.logStart === 0) return;
  // Whole segments go, and none whose end leaves less than what is kept. A batch may pass a segment's end.
  const most = retentionBytes + 2 * SEGMENT_BYTES;
  if (bytes < retentionBytes || bytes > most) {
    soak.violation(`${book.name} has ${bytes} bytes, and ${retentionBytes} to ${most} are kept`);
  }
}

// --- figures ------------------------------------------------------------------------------------

/** Streams of a partition: its records, what is known of them, times. */
const STREAMS_PER_PARTITION = 3;
/** A forced split gives every stream an object of its own; a short run may see the first one late. */
const ONE_OBJECT_EACH = PARTITIONS * STREAMS_PER_PARTITION;

/**
 * A stream has at most a few objects of each size class, and classes grow with the logarithm of its
 * bytes; then what is under way: uploads since the last look, and what waits for its deletion.
 */
export function objectsBound(partitions: number, liveBytes: number): number {
  const classes = Math.max(1, Math.log2(Math.max(2, liveBytes / partitions / 65_536)));
  return Math.round(partitions * (STREAMS_PER_PARTITION + 2 * classes) + 300);
}

export interface Growth {
  readonly what: string;
  readonly second: number;
  readonly last: number;
  readonly most: number;
}

/** What the gauges of the log cache and of the block cache count, each up to its bound. */
const CACHES_MIB_MAX = Math.ceil(
  (LOG_CACHE_BYTES + BLOCK_CACHE_BYTES_MAX + INDEX_CACHE_BYTES_MAX + RANGE_INDEX_BYTES_MAX +
    SPARSE_INDEX_BYTES_MAX) / MIB,
);

const inMib = (bytes: number) => Math.round(bytes / MIB);

/** What must not grow between the second and the last quarter of the time without restarts. */
export function growth(
  { process, store, caches }: Gauges,
  life: { readonly fromMs: number; readonly toMs: number },
): Growth[] {
  const rss = quarters(process, life, ({ residentBytes }) => inMib(residentBytes));
  const files = quarters(process, life, (each) => each.files);
  const sockets = quarters(process, life, (each) => each.sockets);
  const data = quarters(store, life, (each: StoreSample) => each.data);
  const wal = quarters(store, life, (each: StoreSample) => each.wal);
  const cache = quarters(caches, life, ({ cacheBytes }) => inMib(cacheBytes));
  // Caches fill up to their bounds, and a short run sees them do it.
  const filled = Math.max(0, cache.last - cache.second);
  return [
    { what: "resident memory, MiB", ...rss, most: Math.round(rss.second * 1.2 + 64 + filled) },
    { what: "of it in caches, MiB", ...cache, most: CACHES_MIB_MAX },
    { what: "open files", ...files, most: files.second + 40 },
    { what: "sockets", ...sockets, most: sockets.second + 40 },
    { what: "data objects", ...data, most: Math.round(data.second * 1.25 + ONE_OBJECT_EACH) },
    { what: "WAL objects", ...wal, most: wal.second + 200 },
  ];
}

/** Until no more objects are under way than the bound allows. */
export async function settledObjects(
  gauges: Gauges,
  bound: () => number,
): Promise<StoreSample | null> {
  let last: StoreSample | null = null;
  await until(SETTLE_MS_MAX, async () => {
    last = await gauges.look() ?? last;
    return last !== null && last.data <= bound();
  });
  return last;
}

export function table(title: string, rows: readonly (readonly (string | number)[])[]): string {
  const texts = rows.map((row) => row.map(String));
  const widths = (texts[0] ?? []).map((_, i) => Math.max(...texts.map((row) => row[i]!.length)));
  const lines = texts.map((row) =>
    `  ${
      row.map((cell, i) => i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)).join("  ")
    }`
  );
  return [title, ...lines].join("\n");
}
