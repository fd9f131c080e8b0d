import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACTION_CLUSTER,
  CompactionWorld,
  type Incarnation,
} from "../../../tests/support/compaction_world.ts";
import { streamId } from "../../lib/brand.ts";
import { isFault } from "../../lib/errors.ts";
import { COMPACTION_RUNS_AT_ONCE } from "../../lib/limits.ts";
import { dataKey } from "../../object/object_key.ts";
import { fitsBatch, type StreamWork } from "./stream_batch.ts";
import { runStreams } from "./stream_run.ts";

interface Started {
  readonly world: CompactionWorld;
  readonly node: Incarnation;
}

/** `streams` streams with four small objects each. */
async function start(streams: number): Promise<Started> {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, streams);
  const all = Array.from({ length: streams }, (_, i) => i);
  for (let i = 0; i < 4; i++) {
    await world.upload(node, all.flatMap((stream) => world.next(stream, [1, 50])), 1);
  }
  return { world, node };
}

function objectsOf({ node }: Started, stream: number) {
  return node.managers.objects.viewObjects(streamId(stream))!.streamObjects;
}

function counts(at: Started): number[] {
  return at.world.streams().map((stream) => objectsOf(at, stream).length);
}

function works(at: Started): StreamWork[] {
  return at.world.streams().map((stream) => ({
    streamId: stream,
    job: { kind: "merge", objects: objectsOf(at, stream) },
  }));
}

const OPTIONS = { objectsMin: 4 };

describe("rewrites of single streams", () => {
  test("twenty streams share one metadata entry", async () => {
    const at = await start(20);
    let commits = 0;
    const { compaction } = at.node.managers;
    const managers = {
      ...at.node.managers,
      compaction: {
        ...compaction,
        commitCompaction(change: Parameters<typeof compaction.commitCompaction>[0]) {
          commits += 1;
          return compaction.commitCompaction(change);
        },
      },
    };
    await at.world.drive(at.world.compactor({ ...at.node, managers }, OPTIONS).look());
    assert.deepEqual(counts(at), Array.from({ length: 20 }, () => 1));
    assert.equal(commits, 1);
    assert.match(at.node.env.metrics.render(), /runs_total\{kind="merge",outcome="done"\} 20/);
    await at.world.check(at.node);
  });

  test("several at once, never more than fit into memory", async () => {
    const at = await start(12);
    const [first] = works(at);
    const one = first!.job.objects.reduce((sum, { size }) => sum + size, 0);
    for (const [memoryBytes, most] of [[one * 2.5, 2], [1e9, COMPACTION_RUNS_AT_ONCE]] as const) {
      const here = await start(12);
      const parts = here.world.runParts(here.node, { memoryBytes });
      let [running, seen] = [0, 0];
      await here.world.drive(runStreams(parts, works(here), async (_, run) => {
        seen = Math.max(seen, ++running);
        try {
          return await run();
        } finally {
          running -= 1;
        }
      }));
      assert.equal(seen, most);
      await here.world.check(here.node);
    }
  });

  test("a batch whose commit is refused is tried one by one: only the one to blame goes without", async () => {
    const at = await start(5);
    const { compaction } = at.node.managers;
    const bad = objectsOf(at, 2)[0]!.objectId;
    const managers = {
      ...at.node.managers,
      compaction: {
        ...compaction,
        async commitCompaction(change: Parameters<typeof compaction.commitCompaction>[0]) {
          return change.replaces.some(({ objectId }) => objectId === bad)
            ? { ok: false, reason: "conflict", detail: "not this one" } as const
            : await compaction.commitCompaction(change);
        },
      },
    };
    const compactor = at.world.compactor({ ...at.node, managers }, OPTIONS);
    await at.world.drive(compactor.look());
    assert.deepEqual(counts(at), [4, 4, 4, 4, 4]);
    assert.deepEqual(
      await at.world.dataObjects(),
      at.world.liveObjects(at.node),
      "nothing is left",
    );
    for (let i = 0; i < 3; i++) await at.world.drive(compactor.look());
    assert.deepEqual(counts(at), [1, 1, 4, 1, 1]);
    const errors = at.node.lines.filter(({ level }) => level === "error");
    assert.deepEqual(errors.map(({ event }) => event), ["compaction-refused"]);
    await at.world.check(at.node);
  });

  test("a damaged object holds up its own stream only", async () => {
    const at = await start(5);
    const key = dataKey(COMPACTION_CLUSTER, objectsOf(at, 1)[3]!.objectId);
    const got = await at.world.base.get(key);
    got!.bytes[20] = got!.bytes[20]! ^ 1;
    await at.world.base.put(key, got!.bytes);
    await at.world.drive(at.world.compactor(at.node, OPTIONS).look());
    assert.deepEqual(counts(at), [1, 4, 1, 1, 1]);
    const errors = at.node.lines.filter(({ level }) => level === "error");
    assert.deepEqual(errors.map(({ event }) => event), ["compaction-input-unreadable"]);
  });

  test("the store fails at one of them: nothing is committed, nothing is left", async () => {
    const at = await start(9);
    let puts = 0;
    at.node.store.setPlan(({ op, key }) =>
      op === "put" && !key.startsWith("meta/") && ++puts === 6 ? { kind: "fail" } : undefined
    );
    const parts = at.world.runParts(at.node, {});
    await assert.rejects(
      at.world.drive(runStreams(parts, works(at), (_, run) => run())),
      (error) => isFault(error, "store-unavailable"),
    );
    assert.deepEqual(counts(at), Array.from({ length: 9 }, () => 4));
    assert.deepEqual(await at.world.dataObjects(), at.world.liveObjects(at.node));
    await at.world.check(at.node);
  });

  test("a batch ends with its bytes, its inputs or its outputs", async () => {
    const at = await start(3);
    const [a, b, c] = works(at);
    const bytes = a!.job.objects.reduce((sum, { size }) => sum + size, 0);
    const limits = { memoryBytes: 1e9, linksMax: 100, streamObjectsMax: 100 };
    assert.ok(fitsBatch([a!, b!], c!, limits));
    assert.equal(fitsBatch([a!, b!], c!, { ...limits, memoryBytes: 2.5 * bytes }), false);
    assert.equal(fitsBatch([a!, b!], c!, { ...limits, linksMax: 11 }), false);
    assert.equal(fitsBatch([a!, b!], c!, { ...limits, streamObjectsMax: 2 }), false);
    const link: StreamWork = { ...c!, job: { ...c!.job, kind: "link" } };
    assert.ok(fitsBatch([a!, b!], link, { ...limits, memoryBytes: 2.5 * bytes }), "copies nothing");
  });
});
