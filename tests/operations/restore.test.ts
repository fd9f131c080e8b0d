/**
 * A cluster from a copy of its bucket: taken while a node writes, in the order that the documentation gives; then
 * brought to life under another id, with every record, offset and producer that was there when it began.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCluster } from "../../src/controller/cluster.ts";
import { copyCluster, type CopyOptions } from "../../src/inspect/copy.ts";
import { FaultError, isFault } from "../../src/lib/errors.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { position } from "../../src/lib/brand.ts";
import { CLUSTER_KEY, logKey } from "../../src/object/object_key.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { batch } from "../quirks/quirks.ts";
import { committedOffset, Committer, drive, FaultWorld } from "../faults/world.ts";
import { check, clusterOf, contentOf } from "../support/stored_world.ts";
import { testEnv } from "../support/test_env.ts";
import { keysOf } from "../support/keys_of.ts";

const NEW_ID = "restored-1";
/** Uploads, snapshots and compaction as often as they may be, so that much changes while a copy is made. */
const BUSY = {
  "skerry.upload.interval.ms": "1000",
  "skerry.metadata.snapshot.entries": "10",
};

class Source extends FaultWorld {
  readonly acknowledged: string[] = [];
  #next = 0;

  constructor() {
    super({ kafka: BUSY });
  }

  /** One more record is acknowledged, and time goes on. */
  async write(): Promise<void> {
    const value = `v${this.#next++}`;
    const posting = this.fetch("/v1/topics/t/records", { method: "POST", body: value });
    const { status } = await drive(this.clock, posting);
    assert.equal(status, 200);
    this.acknowledged.push(value);
    await this.clock.advance(400);
  }

  async writeMany(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.write();
  }
}

async function source(): Promise<Source> {
  const world = new Source();
  await world.start();
  await world.writeMany(12);
  return world;
}

type Kind = "wal" | "meta" | "data";

function kindOf(key: string): Kind {
  if (key.includes("/wal/")) return "wal";
  return key.startsWith("meta/") ? "meta" : "data";
}

/** As a tool that knows nothing of Skerry does it: list, then object by object, passing over what is gone. */
async function rawCopy(world: Source, order: readonly Kind[]): Promise<ObjectStore> {
  const raw = createMemoryStore(world.clock);
  for (const kind of order) {
    for (const key of await keysOf(world.bucket)) {
      if (kindOf(key) !== kind) continue;
      const got = await world.bucket.get(key);
      if (got !== null) await raw.put(key, got.bytes);
      await world.write();
    }
  }
  return raw;
}

async function copied(
  world: Source,
  from: ObjectStore,
  options: Partial<CopyOptions> = {},
): Promise<ObjectStore> {
  const to = createMemoryStore(world.clock);
  const env = testEnv({ clock: world.clock });
  const copying = copyCluster({ from, to, env, clusterId: NEW_ID, ...options });
  await drive(world.clock, copying, "the copy");
  return options.to ?? to;
}

/** The copy is whole, is one moment of the source, and has all that was acknowledged before it began. */
async function assertRestored(world: Source, bucket: ObjectStore, atLeast: number): Promise<void> {
  const proven = await check(bucket);
  assert.deepEqual(proven.damaged, []);
  assert.equal(proven.summary.verdict, "clean", proven.text);
  assert.equal(clusterOf(await contentOf(bucket)), NEW_ID);
  const restored = new FaultWorld({ clock: world.clock, bucket, seed: 77, kafka: BUSY });
  await restored.start();
  const values = await restored.values("t");
  assert.ok(values.length >= atLeast, `${values.length} of ${atLeast}`);
  assert.deepEqual(values, world.acknowledged.slice(0, values.length));
  assert.equal(restored.q.node.node.clusterId, NEW_ID);
  const { brokers } = await drive(world.clock, restored.q.metadata(null));
  assert.equal(brokers.length, 1, "no node of the source");
  const posting = restored.fetch("/v1/topics/t/records", { method: "POST", body: "on" });
  assert.equal((await drive(world.clock, posting)).status, 200);
  assert.deepEqual(await restored.values("t"), [...values, "on"]);
  await drive(world.clock, restored.q.node.close());
  assert.equal((await check(bucket)).summary.verdict, "clean");
}

test("a bucket copied object by object while records are written: WAL, metadata, then the rest", async () => {
  const world = await source();
  const before = world.acknowledged.length;
  const raw = await rawCopy(world, ["wal", "meta", "data"]);
  assert.ok(world.acknowledged.length > before + 20, "much was written meanwhile");
  const bucket = await copied(world, raw);
  await assertRestored(world, bucket, before);
  // The source never noticed.
  assert.deepEqual(await world.values("t"), world.acknowledged);
  await drive(world.clock, world.q.node.close());
});

test("metadata after the data names objects that were not copied: refused, with the key", async () => {
  const world = await source();
  const raw = await rawCopy(world, ["wal", "data", "meta"]);
  const to = createMemoryStore(world.clock);
  await assert.rejects(
    copied(world, raw, { to }),
    (error) =>
      isFault(error, "data-loss") &&
      /[0-9a-f]{8}\/_kafka_.* is named by the metadata, and missing/.test(error.message),
  );
  assert.equal(await to.get(CLUSTER_KEY), null);
  await drive(world.clock, world.q.node.close());
});

