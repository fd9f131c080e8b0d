/**
 * Which records one fetch gets, by Kafka's rules. What was delivered before comes as it was acquired, and in ever
 * smaller parts once it failed often, so that one bad record does not take others with it. What is new comes
 * in whole batches of the log (mode 0), or in exactly as many records as were asked for (mode 1).
 */
import type { Offset } from "../../lib/brand.ts";
import { SHARE_ACQUIRE_RECORDS_MAX } from "../../lib/limits.ts";
import { lengthOf, type Run, type Runs } from "./runs.ts";

/** A batch of the log. */
export interface LogBatch {
  readonly first: Offset;
  readonly last: Offset;
}

export interface AcquireAsk {
  readonly member: string;
  /** No more records than asked for, instead of whole batches. */
  readonly isRecordLimit: boolean;
  /** Records that are best acquired together. */
  readonly batchSize: number;
  readonly recordsMax: number;
  readonly fetchOffset: Offset;
  /** What was read from there, in order; the first may begin before the offset. */
  readonly batches: readonly LogBatch[];
  readonly lockUntilMs: number;
}

export interface Acquired {
  readonly first: Offset;
  readonly last: Offset;
  readonly count: number;
}

interface AcquisitionOptions extends AcquireAsk {
  readonly room: number;
  /** Last offset that may be given out. */
  readonly limit: Offset;
  readonly start: Offset;
  readonly deliveriesMax: number;
}

/** So few deliveries are no reason to be careful. */
const CAREFUL_DELIVERIES_MIN = 2;

export class Acquisition {
  readonly #runs: Runs;
  readonly #options: AcquisitionOptions;
  readonly #acquired: Acquired[] = [];
  readonly #carefulFrom: number;
  #taken = 0;
  #isOver = false;
  /** Behind the last record that was ever given out. */
  next: Offset = 0;

  constructor(runs: Runs, options: AcquisitionOptions) {
    this.#runs = runs;
    this.#options = options;
    this.#carefulFrom = Math.max(CAREFUL_DELIVERIES_MIN, Math.ceil(options.deliveriesMax / 2));
  }

  run(next: Offset): Acquired[] {
    this.next = next;
    const { start, limit, batches, room } = this.#options;
    for (let at = Math.max(batches[0]!.first, start); at <= limit && at < next;) {
      if (this.#isOver || this.#taken >= room) return this.#acquired;
      at = this.#takeAt(at);
    }
    if (!this.#isOver && this.#taken < room && this.next <= limit) this.#takeUnknown();
    return this.#acquired;
  }

  /** Returns where to go on. */
  #takeAt(at: Offset): Offset {
    const run = this.#runs.at(this.#runs.indexOf(at))!;
    if (run.state !== "available" || run.pending !== null) return run.last + 1;
    return run.count === 0 ? this.#takeFresh(at, run) : this.#takeAgain(at, run);
  }

  /** Of records that were never delivered as far as anybody knows. */
  #takeFresh(at: Offset, { last }: Run): Offset {
    const runLast = Math.min(last, this.#options.limit);
    const end = this.#alignedEnd(at, runLast);
    this.#runs.cut(at);
    const rest = this.#runs.at(this.#runs.cut(end + 1));
    if (rest !== undefined && rest.first === end + 1 && rest.first <= last) {
      rest.batchFirst = rest.first;
    }
    this.#takePieces(at, end);
    return end + 1;
  }

  #takeUnknown(): void {
    const first = this.next;
    const end = this.#alignedEnd(first, this.#options.limit);
    const free = { member: "", lockUntilMs: 0, pending: null };
    const bounds = { batchFirst: first, batchLast: end };
    this.#runs.push({ first, last: end, state: "available", count: 0, ...free, ...bounds });
    this.next = end + 1;
    this.#takePieces(first, end);
  }

