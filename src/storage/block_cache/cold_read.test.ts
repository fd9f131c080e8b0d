/** How cold reads behave: what waits for what, what is learned, and what is said when data is gone. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACTION_CLUSTER,
  COMPACTION_NODE,
  CompactionWorld,
  type Incarnation,
} from "../../../tests/support/compaction_world.ts";
import { EngineWorld } from "../../../tests/support/engine_world.ts";
import { bases, record } from "../../../tests/support/records.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { capturingLogger } from "../../env/logger.ts";
import { createMetrics } from "../../env/metrics.ts";
import { streamId } from "../../lib/brand.ts";
import { isFault } from "../../lib/errors.ts";
import { STORE_READS_MAX } from "../../lib/limits.ts";
import { limitedStore, storePermits } from "../../object/limited.ts";
import { dataKey, sparseIndexKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { decodeFooter } from "../format/footer.ts";
import { IndexBlock } from "../format/index_block.ts";
import type { Learned } from "../written_index.ts";
import { BlockCache } from "./block_cache.ts";

const S0 = streamId(0);
const KIB = 1024;

/** A stream of records of 256 KiB, each a block of its own, and a cache whose range reads are held back. */
async function sequential(records: number, blockBytesMax = 1e8) {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, 1);
  await world.commit(node, [], [
    Array.from({ length: records }, (_, i) => record(0, i, 1, 256 * KIB)),
  ]);
  const reads: number[] = [];
  const held: (() => void)[] = [];
  let isHeld = false;
  const get: ObjectStore["get"] = async (key, options) => {
    const { start, end } = options!.range!;
    reads.push(Math.round((end - start) / (256 * KIB)));
    if (isHeld) await new Promise<void>((release) => held.push(release));
    return await node.store.get(key, options);
  };
  const cache = new BlockCache({
    env: node.env,
    store: { ...node.store, get },
    clusterId: COMPACTION_CLUSTER,
    nodeId: COMPACTION_NODE,
    objects: node.managers.objects,
    streams: node.managers.streams,
    blockBytesMax,
    indexBytesMax: 1e6,
    rangeBytesMax: 1e6,
  });
  const read = async (at: number) => {
    const got = await cache.read(S0, at, records, { bytesMax: 1 });
    await world.clock.settle();
    return bases(got);
  };
  const hold = (on: boolean) => {
    isHeld = on;
    for (const release of held.splice(0)) release();
  };
  return { world, node, cache, read, reads, hold };
}

describe("read-ahead", () => {
  test("a first read takes what it needs, a second one begins a window", async () => {
    const { read, reads } = await sequential(40);
    await read(0);
    assert.deepEqual(reads, [0, 1], "index and block");
    await read(1);
    // Two misses: 512 KiB and twice as much, six blocks.
    assert.deepEqual(reads.slice(2), [1, 6]);
    await read(2);
    // Inside the window: the next one, of twice the size.
    assert.deepEqual(reads.slice(4), [12]);
    await read(3);
    assert.equal(reads.length, 5, "before the mark there is nothing to do");
  });

  test("a window never holds up a read of what is here, nor one of other blocks", async () => {
    const { read, hold, reads } = await sequential(60);
    await read(0);
    await read(1);
    hold(true);
    assert.deepEqual(await read(2), [2]);
    assert.equal(reads.at(-1), 12, "a window is under way, and the store does not answer");
    for (let at = 3; at < 8; at++) assert.deepEqual(await read(at), [at]);
    const waiting = read(8);
    const far = read(50);
    hold(false);
    assert.deepEqual([await waiting, await far], [[8], [50]]);
    assert.equal(reads.filter((blocks) => blocks === 12).length, 1, "the read joined the window");
  });

  test("two readers of a stream have windows of their own, and share blocks", async () => {
    const { read, reads } = await sequential(40);
    for (let at = 0; at < 10; at++) await read(at);
    const before = reads.length;
    for (let at = 0; at < 10; at++) await read(at);
    assert.equal(reads.length, before, "all of it is in memory");
  });

  test("nothing is searched behind what is committed", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 3);
    for (let i = 0; i < 12; i++) {
      const streams = i === 0 ? [0, 1] : [1, 2];
      await world.upload(node, streams.flatMap((stream) => world.next(stream, [1, 10], [1, 10])));
    }
    const gets: string[] = [];
    const get: ObjectStore["get"] = (key, options) => {
      gets.push(key);
      return node.store.get(key, options);
    };
    const cache = world.reader({ ...node, store: { ...node.store, get } });
    await cache.read(S0, 0, 1_000, { bytesMax: 1 });
    gets.length = 0;
    // More is on its way to objects: the reader asks up to the high watermark.
    await cache.read(S0, 1, 1_000, { bytesMax: 1 });
    await world.clock.settle();
    assert.deepEqual(gets, []);
  });

  test("it ends where the data in objects ends", async () => {
    const { read, reads } = await sequential(6);
    for (let at = 0; at < 6; at++) assert.deepEqual(await read(at), [at]);
    assert.deepEqual(reads, [0, 1, 1, 4]);
  });

  test("blocks that wait longer than 60 s go, and their reader pauses", async () => {
    const { read, reads, world, cache } = await sequential(60);
    await read(0);
    await read(1);
    await world.clock.advance(59_000);
    await read(2);
    await world.clock.advance(59_000);
    assert.deepEqual(await read(3), [3]);
    const before = reads.length;
    assert.deepEqual(await read(4), [4]);
    assert.deepEqual(reads.slice(before), [1], "its block was gone, and no window follows");
    await read(5);
    assert.deepEqual(reads.slice(before), [1, 1]);
    assert.ok(cache.bytes < 30 * 256 * KIB);
  });

  test("unread blocks take half of the cache at most", async () => {
    const blocks = 16;
    const { read, cache, reads } = await sequential(200, blocks * 256 * KIB);
    for (let at = 0; at < 30; at++) assert.deepEqual(await read(at), [at]);
    assert.ok(cache.bytes <= (blocks + 1) * 256 * KIB + 10 * KIB);
    assert.ok(Math.max(...reads) <= blocks / 2, `windows of ${Math.max(...reads)} blocks`);
  });

  test("a failed window is no failure of a read", async () => {
    const { world, node, cache } = await sequential(20);
    await cache.read(S0, 0, 20, { bytesMax: 1 });
    const { get } = node.store;
    let calls = 0;
    const failing: ObjectStore = {
      ...node.store,
      get: (key, options) => ++calls > 3 ? Promise.reject(new Error("down")) : get(key, options),
    };
    const other = world.reader({ ...node, store: failing } as Incarnation);
    for (let at = 0; at < 2; at++) await other.read(S0, at, 20, { bytesMax: 1 });
    await world.clock.settle();
    assert.equal(calls, 4, "index, two blocks, and the window that failed");
    await assert.rejects(other.read(S0, 2, 20, { bytesMax: 1 }), /down/);
  });
});