test("straight from the store of a node that writes, uploads and deletes all the while", async () => {
  const world = await source();
  const other = new FaultWorld({ clock: world.clock, bucket: world.bucket, nodeId: 2, seed: 50 });
  await other.start();
  await world.writeMany(3);
  const before = world.acknowledged.length;
  let reads = 0;
  const busy = disturbed(world, async () => {
    if (++reads % 3 === 0) await world.write();
  });
  const bucket = await copied(world, busy);
  assert.ok(world.acknowledged.length > before + 3);
  await assertRestored(world, bucket, before);
  await drive(world.clock, other.q.node.close());
  await drive(world.clock, world.q.node.close());
});

/** The source as it is read, with something that happens before single reads. */
function disturbed(world: Source, before: (key: string) => Promise<void>): ObjectStore {
  return {
    ...world.bucket,
    get: async (key, options) => {
      await before(key);
      return await world.bucket.get(key, options);
    },
    list: (prefix, options) => world.bucket.list(prefix, options),
    head: (key) => world.bucket.head(key),
  };
}

test("slots that are trimmed while the WAL is copied: what follows them is copied all the same", async () => {
  const world = await source();
  await world.clock.advance(5_000);
  world.store.setPlan(({ op, key }) =>
    op === "put" && kindOf(key) === "data" ? { kind: "delay", delayMs: 3_000 } : undefined
  );
  await world.write();
  // Its upload is under way; the next records are in later slots.
  await world.clock.advance(1_200);
  await world.writeMany(2);
  const before = world.acknowledged.length;
  let isFirst = true;
  const from = disturbed(world, async (key) => {
    if (kindOf(key) !== "wal" || !isFirst) return;
    isFirst = false;
    await world.clock.advance(2_000);
  });
  await assertRestored(world, await copied(world, from), before);
  await drive(world.clock, world.q.node.close());
});

test("topics that appear while the WAL is copied are in the copy with their records", async () => {
  const world = await source();
  const before = world.acknowledged.length;
  let made = 0;
  const from = disturbed(world, async (key) => {
    if (kindOf(key) !== "wal" || made >= 3) return;
    const path = `/v1/topics/new-${++made}/records`;
    const posting = world.fetch(path, { method: "POST", body: "new" });
    assert.equal((await drive(world.clock, posting)).status, 200);
  });
  const bucket = await copied(world, from);
  assert.ok(made > 0);
  await assertRestored(world, bucket, before);
  await drive(world.clock, world.q.node.close());
});

test("an object that goes in parts is checked and copied as well", async () => {
  const world = await source();
  const bucket = await copied(world, world.bucket, { putBytesMax: 64 });
  await assertRestored(world, bucket, world.acknowledged.length);
  const content = await contentOf(world.bucket);
  const raw = createMemoryStore(world.clock);
  for (const [key, bytes] of content) {
    const changed = bytes.slice();
    if (kindOf(key) === "data") changed[bytes.length - 1]! ^= 1;
    await raw.put(key, changed);
  }
  const to = createMemoryStore(world.clock);
  await assert.rejects(
    copied(world, raw, { to, putBytesMax: 64 }),
    (error) => isFault(error, "corrupt"),
  );
  assert.equal([...(await contentOf(to)).keys()].filter((key) => kindOf(key) === "data").length, 0);
  await drive(world.clock, world.q.node.close());
});

test("offsets of groups and sequences of producers are those of the copied moment", async () => {
  const world = await source();
  const committer = new Committer(world, "t").start();
  await world.writeMany(3);
  await committer.stop();
  const committed = Number(committer.acknowledged.at(-1));
  const asked = world.q.call(initProducerIdApi, 4, {
    transactionalId: null,
    transactionTimeoutMs: 60_000,
    producerId: -1,
    producerEpoch: -1,
  });
  const { producerId } = await drive(world.clock, asked);
  const records = batch(["once"], { producer: [producerId, 0, 0] });
  const first = await drive(world.clock, world.q.produce("t", records.slice()));
  assert.equal(first.error, "NONE");
  const bucket = await copied(world, world.bucket);
  const restored = new FaultWorld({ clock: world.clock, bucket, seed: 78 });
  await restored.start();
  assert.equal(await committedOffset(restored, "t"), committed);
  const again = await drive(world.clock, restored.q.produce("t", records.slice()));
  assert.equal(again.error, "NONE");
  assert.equal(again.baseOffset, first.baseOffset, "a duplicate is known as one");
  const next = batch(["twice"], { producer: [producerId, 0, 1] });
  assert.equal((await drive(world.clock, restored.q.produce("t", next))).error, "NONE");
  assert.deepEqual(await restored.values("t"), [...world.acknowledged, "once", "twice"]);
  await drive(world.clock, restored.q.node.close());
  await drive(world.clock, world.q.node.close());
});

