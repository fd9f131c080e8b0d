/** Reads records of one partition for HTTP: whole batches in, single records out, with a long poll. */
import { sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import { DecodeError } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import { HTTP_READ_BYTES_MAX } from "../lib/limits.ts";
import { ReadLease } from "../lib/read_lease.ts";
import { AbortedFilter } from "../log/aborted_filter.ts";
import type { LogRead, PartitionLog } from "../log/partition_log.ts";
import { type BatchRecord, readRecords } from "../protocol/record.ts";
import {
  type BatchHeader,
  isIntact,
  lastOffset,
  readBatchHeader,
} from "../protocol/record_batch.ts";
import type { BrokerServices } from "../broker/handler.ts";
import type { Located } from "../broker/partitions.ts";
import { busy } from "../http/permit_wait.ts";
import type { Oversized, ReadAnswer, ReadQuery, RecordOutput } from "../http/port.ts";
import { owned } from "./http_records.ts";
import { ReadPlace, type ReadRoom, type ReadRooms } from "./read_place.ts";
import { recordBytes } from "./record_bytes.ts";

/** Turns of a read that finds more than it has permits for; the second one knows how many. */
const TURNS_MAX = 4;

export type Refused = Extract<ReadAnswer, { ok: false }>;

type Limits = Pick<ReadQuery, "recordsMax" | "recordBytesMax" | "filter">;

/** What a reader makes of the batches that it got. */
export type Take<T> = (read: LogRead, start: number, env: Env) => Taken<T> | Refused;

export interface Taken<T> {
  readonly ok: true;
  readonly found: readonly T[];
  readonly next: number;
  readonly oversized: Oversized | null;
  /** What the records hold in memory. */
  readonly heldBytes: number;
  /** Some of them are views of the log's own memory. */
  readonly viewsLog: boolean;
}

/** A batch that its producer filled with something else than records: admission does not look inside. */
function unsound(start: number, next: number, why: string): Refused {
  const message = `Cannot read offset ${start}: its batch holds no sound records (${why}); ` +
    `read on at ${next}`;
  return { ok: false, error: "INVALID_RECORD", message, next };
}

export function endOf(header: BatchHeader): number {
  return lastOffset(header) + 1;
}

/** Null when the log cannot hold a batch with such a header there, so that nothing in it can be relied on. */
export function headerOf(
  batch: Uint8Array,
  start: number,
  highWatermark: number,
): BatchHeader | null {
  try {
    const header = readBatchHeader(batch);
    const end = endOf(header);
    return end > start && end <= highWatermark ? header : null;
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

/** A batch that is not what was admitted any more: what its records say is anybody's guess. */
export function damaged(start: number, next: number | null): Refused {
  const message = `Cannot read offset ${start}: what is stored of its batch is damaged` +
    (next === null ? "" : `; read on at ${next}`);
  return { ok: false, error: "CORRUPT_MESSAGE", message, ...(next === null ? {} : { next }) };
}

/** Records of several batches, up to the limits of a query. */
class RecordsTaken {
  readonly #start: number;
  readonly #query: Limits;
  readonly #records: RecordOutput[] = [];
  #bytes = 0;
  #heldBytes = 0;
  #viewsLog = false;
  #oversized: Oversized | null = null;
  next: number;

  constructor(start: number, query: Limits) {
    this.#start = start;
    this.next = start;
    this.#query = query;
  }

  /** Adds the records of a batch; false when the page ends within it. Throws where they are unsound. */
  add(batch: Uint8Array, env: Env): boolean {
    const kept: RecordOutput[] = [];
    try {
      for (const record of readRecords(batch, env.codecs)) {
        if (record.offset >= this.#start && !this.#keep(outputOf(record), kept)) return false;
      }
      return true;
    } finally {
      const { records, heldBytes, viewsLog } = owned(kept, batch);
      this.#records.push(...records);
      this.#heldBytes += heldBytes;
      this.#viewsLog ||= viewsLog;
    }
  }

  #keep(record: RecordOutput, kept: RecordOutput[]): boolean {
    const { recordsMax, recordBytesMax, filter } = this.#query;
    const count = this.#records.length + kept.length;
    const bytes = recordBytes(record);
    if (filter?.(record) === false) {
      this.next = record.offset + 1;
      return true;
    }
    const isFull = count === recordsMax || this.#bytes + bytes > HTTP_READ_BYTES_MAX;
    if (isFull && count > 0) return false;
    if (bytes > recordBytesMax) {
      this.#oversized = { offset: record.offset, bytes };
      this.next = record.offset;
      return false;
    }
    kept.push(record);
    this.#bytes += bytes;
    this.next = record.offset + 1;
    return true;
  }

  finish(): Taken<RecordOutput> {
    return {
      ok: true,
      found: this.#records,
      next: this.next,
      oversized: this.#oversized,
      heldBytes: this.#heldBytes,
      viewsLog: this.#viewsLog,
    };
  }
}

/**
 * Records from `start` on; skips control batches, what was aborted and what compaction removed. Stops early where few
 * bytes inflate to many, and before a batch that cannot be read.
 */
function takeRecords(
  read: LogRead,
  start: number,
  query: Limits,
  env: Env,
): Taken<RecordOutput> | Refused {
  const page = new RecordsTaken(start, query);
  const filter = new AbortedFilter(read.aborted);
  for (const batch of read.batches) {
    const header = headerOf(batch, page.next, read.highWatermark);
    if (header === null || !isIntact(batch)) {
      if (page.next > start) return page.finish();
      return damaged(start, header === null ? null : endOf(header));
    }
    const end = endOf(header);
    try {
      if (!filter.hides(header, batch) && !page.add(batch, env)) return page.finish();
    } catch (error) {
      if (!(error instanceof DecodeError) && !isFault(error, "corrupt")) throw error;
      return page.next > start ? page.finish() : unsound(start, end, error.message);
    }
    page.next = end;
  }
  return page.finish();
}

function outputOf({ offset, timestamp, key, value, headers }: BatchRecord): RecordOutput {
  return {
    offset,
    timestampMs: timestamp,
    key,
    value,
    headers: headers.map((header) => ({ name: header.key, value: header.value })),
  };
}

/** Ends early when the log advances or closes, or when the caller goes away. */
async function waitForAdvance(
  log: PartitionLog,
  env: Env,
  waitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const wake = new AbortController();
  const end = () => wake.abort();
  const unsubscribe = log.onAdvance(end);
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  await sleep(env.clock, waitMs, wake.signal);
  signal.removeEventListener("abort", end);
  unsubscribe();
}

type Query = Omit<ReadQuery, "recordsMax" | "recordBytesMax" | "filter">;

export function endFor(
  log: Pick<PartitionLog, "lastStableOffset" | "highWatermark">,
  { isolation }: Pick<ReadQuery, "isolation">,
): number {
  return isolation === "committed" ? log.lastStableOffset : log.highWatermark;
}

async function startOf(log: PartitionLog, query: Query): Promise<number> {
  const { offset, signal } = query;
  if (offset === "earliest") return log.logStartOffset;
  if (offset === "latest") return endFor(log, query);
  if (typeof offset === "number") return offset;
  if ("tail" in offset) return Math.max(log.logStartOffset, endFor(log, query) - offset.tail);
  const found = await log.offsetForTimestamp(offset.timestampMs, signal);
  return found?.offset ?? endFor(log, query);
}

export interface Services extends Pick<BrokerServices, "env"> {
  readonly rooms: ReadRooms;
}

type Held<T> = Taken<T> & {
  readonly read: LogRead;
  readonly release: () => void;
};

/** What one turn found; `more` permits were missing for it, and none are held any more. */
type Turn<T> = Held<T> | Refused | "miss" | "out-of-range" | { readonly more: number };

interface Step<T> {
  readonly log: PartitionLog;
  readonly start: number;
  readonly query: Query;
  readonly env: Env;
  readonly take: Take<T>;
}

async function placeIn(
  room: ReadRoom,
  bytes: number,
  { query, env }: Pick<Step<unknown>, "query" | "env">,
): Promise<ReadPlace> {
  if (query.mayWait !== false) {
    return await ReadPlace.take(room, bytes, env.clock, query.signal);
  }
  const place = ReadPlace.tryTake(room, bytes);
  if (place === null) throw busy();
  return place;
}

/** The permits that are not kept by what was found go back at once. */
async function readOnce<T>(
  step: Step<T>,
  room: ReadRoom,
  bytes: number,
  cacheOnly: boolean,
): Promise<Turn<T>> {
  const { log, start, query, env, take } = step;
  const { bytesMax, isolation, signal } = query;
  const place = await placeIn(room, bytes, step);
  let keptBytes = 0;
  try {
    const lease = new ReadLease();
    const read = await log.read(start, { bytesMax, isolation, cacheOnly, signal, lease });
    if (read === null) return "miss";
    if (!read.ok) return "out-of-range";
    const taken = take(read, start, env);
    if (!taken.ok || !taken.viewsLog) lease.end();
    if (!taken.ok) return taken;
    if (!place.tryGrow(taken.heldBytes)) return { more: taken.heldBytes };
    keptBytes = taken.heldBytes;
    return { ...taken, read, release: () => place.shrink(0) };
  } finally {
    place.shrink(keptBytes);
  }
}

/**
 * Memory first, then objects; a cold read never takes the permits of hot ones. How much records inflate
 * to is known only afterwards: where permits are missing for it, all is dropped and read again with them.
 */
async function readHeld<T>(step: Step<T>, rooms: ReadRooms): Promise<Held<T> | Refused | null> {
  const { bytesMax, isLive = false } = step.query;
  const { hot, cold } = isLive ? rooms.live : rooms;
  // One batch comes whatever its size. Out of the cache it is there already; out of objects it is not.
  const coldBytes = Math.max(bytesMax, step.log.config.messageBytesMax);
  for (
    const [room, first, cacheOnly] of [
      [hot, bytesMax, true],
      [cold, coldBytes, false],
    ] as const
  ) {
    let bytes: number = first;
    for (let turn = 0; turn < TURNS_MAX; turn++) {
      const found = await readOnce(step, room, bytes, cacheOnly);
      if (found === "out-of-range") return null;
      if (found === "miss") break;
      if (!("more" in found)) return found;
      bytes = Math.max(bytes, found.more);
    }
  }
  throw busy();
}

function outOfRange(
  { logStartOffset: logStart, highWatermark }: PartitionLog,
  start: number,
): Refused {
  const message = `Cannot read offset ${start}: the log holds ${logStart} to ${highWatermark}`;
  return { ok: false, error: "OFFSET_OUT_OF_RANGE", message, logStart, highWatermark };
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) work();
    isDone = true;
  };
}

export interface Page<T> {
  readonly ok: true;
  readonly found: readonly T[];
  readonly next: number;
  readonly oversized: Oversized | null;
  readonly highWatermark: number;
  readonly logStart: number;
  readonly fixedBelow: number;
  readonly release: () => void;
}

/** `locate` is asked at each turn: a log that closed while we waited never wakes anybody again. */
export async function readPage<T>(
  locate: () => Promise<Located>,
  query: Query,
  { env, rooms }: Services,
  take: Take<T>,
): Promise<Page<T> | Refused> {
  const { clock } = env;
  let start: number | null = null;
  const endMs = clock.monotonicMs() + query.waitMs;
  for (;;) {
    const located = await locate();
    if (!located.ok) return located;
    const { log } = located;
    start ??= await startOf(log, query);
    const held = await readHeld({ log, start, query, env, take }, rooms);
    if (held === null) return outOfRange(log, start);
    if (!held.ok) return held;
    const { found, next, oversized, read, release } = held;
    const leftMs = endMs - clock.monotonicMs();
    if (next > start || oversized !== null || leftMs <= 0 || query.signal.aborted) {
      return {
        ok: true,
        found,
        next,
        oversized,
        highWatermark: read.highWatermark,
        logStart: read.logStartOffset,
        fixedBelow: log.config.cleanup.compact ? 0 : endFor(read, query),
        release: once(release),
      };
    }
    release();
    if (endFor(log, query) > start) continue;
    await waitForAdvance(log, env, leftMs, query.signal);
  }
}

export async function readFrom(
  locate: () => Promise<Located>,
  query: ReadQuery,
  services: Services,
): Promise<(Page<RecordOutput> & { readonly records: readonly RecordOutput[] }) | Refused> {
  const page = await readPage(
    locate,
    query,
    services,
    (read, start, env) => takeRecords(read, start, query, env),
  );
  return page.ok ? { ...page, records: page.found } : page;
}
