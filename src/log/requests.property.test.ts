/**
 * Random requests in parts, other batches, checkpoints and crashes between any two writes, against a list of the
 * parts that are in the log: what the table says of a request is what the list says, or, past its window, nothing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LogRun, type Maintenance } from "../../tests/support/log_run.ts";
import { loseSnapshots } from "../../tests/support/log_damage.ts";
import { createHarness } from "../../tests/support/partition_harness.ts";
import { idOf, partOf, requestBatch } from "../../tests/support/request_batches.ts";
import { REQUEST_WINDOW_MS } from "../lib/limits.ts";

interface Part {
  readonly n: number;
  readonly first: number;
  readonly count: number;
  readonly baseOffset: number;
  readonly atMs: number;
}

type Op =
  | { readonly op: "begin" | "go-on"; readonly n: number; readonly count: number }
  | { readonly op: "other" }
  | { readonly op: "confirm"; readonly count: number }
  | { readonly op: "clock"; readonly ms: number }
  | { readonly op: "lose-snapshots" }
  | { readonly op: "delete"; readonly share: number }
  | Maintenance;

const n = fc.nat(3);
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constantFrom("begin" as const, "go-on" as const),
      n,
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant("other" as const) }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("confirm" as const), count: fc.nat(5) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant("clock" as const),
      ms: fc.constantFrom(1_000, REQUEST_WINDOW_MS / 2, REQUEST_WINDOW_MS + 1, -REQUEST_WINDOW_MS),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constantFrom("tick" as const, "close" as const, "crash" as const),
      writes: fc.nat(8),
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
  parts: Part[] = [];
  /** The clock went back, or further than the window: what is forgotten is not known. */
  isVague = false;

  /** The places of the request's records, from its last beginning on. */
  offsetsOf(request: number): number[] {
    let offsets: number[] = [];
    for (const part of this.parts.filter((one) => one.n === request)) {
      if (part.first === 0) offsets = [];
      if (part.first !== offsets.length) continue;
      for (let i = 0; i < part.count; i++) offsets.push(part.baseOffset + i);
    }
    return offsets;
  }

  known(request: number): number[] | null {
    const known = this.h.log.rememberedRequest(idOf(request));
    known?.durable.catch(() => {});
    return known?.runs.flatMap(({ baseOffset, count }) =>
      Array.from({ length: count }, (_, i) => baseOffset + i)
    ) ?? null;
  }

  check(): void {
    for (const request of [0, 1, 2, 3]) {
      const expected = this.offsetsOf(request);
      const known = this.known(request);
      if (known === null && (this.isVague || expected.length === 0)) continue;
      assert.deepEqual(known, expected);
    }
  }

  send(request: number, first: number, count: number): void {
    const { h } = this;
    const values = Array.from({ length: count }, (_, i) => `${request}.${first + i}`);
    const part = partOf(request, { first });
    const sent = h.log.appendRequest(requestBatch(h.env, h.nowMs, part, values));
    if (!sent.ok) return;
    const { baseOffset } = sent;
    this.parts.push({ n: request, first, count, baseOffset, atMs: h.nowMs });
  }

  cutAt(end: number): void {
    // A request that began anew in what is cut off may have been the only trace of the one before.
    const lost = this.parts.filter(({ baseOffset }) => baseOffset >= end);
    this.parts = this.parts.filter(({ baseOffset }) => baseOffset < end);
    if (lost.some(({ first, n: of }) => first === 0 && this.offsetsOf(of).length > 0)) {
      this.isVague = true;
    }
  }

  async step(step: Op): Promise<void> {
    switch (step.op) {
      case "begin":
        if (this.known(step.n) === null) this.send(step.n, 0, step.count);
        return;
      case "go-on": {
        const first = this.known(step.n)?.length ?? 0;
        return this.send(step.n, first, step.count);
      }
      case "other":
        return void this.h.log.append(this.h.batch(["x"]));
      case "confirm":
        return this.h.streams.confirm(step.count);
      case "clock":
        this.h.nowMs += step.ms;
        this.isVague ||= step.ms < 0 || step.ms >= REQUEST_WINDOW_MS / 2;
        return;
      case "lose-snapshots":
        return loseSnapshots(this.h);
      case "delete":
        return await this.deleteRecords(step.share);
      default:
        return await this.maintain(step);
    }
  }
}

test("what a log says of requests is what is in it, after any crash", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(op, { maxLength: 40 }), async (steps) => {
      const h = await createHarness({ segmentBytes: 600 });
      h.streams.durability = "manual";
      const run = new Run(h);
      for (const step of steps) {
        await run.step(step);
        run.check();
      }
      for (let i = 0; i < 2; i++) {
        await run.crash();
        run.check();
      }
    }),
    { numRuns: 120 },
  );
});
