/**
 * The records that a share group has under way, as runs of neighbours with the same fate. Runs stand side by side:
 * each begins where the one before it ends. A run is cut where records of it get different fates, and joined
 * again when they are the same.
 */
import { assert } from "../../lib/assert.ts";
import type { Offset } from "../../lib/brand.ts";
import { partitionPoint } from "../../lib/partition_point.ts";

export type RecordState = "available" | "acquired" | "acknowledged" | "archived";

/** A change that counts once it is durable; the records of it belong to nobody else meanwhile. */
export interface Ticket {
  readonly ranges: { readonly first: Offset; readonly last: Offset }[];
}

export interface Run {
  first: Offset;
  last: Offset;
  state: RecordState;
  /** How often its records were delivered. */
  count: number;
  /** Who has acquired it; empty for nobody. */
  member: string;
  /** When the lock ends, by the monotonic clock. */
  lockUntilMs: number;
  /** Under way to another state. */
  pending: { readonly ticket: Ticket; readonly to: RecordState } | null;
  /** What was acquired together and is given out together again. */
  batchFirst: Offset;
  batchLast: Offset;
}

export function isFinal({ state }: Run): boolean {
  return state === "acknowledged" || state === "archived";
}

export function lengthOf({ first, last }: Pick<Run, "first" | "last">): number {
  return last - first + 1;
}

function isAlike(a: Run, b: Run): boolean {
  if (a.state !== b.state || a.count !== b.count || a.member !== b.member) return false;
  if (a.lockUntilMs !== b.lockUntilMs) return false;
  if (a.pending?.ticket !== b.pending?.ticket || a.pending?.to !== b.pending?.to) return false;
  // What is final is never given out again.
  return isFinal(a) || a.batchFirst === b.batchFirst;
}

export class Runs {
  #runs: Run[] = [];

  get length(): number {
    return this.#runs.length;
  }

  at(index: number): Run | undefined {
    return this.#runs[index];
  }

  [Symbol.iterator](): IterableIterator<Run> {
    return this.#runs[Symbol.iterator]();
  }

  /** Behind the last one. */
  push(run: Run): void {
    const last = this.#runs.at(-1);
    assert(last === undefined || last.last + 1 === run.first, "runs stand side by side");
    this.#runs.push(run);
  }

  clear(): void {
    this.#runs = [];
  }

  /** Index of the run that holds an offset, or of the first one behind it. */
  indexOf(offset: Offset): number {
    return partitionPoint(this.#runs.length, (at) => this.#runs[at]!.last < offset);
  }

  /** Makes a run begin at an offset that is within the runs or right behind them; returns its index. */
  cut(offset: Offset): number {
    const index = this.indexOf(offset);
    const run = this.#runs[index];
    if (run === undefined || run.first >= offset) return index;
    const rest: Run = { ...run, first: offset };
    run.last = offset - 1;
    this.#runs.splice(index + 1, 0, rest);
    return index + 1;
  }

  /** The runs that make up exactly this range, as far as there are any. */
  within(first: Offset, last: Offset): Run[] {
    const from = this.cut(first);
    return this.#runs.slice(from, this.cut(last + 1));
  }

  dropFirst(count: number): void {
    this.#runs.splice(0, count);
  }

  /** Joins what is alike in a range and with its neighbours. */
  join(first: Offset, last: Offset): void {
    const from = Math.max(0, this.indexOf(first) - 1);
    const to = Math.min(this.#runs.length, this.indexOf(last + 1) + 1);
    const joined: Run[] = [];
    for (const run of this.#runs.slice(from, to)) {
      const before = joined.at(-1);
      if (before !== undefined && isAlike(before, run)) before.last = run.last;
      else joined.push(run);
    }
    if (joined.length < to - from) this.#runs.splice(from, to - from, ...joined);
  }
}