describe("hot and cold reads", () => {
  test("every permit of cold reads is taken and the store hangs: hot reads are answered", async () => {
    const world = new EngineWorld();
    let isHanging = false;
    let hanging = 0;
    const engine = await world.start({
      options: { logCacheBytesMax: 10_000 },
      judge: (method) => {
        if (!isHanging || method !== "get") return "ok";
        hanging += 1;
        return "hang";
      },
    });
    for (let i = 0; i < 2; i++) await engine.streams.create(world.nextEpoch());
    for (const stream of [0, 1]) {
      for (let i = 0; i < 10; i++) await engine.storage.append(record(stream, i, 1, 500)).durable;
      await world.drive(engine.storage.forceUpload(streamId(stream)));
    }
    const cached = { bytesMax: 1e6, cacheOnly: true };
    assert.equal(await engine.storage.read(S0, 0, 2, cached), null, "stream 0 is cold");
    isHanging = true;
    let answered = 0;
    for (let i = 0; i < 2 * STORE_READS_MAX; i++) {
      void engine.storage.read(S0, i % 2, 2, { bytesMax: 1 }).finally(() => void answered++);
    }
    await world.clock.settle();
    assert.ok(hanging > 0, "the cold reads wait for the store");
    const hot = bases(await engine.storage.read(streamId(1), 8, 10, cached));
    assert.deepEqual(hot, [8, 9]);
    await engine.storage.append(record(1, 10, 1, 500)).durable;
    const read = await engine.storage.read(streamId(1), 8, 11, { bytesMax: 1e6 });
    assert.deepEqual(bases(read), [8, 9, 10]);
    assert.equal(answered, 0, "no cold read had its answer meanwhile");
  });

  test("what opens is read while every cold read hangs, the same objects too", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 2);
    for (let i = 0; i < 20; i++) {
      await world.upload(node, [0, 1].flatMap((stream) => world.next(stream, [10, 1_000])));
    }
    let hanging = 0;
    const get: ObjectStore["get"] = () => {
      hanging += 1;
      return new Promise(() => {});
    };
    const cache = new BlockCache({
      env: node.env,
      store: { ...node.store, get },
      openStore: node.store,
      clusterId: COMPACTION_CLUSTER,
      nodeId: COMPACTION_NODE,
      objects: node.managers.objects,
      streams: node.managers.streams,
      blockBytesMax: 1e6,
      indexBytesMax: 1e6,
      rangeBytesMax: 1e6,
    });
    const read = (at: number, isOpening: boolean) =>
      cache.read(S0, at, at + 1, { bytesMax: 1, isOpening });
    let answered = 0;
    const cold = (at: number) => void read(at, false).finally(() => void answered++);
    for (let at = 0; at < 20; at++) cold(at);
    await world.clock.settle();
    const opened = await world.drive(read(15, true));
    assert.deepEqual(bases(opened), [10]);
    for (let at = 0; at < 20; at++) await world.drive(read(at, true));
    assert.ok(hanging > 0);
    assert.equal(answered, 0);
    assert.deepEqual(bases(await world.drive(read(5, false))), [0], "what was read is for all");
  });

  test("permits of reads are not those of the WAL and of uploads", async () => {
    const world = new CompactionWorld();
    const hang = new Promise<never>(() => {});
    const limits = { readsMax: 2, logReadsMax: 2, writesMax: 1, uploadsMax: 1 };
    const store = limitedStore({ ...world.base, get: () => hang }, storePermits(limits));
    for (let i = 0; i < 5; i++) void store.get("cold");
    const created = await store.put("wal", new Uint8Array(1), { ifAbsent: true });
    assert.equal(created.created, true);
  });
});

