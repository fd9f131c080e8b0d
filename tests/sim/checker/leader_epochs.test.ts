/** I13 in what clients read: epochs grow with offsets, in whatever order they are seen. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { World } from "../world.ts";
import { checkLeaderEpoch } from "./leader_epochs.ts";

function seen(...pairs: readonly (readonly [offset: number, epoch: number])[]): string | null {
  const world = new World(1);
  const past = { topicId: "t", partition: 0, epochs: new Map() };
  for (const [offset, epoch] of pairs) checkLeaderEpoch(world, past, offset, epoch);
  return world.violation?.message ?? null;
}

test("epochs that grow with the offsets hold, whoever reads first", () => {
  assert.equal(seen([0, 0], [5, 0], [7, 2], [3, 0], [9, 2], [6, 1]), null);
});

test("an epoch that falls is caught", () => {
  assert.match(seen([0, 0], [5, 2], [6, 1]) ?? "", /^I13: t-0: offset 6 has leader epoch 1/);
  assert.match(seen([5, 1], [4, 2]) ?? "", /^I13/);
});
