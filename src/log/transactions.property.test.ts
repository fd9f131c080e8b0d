/**
 * Scenario 56 with transactions: random commits and aborts of interleaved producers, snapshots, deletions,
 * expiry and crashes between any two writes, against a list of what was appended. Readers of committed
 * records see exactly what the list says was committed, wherever they begin.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LogRun, type Maintenance } from "../../tests/support/log_run.ts";
import { loseSnapshots } from "../../tests/support/log_damage.ts";
import {
  accepted,
  appendInTransaction,
  appendMarker,
  createHarness,
  HOUR_MS,
  readCommitted,
} from "../../tests/support/partition_harness.ts";
import { readRecords } from "../protocol/record.ts";
import { readBatchHeader } from "../protocol/record_batch.ts";
import { AbortedFilter } from "./aborted_filter.ts";

/** Writes outside of transactions. */
const PLAIN = 9;

interface Entry {
  readonly producerId: number;
  readonly epoch: number;
  readonly base: number;
  readonly count: number;
  /** First sequence; -1 for a marker. */
  readonly first: number;
  readonly commit: boolean;
  readonly atMs: number;
}

interface Transaction {
  readonly producerId: number;
  readonly batches: Entry[];
  end: Entry | null;
}

type Op =
  | { readonly op: "data"; readonly producer: number; readonly count: number }
  | {
    readonly op: "end";
    readonly producer: number;
    readonly commit: boolean;
    readonly v2: boolean;
  }
  | { readonly op: "confirm"; readonly count: number }
  | { readonly op: "clock" }
  | Maintenance
  | { readonly op: "lose-snapshots" }
  | { readonly op: "delete"; readonly share: number };

const producer = fc.constantFrom(0, 1, 2, PLAIN);
const share = fc.double({ min: 0, max: 1, noNaN: true });
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      op: fc.constant("data" as const),
      producer,
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant("end" as const),
      producer: fc.nat(2),
      commit: fc.boolean(),
      v2: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ op: fc.constant("confirm" as const), count: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("clock" as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constantFrom("tick" as const, "close" as const, "crash" as const),
      writes: fc.nat(16),
      ends: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("lose-snapshots" as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("delete" as const), share }) },
);

function transactionsOf(entries: readonly Entry[]): Transaction[] {
  const all: Transaction[] = [];
  const open = new Map<number, Transaction>();
  for (const entry of entries) {
    const { producerId } = entry;
    if (producerId === PLAIN) continue;
    const current = open.get(producerId);
    if (entry.first < 0) {
      if (current !== undefined) current.end = entry;
      open.delete(producerId);
    } else if (current === undefined) {
      const begun = { producerId, batches: [entry], end: null };
      open.set(producerId, begun);
      all.push(begun);
    } else current.batches.push(entry);
  }
  return all;
}

class Run extends LogRun {
  entries: Entry[] = [];

