/** Garbage: what is deleted when, in which order, and that nothing is written when there is nothing to do. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CLUSTER,
  range,
  register,
  streamObject,
  trim,
  upload,
} from "../../tests/support/controller_world.ts";
import { type FaultyStore, faultyStore } from "../../tests/support/faulty_store.ts";
import { MetadataWorld } from "../../tests/support/metadata_world.ts";
import { keysOf } from "../../tests/support/keys_of.ts";
import { nodeId, objectId, streamEpoch, type StreamId } from "../lib/brand.ts";
import { isFault } from "../lib/errors.ts";
import { CLUSTER_KEY, dataKey, walEpochPrefix } from "../object/object_key.ts";
import { type Collector, createCollector } from "./collector.ts";
import type { Requester } from "./command.ts";
import { createManagers } from "./managers.ts";
import type { MetadataStore } from "./metadata_store.ts";

const MINUTE_MS = 60_000;
const NOTHING = { deleted: 0, failed: 0, sweptEpochs: 0 };

class Setup {
  readonly world = new MetadataWorld();
  metadata!: MetadataStore;
  by!: Requester;
  store!: FaultyStore;
  collector!: Collector;

  async open(incarnation: number): Promise<this> {
    const opened = await this.world.open(1);
    this.metadata = opened.metadata;
    const decided = await this.metadata.submit(register(1, incarnation));
    assert.ok(decided.ok && "epoch" in decided);
    this.by = { nodeId: nodeId(1), epoch: decided.epoch };
    this.store = faultyStore(this.world.base, this.world.clock);
    this.collector = createCollector({
      store: this.store,
      env: opened.env,
      clusterId: CLUSTER,
      metadata: this.metadata,
      requester: () => this.by,
      intervalMs: null,
    });
    return this;
  }

  /** A stream with `count` objects of ten offsets; the first `dead` of them are trimmed away. */
  async objects(count: number, dead: number): Promise<StreamId> {
    await this.metadata.submit({ type: "reserve-ids", by: this.by, count: count + 2 });
    const created = await this.metadata.submit({
      type: "create-stream",
      by: this.by,
      epoch: streamEpoch(0),
    });
    assert.ok(created.ok && "streamId" in created);
    const stream = created.streamId;
    for (let id = 0; id < count; id++) {
      await this.world.base.put(dataKey(CLUSTER, objectId(id)), new Uint8Array(10));
    }
    const list = Array.from(
      { length: count },
      (_, id) => streamObject(id, range(stream, id * 10, id * 10 + 10)),
    );
    await this.metadata.submit(upload(this.by, null, list));
    if (dead > 0) await this.metadata.submit(trim(this.by, stream, 0, dead * 10));
    return stream;
  }

  async stored(): Promise<string[]> {
    const keys = await keysOf(this.world.base);
    return keys.filter((key) => key.includes(`_kafka_${CLUSTER}/`) && !key.startsWith("meta/"));
  }

  get rows(): number {
    return this.metadata.view().objects.size;
  }
}

test("destroyed objects go after the retention, then their rows; committed ones stay", async () => {
  const setup = await new Setup().open(1);
  await setup.objects(5, 3);
  assert.deepEqual(await setup.collector.collect(), NOTHING);
  await setup.world.clock.advance(14 * MINUTE_MS);
  assert.deepEqual(await setup.collector.collect(), NOTHING);
  await setup.world.clock.advance(2 * MINUTE_MS);
  assert.deepEqual(await setup.collector.collect(), { ...NOTHING, deleted: 3 });
  assert.equal(setup.rows, 2);
  assert.deepEqual((await setup.stored()).length, 2);
  const { at } = setup.metadata.view();
  const calls = setup.store.calls.length;
  assert.deepEqual(await setup.collector.collect(), NOTHING);
  assert.equal(setup.metadata.view().at, at, "nothing to do: nothing is written");
  assert.equal(setup.store.calls.length, calls, "nor asked");
});

test("another retention than 15 minutes", async () => {
  const setup = await new Setup().open(1);
  await setup.objects(5, 3);
  const { store, metadata, by } = setup;
  const collector = createCollector({
    store,
    env: (await setup.world.open(1)).env,
    clusterId: CLUSTER,
    metadata,
    requester: () => by,
    intervalMs: null,
    retainMs: 20_000,
  });
  await setup.world.clock.advance(19_000);
  assert.equal((await collector.collect()).deleted, 0);
  await setup.world.clock.advance(2_000);
  assert.equal((await collector.collect()).deleted, 3);
  await collector.close();
});

test("only what is old enough goes", async () => {
  const setup = await new Setup().open(1);
  const stream = await setup.objects(5, 1);
  await setup.world.clock.advance(10 * MINUTE_MS);
  await setup.metadata.submit(trim(setup.by, stream, 0, 20));
  await setup.world.clock.advance(6 * MINUTE_MS);
  await setup.metadata.submit(trim(setup.by, stream, 0, 30));
  assert.deepEqual(await setup.collector.collect(), { ...NOTHING, deleted: 1 });
  await setup.world.clock.advance(10 * MINUTE_MS);
  assert.deepEqual(await setup.collector.collect(), { ...NOTHING, deleted: 1 });
});

test("fault 25: a crash between delete and purge repeats the delete", async () => {
  const setup = await new Setup().open(1);
  await setup.objects(3, 3);
  await setup.world.clock.advance(16 * MINUTE_MS);
  setup.store.setPlan(({ op }) => op === "delete" ? { kind: "lose-answer" } : undefined);
  await assert.rejects(setup.collector.collect(), (error) => isFault(error));
  assert.equal((await setup.stored()).length, 0);
  assert.equal(setup.rows, 3, "not confirmed, not purged");
  setup.store.setPlan();
  assert.deepEqual(await setup.collector.collect(), { ...NOTHING, deleted: 3 });
  assert.equal(setup.rows, 0);
});

