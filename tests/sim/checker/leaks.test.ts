/** The leak checker allows what the collector promises, and no more, when the store's clock is put back and on again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { objectId, position } from "../../../src/lib/brand.ts";
import { COLLECT_INTERVAL_MS, OBJECT_RETAIN_AGE_MS_MIN } from "../../../src/lib/limits.ts";
import { State } from "../../../src/controller/state.ts";
import type { ObjectRow } from "../../../src/controller/image.ts";
import { dataKey, logKey } from "../../../src/object/object_key.ts";
import { CLUSTER_ID } from "../cluster.ts";
import { SimProcess } from "../process.ts";
import { NO_STORE_FAULTS, SimStore } from "../sim_store.ts";
import { World } from "../world.ts";
import { LeakChecker } from "./leaks.ts";

const OVERDUE_MS = OBJECT_RETAIN_AGE_MS_MIN + 4 * COLLECT_INTERVAL_MS;
const BACK_MS = 616_000;

function destroyed(id: number, at: number): ObjectRow {
  return {
    objectId: objectId(id),
    kind: "stream",
    state: "destroyed",
    destroyedAt: position(at),
    size: 1,
  } as unknown as ObjectRow;
}

/** Entries 1 and 2, each of which destroys an object; what happens to the store's clock meanwhile is told. */
async function story(
  { between = 0, after = 0, restMs }: {
    readonly between?: number;
    readonly after?: number;
    readonly restMs: number;
  },
): Promise<string | null> {
  const world = new World(1);
  const store = new SimStore(world, NO_STORE_FAULTS);
  const state = new State(CLUSTER_ID);
  const process = new SimProcess(world, "n0");
  const line = store.connect(process);
  const leaks = new LeakChecker(world, store, CLUSTER_ID, { state });
  const enter = async (at: number) => {
    const put = line.put(logKey(CLUSTER_ID, position(at)), new Uint8Array(1), { ifAbsent: true });
    await world.drive(put, 1_000, "an entry");
    await store.bucket.put(dataKey(CLUSTER_ID, objectId(at)), new Uint8Array(1));
    state.at = position(at);
    state.objects.set(objectId(at), destroyed(at, at));
  };
  await enter(1);
  store.skewMs += between;
  await enter(2);
  store.skewMs += after;
  // Somebody asks for an age in the meantime.
  await world.drive(line.get(logKey(CLUSTER_ID, position(1))), 1_000, "an age");
  store.skewMs -= after;
  await world.drive(world.sleep(restMs), 2 * restMs, "a rest");
  await leaks.checkCollected();
  process.kill("the end");
  return world.violation?.message ?? null;
}

test("an object that was destroyed long ago is a leak", async () => {
  assert.match(await story({ restMs: OVERDUE_MS }) ?? "", /^I11: object 1 is destroyed at 1/);
});

test("one that was destroyed just now is none", async () => {
  assert.equal(await story({ restMs: OVERDUE_MS / 2 }), null);
});

test("seed 605: the store's clock is put back between two entries: the older one looks younger, and both wait for it", async () => {
  assert.equal(await story({ between: -BACK_MS, restMs: OVERDUE_MS }), null);
  const late = await story({ between: -BACK_MS, restMs: OVERDUE_MS + BACK_MS });
  assert.match(late ?? "", /^I11: object 1 is destroyed at 1/);
});

test("the store's clock is back while somebody asks for an age: it counts from there", async () => {
  assert.equal(await story({ after: -BACK_MS, restMs: OVERDUE_MS }), null);
  const late = await story({ after: -BACK_MS, restMs: OVERDUE_MS + BACK_MS });
  assert.match(late ?? "", /^I11: object 1 is destroyed at 1/);
});
