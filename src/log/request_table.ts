/**
 * Requests with an Idempotency-Key that a partition has stored lately: what of them is in, and where. Learned
 * from batches, live or replayed, and from a checkpoint; nothing here refuses anything. An entry lives for
 * REQUEST_WINDOW_MS from its last append, unless REQUESTS_PER_PARTITION_MAX newer ones take its place.
 */
import type { Offset } from "../lib/brand.ts";
import { CLOCK_JUMP_MS_MIN, REQUEST_WINDOW_MS, REQUESTS_PER_PARTITION_MAX } from "../lib/limits.ts";
import { type BatchHeader, isLogAppendTime } from "../protocol/record_batch.ts";
import type { RequestPart } from "./request_part.ts";

/** Neighbouring records of a request, with neighbouring offsets. */
export interface RequestRun {
  readonly baseOffset: Offset;
  readonly count: number;
  /** Of records without a time of their own, or of all of them. */
  readonly timeMs: number;
  readonly isAppendTime: boolean;
}

export interface RequestEntry {
  readonly id: string;
  readonly fingerprint: string;
  readonly partitions: number;
  /** From the request's first record for this partition on, in order. */
  readonly runs: readonly RequestRun[];
  /** By our clock. */
  readonly appendedMs: number;
}

export function storedCount({ runs }: Pick<RequestEntry, "runs">): number {
  return runs.reduce((sum, { count }) => sum + count, 0);
}

function runOf(header: BatchHeader, part: RequestPart): RequestRun {
  const isAppendTime = isLogAppendTime(header);
  return {
    baseOffset: header.baseOffset,
    count: header.lastOffsetDelta + 1,
    timeMs: isAppendTime ? header.maxTimestamp : part.givenMs,
    isAppendTime,
  };
}

/** One run where nothing but the count tells two apart. */
function joined(runs: readonly RequestRun[], next: RequestRun): readonly RequestRun[] {
  const last = runs.at(-1);
  const isOne = last !== undefined && last.baseOffset + last.count === next.baseOffset &&
    last.timeMs === next.timeMs && last.isAppendTime === next.isAppendTime;
  return isOne
    ? [...runs.slice(0, -1), { ...last, count: last.count + next.count }]
    : [...runs, next];
}

/** What lies below the log's end: a tail that was lost is sent again. */
function below(entry: RequestEntry, end: Offset): RequestEntry {
  const lost = entry.runs.findIndex(({ baseOffset, count }) => baseOffset + count > end);
  return lost < 0 ? entry : { ...entry, runs: entry.runs.slice(0, lost) };
}

export class RequestTable {
  /** Ordered by last append, oldest first. */
  readonly #entries = new Map<string, RequestEntry>();
  #looked: { readonly nowMs: number; readonly monotonicMs: number } | null = null;

  get size(): number {
    return this.#entries.size;
  }

  get(id: string): RequestEntry | undefined {
    return this.#entries.get(id);
  }

  entries(): Iterable<RequestEntry> {
    return this.#entries.values();
  }

  /** From a checkpoint, for a log that ends at `end`. */
  load(entries: readonly RequestEntry[], end: Offset, nowMs: number): void {
    for (const entry of entries) {
      const kept = below(entry, end);
      // A clock that was ahead must not keep an entry for longer than its time.
      if (kept.runs.length > 0) {
        this.#put({ ...kept, appendedMs: Math.min(kept.appendedMs, nowMs) });
      }
    }
  }

  /** A part that does not go on where the table is begins a request, or is one of something forgotten. */
  apply(part: RequestPart, header: BatchHeader, appendedMs: number): void {
    const { id, fingerprint, partitions } = part;
    const run = runOf(header, part);
    if (part.first === 0) {
      this.#put({ id, fingerprint, partitions, runs: [run], appendedMs });
      return;
    }
    const earlier = this.#entries.get(id);
    const goesOn = earlier?.fingerprint === fingerprint && storedCount(earlier) === part.first;
    if (goesOn) this.#put({ ...earlier, runs: joined(earlier.runs, run), appendedMs });
  }

  #put(entry: RequestEntry): void {
    this.#entries.delete(entry.id);
    this.#entries.set(entry.id, entry);
    if (this.#entries.size <= REQUESTS_PER_PARTITION_MAX) return;
    for (const id of this.#entries.keys()) return void this.#entries.delete(id);
  }

  expire(nowMs: number): void {
    for (const { id, appendedMs } of this.#entries.values()) {
      if (nowMs - appendedMs < REQUEST_WINDOW_MS) return;
      this.#entries.delete(id);
    }
  }

  /** A wall clock that jumps makes nothing old: the times move with it, as those of producers do. */
  followClock(nowMs: number, monotonicMs: number): void {
    const last = this.#looked;
    this.#looked = { nowMs, monotonicMs };
    if (last === null) return;
    const jumpMs = Math.floor(nowMs - last.nowMs - (monotonicMs - last.monotonicMs));
    if (Math.abs(jumpMs) >= CLOCK_JUMP_MS_MIN) this.#shift(jumpMs, nowMs);
  }

  /** After a restore: time in which nobody could append or ask does not count. */
  settle(nowMs: number, lastAppendMs: number): void {
    let newestMs = lastAppendMs;
    for (const { appendedMs } of this.#entries.values()) newestMs = Math.max(newestMs, appendedMs);
    this.expire(Math.min(nowMs, newestMs));
    this.#shift(nowMs - newestMs, nowMs);
  }

  #shift(byMs: number, nowMs: number): void {
    for (const [id, entry] of this.#entries) {
      const appendedMs = Math.min(nowMs, entry.appendedMs + Math.max(0, byMs));
      if (appendedMs !== entry.appendedMs) this.#entries.set(id, { ...entry, appendedMs });
    }
  }
}
