/** A sparse index is a hint: lost, stale, damaged or wrong, every read finds its records all the same. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACTION_CLUSTER,
  COMPACTION_NODE,
  CompactionWorld,
  type Incarnation,
} from "../../../tests/support/compaction_world.ts";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { nodeId, objectId, position, streamId } from "../../lib/brand.ts";
import { createMemoryStore } from "../../object/memory.ts";
import { sparseIndexKey } from "../../object/object_key.ts";
import { decodeSparseIndex } from "../format/sparse_index.ts";
import type { StreamSetRef } from "../ports.ts";
import { RangeTable } from "./range_table.ts";
import { SparseIndex } from "./sparse_index.ts";
import { SparseIndexes } from "./sparse_indexes.ts";

const KEY = sparseIndexKey(COMPACTION_CLUSTER, COMPACTION_NODE);

async function worldOf(sets: number) {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, 4);
  const writer = world.reader(node);
  for (let set = 0; set < sets; set++) {
    const [a, b] = [set % 4, (set + 1) % 4].toSorted((x, y) => x - y);
    writer.learn(
      await world.upload(node, [...world.next(a!, [5, 10]), ...world.next(b!, [5, 10])]),
    );
    await world.clock.settle();
  }
  return { world, node, writer };
}

function counting(world: CompactionWorld, node: Incarnation) {
  const gets: string[] = [];
  const store = {
    ...node.store,
    get: (key: string, options?: Parameters<typeof node.store.get>[1]) => {
      gets.push(key);
      return node.store.get(key, options);
    },
  };
  return { gets, cache: world.reader({ ...node, store }) };
}

describe("sparse index of the node", () => {
  test("holds what was uploaded, and is found by the next start", async () => {
    const { world, node } = await worldOf(32);
    const got = await node.store.get(KEY);
    const index = SparseIndex.decode(got!.bytes);
    assert.equal(index.streams, 4);
    assert.equal(index.bytes, 2 * 32 * 40);
    const { cache, gets } = counting(world, node);
    await world.check(node, cache);
    assert.equal(gets.filter((key) => key === KEY).length, 1);
  });

  test("few objects need none", async () => {
    const { world, node } = await worldOf(15);
    assert.equal(await node.store.get(KEY), null);
    assert.equal((await worldOf(16)).writer.bytes > 0, true);
    const few = await worldOf(8);
    const { cache, gets } = counting(few.world, few.node);
    await few.world.check(few.node, cache);
    assert.ok(!gets.includes(KEY), "and reads do not ask for it");
    await world.check(node);
  });

  test("lost, damaged, empty, of another version: the indexes are read instead", async () => {
    const { world, node } = await worldOf(32);
    const good = (await node.store.get(KEY))!.bytes;
    const bad = [
      new Uint8Array(0),
      new TextEncoder().encode("no index at all"),
      good.subarray(0, good.length - 3),
      Uint8Array.from(good, (byte, i) => i === 1 ? 9 : byte),
    ];
    for (const bytes of bad) {
      await node.store.put(KEY, bytes);
      await world.check(node);
    }
    await node.store.delete([KEY]);
    await world.check(node);
  });

  test("every single damaged byte costs requests at most", async () => {
    const { world, node } = await worldOf(32);
    const good = (await node.store.get(KEY))!.bytes;
    for (let at = 0; at < good.length; at += 37) {
      await node.store.put(KEY, Uint8Array.from(good, (byte, i) => i === at ? byte ^ 0x41 : byte));
      await world.check(node);
    }
  });

  test("one that names the wrong object for everything: the right one is found behind it", async () => {
    const { world, node } = await worldOf(32);
    const [first] = node.managers.objects.streamSetObjects(COMPACTION_NODE);
    const wrong = new SparseIndex();
    const end = 1_000_000;
    const all = world.streams().map((stream) => ({ streamId: stream, start: 0, end }));
    wrong.add(first!.objectId, all);
    await node.store.put(KEY, wrong.encode());
    await world.check(node);
  });

  test("stale: objects that came later and objects that compaction replaced", async () => {
    const { world, node } = await worldOf(32);
    const stale = (await node.store.get(KEY))!.bytes;
    await world.upload(node, world.next(0, [5, 10]));
    await world.drive(world.compactor(node).look());
    for (let i = 0; i < 12; i++) await world.upload(node, world.next(i % 4, [5, 10]));
    await node.store.put(KEY, stale);
    await world.check(node);
  });

  test("what compaction replaced leaves it with the next writing", async () => {
    const { world, node, writer } = await worldOf(32);
    const learn = (written: Parameters<typeof writer.learn>[0]) => writer.learn(written);
    await world.drive(world.compactor(node, { splitBytes: 1 }, learn).look());
    for (let i = 0; i < 16; i++) {
      learn(await world.upload(node, [...world.next(0, [5, 10]), ...world.next(1, [5, 10])]));
      await world.clock.settle();
    }
    const live = node.managers.objects.streamSetObjects(COMPACTION_NODE)
      .map(({ objectId: id }) => id);
    const named = decodeSparseIndex((await node.store.get(KEY))!.bytes)
      .flatMap(({ ranges }) => ranges.map(({ objectId: id }) => id));
    assert.ok(named.length > 0);
    assert.deepEqual(named.filter((id) => !live.includes(id)), []);
    await world.check(node);
  });

  test("a store that does not give it is no failure", async () => {
    const { world, node } = await worldOf(32);
    const get: typeof node.store.get = (key, options) =>
      key === KEY ? Promise.reject(new Error("no answer")) : node.store.get(key, options);
    await world.check(node, world.reader({ ...node, store: { ...node.store, get } }));
  });

  test("a store that does not take it delays nothing; the next changes write it", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 2);
    let failing = true;
    const puts: string[] = [];
    const put: typeof node.store.put = (key, body, options) => {
      puts.push(key);
      return failing ? Promise.reject(new Error("full")) : node.store.put(key, body, options);
    };
    const writer = world.reader({ ...node, store: { ...node.store, put } });
    const upload = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const records = [...world.next(0, [5, 10]), ...world.next(1, [5, 10])];
        writer.learn(await world.upload(node, records));
        await world.clock.settle();
      }
    };
    await upload(16);
    assert.deepEqual([puts, await node.store.get(KEY)], [[KEY], null]);
    failing = false;
    await world.clock.advance(24 * 3_600_000);
    assert.equal(puts.length, 1, "an idle node asks nothing of the store");
    await upload(16);
    assert.equal(SparseIndex.decode((await node.store.get(KEY))!.bytes).bytes, 2 * 32 * 40);
    writer.close();
    await upload(16);
    assert.equal(puts.length, 2, "nothing after the end");
  });

  test("the next incarnation goes on with what it finds", async () => {
    const { world } = await worldOf(32);
    const node = await world.start();
    const writer = world.reader(node);
    for (let i = 0; i < 16; i++) {
      writer.learn(
        await world.upload(node, [...world.next(0, [5, 10]), ...world.next(1, [5, 10])]),
      );
      await world.clock.settle();
    }
    assert.equal(
      SparseIndex.decode((await node.store.get(KEY))!.bytes).bytes,
      2 * (32 + 16) * 40,
    );
  });
});

describe("sparse index of another node", () => {
  const OTHER = nodeId(32);

  async function other() {
    const clock = createFakeClock();
    const store = createMemoryStore(clock);
    const index = new SparseIndex();
    index.add(objectId(99), [{ streamId: streamId(0), start: 50, end: 100 }]);
    await store.put(sparseIndexKey(COMPACTION_CLUSTER, OTHER), index.encode());
    let gets = 0;
    const get: typeof store.get = (key, options) => {
      gets += 1;
      return store.get(key, options);
    };
    const counted = { ...store, get };
    const indexes = new SparseIndexes({
      env: testEnv({ clock }),
      store: counted,
      clusterId: COMPACTION_CLUSTER,
      objects: { streamSetObjects: () => [] },
      nodeId: COMPACTION_NODE,
    });
    return { clock, reader: indexes.reader(counted), gets: () => gets };
  }

  test("NodeRangeIndexCacheTest: read once, and again after its time at the earliest", async () => {
    const { clock, reader, gets } = await other();
    assert.equal(reader.of(OTHER), null);
    await Promise.all([reader.refresh(OTHER), reader.refresh(OTHER)]);
    assert.equal(reader.of(OTHER)?.floor(streamId(0), 70)?.objectId, 99);
    await clock.advance(59_999);
    await reader.refresh(OTHER);
    assert.equal(gets(), 1);
    await clock.advance(1);
    await reader.refresh(OTHER);
    assert.equal(gets(), 2);
  });

  test("one that is not there is not asked for again at once", async () => {
    const { reader, gets } = await other();
    for (let i = 0; i < 5; i++) await reader.refresh(nodeId(7));
    assert.deepEqual([gets(), reader.of(nodeId(7))?.bytes], [1, 0]);
  });

  test("those of many nodes are bounded", async () => {
    const { reader } = await other();
    await reader.refresh(OTHER);
    for (let id = 100; id < 120; id++) await reader.refresh(nodeId(id));
    assert.equal(reader.of(OTHER), null);
  });
});

test("a table that fell out of memory is left out, not guessed", async () => {
  const clock = createFakeClock();
  const store = createMemoryStore(clock);
  const live = Array.from({ length: 16 }, (_, i): StreamSetRef => ({
    objectId: objectId(i),
    kind: "stream-set",
    size: 1,
    attributes: 0,
    checksums: { bytesCrc: 0, indexCrc: 0 },
    nodeId: COMPACTION_NODE,
    order: position(i),
  }));
  const indexes = new SparseIndexes({
    env: testEnv({ clock }),
    store,
    clusterId: COMPACTION_CLUSTER,
    objects: { streamSetObjects: () => live },
    nodeId: COMPACTION_NODE,
  });
  const tableOf = (id: number) =>
    id % 2 === 0
      ? new RangeTable([{ streamId: streamId(1), start: id * 10, end: id * 10 + 10 }])
      : undefined;
  for (let i = 0; i < 16; i++) indexes.changed(tableOf);
  await clock.settle();
  const written = SparseIndex.decode((await store.get(KEY))!.bytes);
  assert.deepEqual(
    [written.bytes, written.has(objectId(2)), written.has(objectId(3))],
    [8 * 40, true, false],
  );
});