describe("objects of this node are known without reading", () => {
  /** Reads of indexes: what ends behind the last data block. */
  async function countReads(
    world: CompactionWorld,
    node: Incarnation,
    learned: readonly Learned[],
  ) {
    let gets = 0;
    const get: ObjectStore["get"] = (key, options) => {
      gets += 1;
      return node.store.get(key, options);
    };
    const cache = world.reader({ ...node, store: { ...node.store, get } });
    for (const written of learned) cache.learn(written);
    await world.check(node, cache);
    return gets;
  }

  test("uploads, joins and composites: a read asks for blocks only", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 3);
    const uploads: Learned[] = [];
    for (let i = 0; i < 8; i++) {
      const records = [0, 1].flatMap((stream) => world.next(stream, [5, 100]));
      uploads.push(await world.upload(node, records));
    }
    const composites: Learned[] = [];
    for (let i = 0; i < 8; i++) uploads.push(await world.upload(node, world.next(2, [5, 500])));
    const unlearned = await countReads(world, node, []);
    assert.equal(await countReads(world, node, uploads), unlearned - 16);

    const compacted: Learned[] = [];
    const compactor = world.compactor(
      node,
      { linkBytesMin: 100, mergeBytesMax: 200 },
      (written) => {
        compacted.push(written);
        if (written.streamSetObject === null) composites.push(written);
      },
    );
    await world.drive(compactor.look());
    assert.equal(compacted.filter(({ streamSetObject }) => streamSetObject !== null).length, 1);
    assert.equal(composites.length, 1);
    const before = await countReads(world, node, []);
    assert.equal(await countReads(world, node, compacted), before - 2);
  });
});

describe("data that is gone", () => {
  async function alarmed() {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 1);
    const [id] = await world.commit(node, [], [world.next(0, [5, 10], [5, 10])]);
    const log = capturingLogger();
    const env = testEnv({ clock: world.clock, log, metrics: createMetrics() });
    let refreshes = 0;
    const { objects } = node.managers;
    const cache = new BlockCache({
      env,
      store: node.store,
      clusterId: COMPACTION_CLUSTER,
      nodeId: COMPACTION_NODE,
      objects: {
        viewObjects: (stream) => objects.viewObjects(stream),
        streamSetObjects: (of) => objects.streamSetObjects(of),
        refresh: async () => void refreshes++,
      },
      streams: node.managers.streams,
      blockBytesMax: 1e6,
      indexBytesMax: 1e6,
      rangeBytesMax: 1e6,
    });
    const said = () => log.lines.filter(({ level }) => level === "error");
    const counted = (reason: string) =>
      new RegExp(`^skerry_data_loss_total\\{reason="${reason}"\\} (\\d+)`, "m")
        .exec(env.metrics.render())?.[1];
    return { world, node, cache, id: id!, said, counted, refreshes: () => refreshes };
  }

  test("an object that fresh metadata still names: one retry, then the alarm, once said", async () => {
    const { node, cache, id, said, counted, refreshes } = await alarmed();
    const key = dataKey(COMPACTION_CLUSTER, id);
    await node.store.delete([key]);
    for (let i = 0; i < 3; i++) {
      await assert.rejects(
        cache.read(S0, 3, 10, { bytesMax: 1 }),
        (error) => isFault(error, "object-missing") && error.message.includes(key),
      );
    }
    assert.equal(refreshes(), 3, "fresh metadata once for each read");
    assert.deepEqual(said().map(({ event, fields }) => [event, fields]), [
      ["data-lost", { stream: 0, offset: 3, key }],
    ]);
    assert.equal(counted("object-missing"), "3");
  });

  test("an offset that no object holds although the stream has it", async () => {
    const { node, cache, said, counted } = await alarmed();
    const view = node.managers.objects.viewObjects(S0)!;
    node.managers.objects.viewObjects = () => ({ ...view, streamObjects: [] });
    await assert.rejects(
      cache.read(S0, 5, 10, { bytesMax: 1 }),
      (error) => isFault(error, "data-loss") && /offset 5 of stream 0/.test(error.message),
    );
    assert.deepEqual(said()[0]?.fields, { stream: 0, offset: 5, key: null });
    assert.equal(counted("data-loss"), "1");
  });

  test("a trim or the end of the stream meanwhile is no loss", async () => {
    const { world, node, cache, id, said } = await alarmed();
    await world.trim(node, 0, 5);
    await node.store.delete([dataKey(COMPACTION_CLUSTER, id)]);
    const wantsPassing = (error: unknown) => isFault(error, "closed") && error.retriable;
    await assert.rejects(cache.read(S0, 0, 10, { bytesMax: 1 }), wantsPassing);
    await world.deleteStream(node, 0);
    await assert.rejects(cache.read(S0, 5, 10, { bytesMax: 1 }), wantsPassing);
    assert.deepEqual(said(), []);
  });
});