test("half a copy cannot be started, and the next attempt finishes it", async () => {
  const world = await source();
  const inner = createMemoryStore(world.clock);
  let puts = 0;
  const to: ObjectStore = {
    ...inner,
    put: (key, body, options) => {
      if (++puts > 3) {
        return Promise.reject(new FaultError("store-full", "No space", { retriable: false }));
      }
      return inner.put(key, body, options);
    },
    list: (prefix, options) => inner.list(prefix, options),
  };
  await assert.rejects(
    copied(world, world.bucket, { to }),
    (error) => isFault(error, "store-full"),
  );
  const half = new FaultWorld({ clock: world.clock, bucket: inner, seed: 79 });
  await assert.rejects(half.start(), (error) => isFault(error, "corrupt"));
  assert.equal(await inner.get(CLUSTER_KEY), null);
  await world.writeMany(5);
  await copied(world, world.bucket, { to: inner });
  await assertRestored(world, inner, world.acknowledged.length);
  await drive(world.clock, world.q.node.close());
});

test("a copy that was broken off before its last object leaves nothing that the next one trips over", async () => {
  const world = await source();
  await world.clock.advance(5_000);
  const inner = createMemoryStore(world.clock);
  const to: ObjectStore = {
    ...inner,
    put: (key, body, options) => {
      if (key !== CLUSTER_KEY) return inner.put(key, body, options);
      return Promise.reject(new FaultError("store-denied", "Not yet", { retriable: false }));
    },
    list: (prefix, options) => inner.list(prefix, options),
  };
  await assert.rejects(
    copied(world, world.bucket, { to }),
    (error) => isFault(error, "store-denied"),
  );
  // The source is one entry further then, so that positions of the two attempts overlap.
  const creating = world.fetch("/v1/topics", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "later" }),
  });
  assert.equal((await drive(world.clock, creating)).status, 201);
  await copied(world, world.bucket, { to: inner });
  await assertRestored(world, inner, world.acknowledged.length);
  await drive(world.clock, world.q.node.close());
});

test("a slot that something else has put into the target does not pass for the source's", async () => {
  const world = await source();
  world.store.setPlan(({ op, key }) =>
    op === "put" && kindOf(key) === "data" ? { kind: "fail" } : undefined
  );
  await world.writeMany(3);
  const to = createMemoryStore(world.clock);
  const once = await contentOf(await copied(world, world.bucket));
  const slots = [...once].filter(([key]) => kindOf(key) === "wal");
  assert.ok(slots.length > 0);
  for (const [key, bytes] of slots) await to.put(key, bytes.map((byte) => byte ^ 1));
  await copied(world, world.bucket, { to });
  world.store.setPlan();
  for (const [key, bytes] of slots) assert.deepEqual((await to.get(key))!.bytes, bytes, key);
  await assertRestored(world, to, world.acknowledged.length);
  await drive(world.clock, world.q.node.close());
});

test("a node that was started on the target while it is copied into keeps its metadata", async () => {
  const world = await source();
  const to = createMemoryStore(world.clock);
  const env = testEnv({ clock: world.clock });
  const begun = { clock: world.clock, random: env.random, log: env.log, clusterId: NEW_ID };
  let isStarted = false;
  const from = disturbed(world, async (key) => {
    if (kindOf(key) !== "data" || isStarted) return;
    isStarted = true;
    await createCluster(to, NEW_ID, begun);
    await to.put(logKey(NEW_ID, position(1)), new Uint8Array(9));
  });
  await assert.rejects(
    copied(world, from, { to }),
    (error) => isFault(error, "config") && /made in the target meanwhile/.test(error.message),
  );
  assert.ok(isStarted);
  assert.notEqual(await to.get(logKey(NEW_ID, position(1))), null);
  await drive(world.clock, world.q.node.close());
});

test("what is refused: the same id, a target in use, an empty source, a damaged object", async () => {
  const world = await source();
  const config = (pattern: RegExp) => (error: unknown) =>
    isFault(error, "config") && pattern.test(error.message);
  const id = world.q.node.node.clusterId;
  await assert.rejects(
    copied(world, world.bucket, { clusterId: id }),
    config(/that of the source/),
  );
  const used = await copied(world, world.bucket);
  await assert.rejects(
    copied(world, world.bucket, { to: used, clusterId: "x" }),
    config(/the target holds cluster restored-1/),
  );
  await assert.rejects(copied(world, createMemoryStore(world.clock)), config(/holds no cluster/));
  const content = await contentOf(world.bucket);
  const raw = createMemoryStore(world.clock);
  for (const [key, bytes] of content) {
    const changed = bytes.slice();
    if (kindOf(key) === "data") changed[3]! ^= 1;
    await raw.put(key, changed);
  }
  const to = createMemoryStore(world.clock);
  await assert.rejects(
    copied(world, raw, { to }),
    (error) => isFault(error, "corrupt") && /not those that were written/.test(error.message),
  );
  assert.equal(await to.get(CLUSTER_KEY), null);
  await drive(world.clock, world.q.node.close());
});
