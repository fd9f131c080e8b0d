/** What the model accepts and refuses; each acceptance was a false alarm of some seed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { streamId } from "../../../src/lib/brand.ts";
import { World } from "../world.ts";
import { StreamModel } from "./model.ts";

function modelled() {
  const world = new World(1);
  const model = new StreamModel(world, streamId(0));
  let payloads = 0;
  const acknowledge = (epoch: number, base: number, count: number) => {
    const text = `0:${base}:${++payloads}`;
    const attempt = { text, key: text, base, count, epoch, by: "n1" };
    model.attempt(attempt);
    model.acknowledge(attempt);
  };
  return { world, model, acknowledge };
}

test("an opening that is heard of when a later epoch has written is judged by what was before it", () => {
  const { world, model, acknowledge } = modelled();
  model.opened(1, 0, 0);
  acknowledge(1, 0, 4);
  model.opened(3, 0, 4);
  acknowledge(3, 4, 2);
  model.trimAsked = 5;
  model.trimmed = 5;
  model.opened(2, 0, 4);
  assert.equal(world.violation, null);
});

test("an opening without what was acknowledged before it is a loss, however late it is heard of", () => {
  const { world, model, acknowledge } = modelled();
  model.opened(1, 0, 0);
  acknowledge(1, 0, 4);
  model.opened(3, 0, 4);
  model.opened(2, 0, 3);
  assert.match(world.violation?.message ?? "", /I12: opened at 3, known up to 4/);
});

test("an epoch that acknowledges past the begin of a later one is a violation", () => {
  const { world, model, acknowledge } = modelled();
  model.opened(1, 0, 0);
  model.opened(2, 0, 0);
  acknowledge(1, 0, 1);
  assert.match(world.violation?.message ?? "", /I7/);
});
