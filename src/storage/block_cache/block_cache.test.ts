import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  CLUSTER,
  EngineWorld,
  NODE,
  type RunningEngine,
} from "../../../tests/support/engine_world.ts";
import { bases, record } from "../../../tests/support/records.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { nodeId, objectId, streamId } from "../../lib/brand.ts";
import { isFault } from "../../lib/errors.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { LogCacheBlock } from "../cache/log_cache_block.ts";
import type { ObjectManager, StreamManager, StreamObjectRef } from "../ports.ts";
import { layOut, writeObject } from "../upload/object_upload.ts";
import { UploadMemory } from "../upload/upload_memory.ts";
import { BlockCache } from "./block_cache.ts";
import { RangeTable } from "./range_table.ts";
import { locate } from "./read_plan.ts";

const NO_LIMIT = { bytesMax: 1e9 };

function counting(store: ObjectStore): { store: ObjectStore; ranges: string[] } {
  const ranges: string[] = [];
  const get: ObjectStore["get"] = (key, options) => {
    ranges.push(`${key.split("/").at(-1)}:${options?.range?.start}-${options?.range?.end}`);
    return store.get(key, options);
  };
  return { store: { ...store, get }, ranges };
}

function cacheOver(
  store: ObjectStore,
  objects: ObjectManager,
  streams: Pick<StreamManager, "viewStream">,
): BlockCache {
  return new BlockCache({
    env: testEnv(),
    store,
    clusterId: CLUSTER,
    nodeId: NODE,
    objects,
    streams,
    blockBytesMax: 1e8,
    indexBytesMax: 1e6,
    rangeBytesMax: 1e6,
  });
}

/** Streams 0 and 1 over three stream set objects of two rounds each. */
async function uploaded(): Promise<{ world: EngineWorld; engine: RunningEngine }> {
  const world = new EngineWorld();
  const engine = await world.start();
  for (let i = 0; i < 2; i++) await engine.streams.create(world.nextEpoch());
  for (let i = 0; i < 6; i++) {
    await engine.storage.append(record(0, i, 1, 100)).durable;
    if (i !== 3 && i !== 2) {
      await engine.storage.append(record(1, i > 3 ? i - 2 : i, 1, 100)).durable;
    }
    if (i % 2 === 1) await engine.storage.forceUpload(streamId(0));
  }
  return { world, engine };
}

