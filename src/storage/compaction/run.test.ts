/** AutoMQ's CompactionManagerTest and StreamObjectCompactorTest, on real metadata. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACTION_CLUSTER,
  COMPACTION_NODE,
  CompactionWorld,
  type Incarnation,
  piece,
} from "../../../tests/support/compaction_world.ts";
import { faultOnCall } from "../../../tests/support/faulty_store.ts";
import { type ObjectId, objectId, streamId } from "../../lib/brand.ts";
import { isFault } from "../../lib/errors.ts";
import { dataKey } from "../../object/object_key.ts";
import { blocksOf, liveBlocks, regroup, sorted } from "./blocks.ts";
import type { CompactionOptions } from "./options.ts";
import type { CompactionCommit } from "../ports.ts";
import { type RunOutcome, type RunParts, runSets, type SetJobKind } from "./run.ts";
import type { StreamJobKind } from "./stream_plan.ts";
import { runStream } from "./stream_run.ts";

/** Objects are never read whole. */
const LIMITS = { memoryBytes: 300, splitBytes: 100, wholeBytesMax: 0 };

interface Fixture {
  readonly world: CompactionWorld;
  readonly node: Incarnation;
  readonly sets: readonly ObjectId[];
}

/** Streams 0 [0,20), 1 [25,500), 2 [30,270); what lies between the objects' pieces is in objects of its own. */
async function fixture(): Promise<Fixture> {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, 4);
  await world.trim(node, 1, 25);
  await world.trim(node, 2, 30);
  const [first] = await world.commit(node, [
    piece(0, 0, 15, 2),
    piece(1, 25, 30, 2),
    piece(1, 30, 60, 22),
    piece(2, 30, 60, 22),
  ]);
  const [second] = await world.commit(node, [piece(0, 15, 20, 1), piece(1, 60, 120, 52)]);
  await world.commit(node, [], [[piece(1, 120, 400, 10)], [piece(2, 60, 230, 10)]]);
  const [third] = await world.commit(node, [piece(1, 400, 500, 92), piece(2, 230, 270, 32)]);
  return { world, node, sets: [first!, second!, third!] };
}

interface Ran {
  readonly outcome: RunOutcome;
  readonly commit: CompactionCommit | null;
}

async function run(
  { world, node }: Pick<Fixture, "world" | "node">,
  options: Partial<CompactionOptions>,
  work: (parts: RunParts) => Promise<RunOutcome>,
): Promise<Ran> {
  let commit: CompactionCommit | null = null;
  const parts = world.runParts(node, options);
  const { commitCompaction, isCommitted } = parts.compaction;
  const outcome = await world.drive(work({
    ...parts,
    compaction: {
      isCommitted,
      commitCompaction(change) {
        commit = change;
        return commitCompaction(change);
      },
    },
  }));
  return { outcome, commit };
}

async function runKind(
  fix: Fixture,
  kind: SetJobKind,
  ids: readonly ObjectId[] = fix.sets,
  options: Partial<CompactionOptions> = LIMITS,
): Promise<{ replaced: number[]; streamObjects: number; ranges: number | null }> {
  const sets = fix.node.managers.objects.streamSetObjects(COMPACTION_NODE)
    .filter(({ objectId: id }) => ids.includes(id));
  const { outcome, commit } = await run(fix, options, (parts) => runSets(parts, kind, sets));
  assert.equal(outcome.kind, "done", JSON.stringify(outcome));
  await fix.world.check(fix.node);
  return {
    replaced: commit!.replaces.map(({ objectId: id }) => fix.sets.indexOf(id)).toSorted(),
    streamObjects: commit!.streamObjects.length,
    ranges: commit!.streamSetObject?.ranges.length ?? null,
  };
}

