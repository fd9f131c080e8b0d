/** What cold reads cost in requests: counted, so each number is exact. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACTION_CLUSTER,
  COMPACTION_NODE,
  CompactionWorld,
  type Incarnation,
} from "../../../tests/support/compaction_world.ts";
import { record } from "../../../tests/support/records.ts";
import { seededRandom } from "../../env/random.ts";
import { streamId } from "../../lib/brand.ts";
import { sparseIndexKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { endOffset } from "../stream_record.ts";
import { BlockCache } from "./block_cache.ts";

const MIB = 1024 * 1024;

interface Counted {
  readonly cache: BlockCache;
  readonly gets: string[];
  readonly lists: string[];
  bytes: number;
}

/** A cache of a node that has just started. */
function counted(
  { store, managers, env }: Incarnation,
  options: Partial<ObjectStore> = {},
): Counted {
  const counts = { gets: [] as string[], lists: [] as string[], bytes: 0 };
  const counting: ObjectStore = {
    ...store,
    get: async (key, options) => {
      counts.gets.push(key);
      const got = await store.get(key, options);
      counts.bytes += got?.bytes.length ?? 0;
      return got;
    },
    list: (prefix, options) => {
      counts.lists.push(prefix);
      return store.list(prefix, options);
    },
    ...options,
  };
  const cache = new BlockCache({
    env,
    store: counting,
    clusterId: COMPACTION_CLUSTER,
    nodeId: COMPACTION_NODE,
    objects: managers.objects,
    streams: managers.streams,
    blockBytesMax: 128 * MIB,
    indexBytesMax: 32 * MIB,
    rangeBytesMax: 32 * MIB,
  });
  return Object.assign(counts, { cache });
}

describe("requests of cold reads", () => {
  test("64 MiB from front to back: a GET per 4 MiB", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 1);
    const records = Array.from({ length: 256 }, (_, i) => record(0, i, 1, 256 * 1024));
    await world.upload(node, records);
    const { cache, gets, lists } = counted(node);
    for (let at = 0; at < 256;) {
      const read = await world.drive(
        cache.read(streamId(0), at, 256, { bytesMax: MIB }),
      );
      at = endOffset(read.at(-1)!);
      await world.clock.settle();
    }
    assert.deepEqual([gets.length, lists.length], [20, 0]);
  });

  const SETS = 100;

  /** 20 streams, two of them in each object. Returns what it put beside its objects. */
  async function manySets(sets = SETS) {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 20);
    const hints: string[] = [];
    const put: ObjectStore["put"] = (key, body, options) => {
      hints.push(key);
      return node.store.put(key, body, options);
    };
    const { cache: writer } = counted(node, { put });
    for (let set = 0; set < sets; set++) {
      const streams = [set % 20, (set + 7) % 20].toSorted((a, b) => a - b);
      writer.learn(
        await world.upload(node, streams.flatMap((stream) => world.next(stream, [10, 1_000]))),
      );
      await world.clock.settle();
    }
    return { world, node, hints };
  }

  const RANDOM_READS = Array.from({ length: 1_000 }, (_, i) => {
    const random = seededRandom(i);
    return {
      stream: streamId(Math.floor(random.float() * 20)),
      at: Math.floor(random.float() * 100),
    };
  });

  test("the sparse index is one PUT for 16 uploads, of which each is three at least", async () => {
    const { hints } = await manySets();
    const key = sparseIndexKey(COMPACTION_CLUSTER, COMPACTION_NODE);
    assert.deepEqual(hints, Array.from({ length: 6 }, () => key));
  });

  test("the first read after a restart: sparse index, index, block", async () => {
    const { world, node } = await manySets();
    let all = 0;
    for (const { stream, at } of RANDOM_READS.slice(0, 50)) {
      const { cache, gets } = counted(node);
      await world.drive(cache.read(stream, at, at + 1, { bytesMax: 1 }));
      all += gets.length;
    }
    // What was uploaded since the index was written (4 of 100 objects) is read in one step more.
    assert.ok(all >= 50 * 3 && all <= 50 * 3.5, `${all} GETs for 50 first reads`);
  });

  test("the first read after a restart costs the same however many objects there are", async () => {
    const costs = [];
    // The same modulo 16 and 20: as much came since the sparse index was written, of the same streams.
    for (const sets of [34, 114, 514]) {
      const { world, node } = await manySets(sets);
      const { end } = node.managers.streams.viewStream(streamId(0))!;
      const gets = [];
      for (const at of [0, Math.floor(end / 2), end - 1]) {
        const one = counted(node);
        await world.drive(one.cache.read(streamId(0), at, at + 1, { bytesMax: 1 }));
        assert.deepEqual(one.lists, []);
        gets.push(one.gets.length);
      }
      costs.push(gets);
    }
    // Sparse index, index, block; the newest one is searched for in a step of eight indexes.
    assert.deepEqual(costs, [[3, 3, 10], [3, 3, 10], [3, 3, 10]]);
  });

  test("the newest records of all streams after a restart: no index is read twice", async () => {
    const { world, node } = await manySets(114);
    const { cache, gets } = counted(node);
    for (const stream of world.streams()) {
      const { end } = node.managers.streams.viewStream(stream)!;
      await world.drive(cache.read(stream, end - 1, end, { bytesMax: 1 }));
    }
    // What the first one searches in vain, the others find known: sparse index, 14 indexes, 20 blocks.
    assert.equal(gets.length, 1 + 14 + 20);
  });

  test("1,000 random reads over 100 stream set objects after a restart", async () => {
    const { world, node } = await manySets();
    const { cache, gets, lists } = counted(node);
    for (const { stream, at } of RANDOM_READS) {
      await world.drive(cache.read(stream, at, at + 1, { bytesMax: 1 }));
    }
    const most = 1 + SETS + 2 * SETS;
    assert.ok(
      gets.length <= most,
      `${gets.length} GETs, not a sparse index, 100 indexes, 200 blocks`,
    );
    assert.equal(new Set(gets).size, SETS + 1);
    assert.deepEqual(lists, []);
  });

  test("partitions of one object that are fetched together share a request", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 50);
    const streams = world.streams();
    await world.upload(node, streams.flatMap((stream) => world.next(stream, [10, 1_000])));
    const { cache, gets } = counted(node);
    const read = await Promise.all(
      streams.map((stream) => cache.read(stream, 0, 10, { bytesMax: 1e6 })),
    );
    assert.equal(read.flat().length, 50);
    assert.equal(gets.length, 2, "the index and all blocks");
  });
});
