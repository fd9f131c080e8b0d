/**
 * Scenario 56: random producers, epochs, wraps, expiry, snapshots, deletions, clock jumps and crashes
 * between any two writes, against a list of the batches that were admitted.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LogRun, type Maintenance } from "../../tests/support/log_run.ts";
import { loseSnapshots } from "../../tests/support/log_damage.ts";
import {
  contents,
  createHarness,
  HOUR_MS,
  outcome,
} from "../../tests/support/partition_harness.ts";

const SEQUENCES = 2 ** 31;

interface Admitted {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly first: number;
  readonly count: number;
  readonly baseOffset: number;
  /** No clock moved far or back since: the duplicate window is promised. */
  promised: boolean;
  readonly atMs: number;
}

type Op =
  | { readonly op: "next" | "bump"; readonly producer: number; readonly count: number }
  | { readonly op: "any"; readonly producer: number; readonly first: number }
  | { readonly op: "resend"; readonly producer: number; readonly back: number }
  | { readonly op: "confirm"; readonly count: number }
  | { readonly op: "clock"; readonly ms: number }
  | Maintenance
  | { readonly op: "lose-snapshots" }
  | { readonly op: "delete"; readonly share: number };

const producer = fc.nat(2);
const count = fc.integer({ min: 1, max: 4 });
const writes = fc.nat(8);
const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ op: fc.constant("next" as const), producer, count }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("bump" as const), producer, count }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("any" as const),
      producer,
      first: fc.oneof(fc.nat(20), fc.constantFrom(SEQUENCES - 1, SEQUENCES - 3)),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant("resend" as const), producer, back: fc.nat(6) }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("confirm" as const), count: fc.nat(5) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("clock" as const),
      ms: fc.constantFrom(1000, 600_000, HOUR_MS + 1, 48 * HOUR_MS, -2 * HOUR_MS),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constantFrom("tick" as const, "close" as const, "crash" as const),
      writes,
      ends: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("lose-snapshots" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant("delete" as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
);

class Run extends LogRun {
  /** Everything in the log, oldest first; cut at the log's end by a crash. */
  admitted: Admitted[] = [];

  ofProducer(producerId: number): Admitted[] {
    return this.admitted.filter((batch) => batch.producerId === producerId);
  }

  append(producerId: number, producerEpoch: number, first: number, size: number): string {
    const { h } = this;
    const last = (first + size - 1) % SEQUENCES;
    const end = h.log.logEndOffset;
    const result = h.log.append(h.sequenced(first, last, { producerId, producerEpoch }));
    if (!result.ok) return result.error;
    if (result.duplicate) {
      const original = this.admitted.find(({ baseOffset }) => baseOffset === result.baseOffset);
      assert.ok(original !== undefined, "a duplicate names a batch of the log");
      assert.deepEqual(
        [original.producerId, original.producerEpoch, original.first, original.count],
        [producerId, producerEpoch, first, size],
      );
    } else {
      assert.equal(result.baseOffset, end);
      this.admitted.push({
        producerId,
        producerEpoch,
        first,
        count: size,
        baseOffset: end,
        promised: true,
        atMs: h.nowMs,
      });
    }
    return outcome(result);
  }

  next({ producer: id, count: size, op: kind }: Op & { readonly op: "next" | "bump" }): void {
    const last = this.ofProducer(id).at(-1);
    const epoch = (last?.producerEpoch ?? 0) + (kind === "bump" ? 1 : 0);
    const first = kind === "bump" || last === undefined ? 0 : (last.first + last.count) % SEQUENCES;
    const end = this.h.log.logEndOffset;
    assert.equal(this.append(id, epoch, first, size), `new @${end}`, "the next batch is accepted");
  }

  resend(id: number, back: number): void {
    const mine = this.ofProducer(id);
    const batch = mine.at(-1 - back);
    if (batch === undefined) return;
    const got = this.append(id, batch.producerEpoch, batch.first, batch.count);
    if (this.#mustBeKnown(batch, mine, back)) assert.equal(got, `duplicate @${batch.baseOffset}`);
  }

  #mustBeKnown(batch: Admitted, mine: readonly Admitted[], back: number): boolean {
    const later = mine.slice(mine.length - back);
    return back < 5 && batch.promised && batch.baseOffset >= this.h.log.logStartOffset &&
      later.every(({ producerEpoch }) => producerEpoch === batch.producerEpoch);
  }

  moveClock(ms: number): void {
    this.h.nowMs += ms;
    for (const batch of this.admitted) {
      if (ms < 0 || this.h.nowMs - batch.atMs >= HOUR_MS) batch.promised = false;
    }
  }

  cutAt(end: number): void {
    this.admitted = this.admitted.filter(({ baseOffset }) => baseOffset < end);
    const last = this.admitted.at(-1);
    assert.equal(last === undefined ? 0 : last.baseOffset + last.count, end);
  }

  async step(step: Op): Promise<void> {
    switch (step.op) {
      case "next":
      case "bump":
        return this.next(step);
      case "any": {
        const epoch = this.ofProducer(step.producer).at(-1)?.producerEpoch ?? 0;
        this.append(step.producer, epoch, step.first, 3);
        return;
      }
      case "resend":
        return this.resend(step.producer, step.back);
      case "confirm":
        return this.h.streams.confirm(step.count);
      case "clock":
        return this.moveClock(step.ms);
      case "lose-snapshots":
        return loseSnapshots(this.h);
      case "delete":
        return await this.deleteRecords(step.share);
      default:
        return await this.maintain(step);
    }
  }

  expectedContents(): string[] {
    return this.admitted.flatMap(({ baseOffset, first, count: size }) =>
      Array.from({ length: size }, (_, i) => ({
        offset: baseOffset + i,
        text: `${baseOffset + i}:${first}+${i}`,
      }))
    ).filter(({ offset }) => offset >= this.h.log.logStartOffset).map(({ text }) => text);
  }

  resendAll(): void {
    for (const id of [0, 1, 2]) for (let back = 4; back >= 0; back--) this.resend(id, back);
  }

  /** Recovery from snapshot and log, again, and from the log alone: the same each time. */
  async finish(): Promise<void> {
    for (const lose of [false, false, true]) {
      if (lose) loseSnapshots(this.h);
      await this.crash();
      assert.deepEqual(await contents(this.h), this.expectedContents());
      // Unpromised ones may go in as new: they are no part of what is compared, and the crash drops them.
      this.resendAll();
    }
  }
}

test("56: recovery never fails, loses nothing admitted and stores nothing twice", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(op, { maxLength: 40 }), async (steps) => {
      const h = await createHarness({ segmentBytes: 400 });
      h.streams.durability = "manual";
      const run = new Run(h);
      for (const step of steps) await run.step(step);
      await run.finish();
    }),
    { numRuns: 120 },
  );
});