  /** The end of the batch of the log that has the last record we want, or less of a huge one. */
  #alignedEnd(first: Offset, last: Offset): Offset {
    const wanted = first + this.#options.room - this.#taken - 1;
    if (wanted >= last) return Math.min(last, first + SHARE_ACQUIRE_RECORDS_MAX - 1);
    const batch = this.#options.batches.findLast((one) => one.first <= wanted);
    const aligned = Math.max(wanted, batch?.last ?? wanted);
    return Math.min(aligned, last, first + SHARE_ACQUIRE_RECORDS_MAX - 1);
  }

  /** In parts of about the wanted size, cut where batches of the log are. */
  #takePieces(first: Offset, last: Offset): void {
    const { batches, batchSize, isRecordLimit, room } = this.#options;
    let from = first;
    if (!isRecordLimit && last - first + 1 > batchSize) {
      for (const batch of batches) {
        if (batch.first > last) break;
        if (batch.first - from < Math.max(1, batchSize)) continue;
        this.#takePiece(from, batch.first - 1);
        from = batch.first;
      }
    }
    const wanted = isRecordLimit ? from + room - this.#taken - 1 : last;
    this.#takePiece(from, last, Math.min(last, wanted));
  }

  /** A batch of its own from now on, of which the member gets the records up to `end`. */
  #takePiece(first: Offset, last: Offset, end = last): void {
    for (const run of this.#runs.within(first, last)) {
      run.batchFirst = first;
      run.batchLast = last;
    }
    for (const run of this.#runs.within(first, end)) this.#give(run);
    this.#acquired.push({ first, last: end, count: 1 });
    this.#taken += end - first + 1;
  }

  #give(run: Run): void {
    run.state = "acquired";
    run.count += 1;
    run.member = this.#options.member;
    run.lockUntilMs = this.#options.lockUntilMs;
  }

  #takeAgain(at: Offset, run: Run): Offset {
    const { isRecordLimit, room, limit } = this.#options;
    const last = Math.min(run.batchLast, limit);
    const careful = this.#availableWithin(at, last).some(({ count }) => count >= this.#carefulFrom);
    if (careful && this.#taken > 0) {
      this.#isOver = true;
      return last + 1;
    }
    const isWhole = run.first === run.batchFirst && run.last === run.batchLast && run.last <= limit;
    const isTooMuch = isRecordLimit && lengthOf(run) > room - this.#taken;
    if (isWhole && !careful && !isTooMuch) {
      this.#give(run);
      this.#acquired.push({ first: run.first, last: run.last, count: run.count });
      this.#taken += lengthOf(run);
      return run.last + 1;
    }
    const before = this.#taken;
    this.#takeParts(at, last, run.batchLast - run.batchFirst + 1);
    if (careful && this.#taken > before) this.#isOver = true;
    return last + 1;
  }

  #availableWithin(first: Offset, last: Offset): Run[] {
    const found: Run[] = [];
    for (let index = this.#runs.indexOf(first);; index++) {
      const run = this.#runs.at(index);
      if (run === undefined || run.first > last) return found;
      if (run.state === "available" && run.pending === null) found.push(run);
    }
  }

  /** Of what was acquired together and has had different fates since. */
  #takeParts(first: Offset, last: Offset, batchRecords: number): void {
    const { deliveriesMax, isRecordLimit, room } = this.#options;
    const wanted = isRecordLimit ? room - this.#taken : Infinity;
    let taken = 0;
    let part = Infinity;
    for (const free of this.#availableWithin(first, last)) {
      // A record on its last delivery comes alone.
      const isLast = deliveriesMax > CAREFUL_DELIVERIES_MIN && free.count === deliveriesMax - 1;
      if (isLast && taken > 0) return;
      if (free.count >= this.#carefulFrom && part === Infinity) {
        part = Math.max(1, batchRecords >> (free.count - this.#carefulFrom + 1));
      }
      const from = Math.max(first, free.first);
      const most = isLast ? 1 : Math.min(wanted - taken, Math.max(1, part - taken));
      const end = Math.min(free.last, last, from + most - 1);
      this.#takePart(from, end);
      taken += end - from + 1;
      if (isLast || taken >= wanted || taken >= part) return;
    }
  }

  #takePart(first: Offset, last: Offset): void {
    for (const run of this.#runs.within(first, last)) {
      this.#give(run);
      const before = this.#acquired.at(-1);
      const isNext = before !== undefined && before.last + 1 === run.first &&
        before.count === run.count && before.first >= run.batchFirst;
      if (isNext) this.#acquired[this.#acquired.length - 1] = { ...before, last: run.last };
      else this.#acquired.push({ first: run.first, last: run.last, count: run.count });
    }
    this.#taken += last - first + 1;
  }
}