test("fault 26: the store deletes all but 3 of 500; only confirmed ones are purged", async () => {
  const setup = await new Setup().open(1);
  await setup.objects(500, 500);
  await setup.world.clock.advance(16 * MINUTE_MS);
  const stubborn = [3, 99, 400].map((id) => dataKey(CLUSTER, objectId(id)));
  const { collector, store } = setup;
  const real = store.delete.bind(store);
  store.delete = async (keys) => {
    const gone = keys.filter((key) => !stubborn.includes(key));
    await real(gone);
    return { gone, failed: keys.filter((key) => stubborn.includes(key)) };
  };
  assert.deepEqual(await collector.collect(), { ...NOTHING, deleted: 497, failed: 3 });
  assert.equal(setup.rows, 3);
  store.delete = real;
  assert.deepEqual(await collector.collect(), { ...NOTHING, deleted: 3 });
  assert.equal(setup.rows, 0);
  assert.deepEqual(await setup.stored(), []);
});

test("ids of a dead incarnation are swept after recovery and retention, metadata first", async () => {
  const setup = await new Setup().open(1);
  const old = setup.by;
  await setup.objects(3, 0);
  const orphan = dataKey(CLUSTER, objectId(4));
  await setup.world.base.put(orphan, new Uint8Array(1));
  await setup.metadata.close();
  await setup.open(2);
  await setup.world.clock.advance(16 * MINUTE_MS);
  assert.deepEqual(await setup.collector.collect(), NOTHING, "not recovered yet");
  const { recovery } = createManagers(setup.metadata, () => setup.by);
  const begun = await recovery.beginRecovery(old.nodeId, old.epoch);
  assert.ok(begun.ok);
  const ends = begun.wal.streams.map(({ streamId, end }) => ({ streamId, end }));
  const commit = { wal: begun.wal, streamSetObject: null, streamObjects: [], ends, sealedSlot: 0 };
  assert.equal((await recovery.finishRecovery(commit)).ok, true);
  let sweptAtDelete = false;
  setup.store.setPlan(({ op }) => {
    if (op === "delete") {
      sweptAtDelete = [...setup.metadata.view().idBlocks.values()].every((b) => b.sweptAt !== null);
    }
    return undefined;
  });
  // No object lies under the dead WAL's prefix, so its row goes as well.
  assert.deepEqual(await setup.collector.collect(), { deleted: 2, failed: 0, sweptEpochs: 1 });
  assert.ok(sweptAtDelete);
  assert.equal(setup.rows, 3, "committed ones live on");
  assert.equal(setup.metadata.view().idBlocks.size, 0);
  assert.equal(setup.metadata.view().wals.size, 1);
  assert.equal((await setup.stored()).includes(orphan), false);
  const { at } = setup.metadata.view();
  assert.deepEqual(await setup.collector.collect(), NOTHING);
  assert.equal(setup.metadata.view().at, at);
});

test("a restart during the retention does not lose the sweep; a young registration waits", async () => {
  const setup = await new Setup().open(1);
  const old = setup.by;
  await setup.objects(1, 0);
  await setup.open(2);
  const { recovery } = createManagers(setup.metadata, () => setup.by);
  const begun = await recovery.beginRecovery(old.nodeId, old.epoch);
  assert.ok(begun.ok);
  const ends = begun.wal.streams.map(({ streamId, end }) => ({ streamId, end }));
  const commit = { wal: begun.wal, streamSetObject: null, streamObjects: [], ends, sealedSlot: 0 };
  await recovery.finishRecovery(commit);
  await setup.world.clock.advance(10 * MINUTE_MS);
  assert.deepEqual(await setup.collector.collect(), NOTHING);
  await setup.world.clock.advance(6 * MINUTE_MS);
  assert.equal((await setup.collector.collect()).sweptEpochs, 1);
});

test("a dead WAL is deleted with its seal a week later, and only then forgotten", async () => {
  const setup = await new Setup().open(1);
  const old = setup.by;
  await setup.open(2);
  const { recovery } = createManagers(setup.metadata, () => setup.by);
  const begun = await recovery.beginRecovery(old.nodeId, old.epoch);
  assert.ok(begun.ok);
  const commit = {
    wal: begun.wal,
    streamSetObject: null,
    streamObjects: [],
    ends: [],
    sealedSlot: 0,
  };
  await recovery.finishRecovery(commit);
  const seal = `${walEpochPrefix(CLUSTER, old.nodeId, old.epoch)}0-67108864`;
  await setup.world.base.put(seal, new Uint8Array(48));
  await setup.world.base.put(CLUSTER_KEY, new Uint8Array(1));
  await setup.collector.collect();
  assert.equal(setup.metadata.view().wals.size, 2);
  await setup.world.clock.advance(6 * 24 * 60 * MINUTE_MS);
  await setup.collector.collect();
  assert.equal(setup.metadata.view().wals.size, 2);
  await setup.world.clock.advance(25 * 60 * MINUTE_MS);
  await setup.collector.collect();
  assert.equal(setup.metadata.view().wals.size, 1);
  assert.equal(await setup.world.base.head(seal), null);
});

test("the timer collects, and stops when closed", async () => {
  const setup = await new Setup().open(1);
  await setup.objects(2, 2);
  const { store, metadata, by } = setup;
  const env = (await setup.world.open(1)).env;
  const collector = createCollector({
    store,
    env,
    clusterId: CLUSTER,
    metadata,
    requester: () => by,
  });
  await setup.world.clock.advance(17 * MINUTE_MS);
  assert.equal(setup.rows, 0);
  await collector.close();
  assert.equal(setup.world.clock.timers, 0);
});