describe("stream set objects (AutoMQ's CompactionManagerTest)", () => {
  for (const [i, streamObjects] of [3, 2, 2].entries()) {
    test(`force split of object ${i}`, async () => {
      const fix = await fixture();
      const ran = await runKind(fix, "split", [fix.sets[i]!]);
      assert.deepEqual(ran, { replaced: [i], streamObjects, ranges: null });
    });
  }

  test("force split in small steps", async () => {
    for (const memoryBytes of [150, 5]) {
      const fix = await fixture();
      const ran = await runKind(fix, "split", [fix.sets[0]!], { ...LIMITS, memoryBytes });
      assert.equal(ran.streamObjects, 3);
    }
  });

  for (const holeBytesMax of [0, 300, 1_000_000]) {
    test(`blocks in memory, with holes up to ${holeBytesMax} bytes between them`, async () => {
      const world = new CompactionWorld();
      const node = await world.start();
      const streams = Array.from({ length: 60 }, (_, i) => i);
      await world.createStreams(node, streams.length);
      for (const start of [0, 10]) {
        const pieces = streams.map((stream) => piece(stream, start, start + 10, 50));
        await world.commit(node, pieces);
      }
      // One in three lives on: most of what lies between live blocks is dead.
      for (const stream of streams) if (stream % 3 > 0) await world.trim(node, stream, 20);
      let [held, most, steps] = [0, 0, 0];
      const get: typeof node.store.get = async (key, options) => {
        const got = await node.store.get(key, options);
        held += got?.bytes.length ?? 0;
        if (steps > 0) most = Math.max(most, held);
        return got;
      };
      const refs = node.managers.objects.streamSetObjects(COMPACTION_NODE);
      const counted = { world, node: { ...node, store: { ...node.store, get } } };
      const options = { ...LIMITS, memoryBytes: 1_000, holeBytesMax };
      const { outcome } = await run(counted, options, (parts) => {
        const { reader } = parts;
        const blocks = reader.blocks.bind(reader);
        reader.blocks = (some) => {
          steps += 1;
          // The blocks of the step before are copied by now.
          held = 0;
          return blocks(some);
        };
        return runSets(parts, "split", refs);
      });
      assert.equal(outcome.kind, "done");
      assert.ok(steps > 1);
      assert.ok(most <= options.memoryBytes && most > options.memoryBytes / 2, `${most} bytes`);
      await world.check(node);
    });
  }

  test("all streams start at 999: the object is dropped", async () => {
    const fix = await fixture();
    for (const stream of [0, 1, 2]) await fix.world.trim(fix.node, stream, 999);
    const ran = await runKind(fix, "split", [fix.sets[0]!]);
    assert.deepEqual(ran, { replaced: [0], streamObjects: 0, ranges: null });
  });

  test("stream 0 is missing: 2, 1 and 2 objects", async () => {
    const counts = [];
    for (const i of [0, 1, 2]) {
      const fix = await fixture();
      await fix.world.deleteStream(fix.node, 0);
      counts.push((await runKind(fix, "split", [fix.sets[i]!])).streamObjects);
    }
    assert.deepEqual(counts, [2, 1, 2]);
  });

  test("no streams: all objects are dropped in one step", async () => {
    const fix = await fixture();
    for (const stream of [0, 1, 2]) await fix.world.deleteStream(fix.node, stream);
    const ran = await runKind(fix, "drop");
    assert.deepEqual(ran, { replaced: [0, 1, 2], streamObjects: 0, ranges: null });
    assert.deepEqual(fix.world.liveObjects(fix.node), []);
  });

  test("compact all: three stream objects, the rest in one, in the place of the oldest", async () => {
    const fix = await fixture();
    const { objects } = fix.node.managers;
    const [before] = objects.streamSetObjects(COMPACTION_NODE);
    const ran = await runKind(fix, "join");
    assert.deepEqual(ran, { replaced: [0, 1, 2], streamObjects: 3, ranges: 2 });
    const [after, ...others] = objects.streamSetObjects(COMPACTION_NODE);
    assert.equal(after!.order, before!.order);
    assert.ok(after!.objectId > fix.sets[2]!);
    assert.equal(others.length, 0);
  });

  test("stream 0 starts at 5 or 15: as before, without what is dead", async () => {
    for (const start of [5, 15]) {
      const fix = await fixture();
      await fix.world.trim(fix.node, 0, start);
      const ran = await runKind(fix, "join");
      assert.deepEqual([ran.streamObjects, ran.ranges], [3, 2]);
    }
  });

  test("starts 15, 60 and 60: two stream objects, two ranges", async () => {
    const fix = await fixture();
    for (const [stream, start] of [[0, 15], [1, 60], [2, 60]] as const) {
      await fix.world.trim(fix.node, stream, start);
    }
    const ran = await runKind(fix, "join");
    assert.deepEqual([ran.streamObjects, ran.ranges], [2, 2]);
  });

  test("stream 0 is missing: three stream objects, one range", async () => {
    const fix = await fixture();
    await fix.world.deleteStream(fix.node, 0);
    const ran = await runKind(fix, "join");
    assert.deepEqual([ran.streamObjects, ran.ranges], [3, 1]);
  });

  test("a fourth object with a trimmed stream: four stream objects, two ranges", async () => {
    const fix = await fixture();
    const [fourth] = await fix.world.commit(fix.node, [
      piece(1, 500, 520, 1),
      piece(3, 0, 10, 200),
      piece(3, 10, 20, 200),
    ]);
    await fix.world.trim(fix.node, 3, 10);
    const all = { ...fix, sets: [...fix.sets, fourth!] };
    const ran = await runKind(all, "join");
    assert.deepEqual(ran, { replaced: [0, 1, 2, 3], streamObjects: 4, ranges: 2 });
  });

  test("four stream objects at most, split 70: the third object waits", async () => {
    const fix = await fixture();
    const options = { ...LIMITS, splitBytes: 70, streamObjectsMax: 4 };
    const ran = await runKind(fix, "join", fix.sets, options);
    assert.deepEqual(ran, { replaced: [0, 1], streamObjects: 2, ranges: 1 });
  });

  test("a rewrite without dead blocks keeps the rest together", async () => {
    const fix = await fixture();
    await fix.world.trim(fix.node, 1, 60);
    const ran = await runKind(fix, "tidy", [fix.sets[0]!]);
    assert.deepEqual(ran, { replaced: [0], streamObjects: 0, ranges: 2 });
  });
});

