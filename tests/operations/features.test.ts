/**
 * Upgrade and rollback by feature level: builds that differ in the highest level that they know, on one store. This
 * build is the old one, a build that knows one level more the new one.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeEntry, FEATURE_LEVEL } from "../../src/controller/entry.ts";
import { decodeSnapshot } from "../../src/controller/snapshot.ts";
import { exitCodeOf } from "../../src/cli/exit.ts";
import type { FakeClock } from "../support/fake_clock.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { position } from "../../src/lib/brand.ts";
import { isFault } from "../../src/lib/errors.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { logPrefix, snapshotPrefix } from "../../src/object/object_key.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { drive, FaultWorld } from "../faults/world.ts";
import { check } from "../support/stored_world.ts";
import { testEnv } from "../support/test_env.ts";
import { keysOf } from "../support/keys_of.ts";

const OLD = FEATURE_LEVEL;
const NEW = FEATURE_LEVEL + 1;
const OFTEN = { "skerry.metadata.snapshot.entries": "10" };

class Site {
  readonly clock: FakeClock = createFakeClock();
  readonly bucket: ObjectStore = createMemoryStore(this.clock);
  #seed = 0;

  async start(known: number, level = 0): Promise<FaultWorld> {
    const world = new FaultWorld({
      clock: this.clock,
      bucket: this.bucket,
      seed: this.#seed += 10,
      kafka: { ...OFTEN, "skerry.feature.level": String(level) },
      featureLevelMax: known,
    });
    await world.start();
    return world;
  }

  async refused(known: number, level: number, pattern: RegExp): Promise<void> {
    await assert.rejects(this.start(known, level), (error) => {
      assert.ok(isFault(error, "config"), String(error));
      assert.match(error.message, pattern);
      assert.equal(exitCodeOf(error), 2);
      return true;
    });
  }

  async entries(): Promise<number> {
    let count = 0;
    for await (const _ of this.bucket.list("meta/")) count += 1;
    return count;
  }
}

async function post(world: FaultWorld, body: string): Promise<void> {
  const posting = world.fetch("/v1/topics/t/records", { method: "POST", body });
  assert.equal((await drive(world.clock, posting)).status, 200);
}

const stop = (world: FaultWorld) => drive(world.clock, world.q.node.close());
const level = (world: FaultWorld) => world.metric("skerry_metadata_feature_level");

/** Levels that are written in the heads of entries and snapshots. */
async function levelsIn(site: Site, clusterId: string): Promise<Set<number>> {
  const levels = new Set<number>();
  for (const key of await keysOf(site.bucket, logPrefix(clusterId))) {
    levels.add(decodeEntry((await site.bucket.get(key))!.bytes, NEW).featureLevel);
  }
  const snapshots = await keysOf(site.bucket, snapshotPrefix(clusterId));
  assert.ok(snapshots.length > 0, "there are snapshots");
  for (const key of snapshots) {
    const at = position(Number(key.split("/").at(-1)));
    const { bytes } = (await site.bucket.get(key))!;
    levels.add(decodeSnapshot(bytes, at, testEnv().codecs, NEW).state.featureLevel);
  }
  return levels;
}

test("upgrade, rollback, upgrade, raise: nothing is lost, and only the last step is for good", async () => {
  const site = new Site();
  const old = await site.start(OLD);
  const { clusterId } = old.q.node.node;
  await post(old, "by the old build");
  await stop(old);

  const upgraded = await site.start(NEW);
  await post(upgraded, "by the new build");
  for (let i = 0; i < 4; i++) await upgraded.clock.advance(700_000);
  assert.equal(await level(upgraded), OLD, "a new build keeps the level");
  await stop(upgraded);

  const back = await site.start(OLD);
  assert.deepEqual(await back.values("t"), ["by the old build", "by the new build"]);
  await post(back, "after the rollback");
  await stop(back);
  assert.deepEqual(await levelsIn(site, clusterId), new Set([OLD]));
  assert.equal((await check(site.bucket)).summary.verdict, "clean");

  const raised = await site.start(NEW, NEW);
  assert.equal(await level(raised), NEW);
  await post(raised, "raised");
  await stop(raised);
  const kept = await site.start(NEW);
  assert.equal(await level(kept), NEW, "it stays without being asked for");
  const values = await kept.values("t");
  assert.deepEqual(values.slice(2), ["after the rollback", "raised"]);
  await stop(kept);
  assert.deepEqual(await levelsIn(site, clusterId), new Set([OLD, NEW]));

  const before = await site.entries();
  await site.refused(OLD, 0, /feature level \d+; this build knows .* Start a newer build/);
  assert.equal(await site.entries(), before, "the refused build wrote nothing");
});

test("a level that the build does not know, or that is below the cluster's, is refused and changes nothing", async () => {
  const site = new Site();
  await site.refused(OLD, NEW, /skerry\.feature\.level = \d+: this build knows levels up to \d+/);
  assert.equal(await site.entries(), 0, "no cluster was made");
  await stop(await site.start(NEW));
  const before = await site.entries();
  await site.refused(NEW, OLD, /the cluster is at level \d+, and levels never fall/);
  assert.equal(await site.entries(), before);
});

test("a new cluster begins at the highest level that its build knows, or at the one that is asked for", async () => {
  for (const [asked, wanted] of [[0, NEW], [OLD, OLD]] as const) {
    const site = new Site();
    const world = await site.start(NEW, asked);
    assert.equal(await level(world), wanted);
    await stop(world);
    if (wanted === OLD) await stop(await site.start(OLD));
    else await site.refused(OLD, 0, /Start a newer build/);
  }
});

test("an old build that runs while the level is raised stops reading metadata, says why, and writes none", async () => {
  const site = new Site();
  const old = await site.start(OLD);
  await post(old, "x");
  const raiser = new FaultWorld({
    clock: site.clock,
    bucket: site.bucket,
    seed: 90,
    nodeId: 2,
    kafka: { "skerry.feature.level": String(NEW) },
    featureLevelMax: NEW,
  });
  await raiser.start();
  await site.clock.advance(15_000);
  assert.match(await old.ready(), /feature level \d+; this build knows/);
  const creating = old.fetch("/v1/topics", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "later" }),
  });
  const { status } = await drive(site.clock, creating);
  assert.ok(status >= 400, String(status));
  old.kill();
  await stop(raiser);
});
