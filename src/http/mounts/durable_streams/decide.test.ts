import assert from "node:assert/strict";
import { test } from "node:test";
import type { Writers } from "../../../log/writer_table.ts";
import { decideStep } from "./decide.ts";
import type { StepAsk } from "./port.ts";

const NONE: Writers = { closing: null, order: null, writer: () => undefined };
const W = { name: "w", epoch: 2, sequence: 5, end: 40 };
const KNOWN: Writers = { ...NONE, writer: (name) => name === "w" ? W : undefined };
const ask = (over: Partial<StepAsk>): StepAsk => ({
  values: [new Uint8Array(1)],
  closes: false,
  order: null,
  writer: null,
  isFirst: false,
  ...over,
});
const from = (epoch: number, sequence: number, name = "w") => ({ name, epoch, sequence });
const outcome = (writers: Writers, over: Partial<StepAsk>, end = 50) => {
  const decision = decideStep(writers, end, ask(over));
  if (decision.kind !== "refuse") return decision.kind;
  const { reason, ...more } = decision.refusal;
  return [reason, ...Object.values(more)].join(" ");
};

test("a writer goes on by one, begins at 0, and raises its epoch at 0 only", () => {
  for (
    const [epoch, sequence, expected] of [
      [2, 6, "append"],
      [2, 5, "known"],
      [2, 0, "known"],
      [2, 7, "gap 6 7"],
      [3, 0, "append"],
      [3, 1, "epoch-start"],
      [1, 6, "stale-epoch 2"],
    ] as const
  ) assert.equal(outcome(KNOWN, { writer: from(epoch, sequence) }), expected);
  assert.equal(outcome(KNOWN, { writer: from(9, 0, "new") }), "append");
  assert.equal(outcome(KNOWN, { writer: from(0, 3, "new") }), "gap 0 3");
  const repeat = decideStep(KNOWN, 50, ask({ writer: from(2, 3) }));
  assert.deepEqual(repeat, { kind: "known", end: 40, writer: W }, "how far it is by now");
});

test("an order rises by its characters, and a repeat is known whatever its order", () => {
  const ordered = { ...KNOWN, order: "a" };
  assert.equal(outcome(ordered, { order: "b" }), "append");
  assert.equal(outcome(ordered, { order: "a" }), "order a");
  assert.equal(outcome(ordered, { order: "B" }), "order a");
  assert.equal(outcome({ ...NONE, order: "2" }, { order: "10" }), "order 2");
  assert.equal(outcome(ordered, { order: "a", writer: from(2, 5) }), "known");
  assert.equal(outcome(ordered, { order: "a", writer: from(2, 6) }), "order a");
});

test("what is closed takes nothing, says so, and knows repeats", () => {
  const closed: Writers = { ...KNOWN, closing: { end: 40, by: W } };
  assert.equal(outcome(closed, {}), "closed 40");
  assert.equal(outcome(closed, { closes: true }), "closed 40");
  assert.equal(outcome(closed, { closes: true, values: [] }), "known");
  assert.equal(outcome(closed, { closes: true, values: [], writer: from(2, 5) }), "known");
  assert.equal(outcome(closed, { writer: from(2, 6) }), "closed 40");
  assert.equal(outcome(closed, { writer: from(2, 9) }), "closed 40");
  assert.equal(outcome(closed, { writer: from(1, 0) }), "stale-epoch 2");
});

test("what belongs into a new stream goes into an empty one only", () => {
  assert.equal(outcome(NONE, { isFirst: true }, 0), "append");
  assert.equal(outcome(NONE, { isFirst: true, closes: true }, 1), "known");
});
