import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACTION_CLUSTER,
  COMPACTION_NODE,
  CompactionWorld,
  type Incarnation,
} from "../../../tests/support/compaction_world.ts";
import { streamId } from "../../lib/brand.ts";
import { isFault } from "../../lib/errors.ts";
import {
  COMPACTION_RUNS_MAX,
  COMPACTION_TIDY_MS,
  OBJECT_RETAIN_AGE_MS_MIN,
} from "../../lib/limits.ts";
import { dataKey } from "../../object/object_key.ts";
import { createCollector } from "../../controller/collector.ts";
import type { ObjectManager } from "../ports.ts";
import { BlockCache } from "../block_cache/block_cache.ts";
import { CompactionBudget } from "./budget.ts";

const HOUR_MS = 3_600_000;

interface Started {
  readonly world: CompactionWorld;
  readonly node: Incarnation;
}

/** `uploads` stream set objects of three streams. */
async function withSets(uploads: number): Promise<Started> {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, 3);
  for (let i = 0; i < uploads; i++) await uploadSet({ world, node });
  return { world, node };
}

async function uploadSet({ world, node }: Started): Promise<void> {
  await world.upload(node, [
    ...world.next(0, [1, 100], [3, 50]),
    ...world.next(1, [2, 200]),
    ...world.next(2, [1, 1]),
  ]);
}

/** `uploads` stream objects of stream 0. */
async function withStreamObjects(uploads: number): Promise<Started> {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, 1);
  for (let i = 0; i < uploads; i++) await world.upload(node, world.next(0, [1, 100], [3, 50]));
  return { world, node };
}

function sets({ node }: Started): number {
  return node.managers.objects.streamSetObjects(COMPACTION_NODE).length;
}

function own({ node }: Started) {
  return node.managers.objects.viewObjects(streamId(0))!.streamObjects;
}

function loud({ node }: Started) {
  return node.lines.filter(({ level }) => level !== "debug" && level !== "info");
}

