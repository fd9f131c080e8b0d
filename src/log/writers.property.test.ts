/** Random steps, closings, checkpoints and crashes between any two writes, against a model that reads the log. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LogRun, type Maintenance } from "../../tests/support/log_run.ts";
import { createHarness } from "../../tests/support/partition_harness.ts";
import { stepBatch } from "../../tests/support/step_batches.ts";
import type { WriterStep } from "./writer_step.ts";

type Op =
  | { readonly op: "step"; readonly n: number; readonly count: number; readonly hasOrder: boolean }
  | { readonly op: "close" | "other" }
  | { readonly op: "confirm"; readonly count: number }
  | { readonly op: "work"; readonly work: Maintenance };

const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant("step" as const),
      n: fc.nat(3),
      count: fc.integer({ min: 1, max: 3 }),
      hasOrder: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant("other" as const) }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant("close" as const) }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("confirm" as const), count: fc.nat(5) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant("work" as const),
      work: fc.record({
        op: fc.constantFrom("tick" as const, "close" as const, "crash" as const),
        writes: fc.nat(8),
        ends: fc.boolean(),
      }),
    }),
  },
);

class Run extends LogRun {
  steps: { readonly end: number; readonly step: WriterStep }[] = [];

  cutAt(end: number): void {
    this.steps = this.steps.filter((one) => one.end <= end);
  }

  send(over: Partial<WriterStep>, count: number): void {
    const step = { closes: false, order: null, writer: null, ...over };
    const isClosed = this.steps.some((one) => one.step.closes);
    const batch = stepBatch(this.h.env, this.h.nowMs, step, Array(count).fill("v"));
    const sent = this.h.log.appendStep(batch);
    assert.equal(sent.ok, !isClosed);
    if (sent.ok) this.steps.push({ end: sent.lastOffset + 1, step });
  }

  async step(one: Op): Promise<void> {
    switch (one.op) {
      case "step": {
        const name = `w${one.n}`;
        const sequence = this.steps.filter(({ step }) => step.writer?.name === name).length;
        const order = one.hasOrder ? `o${this.h.log.logEndOffset}` : null;
        return this.send({ writer: { name, epoch: one.n, sequence }, order }, one.count);
      }
      case "close":
        return this.send({ closes: true }, 1);
      case "other":
        return void this.h.log.append(this.h.batch(["x"]));
      case "confirm":
        return this.h.streams.confirm(one.count);
      case "work":
        return await this.maintain(one.work);
    }
  }

  check(): void {
    const { writers } = this.h.log;
    const last = (has: (step: WriterStep) => boolean) =>
      this.steps.findLast(({ step }) => has(step)) ?? null;
    const closed = last(({ closes }) => closes);
    assert.deepEqual(writers.closing, closed && { end: closed.end, by: closed.step.writer });
    assert.equal(writers.order, last(({ order }) => order !== null)?.step.order ?? null);
    for (const name of ["w0", "w1", "w2", "w3"]) {
      const found = last(({ writer }) => writer?.name === name);
      assert.deepEqual(
        writers.writer(name) ?? null,
        found && { ...found.step.writer, end: found.end },
      );
    }
  }
}

test("what a log remembers of its writers is what its batches say", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(op, { maxLength: 30 }), async (ops) => {
      const h = await createHarness({ segmentBytes: 600 });
      h.streams.durability = "manual";
      const run = new Run(h);
      for (const one of ops) {
        await run.step(one);
        run.check();
      }
      await run.crash();
      run.check();
    }),
    { numRuns: 60 },
  );
});
