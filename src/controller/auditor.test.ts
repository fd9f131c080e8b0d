/** What the audit finds, what it leaves alone, and that it costs nothing while nothing changes. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  CLUSTER,
  range,
  register,
  streamObject,
  trim,
  upload,
} from "../../tests/support/controller_world.ts";
import { type FaultyStore, faultyStore } from "../../tests/support/faulty_store.ts";
import { MetadataWorld, type Opened } from "../../tests/support/metadata_world.ts";
import { nodeEpoch, nodeId, objectId, position, streamEpoch } from "../lib/brand.ts";
import { AUDIT_FIRST_MS, AUDIT_INTERVAL_MS } from "../lib/limits.ts";
import {
  CLUSTER_KEY,
  dataKey,
  logKey,
  probeKey,
  snapshotKey,
  walKey,
} from "../object/object_key.ts";
import { type Auditor, createAuditor } from "./auditor.ts";
import { createCollector } from "./collector.ts";
import type { Requester } from "./command.ts";
import { createManagers } from "./managers.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const data = (id: number) => dataKey(CLUSTER, objectId(id));
const slot = (epoch: number, at: number, node = 1) =>
  walKey(CLUSTER, { nodeId: nodeId(node), nodeEpoch: nodeEpoch(epoch), slot: at });

class Setup {
  readonly world = new MetadataWorld();
  opened!: Opened;
  by!: Requester;
  store!: FaultyStore;
  auditor!: Auditor;

  async open(incarnation = 1, node = 1, trimAgeMs?: number): Promise<this> {
    this.opened = await this.world.open(node);
    const { metadata, env } = this.opened;
    const decided = await metadata.submit(register(node, incarnation));
    assert.ok(decided.ok && "epoch" in decided);
    this.by = { nodeId: nodeId(node), epoch: decided.epoch };
    this.store = faultyStore(this.world.base, this.world.clock);
    await this.put(CLUSTER_KEY);
    this.auditor = createAuditor({
      store: this.store,
      env,
      clusterId: CLUSTER,
      nodeId: nodeId(node),
      metadata,
      options: { intervalMs: AUDIT_INTERVAL_MS, requestsPerSecond: 1, deletes: true },
      ...(trimAgeMs === undefined ? {} : { trimAgeMs }),
    });
    return this;
  }

  async put(...keys: string[]): Promise<void> {
    for (const key of keys) await this.world.base.put(key, new Uint8Array(10));
  }

  async has(...keys: string[]): Promise<boolean[]> {
    const found = await Promise.all(keys.map((key) => this.world.base.head(key)));
    return found.map((info) => info !== null);
  }

  async audit() {
    const done = await this.world.drive(this.auditor.audit(), 1_000);
    assert.ok(done !== null);
    return done;
  }

  reserve(count: number) {
    return this.opened.metadata.submit({ type: "reserve-ids", by: this.by, count });
  }

  /** Objects 0 to 3 of a stream; 0 and 1 are trimmed away, and purged after the retention. */
  async objects(): Promise<void> {
    const { metadata, env } = this.opened;
    await this.reserve(6);
    const created = await metadata.submit({
      type: "create-stream",
      by: this.by,
      epoch: streamEpoch(0),
    });
    assert.ok(created.ok && "streamId" in created);
    const stream = created.streamId;
    const list = [0, 1, 2, 3].map((id) => streamObject(id, range(stream, id * 10, id * 10 + 10)));
    await this.put(...[0, 1, 2, 3].map(data));
    await metadata.submit(upload(this.by, null, list));
    await metadata.submit(trim(this.by, stream, 0, 20));
    await this.world.clock.advance(HOUR_MS);
    const parts = { store: this.world.base, env, clusterId: CLUSTER, metadata };
    const collector = createCollector({ ...parts, requester: () => this.by, intervalMs: null });
    assert.equal((await collector.collect()).deleted, 2);
  }
}