describe("block cache", () => {
  test("finds a stream in its node's stream set objects and its own ones", async () => {
    const { world, engine } = await uploaded();
    assert.equal(engine.ports.objects.streamSetObjects(NODE).length, 2);
    assert.equal(engine.ports.objects.viewObjects(streamId(0))?.streamObjects.length, 1);
    const cache = cacheOver(world.store, engine.ports.objects, engine.ports.streams);
    assert.deepEqual(bases(await cache.read(streamId(0), 0, 6, NO_LIMIT)), [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(bases(await cache.read(streamId(1), 1, 4, NO_LIMIT)), [1, 2, 3]);
  });

  test("a second read costs no request, two at once share theirs", async () => {
    const { world, engine } = await uploaded();
    const { store, ranges } = counting(world.store);
    const cache = cacheOver(store, engine.ports.objects, engine.ports.streams);
    await Promise.all([0, 1].map(() => cache.read(streamId(0), 0, 6, NO_LIMIT)));
    assert.equal(new Set(ranges).size, ranges.length);
    const before = ranges.length;
    await cache.read(streamId(0), 0, 6, NO_LIMIT);
    assert.equal(ranges.length, before);
  });

  test("what a compaction replaced is read from its successor", async () => {
    const { world, engine } = await uploaded();
    const cache = cacheOver(world.store, engine.ports.objects, engine.ports.streams);
    await cache.read(streamId(0), 0, 2, NO_LIMIT);
    const old = engine.ports.objects.streamSetObjects(NODE)[0]!;
    const block = new LogCacheBlock(0);
    for (const one of [record(0, 0, 1, 100), record(0, 1, 1, 100)]) block.put(one, 0);
    const layout = await layOut(world, block.runs());
    const id = objectId(9_000);
    const checksums = await writeObject(
      {
        clock: world.env.clock,
        store: world.store,
        clusterId: CLUSTER,
        memory: new UploadMemory(),
      },
      id,
      layout,
    );
    const successor: StreamObjectRef = {
      objectId: id,
      kind: "stream",
      size: layout.size,
      attributes: 0,
      checksums,
      start: 0,
      end: 2,
    };
    world.metadata.replace(NODE, old.objectId, [successor], streamId(0));
    await world.store.delete([dataKey(CLUSTER, old.objectId)]);
    assert.deepEqual(bases(await cache.read(streamId(0), 0, 6, NO_LIMIT)), [0, 1, 2, 3, 4, 5]);
    await assert.rejects(
      cache.read(streamId(1), 0, 1, NO_LIMIT),
      (error) => isFault(error, "data-loss") && /offset 0 of stream 1/.test(error.message),
    );
  });

  test("a missing object is looked for again in fresh metadata, once", async () => {
    const { world, engine } = await uploaded();
    const { objects } = engine.ports;
    const gone = { ...objects.streamSetObjects(NODE)[0]!, objectId: objectId(777) };
    let refreshed = 0;
    let isStale = true;
    const stale: ObjectManager = {
      ...objects,
      viewObjects: (id) => objects.viewObjects(id),
      streamSetObjects: (node) => isStale ? [gone] : objects.streamSetObjects(node),
      refresh: async () => {
        refreshed += 1;
        isStale = false;
      },
    };
    const cache = cacheOver(world.store, stale, engine.ports.streams);
    assert.deepEqual(bases(await cache.read(streamId(0), 0, 2, NO_LIMIT)), [0, 1]);
    assert.equal(refreshed, 1);
    stale.refresh = async () => {};
    isStale = true;
    await assert.rejects(
      cacheOver(world.store, stale, engine.ports.streams).read(streamId(0), 0, 2, NO_LIMIT),
      (error) => isFault(error, "object-missing") && error.message.includes("/777"),
    );
  });

  test("a sequential reader fetches ahead, a random one only what it needs", async () => {
    const world = new EngineWorld();
    const engine = await world.start();
    await engine.streams.create(world.nextEpoch());
    const size = 600 * 1024;
    for (let i = 0; i < 20; i++) await engine.storage.append(record(0, i, 1, size)).durable;
    await world.drive(engine.storage.forceUpload(streamId(0)));
    const { store, ranges } = counting(world.store);
    const cache = cacheOver(store, engine.ports.objects, engine.ports.streams);
    for (let i = 0; i < 20; i++) {
      assert.deepEqual(bases(await cache.read(streamId(0), i, 20, { bytesMax: size })), [i]);
    }
    assert.ok(ranges.length <= 10, `${ranges.length} requests for 20 blocks`);
    const random = counting(world.store);
    const other = cacheOver(random.store, engine.ports.objects, engine.ports.streams);
    await other.read(streamId(0), 7, 20, { bytesMax: size });
    assert.equal(random.ranges.length, 2, "the index and one block");
  });

  test("large objects are written in parts and read back", async () => {
    const world = new EngineWorld();
    const engine = await world.start();
    await engine.streams.create(world.nextEpoch());
    const parts: number[] = [];
    const putParts = engine.store.putParts.bind(engine.store);
    engine.store.putParts = (key, source) =>
      putParts(
        key,
        (async function* () {
          for await (const part of source) {
            parts.push(part.length);
            yield part;
          }
        })(),
      );
    const size = 9 * 1024 * 1024;
    for (let i = 0; i < 4; i++) await engine.storage.append(record(0, i, 1, size)).durable;
    await engine.storage.forceUpload(streamId(0));
    assert.equal(parts.length, 3);
    assert.equal(parts[0], parts[1]);
    const cache = cacheOver(world.store, engine.ports.objects, engine.ports.streams);
    assert.deepEqual(bases(await cache.read(streamId(0), 0, 4, NO_LIMIT)), [0, 1, 2, 3]);
  });

  test("damaged data is refused", async () => {
    const { world, engine } = await uploaded();
    const [object] = engine.ports.objects.streamSetObjects(NODE);
    const key = dataKey(CLUSTER, object!.objectId);
    const got = await world.store.get(key);
    got!.bytes[40] = 1;
    await world.store.put(key, got!.bytes);
    const cache = cacheOver(world.store, engine.ports.objects, engine.ports.streams);
    await assert.rejects(
      cache.read(streamId(0), 0, 2, NO_LIMIT),
      (error) => isFault(error, "corrupt"),
    );
  });

  test("an aborted read stops", async () => {
    const { world, engine } = await uploaded();
    const cache = cacheOver(world.store, engine.ports.objects, engine.ports.streams);
    const signal = AbortSignal.abort();
    await assert.rejects(
      cache.read(streamId(0), 0, 2, { ...NO_LIMIT, signal }),
      (error) => isFault(error, "aborted"),
    );
  });
});

describe("read plan", () => {
  const own: StreamObjectRef = {
    objectId: objectId(1),
    kind: "stream",
    size: 1,
    attributes: 0,
    checksums: { bytesCrc: 0, indexCrc: 0 },
    start: 10,
    end: 20,
  };
  const view = {
    ranges: [
      { nodeId: nodeId(1), start: 0, end: 30 },
      { nodeId: nodeId(2), start: 30, end: null },
    ],
    streamObjects: [own],
  };

  test("own objects first, then the owner of the range, never beyond either", () => {
    assert.deepEqual(locate(view, 5), { kind: "stream-set", nodeId: 1, until: 10 });
    assert.deepEqual(locate(view, 10), { kind: "stream-object", object: own, until: 20 });
    assert.deepEqual(locate(view, 20), { kind: "stream-set", nodeId: 1, until: 30 });
    assert.deepEqual(locate(view, 99), {
      kind: "stream-set",
      nodeId: 2,
      until: Number.MAX_SAFE_INTEGER,
    });
    assert.deepEqual(locate({ ranges: [], streamObjects: [] }, 0), { kind: "nowhere" });
  });

  test("the fixture of getObjects: which objects hold a span, in their order", () => {
    const ranges = [
      [1, 10, 140],
      [2, 140, 180],
      [1, 180, 420],
      [2, 420, 520],
      [1, 520, 600],
      [2, 600, 888],
    ].map(([node, start, end]) => ({ nodeId: nodeId(node!), start: start!, end: end! }));
    const streamObjects = [[8, 10, 100], [9, 200, 300], [10, 300, 400]]
      .map(([id, start, end]) => ({ ...own, objectId: objectId(id!), start: start!, end: end! }));
    // Of node 1 (theirs is called 0) and of node 2; ids are numbered per kind and node there.
    const sets = [
      [1, "0", 100, 120],
      [1, "1", 120, 140],
      [1, "2", 180, 200],
      [1, "3", 400, 420],
      [1, "4", 520, 600],
      [2, "5", 140, 160],
      [2, "6", 160, 180],
      [2, "7", 420, 520],
      [2, "9'", 600, 888],
    ] as const;
    const spanOf = (start: number, end: number): string => {
      const names: string[] = [];
      for (let at = start; at < end;) {
        const place = locate({ ranges, streamObjects }, at);
        if (place.kind === "nowhere") return "nowhere";
        if (place.kind === "stream-object") {
          names.push(String(place.object.objectId));
          at = place.until;
          continue;
        }
        const stream = streamId(1);
        const held = sets.find(([node, , from, to]) =>
          node === place.nodeId &&
          new RangeTable([{ streamId: stream, start: from, end: to }]).holds(stream, at)
        );
        assert.ok(held !== undefined, `nobody has ${at}`);
        names.push(held[1]);
        at = Math.min(held[3], place.until);
      }
      return names.join(" ");
    };
    const cases: readonly (readonly [number, number, string])[] = [
      [10, 600, "8 0 1 5 6 2 9 10 3 7 4"],
      [0, 600, "nowhere"],
      [400, 520, "3 7"],
      [401, 519, "3 7"],
      [399, 521, "10 3 7 4"],
      [399, 888, "10 3 7 4 9'"],
      [101, 400, "0 1 5 6 2 9 10"],
      [550, 888, "4 9'"],
      [888, 1_000, "nowhere"],
    ];
    for (const [start, end, wanted] of cases) {
      assert.equal(spanOf(start, end), wanted, `[${start}, ${end})`);
    }
  });

  test("range tables know their ranges' edges", () => {
    const table = new RangeTable([
      { streamId: streamId(1), start: 5, end: 10 },
      { streamId: streamId(1), start: 20, end: 30 },
      { streamId: streamId(4), start: 0, end: 1 },
    ]);
    const held = [[1, 4], [1, 5], [1, 9], [1, 10], [1, 29], [1, 30], [2, 5], [4, 0], [4, 1], [0, 0]]
      .filter(([id, at]) => table.holds(streamId(id!), at!));
    assert.deepEqual(held, [[1, 5], [1, 9], [1, 29], [4, 0]]);
    assert.equal(table.bytes, 72);
  });
});
