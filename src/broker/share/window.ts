/**
 * What a share group has under way in one partition, as a value without I/O: from the start offset (Kafka's SPSO)
 * to the next offset that was never given out, each record is available, acquired by one member under a lock,
 * acknowledged or archived. The start offset moves over final records only. A change by a client
 * counts in two steps: begun, which keeps others out, and committed once it is durable, or rolled back.
 */
import { assert } from "../../lib/assert.ts";
import type { Offset } from "../../lib/brand.ts";
import { SHARE_ACQUIRE_RECORDS_MAX } from "../../lib/limits.ts";
import { type AcquireAsk, type Acquired, Acquisition } from "./acquire.ts";
import { isFinal, lengthOf, type RecordState, type Run, Runs, type Ticket } from "./runs.ts";

/** What is written of a range: never that somebody has acquired it. */
export interface StateBatch {
  readonly first: Offset;
  readonly last: Offset;
  readonly state: Exclude<RecordState, "acquired">;
  readonly count: number;
}

export interface WindowOptions {
  readonly startOffset: Offset;
  /** In order, at or above the start offset. */
  readonly batches: readonly StateBatch[];
  readonly deliveriesMax: number;
  /** Records between start and next offset from which nothing new is given out. */
  readonly recordsMax: number;
}

/** As in Kafka's requests; one type for all records of the range, or one for each. */
export interface Acknowledgement {
  readonly first: Offset;
  readonly last: Offset;
  readonly types: readonly number[];
}

export const GAP = 0;
export const ACCEPT = 1;
export const RELEASE = 2;
export const REJECT = 3;
export const RENEW = 4;

export type WindowRefusal = "INVALID_RECORD_STATE" | "INVALID_REQUEST";

/** What a begun change will have made of the records. */
export interface Begun {
  readonly ticket: Ticket;
  readonly changes: readonly StateBatch[];
}

/** The same while it grows, with the ranges whose locks are renewed if all goes well. */
interface Beginning {
  readonly ticket: Ticket;
  readonly changes: StateBatch[];
  readonly renewed: { readonly first: Offset; readonly last: Offset }[];
}

function addChange(changes: StateBatch[], change: StateBatch): void {
  const before = changes.at(-1);
  const isSame = before !== undefined && before.last + 1 === change.first &&
    before.state === change.state && before.count === change.count;
  if (isSame) changes[changes.length - 1] = { ...before, last: change.last };
  else changes.push(change);
}

export class ShareWindow {
  readonly #options: WindowOptions;
  readonly #runs = new Runs();
  #start: Offset;
  #next: Offset;
  /** False when no record below the next offset is free. */
  #mayHaveFree: boolean;

  constructor(options: WindowOptions) {
    this.#options = options;
    this.#start = options.startOffset;
    this.#next = options.startOffset;
    for (const batch of options.batches) this.#restore(batch);
    this.#mayHaveFree = this.#runs.length > 0;
    this.#moveStart();
  }