describe("a rewrite that fails", () => {
  const join = (fix: Fixture) => {
    const sets = fix.node.managers.objects.streamSetObjects(COMPACTION_NODE);
    return run(fix, LIMITS, (parts) => runSets(parts, "join", sets));
  };

  test("read error: nothing is committed, nothing is left", async () => {
    const fix = await fixture();
    fix.node.store.setPlan(faultOnCall(5, { kind: "fail" }, ["get"]));
    await assert.rejects(join(fix), (error) => isFault(error, "store-unavailable"));
    assert.deepEqual(await fix.world.dataObjects(), fix.world.liveObjects(fix.node));
    await fix.world.check(fix.node);
  });

  test("write error: what was written is deleted", async () => {
    const fix = await fixture();
    const puts = ({ op, key }: { op: string; key: string }) => op === "put" && !/meta/.test(key);
    let seen = 0;
    fix.node.store.setPlan((call) => puts(call) && ++seen === 3 ? { kind: "fail" } : undefined);
    await assert.rejects(join(fix), (error) => isFault(error, "store-unavailable"));
    assert.deepEqual(await fix.world.dataObjects(), fix.world.liveObjects(fix.node));
    await fix.world.check(fix.node);
  });

  test("damage is not copied", async () => {
    const fix = await fixture();
    const key = dataKey(COMPACTION_CLUSTER, fix.sets[2]!);
    const got = await fix.world.base.get(key);
    got!.bytes[10] = 0;
    await fix.world.base.put(key, got!.bytes);
    await assert.rejects(join(fix), (error) => isFault(error, "corrupt"));
    assert.deepEqual(await fix.world.dataObjects(), fix.world.liveObjects(fix.node));
  });

  test("a trim just before the commit: the commit stands, for it names every live record", async () => {
    const fix = await fixture();
    const sets = fix.node.managers.objects.streamSetObjects(COMPACTION_NODE);
    const parts = fix.world.runParts(fix.node, LIMITS);
    const outcome = await fix.world.drive(runSets(
      {
        ...parts,
        compaction: {
          ...parts.compaction,
          async commitCompaction(change) {
            await fix.node.managers.streams.trimStream(streamId(1), 1 as never, 450);
            return await parts.compaction.commitCompaction(change);
          },
        },
      },
      "join",
      sets,
    ));
    assert.equal(outcome.kind, "done");
    await fix.world.check(fix.node);
  });

  test("an input that was replaced meanwhile: a conflict, and the outputs are deleted", async () => {
    const fix = await fixture();
    const sets = fix.node.managers.objects.streamSetObjects(COMPACTION_NODE);
    const parts = fix.world.runParts(fix.node, LIMITS);
    const outcome = await fix.world.drive(runSets(
      {
        ...parts,
        compaction: {
          ...parts.compaction,
          async commitCompaction(change) {
            const other = await runSets(parts, "split", [sets[0]!]);
            assert.equal(other.kind, "done");
            return await parts.compaction.commitCompaction(change);
          },
        },
      },
      "join",
      sets,
    ));
    assert.equal(outcome.kind, "conflict");
    await fix.world.check(fix.node);
    const destroyed = [sets[0]!.objectId];
    const live = [...fix.world.liveObjects(fix.node), ...destroyed].toSorted((a, b) => a - b);
    assert.deepEqual(await fix.world.dataObjects(), live);
  });

  test("an aborted one stops between steps", async () => {
    const fix = await fixture();
    const abort = new AbortController();
    const parts = fix.world.runParts(fix.node, { ...LIMITS, memoryBytes: 5 }, abort.signal);
    const sets = fix.node.managers.objects.streamSetObjects(COMPACTION_NODE);
    fix.node.store.setPlan((call) => {
      if (call.op === "put" && !/meta/.test(call.key)) abort.abort();
      return undefined;
    });
    const before = fix.world.liveObjects(fix.node);
    await assert.rejects(fix.world.drive(runSets(parts, "join", sets)), /[Ss]topped|abort/);
    assert.deepEqual(fix.world.liveObjects(fix.node), before);
  });
});