describe("one stream set object that is gone or damaged", () => {
  const SETS = 24;
  const BROKEN = 3;

  async function broken(how: "gone" | "damaged") {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 2);
    for (let i = 0; i < SETS; i++) {
      await world.upload(node, [...world.next(0, [1, 10]), ...world.next(1, [1, 10])]);
    }
    await node.store.delete([sparseIndexKey(COMPACTION_CLUSTER, COMPACTION_NODE)]);
    const { objectId } = node.managers.objects.streamSetObjects(COMPACTION_NODE)[BROKEN]!;
    const key = dataKey(COMPACTION_CLUSTER, objectId);
    const { bytes } = (await node.store.get(key))!;
    await node.store.delete([key]);
    if (how === "damaged") await node.store.put(key, bytes.map((byte) => byte ^ 1));
    const read = (at: number, cache = world.reader(node)) =>
      world.drive(cache.read(S0, at, SETS, { bytesMax: 1 }));
    return { read, key };
  }

  for (const how of ["gone", "damaged"] as const) {
    test(`${how}: what is in others is read as before, by a node that has just started`, async () => {
      const { read } = await broken(how);
      for (let at = 0; at < SETS; at++) {
        if (at !== BROKEN) assert.deepEqual(bases(await read(at)), [at]);
      }
    });

    test(`${how}: what is in it is refused with its name, each time`, async () => {
      const { read, key } = await broken(how);
      for (let i = 0; i < 2; i++) {
        await assert.rejects(
          read(BROKEN),
          (error) =>
            isFault(error, how === "gone" ? "object-missing" : "corrupt") &&
            error.message.includes(key),
        );
      }
    });
  }
});

describe("what lies before a damaged place", () => {
  const RECORDS = 8;
  const DAMAGED = 3;

  /** Each record a block of its own: of one object, or of one object each, larger than what is read for an index. */
  async function damaged(isOneObject: boolean) {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 1);
    const records = world.next(0, ...Array.from({ length: RECORDS }, () => [1, 10_000] as const));
    const ids = [];
    for (const own of isOneObject ? [records] : records.map((one) => [one])) {
      ids.push(...await world.commit(node, [], [own]));
    }
    const key = dataKey(COMPACTION_CLUSTER, ids[isOneObject ? 0 : DAMAGED]!);
    const bytes = (await node.store.get(key))!.bytes.slice();
    const { indexPosition, indexLength } = decodeFooter("data", bytes, bytes.length);
    const indexBytes = bytes.slice(indexPosition, indexPosition + indexLength);
    const index = new IndexBlock(indexBytes, indexPosition);
    const { entries } = index.find(S0, DAMAGED, DAMAGED + 1, 1);
    bytes[entries[0]!.position] = 0;
    await node.store.delete([key]);
    await node.store.put(key, bytes);
    const cache = world.reader(node);
    return (at: number) => world.drive(cache.read(S0, at, RECORDS, { bytesMax: 1e6 }));
  }

  for (const isOneObject of [true, false]) {
    test(`is read${isOneObject ? ", in the same object" : ", in other objects"}; the place itself is refused`, async () => {
      const read = await damaged(isOneObject);
      assert.deepEqual(bases(await read(0)), [0, 1, 2]);
      await assert.rejects(read(DAMAGED), (error) => isFault(error, "corrupt"));
      assert.deepEqual(bases(await read(DAMAGED + 1)), [4, 5, 6, 7]);
    });
  }
});