describe("data objects", () => {
  test("fault 28: a late repetition of a put brings a purged object back; the audit deletes it", async () => {
    const setup = await new Setup().open();
    // The put of object 0 comes once more, two hours later.
    setup.store.setPlan(({ op, key }) =>
      op === "put" && key === data(0) ? { kind: "repeat", delayMs: 2 * HOUR_MS } : undefined
    );
    await setup.store.put(data(0), new Uint8Array(10));
    await setup.objects();
    assert.deepEqual(await setup.has(data(0)), [false], "purged");
    await setup.world.clock.advance(HOUR_MS + 1);
    assert.deepEqual(await setup.has(data(0)), [true], "back");
    await setup.world.clock.advance(DAY_MS - HOUR_MS);
    assert.equal((await setup.audit()).found, 0, "younger than a day");
    await setup.world.clock.advance(2 * HOUR_MS);
    const { found, deleted, deletedBytes, ahead } = await setup.audit();
    assert.deepEqual({ found, deleted, deletedBytes, ahead }, {
      found: 1,
      deleted: 1,
      deletedBytes: 10,
      ahead: 0,
    });
    assert.deepEqual(await setup.has(data(0), data(1), data(2), data(3)), [
      false,
      false,
      true,
      true,
    ]);
  });

  test("committed, destroyed and reserved ids stay, however old", async () => {
    const setup = await new Setup().open();
    await setup.objects();
    // 4 and 5 are reserved by an incarnation that lives: a commit may be on its way (model O3).
    await setup.put(data(4), data(5));
    await setup.world.clock.advance(30 * DAY_MS);
    assert.equal((await setup.audit()).found, 0);
    assert.deepEqual(await setup.has(data(2), data(3), data(4), data(5)), Array(4).fill(true));
  });

  test("ids of a dead incarnation are the sweep's until it has purged them", async () => {
    const setup = await new Setup().open();
    await setup.reserve(4);
    await setup.put(data(1));
    const dead = setup.by;
    await setup.open(2);
    await setup.world.clock.advance(3 * DAY_MS);
    assert.equal((await setup.audit()).found, 0, "not recovered");
    const { metadata, env } = setup.opened;
    const { recovery } = createManagers(metadata, () => setup.by);
    const begun = await recovery.beginRecovery(dead.nodeId, dead.epoch);
    assert.ok(begun.ok);
    const empty = { streamSetObject: null, streamObjects: [], ends: [], sealedSlot: 0 };
    assert.ok((await recovery.finishRecovery({ wal: begun.wal, ...empty })).ok);
    assert.equal((await setup.audit()).found, 0, "not swept");
    const parts = { store: setup.world.base, env, clusterId: CLUSTER, metadata };
    const collector = createCollector({ ...parts, requester: () => setup.by, intervalMs: null });
    assert.deepEqual((await collector.collect()).sweptEpochs, 1);
    await setup.put(data(1), data(3));
    await setup.world.clock.advance(DAY_MS + 1);
    assert.equal((await setup.audit()).deleted, 2);
  });

  test("what a commit brings in while the store is listed is judged by metadata of afterwards", async () => {
    const setup = await new Setup().open();
    const { metadata } = await setup.world.open(2);
    await metadata.submit(register(2, 9));
    const node = metadata.view().nodes.get(nodeId(2))!;
    // Reserved by another node, and old: our own replica has not seen the reservation yet.
    await setup.put(data(0));
    await setup.world.clock.advance(2 * DAY_MS);
    await metadata.submit({
      type: "reserve-ids",
      by: { nodeId: node.nodeId, epoch: node.epoch },
      count: 4,
    });
    assert.ok(setup.opened.metadata.view().nextObjectId === 0, "behind");
    const { found, ahead } = await setup.audit();
    assert.deepEqual([found, ahead], [0, 0]);
    assert.deepEqual(await setup.has(data(0)), [true]);
  });

  test("an id that was never reserved is an alarm, and nothing at all is deleted", async () => {
    const setup = await new Setup().open();
    await setup.objects();
    await setup.put(data(0), data(6));
    await setup.world.clock.advance(2 * DAY_MS);
    const { found, deleted, ahead } = await setup.audit();
    assert.deepEqual([found, deleted, ahead], [1, 0, 1]);
    const line = setup.opened.lines.find(({ event }) => event === "metadata-behind-store");
    assert.equal(line?.fields?.["key"], data(6));
    assert.deepEqual(await setup.has(data(0), data(6)), [true, true]);
  });
});

describe("WAL objects", () => {
  test("slots below the trim, of recovered WALs, and of forgotten ones go; seals and live slots stay", async () => {
    const setup = await new Setup().open();
    const dead = setup.by;
    await setup.open(2);
    const { metadata } = setup.opened;
    const { recovery } = createManagers(metadata, () => setup.by);
    const begun = await recovery.beginRecovery(dead.nodeId, dead.epoch);
    assert.ok(begun.ok);
    const empty = { streamSetObject: null, streamObjects: [], ends: [], sealedSlot: 3 };
    assert.ok((await recovery.finishRecovery({ wal: begun.wal, ...empty })).ok);
    await setup.reserve(1);
    await metadata.submit(upload(setup.by, null, [], 2));
    const own = setup.by.epoch;
    const go = [slot(dead.epoch, 2), slot(dead.epoch, 4), slot(own, 1), slot(1, 0, 7)];
    const stay = [slot(dead.epoch, 3), slot(own, 2), slot(own, 3)];
    await setup.put(...go, ...stay);
    await setup.world.clock.advance(DAY_MS + 1);
    assert.deepEqual((await setup.audit()).deleted, go.length);
    assert.deepEqual(await setup.has(...go), go.map(() => false));
    assert.deepEqual(await setup.has(...stay), stay.map(() => true));
  });

  test("a WAL of an epoch that never registered is an alarm", async () => {
    const setup = await new Setup().open();
    const unknown = slot(setup.opened.metadata.view().at + 1, 0);
    await setup.put(unknown);
    await setup.world.clock.advance(2 * DAY_MS);
    assert.equal((await setup.audit()).ahead, 1);
    assert.deepEqual(await setup.has(unknown), [true]);
  });
});