// --- stream objects ------------------------------------------------------------------------------

/** Objects of stream 3 as AutoMQ's test draws stream 233: 1 KiB records. */
async function streamObjects(world: CompactionWorld): Promise<Incarnation> {
  const node = await world.start();
  await world.createStreams(node, 4);
  await world.trim(node, 3, 10);
  const record = (start: number, end: number) => piece(3, start, end, 1024);
  await world.commit(node, [], [[record(10, 13), record(13, 16)]]);
  await world.commit(node, [], [[record(16, 17), record(17, 18)]]);
  return node;
}

async function runJob(
  world: CompactionWorld,
  node: Incarnation,
  kind: StreamJobKind,
): Promise<Ran> {
  const { objects } = node.managers;
  const job = { kind, objects: objects.viewObjects(streamId(3))!.streamObjects };
  const ran = await run({ world, node }, {}, (parts) => runStream(parts, streamId(3), job));
  await world.check(node);
  return ran;
}

function own(node: Incarnation) {
  return node.managers.objects.viewObjects(streamId(3))!.streamObjects
    .map(({ start, end, links }) => links === undefined ? [start, end] : [start, end, links]);
}

describe("stream objects (AutoMQ's StreamObjectCompactorTest)", () => {
  test("physical merge from offset 14: the block that begins at 13 stays whole", async () => {
    const world = new CompactionWorld();
    const node = await streamObjects(world);
    await world.trim(node, 3, 14);
    const { commit } = await runJob(world, node, "merge");
    assert.deepEqual(commit!.streamObjects.map(({ range }) => [range.start, range.end]), [[
      13,
      18,
    ]]);
    assert.deepEqual(own(node), [[13, 18]]);
    const parts = world.runParts(node);
    const [merged] = node.managers.objects.viewObjects(streamId(3))!.streamObjects;
    const index = await world.drive(parts.reader.index(merged!));
    assert.equal(index.count, 1, "one entry: far below 1 MiB");
  });

  test("index entries by threshold: 1 gives three, 5000 gives two", async () => {
    const world = new CompactionWorld();
    const node = await streamObjects(world);
    const { reader } = world.runParts(node);
    const refs = node.managers.objects.viewObjects(streamId(3))!.streamObjects;
    const indexes = await world.drive(reader.indexes(refs));
    const all = indexes.flatMap((index, i) => blocksOf(refs[i]!.objectId, index));
    const live = sorted(liveBlocks(all, () => 14));
    const drawn = (bytesMax: number) =>
      regroup(live, bytesMax).map(({ start, end, recordCount }) => [start, end, recordCount]);
    assert.deepEqual(drawn(1), [[13, 16, 1], [16, 17, 1], [17, 18, 1]]);
    const small = regroup(live, 2 * 1067);
    assert.deepEqual(small.map(({ start, end }) => [start, end]), [[13, 17], [17, 18]]);
  });

  test("start 17: the first object is destroyed by the trim itself, a second one merges the rest", async () => {
    const world = new CompactionWorld();
    const node = await streamObjects(world);
    await world.trim(node, 3, 17);
    assert.deepEqual(own(node), [[16, 18]]);
  });

  test("1,500 one-record objects, start 1,450: the trim destroys all of them in one entry", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 4);
    for (let at = 0; at < 1_500; at += 500) {
      const runs = Array.from({ length: 500 }, (_, i) => [piece(3, at + i, at + i + 1, 1)]);
      await world.commit(node, [], runs);
    }
    await world.trim(node, 3, 1_450);
    assert.equal(own(node).length, 50);
    assert.equal(world.liveObjects(node).length, 50);
  });

  test("composite of two, its sources live on; composite of a composite, a dead link goes", async () => {
    const world = new CompactionWorld();
    const node = await streamObjects(world);
    const [first, second] = node.managers.objects.viewObjects(streamId(3))!.streamObjects;
    const { commit } = await runJob(world, node, "link");
    assert.deepEqual(own(node), [[10, 18, 2]]);
    assert.deepEqual(commit!.composites[0]!.links, [first!.objectId, second!.objectId]);
    const dataBytes = 4 * (1024 + 43);
    assert.equal(
      commit!.streamObjects[0]!.size,
      dataBytes,
      "the size is that of the data behind it",
    );

    await world.commit(node, [], [[piece(3, 18, 19, 1024)]]);
    await world.trim(node, 3, 17);
    await runJob(world, node, "link");
    assert.deepEqual(own(node), [[16, 19, 2]]);
    const { objects } = node.metadata.view();
    assert.equal(objects.get(first!.objectId)?.state, "destroyed");
    assert.equal(objects.get(second!.objectId)?.state, "committed");
  });

  test("cleanup: only dead links go, without one there is nothing to do", async () => {
    const world = new CompactionWorld();
    const node = await streamObjects(world);
    await runJob(world, node, "link");
    await world.trim(node, 3, 15);
    assert.equal((await runJob(world, node, "cleanup")).outcome.kind, "nothing");
    await world.trim(node, 3, 16);
    assert.equal((await runJob(world, node, "cleanup")).outcome.kind, "done");
    assert.deepEqual(own(node), [[16, 18, 1]]);
  });

  test("a trim past a composite destroys it with its links", async () => {
    const world = new CompactionWorld();
    const node = await streamObjects(world);
    await runJob(world, node, "link");
    await world.trim(node, 3, 18);
    assert.deepEqual(world.liveObjects(node), []);
  });

  test("large objects go out in parts, with the bytes of a single put", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, 4);
    const mib = 1024 * 1024;
    const payload = piece(3, 0, 1, 64 * 1024).payload;
    const large = new Uint8Array(9 * mib);
    for (let at = 0; at < large.length; at += payload.length) large.set(payload, at);
    for (let i = 0; i < 4; i++) {
      await world.commit(node, [], [[{ ...piece(3, i, i + 1, 0), payload: large }]]);
    }
    const { commit } = await runJob(world, node, "merge");
    assert.ok(commit!.streamObjects[0]!.size > 32 * mib);
    assert.equal(node.store.count("putParts"), 1);
    const id = commit!.streamObjects[0]!.objectId;
    const got = await world.base.get(dataKey(COMPACTION_CLUSTER, objectId(id)));
    assert.equal(got!.bytes.length, commit!.streamObjects[0]!.size);
  });
});
