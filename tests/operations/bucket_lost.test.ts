/**
 * The bucket is emptied, replaced or gone, under a running node and before a start: whoever operates it is told, what
 * clients get is retriable, and nothing is made anew behind their back.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { exitCodeOf } from "../../src/cli/exit.ts";
import { toUtf8 } from "../../src/lib/bytes.ts";
import { isFault } from "../../src/lib/errors.ts";
import { CLUSTER_LOOK_AGAIN_MS, CLUSTER_LOOK_MS } from "../../src/lib/limits.ts";
import { CLUSTER_KEY } from "../../src/object/object_key.ts";
import { drive, FaultWorld } from "../faults/world.ts";
import { keysOf } from "../support/keys_of.ts";

const LOOK_MS = CLUSTER_LOOK_MS + CLUSTER_LOOK_AGAIN_MS + 1_000;

async function post(world: FaultWorld, body = "x"): Promise<number> {
  const posting = world.fetch("/v1/topics/t/records", { method: "POST", body });
  return (await drive(world.clock, posting)).status;
}

async function running(): Promise<FaultWorld> {
  const world = new FaultWorld();
  await world.start();
  assert.equal(await post(world), 200);
  return world;
}

async function empty(world: FaultWorld): Promise<void> {
  await world.bucket.delete(await keysOf(world.bucket));
}

/** The fault that ended the node; null while it lives. */
async function ending(world: FaultWorld): Promise<unknown> {
  let fault: unknown = null;
  void world.q.node.node.failed.then((found) => void (fault = found));
  await world.clock.settle();
  return fault;
}

async function assertLost(world: FaultWorld, why: RegExp): Promise<void> {
  const fault = await ending(world);
  assert.ok(isFault(fault, "data-loss"), String(fault));
  assert.match(fault.message, why);
  assert.equal(exitCodeOf(fault), 5);
  assert.match(await world.ready(), why);
}

function fresh(world: FaultWorld, createCluster = true): FaultWorld {
  return new FaultWorld({ clock: world.clock, bucket: world.bucket, seed: 40, createCluster });
}

async function assertRefused(world: FaultWorld, code: number, why: RegExp): Promise<void> {
  const before = await keysOf(world.bucket);
  await assert.rejects(world.start(), (error) => {
    assert.match(String(error), why);
    assert.equal(exitCodeOf(error), code);
    return true;
  });
  assert.deepEqual(await keysOf(world.bucket), before, "nothing was written");
}

test("emptied under a running node: it ends within about a minute, with exit code 5", async () => {
  const world = await running();
  await empty(world);
  assert.equal(await ending(world), null);
  await world.clock.advance(LOOK_MS);
  await assertLost(world, /emptied or replaced while the node ran: meta\/cluster is missing/);
  assert.ok(!(await keysOf(world.bucket)).includes(CLUSTER_KEY), "no cluster was made anew");
  await drive(world.clock, world.q.node.close().catch(() => {}));
});

test("emptied, and a cluster of the same name made in it by another start: the node that still runs ends", async () => {
  const world = await running();
  await world.clock.advance(LOOK_MS);
  const { bytes } = (await world.bucket.get(CLUSTER_KEY))!;
  await empty(world);
  await world.bucket.put(CLUSTER_KEY, bytes);
  await world.clock.advance(LOOK_MS);
  await assertLost(world, /replaced while the node ran: .*log\/0*\d+ is missing/);
  await drive(world.clock, world.q.node.close().catch(() => {}));
});

test("the cluster object alone was away and is back: nothing is lost", async () => {
  const world = await running();
  await world.clock.advance(LOOK_MS);
  const { bytes } = (await world.bucket.get(CLUSTER_KEY))!;
  await world.bucket.delete([CLUSTER_KEY]);
  await world.bucket.put(CLUSTER_KEY, bytes);
  await world.clock.advance(2 * LOOK_MS);
  assert.equal(await ending(world), null);
  assert.equal(await post(world), 200);
  await drive(world.clock, world.q.node.close());
});

test("what a node wrote into an emptied bucket keeps a new cluster away", async () => {
  const world = await running();
  await empty(world);
  // Acknowledged before anybody noticed: in a WAL that no metadata names.
  assert.equal(await post(world), 200);
  world.kill();
  const left = await keysOf(world.bucket);
  assert.ok(left.length > 0 && left.every((key) => !key.startsWith("meta/")), left.join());
  await assertRefused(
    fresh(world),
    5,
    /meta\/cluster is missing, but objects of cluster .* are there/,
  );
});

test("replaced by another cluster: the node ends and leaves it alone", async () => {
  const world = await running();
  await empty(world);
  const other = `{"clusterId":"other","formatVersion":1,"featureLevel":1}`;
  await world.bucket.put(CLUSTER_KEY, toUtf8(other));
  await world.clock.advance(LOOK_MS);
  await assertLost(world, /meta\/cluster names cluster other/);
});

test("one wrong answer, an outage or a damaged cluster object is no loss", async () => {
  const world = await running();
  const get = world.bucket.get.bind(world.bucket);
  let wrong = 0;
  world.bucket.get = async (key, options) => {
    if (key === CLUSTER_KEY && wrong++ === 0) return null;
    return await get(key, options);
  };
  await world.clock.advance(LOOK_MS);
  assert.ok(wrong >= 2, "it looked again");
  world.store.setPlan(() => ({ kind: "fail", code: "store-denied" }));
  await world.clock.advance(2 * LOOK_MS);
  world.store.setPlan();
  await world.bucket.put(CLUSTER_KEY, toUtf8("{"));
  await world.clock.advance(2 * LOOK_MS);
  assert.equal(await ending(world), null);
  assert.equal(await post(world), 200);
  await drive(world.clock, world.q.node.close());
});

test("a bucket that is removed and comes back empty is looked at as soon as it answers", async () => {
  const world = await running();
  world.store.setPlan(() => ({ kind: "fail", code: "store-denied" }));
  await world.clock.advance(30_000);
  assert.match(await world.ready(), /metadata cannot be read/);
  await empty(world);
  world.store.setPlan();
  await world.clock.advance(15_000);
  await assertLost(world, /meta\/cluster is missing/);
});

test("an empty store at the start: a new cluster, unless that is switched off", async () => {
  const world = await running();
  await drive(world.clock, world.q.node.close());
  const known = fresh(world, false);
  await known.start();
  assert.deepEqual(await known.values("t"), ["x"]);
  await drive(world.clock, known.q.node.close());
  await empty(world);
  await assertRefused(fresh(world, false), 2, /holds no cluster .*create-cluster is off/);
  const made = fresh(world);
  await made.start();
  await drive(world.clock, made.q.node.close());
});

test("metadata without its cluster object is refused with exit code 5", async () => {
  const world = await running();
  await drive(world.clock, world.q.node.close());
  await world.bucket.delete([CLUSTER_KEY]);
  for (const createCluster of [true, false]) {
    await assertRefused(fresh(world, createCluster), 5, /meta\/cluster is missing/);
  }
});
