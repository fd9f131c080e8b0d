/** The node dies, or the store fails, at every single call of a compaction. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACTION_CLUSTER,
  CompactionWorld,
  type Incarnation,
} from "../../../tests/support/compaction_world.ts";
import type { FaultPlan, StoreFault } from "../../../tests/support/faulty_store.ts";
import { createCollector } from "../../controller/collector.ts";
import { OBJECT_RETAIN_AGE_MS_MIN } from "../../lib/limits.ts";

/** Small enough for one look to join, split, merge, link and tidy. */
const OPTIONS = {
  memoryBytes: 400,
  objectsMin: 3,
  splitBytes: 300,
  mergeBytesMax: 500,
  linkBytesMin: 200,
  deadBytesMin: 1,
  wholeBytesMax: 200,
};

async function prepare(): Promise<{ world: CompactionWorld; node: Incarnation }> {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, 5);
  for (let i = 0; i < 3; i++) {
    await world.upload(node, [
      ...world.next(0, [1, 50]),
      ...world.next(1, [2, 80]),
      ...world.next(2, [1, 10]),
    ]);
    await world.upload(node, world.next(4, [1, 20]));
    await world.upload(node, world.next(3, [1, 250]));
  }
  await world.trim(node, 2, 2);
  return { world, node };
}

async function looks(world: CompactionWorld, node: Incarnation, count: number): Promise<void> {
  const compactor = world.compactor(node, OPTIONS);
  for (let i = 0; i < count; i++) await world.drive(compactor.look());
  await world.drive(compactor.close());
}

async function collectAll(world: CompactionWorld, node: Incarnation): Promise<void> {
  const { store, env, metadata, requester } = node;
  const collector = createCollector({
    store,
    env,
    clusterId: COMPACTION_CLUSTER,
    metadata,
    requester: () => requester,
    intervalMs: null,
  });
  await world.clock.advance(OBJECT_RETAIN_AGE_MS_MIN + 1);
  // What a compaction destroys in between is young again.
  for (let i = 0; i < 2; i++) await world.drive(collector.collect());
  await world.drive(collector.close());
  assert.deepEqual(await world.dataObjects(), world.liveObjects(node));
}

/** A dead process: this call and all later ones of it have no effect. */
function diesAt(nth: number): FaultPlan {
  let seen = 0;
  return () => ++seen >= nth ? { kind: "fail", code: "store-denied" } : undefined;
}

function meetsAt(nth: number, fault: StoreFault): FaultPlan {
  let seen = 0;
  return () => ++seen === nth ? fault : undefined;
}

async function callsOfLooks(): Promise<number> {
  const { world, node } = await prepare();
  const before = node.store.calls.length;
  await looks(world, node, 2);
  await world.check(node);
  const runs = node.env.metrics.render();
  for (const kind of ["join", "merge", "link"]) {
    assert.match(runs, new RegExp(`kind="${kind}",outcome="done"`));
  }
  return node.store.calls.length - before;
}

describe("compaction meets faults", () => {
  test("a crash at every call: the next incarnation has everything once, and nothing is left over", async () => {
    const calls = await callsOfLooks();
    assert.ok(calls > 20, `${calls} calls`);
    for (let nth = 1; nth <= calls; nth++) {
      const { world, node } = await prepare();
      node.store.setPlan(diesAt(nth));
      await looks(world, node, 2);
      const next = await world.start();
      await world.check(next);
      await looks(world, next, 2);
      await world.check(next);
      await collectAll(world, next);
      await world.check(next);
    }
  });

  const faults: readonly (readonly [string, StoreFault])[] = [
    ["fails", { kind: "fail" }],
    ["loses its answer", { kind: "lose-answer" }],
    ["takes effect late", { kind: "late", delayMs: 5_000 }],
    ["happens twice", { kind: "repeat", delayMs: 5_000 }],
  ];
  for (const [name, fault] of faults) {
    test(`every call ${name}: the same process goes on`, async () => {
      const calls = await callsOfLooks();
      for (let nth = 1; nth <= calls; nth++) {
        const { world, node } = await prepare();
        node.store.setPlan(meetsAt(nth, fault));
        await looks(world, node, 2);
        node.store.setPlan();
        await world.check(node);
        await world.clock.advance(10_000);
        await looks(world, node, 2);
        await world.check(node);
      }
    });
  }
});