describe("compactor", () => {
  test("eight stream set objects become one, every record is read back", async () => {
    const at = await withSets(8);
    assert.equal(sets(at), 8);
    await at.world.drive(at.world.compactor(at.node).look());
    assert.deepEqual(loud(at), []);
    assert.equal(sets(at), 1);
    await at.world.check(at.node);
  });

  test("a join waits until its streams have enough to leave, and then every byte is written once", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    // Stream 0 has half of the bytes: 236 of each upload.
    const compactor = world.compactor(node, { splitBytes: 4_000, waitObjectsMax: 40 });
    await world.drive(compactor.look());
    assert.equal(sets(at), 8);
    assert.match(node.env.metrics.render(), /runs_total\{kind="join",outcome="wait"\} 1/);
    const asked = node.store.count("get");
    for (let i = 0; i < 4; i++) await uploadSet(at);
    await world.drive(compactor.look());
    assert.equal(node.store.count("get"), asked, "nobody asks before there may be enough");
    assert.equal(sets(at), 12);
    for (let i = 0; i < 20; i++) {
      await uploadSet(at);
      await world.drive(compactor.look());
    }
    assert.ok(own(at).length > 0);
    assert.ok(own(at).every(({ size }) => size > 4_000));
    assert.deepEqual(loud(at), []);
    await world.check(node);
  });

  test("streams that never have enough are joined as before", async () => {
    const at = await withSets(8);
    const compactor = at.world.compactor(at.node, { splitBytes: 4_000, waitObjectsMax: 12 });
    await at.world.drive(compactor.look());
    assert.equal(sets(at), 1);
  });

  test("a small object is one request, with its index", async () => {
    const at = await withSets(8);
    const asked = at.node.store.count("get");
    await at.world.drive(at.world.compactor(at.node, { forceSplitMs: 1e12 }).look());
    assert.equal(sets(at), 1);
    const meta = 1;
    assert.ok(at.node.store.count("get") - asked <= 8 + meta + 8, "one each");
  });

  test("sets that are old are split together: a stream gets one object, not one of each", async () => {
    const at = await withSets(3);
    const { world, node } = at;
    const compactor = world.compactor(node, { forceSplitMs: 24 * HOUR_MS });
    await world.clock.advance(13 * HOUR_MS);
    for (let i = 0; i < 2; i++) await uploadSet(at);
    await world.clock.advance(11 * HOUR_MS - 1);
    await world.drive(compactor.look());
    assert.equal(sets(at), 5, "nothing is a day old");
    await world.clock.advance(1);
    await uploadSet(at);
    await world.drive(compactor.look());
    assert.equal(sets(at), 3, "what is younger than half a day stays");
    assert.equal(own(at).length, 1);
    await world.clock.advance(13 * HOUR_MS);
    await uploadSet(at);
    await world.drive(compactor.look());
    assert.equal(sets(at), 1, "what is not a day old, but more than half, goes along");
    assert.equal(own(at).length, 2);
    assert.deepEqual(loud(at), []);
    await world.check(node);
  });

  test("old sets do not hold up the streams, however many there are", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 3);
    for (let i = 0; i < 8; i++) await world.upload(node, world.next(0, [1, 100]));
    const sharing = () => [...world.next(1, [1, 10]), ...world.next(2, [1, 10])];
    for (let i = 0; i < COMPACTION_RUNS_MAX + 8; i++) await world.upload(node, sharing());
    const compactor = world.compactor(node, { forceSplitMs: 0, waitObjectsMax: 1 });
    await world.drive(compactor.look());
    assert.ok(sets({ world, node }) > 0, "the look ends before all of them are split");
    assert.equal(own({ world, node }).length, 1);
  });

  test("how much is dead is asked of a few objects in a look, until all were asked", async () => {
    const at = await withSets(3 * COMPACTION_RUNS_MAX);
    const { world, node } = at;
    const compactor = world.compactor(node, { objectsMin: 1_000, forceSplitMs: 1e12 });
    await world.deleteStream(node, 0);
    const asked = node.store.count("get");
    await world.drive(compactor.look());
    const age = 1;
    assert.ok(node.store.count("get") - asked <= 2 * COMPACTION_RUNS_MAX + age);
    for (const stream of [1, 2]) await world.deleteStream(node, stream);
    for (let look = 0; look < 3; look++) await world.drive(compactor.look());
    await world.clock.advance(COMPACTION_TIDY_MS);
    await world.createStreams(node, 1);
    for (let look = 0; look < 4; look++) await world.drive(compactor.look());
    assert.equal(sets(at), 0);
    assert.deepEqual(loud(at), []);
  });

  test("small stream objects are merged, large ones are linked", async () => {
    const merged = await withStreamObjects(8);
    await merged.world.drive(merged.world.compactor(merged.node).look());
    assert.deepEqual(own(merged).map(({ links }) => links), [undefined]);
    await merged.world.check(merged.node);

    const linked = await withStreamObjects(8);
    const options = { mergeBytesMax: 1, linkBytesMin: 1 };
    await linked.world.drive(linked.world.compactor(linked.node, options).look());
    assert.deepEqual(own(linked).map(({ links }) => links), [8]);
    await linked.world.check(linked.node);
  });

  test("seven objects are no work: nothing is written, however long they lie there", async () => {
    const at = await withSets(7);
    const { world, node } = at;
    const compactor = world.compactor(node, { forceSplitMs: 1e12 });
    const puts = node.store.count("put");
    compactor.start();
    await world.clock.advance(3 * HOUR_MS);
    assert.equal(node.store.count("put"), puts);
    await compactor.close();
    assert.equal(sets(at), 7);
  });

  test("an idle node costs no request: it looks only when metadata changed", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    const compactor = world.compactor(node);
    compactor.start();
    await world.clock.advance(10 * 60_000);
    assert.equal(sets(at), 1);
    const before = node.store.calls.length;
    await world.clock.advance(48 * HOUR_MS);
    assert.equal(node.store.calls.length, before);
    await compactor.close();
  });

  test("data of a day gets stream objects when something else happens: at most one per stream", async () => {
    const at = await withSets(2);
    const { world, node } = at;
    await world.drive(world.compactor(node).look());
    assert.equal(sets(at), 2);
    await world.clock.advance(25 * HOUR_MS);
    await uploadSet(at);
    // A restart in between: the age is that of the entries, by the store's clock.
    const next = { world, node: await world.start() };
    await world.drive(world.compactor(next.node).look());
    assert.equal(sets(next), 1, "the youngest stays");
    assert.equal(own(next).length, 1);
    await world.check(next.node);
  });

  test("a joined object has the age of its oldest part", async () => {
    const at = await withSets(7);
    const { world, node } = at;
    await world.clock.advance(23 * HOUR_MS);
    await uploadSet(at);
    const compactor = world.compactor(node);
    await world.drive(compactor.look());
    assert.equal(sets(at), 1);
    await world.clock.advance(2 * HOUR_MS);
    await uploadSet(at);
    await world.drive(compactor.look());
    assert.equal(sets(at), 1);
    assert.equal(own(at).length, 1);
    await world.check(node);
  });

  test("objects without a live record go, half dead ones are written anew, once an hour", async () => {
    const at = await withSets(3);
    const { world, node } = at;
    const compactor = world.compactor(node);
    await world.drive(compactor.look());
    const view = (stream: number) => node.managers.streams.viewStream(streamId(stream))!;
    const third = node.managers.objects.streamSetObjects(COMPACTION_NODE)[2]!;
    for (const [stream, perUpload] of [[0, 4], [1, 2], [2, 1]] as const) {
      await world.trim(node, stream, stream === 0 ? 2 * perUpload : view(stream).end);
    }
    await world.drive(compactor.look());
    assert.equal(sets(at), 3, "looked at less than an hour ago");
    await world.clock.advance(COMPACTION_TIDY_MS);
    await uploadSet(at);
    await world.drive(compactor.look());
    assert.equal(sets(at), 2);
    const [tidied] = node.managers.objects.streamSetObjects(COMPACTION_NODE);
    assert.ok(tidied!.size < third.size);
    assert.deepEqual(loud(at), []);
    await world.check(node);
  });

  test("past the cluster's limit of objects two neighbours are enough", async () => {
    const at = await withStreamObjects(3);
    await at.world.drive(at.world.compactor(at.node).look());
    assert.equal(own(at).length, 3);
    await uploadOwn(at);
    await at.world.drive(at.world.compactor(at.node, { clusterObjectsMax: 1 }).look());
    assert.equal(own(at).length, 1);
    await at.world.check(at.node);
  });

  test("one rewrite per stream and look: the next one sees what this one made (their 3483)", async () => {
    const at = await withStreamObjects(8);
    const options = { mergeBytesMax: 800, linkBytesMin: 1, objectsMin: 2 };
    const compactor = at.world.compactor(at.node, options);
    await at.world.drive(compactor.look());
    const seen = [own(at).length];
    for (let i = 0; i < 8; i++) {
      await at.world.drive(compactor.look());
      seen.push(own(at).length);
      await at.world.check(at.node);
    }
    assert.equal(seen.at(-1), 1);
    assert.ok(seen.every((count, i) => i === 0 || count <= seen[i - 1]!), seen.join());
  });

  test("the store fails: the look ends, the next one does the work", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    const compactor = world.compactor(node);
    node.store.setPlan(({ op, key }) =>
      op === "put" && !key.startsWith("meta/") ? { kind: "fail" } : undefined
    );
    await world.drive(compactor.look());
    assert.equal(sets(at), 8);
    assert.deepEqual(loud(at).map(({ event }) => event), ["compaction-failed"]);
    assert.match(node.env.metrics.render(), /runs_total\{kind="join",outcome="failed"\} 1/);
    node.store.setPlan();
    await world.drive(compactor.look());
    assert.equal(sets(at), 1);
    await world.check(node);
  });

  test("a store that goes on failing is asked less and less often", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    const compactor = world.compactor(node);
    node.store.setPlan(({ op, key }) =>
      op === "put" && !key.startsWith("meta/") ? { kind: "fail" } : undefined
    );
    compactor.start();
    await world.clock.advance(6 * HOUR_MS);
    const failed = loud(at).length;
    assert.ok(failed >= 8 && failed <= 12, `${failed} looks failed`);
    node.store.setPlan();
    await world.clock.advance(2 * HOUR_MS);
    assert.equal(sets(at), 1);
    await compactor.close();
  });

  test("what metadata refuses twice is not tried a third time", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    const { compaction } = node.managers;
    let commits = 0;
    const commitCompaction = async () => {
      commits += 1;
      return { ok: false, reason: "conflict", detail: "too large for one entry" } as const;
    };
    const managers = { ...node.managers, compaction: { ...compaction, commitCompaction } };
    const compactor = world.compactor({ ...node, managers });
    for (let i = 0; i < 4; i++) await world.drive(compactor.look());
    assert.equal(commits, 2);
    assert.deepEqual(loud(at).map(({ event }) => event), ["compaction-refused"]);
    assert.deepEqual(await world.dataObjects(), world.liveObjects(node));
  });

  test("a damaged object is left alone and named, the others are joined (their 2109, 2263)", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    const bad = node.managers.objects.streamSetObjects(COMPACTION_NODE)[7]!;
    const key = dataKey(COMPACTION_CLUSTER, bad.objectId);
    const got = await world.base.get(key);
    got!.bytes[40] = 1;
    await world.base.put(key, got!.bytes);
    const compactor = world.compactor(node, { objectsMin: 7 });
    await world.drive(compactor.look());
    await world.drive(compactor.look());
    assert.equal(sets(at), 2);
    const [line, ...more] = loud(at);
    assert.equal(line?.event, "compaction-input-unreadable");
    assert.match(String(line?.fields.error), new RegExp(`${bad.objectId} is corrupt`));
    assert.deepEqual(more, []);
  });

  test("an object that is lost is named, and left alone", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    const lost = node.managers.objects.streamSetObjects(COMPACTION_NODE)[0]!;
    await world.base.delete([dataKey(COMPACTION_CLUSTER, lost.objectId)]);
    const compactor = world.compactor(node, { objectsMin: 7 });
    await world.drive(compactor.look());
    assert.deepEqual(loud(at).map(({ event }) => event), ["compaction-input-unreadable"]);
    await world.drive(compactor.look());
    assert.equal(sets(at), 2);
  });

  test("a fenced node stops for good", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    const compactor = world.compactor(node);
    const next = await world.start();
    await world.drive(node.metadata.fresh());
    await world.drive(compactor.look());
    assert.deepEqual(loud(at).map(({ event }) => event), ["compaction-failed"]);
    const calls = node.store.calls.length;
    await world.drive(compactor.look());
    assert.equal(node.store.calls.length, calls);
    await world.check(next);
  });

  test("closing cancels what runs; nothing of it is committed", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    const compactor = world.compactor(node);
    node.store.setPlan(({ op, key }) =>
      op === "put" && !key.startsWith("meta/") ? { kind: "hang", happens: false } : undefined
    );
    const looking = compactor.look();
    await world.clock.settle();
    await world.drive(compactor.close());
    await world.drive(looking);
    assert.equal(sets(at), 8);
    assert.deepEqual(loud(at), []);
    await world.check(node);
  });

  test("a reader during the swap: the old object while it is there, then the new one", async () => {
    const at = await withSets(8);
    const { world, node } = at;
    const { objects } = node.managers;
    const frozen = {
      sets: objects.streamSetObjects(COMPACTION_NODE),
      views: new Map(world.streams().map((id) => [id, objects.viewObjects(id)])),
    };
    let isStale = true;
    let refreshes = 0;
    const stale: Pick<ObjectManager, "viewObjects" | "streamSetObjects" | "refresh"> = {
      viewObjects: (id) => isStale ? frozen.views.get(id) ?? null : objects.viewObjects(id),
      streamSetObjects: (id) => isStale ? frozen.sets : objects.streamSetObjects(id),
      refresh: async () => {
        isStale = false;
        refreshes += 1;
      },
    };
    const cache = () =>
      new BlockCache({
        env: node.env,
        store: node.store,
        clusterId: COMPACTION_CLUSTER,
        nodeId: COMPACTION_NODE,
        objects: stale,
        streams: node.managers.streams,
        blockBytesMax: 1e6,
        indexBytesMax: 1e6,
        rangeBytesMax: 1e6,
      });
    await world.drive(world.compactor(node, { splitBytes: 500 }).look());
    for (const stream of world.streams()) await world.checkStream(node, stream, cache());
    assert.equal(refreshes, 0, "inputs stay for T_RETAIN");

    await world.clock.advance(OBJECT_RETAIN_AGE_MS_MIN + 1);
    const { store, env, metadata, requester } = node;
    const collector = createCollector({
      store,
      env,
      clusterId: COMPACTION_CLUSTER,
      metadata,
      requester: () => requester,
      intervalMs: null,
    });
    await world.drive(collector.collect());
    assert.deepEqual(await world.dataObjects(), world.liveObjects(node));
    for (const stream of world.streams()) {
      isStale = true;
      await world.checkStream(node, stream, cache());
    }
    assert.equal(refreshes, 3);
  });

  test("the backlog is shown when there is more than one look can do", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 66);
    const all = Array.from({ length: 66 }, (_, i) => i);
    for (let i = 0; i < 2; i++) {
      await world.upload(node, all.flatMap((stream) => world.next(stream, [1, 10])), 1);
    }
    const compactor = world.compactor(node, { objectsMin: 2, memoryBytes: 1 });
    await world.drive(compactor.look());
    assert.match(node.env.metrics.render(), /skerry_compaction_backlog_bytes [1-9]/);
    await world.drive(compactor.look());
    assert.match(node.env.metrics.render(), /skerry_compaction_backlog_bytes 0/);
    assert.equal(world.liveObjects(node).length, 66);
    await world.check(node);
  });
});

async function uploadOwn({ world, node }: Started): Promise<void> {
  await world.upload(node, world.next(0, [1, 100]));
}

describe("budget", () => {
  test("so many bytes per second, so many requests at once", async () => {
    const world = new CompactionWorld();
    const { clock } = world;
    const budget = new CompactionBudget(clock, 1_000_000);
    const { signal } = new AbortController();
    const startedMs: number[] = [];
    const reads = Array.from({ length: 5 }, () =>
      budget.read(1_000_000, signal, async () => {
        startedMs.push(clock.monotonicMs());
      }));
    await clock.settle();
    assert.deepEqual(startedMs, [0]);
    await clock.advance(10_000);
    await Promise.all(reads);
    assert.deepEqual(startedMs, [0, 1_000, 2_000, 3_000, 4_000]);
  });

  test("waiting ends with the signal", async () => {
    const world = new CompactionWorld();
    const budget = new CompactionBudget(world.clock, 1);
    const abort = new AbortController();
    await budget.read(1_000, abort.signal, async () => {});
    const waiting = budget.read(1, abort.signal, async () => {});
    abort.abort();
    await assert.rejects(waiting, (error) => isFault(error, "closed"));
  });
});
