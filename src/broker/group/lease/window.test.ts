import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { leaseRecord, readWindow } from "./records.ts";
import {
  acknowledge,
  deliveriesOf,
  extend,
  finish,
  firstFree,
  freeAtMs,
  giveBack,
  heldBy,
  isQuiet,
  isTrivial,
  lease,
  type LeaseWindow,
  nextOf,
  trimTo,
  windowAt,
} from "./window.ts";

const TOPIC_ID = "0123456789abcdef0123456789abcdef";
const OFFSETS = 24;
const SPANS_MAX = 6;

/** Each offset by itself. */
interface Cell {
  state: "new" | "done" | "leased" | "returned";
  holder: number;
  untilMs: number;
  deliveries: number;
}

function cells(): Cell[] {
  return Array.from({ length: OFFSETS }, () => ({
    state: "new",
    holder: 0,
    untilMs: 0,
    deliveries: 0,
  }));
}

function done(cell: Cell): void {
  Object.assign(cell, { state: "done", holder: 0, untilMs: 0, deliveries: 0 });
}

class Model {
  readonly cells = cells();

  isFree(at: number, nowMs: number): boolean {
    const { state, untilMs } = this.cells[at]!;
    return state === "new" || (state !== "done" && untilMs <= nowMs);
  }

  get next(): number {
    return this.cells.findLastIndex(({ state }) => state !== "new") + 1;
  }

  get start(): number {
    const at = this.cells.findIndex(({ state }) => state !== "done");
    return at < 0 ? OFFSETS : at;
  }

  firstFree(nowMs: number): number {
    const at = this.cells.findIndex((_, offset) => this.isFree(offset, nowMs));
    return at < 0 ? OFFSETS : at;
  }

  within(first: number, last: number): Cell[] {
    return this.cells.slice(first, last + 1);
  }
}

const holder = fc.integer({ min: 1, max: 3 });
const range = fc.tuple(fc.nat(OFFSETS - 1), fc.nat(OFFSETS - 1))
  .map(([a, b]) => ({ first: Math.min(a, b), last: Math.max(a, b) }));
