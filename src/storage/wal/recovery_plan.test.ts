import assert from "node:assert/strict";
import { test } from "node:test";
import { position } from "../../lib/brand.ts";
import { planSlot, type RecoveryStep, type SlotState } from "./recovery_plan.ts";

const EMPTY: SlotState = { kind: "empty" };
const seal = (recovery: number): SlotState => ({ kind: "seal", recovery: position(recovery) });

/** State of slot 5, highest listed slot, step; our token is 20. */
const TABLE: readonly (readonly [string, SlotState, number, RecoveryStep["step"]])[] = [
  ["data goes on", { kind: "data" }, 5, "continue"],
  ["the first empty slot is the end", EMPTY, 4, "seal"],
  ["an empty WAL is sealed at its start", EMPTY, -1, "seal"],
  ["slots of the window above the end are garbage", EMPTY, 12, "seal"],
  ["a slot beyond the window proves a loss", EMPTY, 13, "data-loss"],
  ["damage stops", { kind: "damaged", detail: "CRC" }, 5, "data-loss"],
  ["an earlier recoverer's seal is adopted", seal(19), 5, "adopt"],
  ["our own seal is adopted", seal(20), 5, "adopt"],
  ["a later recoverer's seal stops us", seal(21), 5, "superseded"],
];

for (const [name, state, highestSlot, step] of TABLE) {
  test(name, () => {
    assert.equal(planSlot({ slot: 5, state, recovery: position(20), highestSlot }).step, step);
  });
}