  /** Epoch and next sequence of a producer, as its client knows them. */
  #place(producerId: number): { epoch: number; first: number } {
    const last = this.entries.findLast((entry) => entry.producerId === producerId);
    const epoch = last?.epoch ?? 0;
    const data = this.entries.findLast((entry) =>
      entry.producerId === producerId && entry.epoch === epoch && entry.first >= 0
    );
    return { epoch, first: data === undefined ? 0 : data.first + data.count };
  }

  data({ producer: producerId, count }: Extract<Op, { op: "data" }>): void {
    const { h } = this;
    const { epoch, first } = this.#place(producerId);
    const who = { producerId, producerEpoch: epoch };
    const last = first + count - 1;
    const result = producerId === PLAIN
      ? h.log.append(h.sequenced(first, last, who))
      : appendInTransaction(h, first, last, who);
    // A marker behind data that is forgotten wants sequence 0 next (scenario 26).
    if (this.#mayBeForgotten(producerId, epoch) && first > 0 && !result.ok) {
      assert.equal(result.error, "OUT_OF_ORDER_SEQUENCE_NUMBER");
      return;
    }
    const base = accepted(result).baseOffset;
    this.entries.push({ producerId, epoch, base, count, first, commit: false, atMs: h.nowMs });
  }

  /** Deleted or expired. */
  #mayBeForgotten(producerId: number, epoch: number): boolean {
    const { nowMs, log: { logStartOffset } } = this.h;
    return this.entries.every((entry) =>
      entry.producerId !== producerId || entry.epoch !== epoch || entry.first < 0 ||
      entry.base + entry.count <= logStartOffset || nowMs - entry.atMs >= HOUR_MS
    );
  }

  end({ producer: producerId, commit, v2 }: Extract<Op, { op: "end" }>): void {
    const epoch = this.#place(producerId).epoch + (v2 ? 1 : 0);
    const marker = { producerId, producerEpoch: epoch, commit, isTransactionsV2: v2 };
    const base = accepted(appendMarker(this.h, marker)).baseOffset;
    this.entries.push({ producerId, epoch, base, count: 1, first: -1, commit, atMs: this.h.nowMs });
  }

  /** Between the two when the log start has passed the beginning of an open transaction. */
  checkStable(): void {
    const { highWatermark, logStartOffset, lastStableOffset } = this.h.log;
    let [low, high] = [highWatermark, highWatermark];
    for (const { batches, end } of transactionsOf(this.entries)) {
      if (end !== null && end.base < highWatermark) continue;
      low = Math.min(low, Math.max(batches[0]!.base, logStartOffset));
      const left = batches.find(({ base, count }) => base + count > logStartOffset);
      if (left !== undefined) high = Math.min(high, Math.max(left.base, logStartOffset));
    }
    assert.ok(
      lastStableOffset >= low && lastStableOffset <= high,
      `last stable offset ${lastStableOffset} is not in ${low} to ${high}`,
    );
  }

  cutAt(end: number): void {
    this.entries = this.entries.filter(({ base }) => base < end);
  }

  async step(step: Op): Promise<void> {
    switch (step.op) {
      case "data":
        return this.data(step);
      case "end":
        return this.end(step);
      case "confirm":
        return this.h.streams.confirm(step.count);
      case "clock":
        this.h.nowMs += HOUR_MS + 1;
        return;
      case "lose-snapshots":
        return loseSnapshots(this.h);
      case "delete":
        return await this.deleteRecords(step.share);
      default:
        await this.maintain(step);
        return await this.checkReaders();
    }
  }

  /** What a reader of committed records sees from an offset on, in reads of so many bytes. */
  async #seen(start: number, bytesMax: number): Promise<string[]> {
    const { log, env } = this.h;
    const seen: string[] = [];
    for (let at = start; at < log.lastStableOffset;) {
      const read = await readCommitted(log, at, bytesMax);
      this.#checkExact(read.aborted, at, read.batches);
      const filter = new AbortedFilter(read.aborted);
      for (const batch of read.batches) {
        const header = readBatchHeader(batch);
        if (!filter.hides(header, batch)) {
          for (const { offset, value } of readRecords(batch, env.codecs)) {
            if (offset >= at) seen.push(`${offset}:${new TextDecoder().decode(value!)}`);
          }
        }
        at = header.baseOffset + header.lastOffsetDelta + 1;
      }
    }
    return seen;
  }

  /** Each transaction once, none too many; where nothing was deleted, all that the list says. */
  #checkExact(aborted: readonly object[], start: number, batches: readonly Uint8Array[]): void {
    if (this.h.log.logStartOffset > 0) return;
    const last = readBatchHeader(batches.at(-1)!);
    const end = last.baseOffset + last.lastOffsetDelta + 1;
    const expected = transactionsOf(this.entries)
      .filter(({ batches: [begin], end: marker }) =>
        marker?.commit === false && marker.base >= start && begin!.base < end
      )
      .map(({ producerId, batches: [begin] }) => ({ producerId, firstOffset: begin!.base }));
    assert.deepEqual(aborted, expected);
  }

  #committed(start: number): string[] {
    const { lastStableOffset } = this.h.log;
    const transactions = transactionsOf(this.entries);
    const hidden = new Set(
      transactions.filter(({ end }) => end?.commit !== true).flatMap(({ batches }) => batches),
    );
    return this.entries
      .filter((entry) =>
        entry.first >= 0 && !hidden.has(entry) && entry.base + entry.count <= lastStableOffset
      )
      .flatMap(({ base, first, count }) =>
        Array.from({ length: count }, (_, i) => ({ offset: base + i, first, i }))
      )
      .filter(({ offset }) => offset >= start)
      .map(({ offset, first, i }) => `${offset}:${first}+${i}`);
  }

  async checkReaders(): Promise<void> {
    this.checkStable();
    const { logStartOffset, lastStableOffset } = this.h.log;
    const span = Math.max(0, lastStableOffset - logStartOffset);
    for (const start of new Set([0, 0.3, 0.6, 0.9].map((at) => Math.floor(at * span)))) {
      for (const bytesMax of [1, 2 ** 30]) {
        const from = logStartOffset + start;
        assert.deepEqual(await this.#seen(from, bytesMax), this.#committed(from));
      }
    }
  }

  /** Recovery from snapshot and log, again, and from the log alone: the same each time. */
  async finish(): Promise<void> {
    for (const lose of [false, false, true]) {
      if (lose) loseSnapshots(this.h);
      await this.crash();
      await this.checkReaders();
    }
  }
}

test("56 with transactions: readers see what was committed, whatever crashes", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 20, maxLength: 80, size: "max" }), async (steps) => {
      const h = await createHarness({ segmentBytes: 600 });
      h.streams.durability = "manual";
      const run = new Run(h);
      for (const step of steps) {
        await run.step(step);
        run.checkStable();
      }
      await run.finish();
    }),
    { numRuns: 50 },
  );
});