  get start(): Offset {
    return this.#start;
  }
  get next(): Offset {
    return this.#next;
  }
  /** Records between start and next offset. */
  get size(): number {
    return this.#next - this.#start;
  }
  /** Of these as many as may be there: what a compacted log has lost in between is one run. */
  get recordsAtMost(): number {
    return Math.min(this.size, this.#options.recordsMax + SHARE_ACQUIRE_RECORDS_MAX);
  }
  get runs(): Iterable<Readonly<Run>> {
    return this.#runs;
  }

  /** Records at or above the start offset that are done, or will be once that is durable. */
  get finalCount(): number {
    let count = 0;
    for (const run of this.#runs) {
      const { state } = run.pending === null ? run : { state: run.pending.to };
      if (state === "acknowledged" || state === "archived") count += lengthOf(run);
    }
    return count;
  }

  /** The first record that may be given out. */
  get nextFetchOffset(): Offset {
    if (!this.#mayHaveFree) return this.#next;
    for (const run of this.#runs) if (this.#isFree(run)) return run.first;
    this.#mayHaveFree = false;
    return this.#next;
  }

  /** Whether a fetch could get anything, if the log has it. */
  get canAcquire(): boolean {
    return this.nextFetchOffset < this.#next || this.size < this.#options.recordsMax;
  }

  /** When the next lock ends; Infinity without any. */
  get firstLockEndMs(): number {
    let first = Infinity;
    for (const { state, pending, lockUntilMs } of this.#runs) {
      if (state === "acquired" && pending === null) first = Math.min(first, lockUntilMs);
    }
    return first;
  }

  /** What all that is known amounts to, without what is acquired: it is available after a restart. */
  snapshot(): StateBatch[] {
    const batches: StateBatch[] = [];
    for (const { first, last, state, count } of this.#runs) {
      if (state !== "acquired") addChange(batches, { first, last, state, count });
    }
    return batches;
  }

  #isFree({ state, pending }: Run): boolean {
    return state === "available" && pending === null;
  }

  /** What no state is known of lies between the batches of a loaded state: it was acquired at best. */
  #restore({ first, last, state, count }: StateBatch): void {
    assert(first >= this.#next && last >= first, "stored batches stand in order");
    if (first > this.#next) this.#push(this.#next, first - 1, "available", 0);
    this.#push(first, last, state, count);
  }

  #push(first: Offset, last: Offset, state: RecordState, count: number): void {
    const bounds = { batchFirst: first, batchLast: last };
    const free = { member: "", lockUntilMs: 0, pending: null };
    this.#runs.push({ first, last, state, count, ...free, ...bounds });
    this.#next = last + 1;
  }

  /** Gives records to a member. What is below the first batch of the log has no records any more. */
  acquire(ask: AcquireAsk): Acquired[] {
    const lastBatch = ask.batches.at(-1);
    if (lastBatch === undefined || ask.recordsMax <= 0 || lastBatch.last < this.#start) return [];
    let room = Math.min(ask.recordsMax, this.#options.recordsMax - this.size);
    let limit = lastBatch.last;
    const mayGrow = room > 0;
    if (!mayGrow) {
      // Only what is between others that are under way, so that the start offset can move.
      if (ask.fetchOffset >= this.#next) return [];
      room = Math.min(ask.recordsMax, this.#next - ask.fetchOffset);
      limit = Math.min(limit, this.#next - 1);
    }
    this.#archiveGap(ask.fetchOffset, ask.batches[0]!.first, mayGrow);
    const work = new Acquisition(this.#runs, {
      ...ask,
      room,
      limit,
      start: this.#start,
      deliveriesMax: this.#options.deliveriesMax,
    });
    const acquired = work.run(this.#next);
    this.#next = work.next;
    if (acquired.length > 0) this.#mayHaveFree = true;
    this.#moveStart();
    return acquired;
  }

  /** The log has nothing between two offsets: it was compacted. */
  #archiveGap(from: Offset, to: Offset, mayGrow: boolean): void {
    const end = Math.min(to, this.#next);
    for (const run of from < end ? this.#runs.within(from, end - 1) : []) {
      if (this.#isFree(run)) run.state = "archived";
    }
    this.#runs.join(from, end);
    if (mayGrow && to > this.#next) this.#push(this.#next, to - 1, "archived", 0);
  }

  /** Takes back what was just acquired and must not be read. */
  archive(member: string, ranges: readonly { readonly first: Offset; readonly last: Offset }[]) {
    for (const { first, last } of ranges) {
      for (const run of this.#runs.within(first, last)) {
        if (run.state === "acquired" && run.member === member && run.pending === null) {
          this.#finish(run, "archived");
        }
      }
      this.#runs.join(first, last);
    }
    this.#moveStart();
  }

  #finish(run: Run, state: RecordState): void {
    run.state = state;
    run.member = "";
    run.lockUntilMs = 0;
    run.pending = null;
    if (state === "available") this.#mayHaveFree = true;
  }

  /** Where a record goes that its member gives back. */
  #released({ count }: Run): "available" | "archived" {
    return count >= this.#options.deliveriesMax ? "archived" : "available";
  }

  #target(type: number, run: Run): StateBatch["state"] {
    if (type === ACCEPT) return "acknowledged";
    return type === RELEASE ? this.#released(run) : "archived";
  }

  /**
   * All of it or nothing: every record at or above the start offset must be acquired by the member. Renewed locks
   * end at `lockUntilMs`.
   */
  acknowledge(
    member: string,
    acknowledgements: readonly Acknowledgement[],
    lockUntilMs: number,
  ): Begun | WindowRefusal {
    const begun: Beginning = { ticket: { ranges: [] }, changes: [], renewed: [] };
    for (const one of acknowledgements) {
      const refusal = one.last < this.#start ? null : this.#acknowledge(member, one, begun);
      if (refusal === null) continue;
      this.#settle(begun.ticket, (run) => void (run.pending = null));
      // What was cut to be looked at is whole again.
      for (const { first, last } of acknowledgements) this.#runs.join(first, last);
      return refusal;
    }
    for (const { first, last } of begun.renewed) {
      for (const run of this.#runs.within(first, last)) run.lockUntilMs = lockUntilMs;
      this.#runs.join(first, last);
    }
    return begun;
  }

  #acknowledge(
    member: string,
    { first, last, types }: Acknowledgement,
    begun: Beginning,
  ): WindowRefusal | null {
    if (this.size === 0) return "INVALID_RECORD_STATE";
    if (last >= this.#next) return "INVALID_REQUEST";
    for (let at = Math.max(first, this.#start); at <= last;) {
      const type = types[types.length === 1 ? 0 : at - first];
      let end = types.length === 1 ? last : at;
      while (end < last && types[end + 1 - first] === type) end += 1;
      assert(type !== undefined, "there is a type for each record");
      for (const run of this.#runs.within(at, end)) {
        const isOwn = run.state === "acquired" && run.member === member && run.pending === null;
        if (!isOwn) return "INVALID_RECORD_STATE";
        if (type !== RENEW) this.#begin(run, this.#target(type, run), begun);
      }
      if (type === RENEW) begun.renewed.push({ first: at, last: end });
      at = end + 1;
    }
    return null;
  }

  #begin(run: Run, to: StateBatch["state"], { ticket, changes }: Beginning): void {
    const { first, last, count } = run;
    run.pending = { ticket, to };
    ticket.ranges.push({ first, last });
    addChange(changes, { first, last, state: to, count });
  }

  /** Gives back all that a member has and is not acknowledging. */
  release(member: string): Begun {
    const begun: Beginning = { ticket: { ranges: [] }, changes: [], renewed: [] };
    for (const run of this.#runs) {
      const isOwn = run.state === "acquired" && run.member === member && run.pending === null;
      if (isOwn) this.#begin(run, this.#released(run), begun);
    }
    return begun;
  }

  commit({ ticket }: Begun): void {
    this.#settle(ticket, (run, to) => this.#finish(run, to));
    this.#moveStart();
  }

  /** As it was; where a lock has ended meanwhile it has ended, and that is to be written. */
  rollback({ ticket }: Begun, nowMs: number): StateBatch[] {
    const changes: StateBatch[] = [];
    this.#settle(ticket, (run) => {
      run.pending = null;
      if (run.lockUntilMs > nowMs) return;
      const { first, last, count } = run;
      const state = this.#released(run);
      this.#finish(run, state);
      addChange(changes, { first, last, state, count });
    });
    this.#moveStart();
    return changes;
  }

  #settle(ticket: Ticket, work: (run: Run, to: RecordState) => void): void {
    for (const { first, last } of ticket.ranges) {
      // Its records may have been dropped meanwhile, with the start of the log.
      for (const run of this.#runs.within(first, last)) {
        if (run.pending?.ticket === ticket) work(run, run.pending.to);
      }
      this.#runs.join(first, last);
    }
  }

  /** Gives back what locks have ended for; that counts at once, and is written then. */
  expire(nowMs: number): StateBatch[] {
    const changes: StateBatch[] = [];
    for (const run of this.#runs) {
      const { first, last, count } = run;
      if (run.state !== "acquired" || run.pending !== null || run.lockUntilMs > nowMs) continue;
      const state = this.#released(run);
      this.#finish(run, state);
      addChange(changes, { first, last, state, count });
    }
    if (changes.length > 0) this.#runs.join(this.#start, this.#next - 1);
    this.#moveStart();
    return changes;
  }

  /** The log begins later now: what was before it is done. */
  trimTo(logStart: Offset): void {
    if (logStart <= this.#start) return;
    if (logStart >= this.#next) {
      this.#runs.clear();
      this.#next = logStart;
    } else this.#runs.dropFirst(this.#runs.cut(logStart));
    this.#start = logStart;
    this.#moveStart();
  }

  #moveStart(): void {
    let done = 0;
    for (const run of this.#runs) {
      if (!isFinal(run)) break;
      this.#start = run.last + 1;
      done += 1;
    }
    this.#runs.dropFirst(done);
  }
}