const step = fc.oneof(
  fc.record({ do: fc.constant("lease" as const), holder, count: fc.integer({ min: 1, max: 6 }) }),
  fc.record({ do: fc.constant("ack" as const), holder, range }),
  fc.record({ do: fc.constant("nack" as const), holder, range, delayMs: fc.nat(3) }),
  fc.record({ do: fc.constant("extend" as const), holder, range }),
  fc.record({ do: fc.constant("finish" as const), count: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant("trim" as const), to: fc.nat(OFFSETS) }),
  fc.record({ do: fc.constant("pass" as const), ms: fc.nat(4) }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const LEASE_MS = 5;

function offsetsIn(ranges: readonly { readonly first: number; readonly last: number }[]): number[] {
  return ranges.flatMap(({ first, last }) =>
    Array.from({ length: last - first + 1 }, (_, i) => first + i)
  );
}

class Walk {
  readonly model = new Model();
  window: LeaseWindow = windowAt(TOPIC_ID, 0);
  nowMs = 100;

  /** The free run that a poll would take, cut to what it asks for; null when there is none. */
  #run(count: number) {
    const run = firstFree(this.window, this.nowMs, SPANS_MAX);
    if (run === null || run.first >= OFFSETS) return null;
    return { first: run.first, last: Math.min(run.first + count, run.end, OFFSETS) - 1 };
  }

  run(one: Step): void {
    const { model, nowMs } = this;
    if (one.do === "pass") this.nowMs += one.ms;
    else if (one.do === "lease") {
      const free = this.#run(one.count);
      if (free === null) return;
      assert.equal(free.first, model.firstFree(nowMs));
      for (const cell of model.within(free.first, free.last)) {
        const { deliveries } = cell;
        const untilMs = nowMs + LEASE_MS;
        Object.assign(cell, {
          state: "leased",
          holder: one.holder,
          untilMs,
          deliveries: deliveries + 1,
        });
      }
      this.window = lease(this.window, free, one.holder, nowMs + LEASE_MS);
    } else if (one.do === "finish") {
      const free = this.#run(one.count);
      if (free === null) return;
      for (const cell of model.within(free.first, free.last)) done(cell);
      this.window = finish(this.window, free);
    } else if (one.do === "trim") {
      for (const cell of model.within(0, one.to - 1)) done(cell);
      this.window = trimTo(this.window, one.to);
    } else this.#settle(one);
  }

  #settle(one: Extract<Step, { readonly holder: number; readonly range: unknown }>): void {
    const { model, nowMs, window } = this;
    const { first, last } = one.range;
    const lost: number[] = [];
    for (let offset = first; offset <= last; offset++) {
      const cell = model.cells[offset]!;
      const isOwn = cell.holder === one.holder &&
        (cell.state === "leased" || (one.do === "nack" && cell.state === "returned"));
      if (!isOwn) {
        if (cell.state !== "done" || one.do === "nack") lost.push(offset);
      } else if (one.do === "ack") done(cell);
      else if (one.do === "nack") {
        Object.assign(cell, { state: "returned", untilMs: nowMs + one.delayMs });
      } else cell.untilMs = nowMs + LEASE_MS;
    }
    const settled = one.do === "ack"
      ? acknowledge(window, one.holder, one.range)
      : one.do === "nack"
      ? giveBack(window, one.holder, one.range, nowMs + one.delayMs)
      : extend(window, one.holder, one.range, nowMs + LEASE_MS);
    assert.deepEqual(offsetsIn(settled.lost), lost);
    this.window = settled.window;
  }

  check(): void {
    const { model, window, nowMs } = this;
    assert.equal(window.start, model.start);
    assert.equal(nextOf(window), Math.max(model.next, model.start));
    let next = window.start;
    for (const span of window.spans) {
      assert.equal(span.first, next);
      next = span.last + 1;
      for (const cell of model.within(span.first, span.last)) {
        const { state, holder: by, untilMs, deliveries } = span;
        assert.deepEqual(cell, { state, holder: by, untilMs, deliveries });
      }
    }
    const isQuietModel = model.cells.every((cell, at) =>
      cell.state === "new" || cell.state === "done" || model.isFree(at, nowMs)
    );
    assert.equal(isQuiet(window, nowMs), isQuietModel);
    const waiting = model.cells.filter(({ state, untilMs }) => state !== "done" && untilMs > nowMs);
    assert.equal(freeAtMs(window, nowMs), Math.min(...waiting.map(({ untilMs }) => untilMs)));
    for (const by of [1, 2, 3]) {
      const held = model.cells.flatMap((cell, at) =>
        cell.state === "leased" && cell.holder === by && cell.untilMs > nowMs ? [at] : []
      );
      assert.deepEqual(offsetsIn(heldBy(window, by, nowMs)), held);
    }
    assert.equal(
      isTrivial(window),
      window.start === window.committed && model.next <= model.start,
    );
  }
}

test("windows do what single offsets would", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const walk = new Walk();
    for (const one of steps) {
      walk.run(one);
      walk.check();
    }
  }));
});

test("a window comes back from its record as it was", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const walk = new Walk();
    for (const one of steps) walk.run(one);
    const { value } = leaseRecord("g", { topic: "t", partition: 3 }, walk.window);
    assert.deepEqual(readWindow(value!), walk.window);
  }));
});

test("neighbours that fare alike are one span", () => {
  let window = lease(windowAt(TOPIC_ID, 10), { first: 10, last: 19 }, 1, 500);
  window = acknowledge(window, 1, { first: 12, last: 13 }).window;
  window = acknowledge(window, 1, { first: 14, last: 14 }).window;
  assert.deepEqual(
    window.spans.map(({ first, last, state }) => [first, last, state]),
    [[10, 11, "leased"], [12, 14, "done"], [15, 19, "leased"]],
  );
  window = acknowledge(window, 1, { first: 10, last: 11 }).window;
  assert.equal(window.start, 15);
  assert.equal(deliveriesOf(window, 15), 1);
});

test("with too many spans only what was out before is given out again", () => {
  let window = windowAt(TOPIC_ID, 0);
  for (let at = 0; at < SPANS_MAX; at++) {
    window = lease(window, { first: at, last: at }, at + 1, 1_000 + at);
  }
  assert.equal(firstFree(window, 500, SPANS_MAX), null);
  assert.deepEqual(firstFree(window, 1_000, SPANS_MAX), { first: 0, end: 1 });
  assert.deepEqual(firstFree(window, 2_000, SPANS_MAX), { first: 0, end: SPANS_MAX });
  assert.deepEqual(firstFree(window, 2_000, SPANS_MAX + 1), { first: 0, end: Infinity });
});