test("probes, and what lies below the third newest snapshot once it stood for a day", async () => {
  const setup = await new Setup().open();
  for (let i = 0; i < 6; i++) await setup.reserve(1);
  const snapshots = [2, 3, 4, 5].map((at) => snapshotKey(CLUSTER, position(at)));
  await setup.put(...snapshots, probeKey("r", "x"), "notes.txt");
  await setup.world.clock.advance(DAY_MS - HOUR_MS);
  assert.equal((await setup.audit()).found, 0, "too young");
  await setup.world.clock.advance(HOUR_MS + 1);
  const entries = [1, 2, 3, 4, 5, 6, 7].map((at) => logKey(CLUSTER, position(at)));
  assert.equal((await setup.audit()).deleted, 5);
  assert.deepEqual(await setup.has(...snapshots), [false, true, true, true]);
  assert.deepEqual(await setup.has(...entries), [false, false, false, true, true, true, true]);
  assert.deepEqual(await setup.has("notes.txt", probeKey("r", "x")), [true, false]);
});

test("a log that is kept for a week is left alone for a week: its entries tell ages", async () => {
  const setup = await new Setup().open(1, 1, 7 * DAY_MS);
  for (let i = 0; i < 6; i++) await setup.reserve(1);
  await setup.put(...[2, 3, 4, 5].map((at) => snapshotKey(CLUSTER, position(at))));
  await setup.world.clock.advance(6 * DAY_MS);
  assert.equal((await setup.audit()).found, 0);
  await setup.world.clock.advance(DAY_MS + 1);
  assert.equal((await setup.audit()).deleted, 4, "three entries and a snapshot");
});

describe("when", () => {
  test("an hour after the start, then daily, and only after metadata changed", async () => {
    const setup = await new Setup().open();
    const lists = () => setup.store.count("list");
    setup.auditor.start();
    await setup.world.clock.advance(AUDIT_FIRST_MS - 1);
    assert.equal(lists(), 0);
    await setup.world.clock.advance(10_000);
    assert.equal(lists(), 2, "the snapshots, and all there is");
    const calls = setup.store.calls.length;
    await setup.world.clock.advance(5 * DAY_MS);
    assert.equal(setup.store.calls.length, calls, "an idle cluster pays nothing");
    await setup.reserve(1);
    await setup.world.clock.advance(DAY_MS + 10_000);
    assert.equal(lists(), 4);
    assert.deepEqual([setup.store.count("put"), setup.store.count("putParts")], [0, 0]);
    await setup.auditor.close();
    assert.equal(setup.world.clock.timers, 0);
  });

  test("by the live node with the smallest id only", async () => {
    const setup = await new Setup().open(1, 2);
    assert.notEqual(await setup.auditor.audit(), null);
    const { metadata } = await setup.world.open(1);
    await metadata.submit(register(1, 8));
    await setup.opened.metadata.fresh();
    assert.equal(await setup.auditor.audit(), null);
  });

  test("at its pace: a thousand keys a second", async () => {
    const setup = await new Setup().open();
    await setup.put(...Array.from({ length: 3_500 }, (_, i) => `other/${i}`));
    let done = false;
    const audit = setup.auditor.audit().finally(() => void (done = true));
    await setup.world.clock.advance(2_900);
    assert.equal(done, false);
    await setup.world.clock.advance(200);
    assert.equal((await audit)?.keys, 3_502);
  });

  test("one that closes meanwhile deletes nothing and waits for nobody", async () => {
    const setup = await new Setup().open();
    await setup.objects();
    await setup.put(data(0), ...Array.from({ length: 1_500 }, (_, i) => `other/${i}`));
    await setup.world.clock.advance(2 * DAY_MS);
    const audit = setup.auditor.audit();
    await setup.world.clock.settle();
    await setup.auditor.close();
    assert.equal(await audit, null);
    assert.deepEqual(await setup.has(data(0)), [true]);
  });

  test("a failure is told, and the next audit makes up for it", async () => {
    const setup = await new Setup().open();
    await setup.objects();
    await setup.put(data(0));
    setup.auditor.start();
    setup.store.setPlan(({ op }) => op === "delete" ? { kind: "lose-answer" } : undefined);
    await setup.world.clock.advance(2 * DAY_MS);
    assert.ok(setup.opened.lines.some(({ event }) => event === "audit-failed"));
    setup.store.setPlan();
    await setup.put(data(1));
    await setup.world.clock.advance(3 * DAY_MS);
    assert.deepEqual(await setup.has(data(0), data(1)), [false, false]);
    await setup.auditor.close();
  });
});
