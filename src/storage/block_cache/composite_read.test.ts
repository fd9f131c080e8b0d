import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACTION_CLUSTER,
  CompactionWorld,
  type Incarnation,
  piece,
} from "../../../tests/support/compaction_world.ts";
import { bases } from "../../../tests/support/records.ts";
import { type ObjectId, objectId, streamId } from "../../lib/brand.ts";
import { isFault } from "../../lib/errors.ts";
import { dataKey } from "../../object/object_key.ts";
import { runStream } from "../compaction/stream_run.ts";
import { CompositeIndex, encodeComposite } from "../format/composite.ts";
import type { IndexEntry } from "../format/index_block.ts";

const STREAM = streamId(0);
const NO_LIMIT = { bytesMax: 1e9 };

/** AutoMQ's CompositeObjectTest: [10,25), [25,30) in one object and [30,40) in another, linked. */
async function linked(): Promise<{
  world: CompactionWorld;
  node: Incarnation;
  links: readonly ObjectId[];
  composite: ObjectId;
}> {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, 1);
  await world.trim(node, 0, 10);
  const first = await world.commit(node, [], [[piece(0, 10, 25, 100), piece(0, 25, 30, 100)]]);
  const second = await world.commit(node, [], [[piece(0, 30, 40, 100)]]);
  const { objects } = node.managers;
  const job = { kind: "link", objects: objects.viewObjects(STREAM)!.streamObjects } as const;
  await world.drive(runStream(world.runParts(node), STREAM, job));
  const [composite] = objects.viewObjects(STREAM)!.streamObjects;
  return { world, node, links: [...first, ...second], composite: composite!.objectId };
}

function getsOf(node: Incarnation): string[] {
  return node.store.calls.filter(({ op }) => op === "get").map(({ key }) => key.split("/").at(-1)!);
}

describe("reads through a composite", () => {
  test("every record of every link, whole and in parts", async () => {
    const { world, node } = await linked();
    await world.check(node);
    const cache = world.reader(node);
    assert.deepEqual(bases(await cache.read(STREAM, 26, 31, NO_LIMIT)), [25, 30]);
    assert.deepEqual(bases(await cache.read(STREAM, 39, 40, NO_LIMIT)), [30]);
  });

  test("one request for the links, one for the blocks of each", async () => {
    const { world, node, links, composite } = await linked();
    const before = getsOf(node).length;
    const cache = world.reader(node);
    await cache.read(STREAM, 10, 40, NO_LIMIT);
    await cache.read(STREAM, 10, 40, NO_LIMIT);
    assert.deepEqual(getsOf(node).slice(before), [composite, ...links].map(String));
  });

  test("a missing link is looked for in fresh metadata, then named", async () => {
    const { world, node, links } = await linked();
    await world.base.delete([dataKey(COMPACTION_CLUSTER, links[1]!)]);
    const cache = world.reader(node);
    assert.deepEqual(bases(await cache.read(STREAM, 10, 30, NO_LIMIT)), [10, 25]);
    const before = await world.drive(cache.read(STREAM, 10, 40, NO_LIMIT));
    assert.deepEqual(bases(before), [10, 25], "up to the lost link");
    await assert.rejects(
      world.drive(cache.read(STREAM, 30, 40, NO_LIMIT)),
      (error) => isFault(error, "object-missing") && error.message.includes(`/${links[1]}`),
    );
  });

  test("a composite that goes away during the read gives way to its successor", async () => {
    const { world, node, composite } = await linked();
    const { objects } = node.managers;
    const before = objects.viewObjects(STREAM);
    const job = { kind: "link", objects: before!.streamObjects } as const;
    await world.drive(runStream(world.runParts(node), STREAM, job));
    await world.base.delete([dataKey(COMPACTION_CLUSTER, composite)]);
    let isStale = true;
    const stale = {
      ...node,
      managers: {
        ...node.managers,
        objects: {
          ...objects,
          viewObjects: (id: typeof STREAM) => isStale ? before : objects.viewObjects(id),
          refresh: async () => {
            isStale = false;
          },
        },
      },
    };
    await world.checkStream(node, STREAM, world.reader(stale));
    assert.equal(isStale, false);
  });

  test("damage is refused", async () => {
    const { world, node, composite } = await linked();
    const key = dataKey(COMPACTION_CLUSTER, composite);
    const got = await world.base.get(key);
    got!.bytes[20] = 7;
    await world.base.put(key, got!.bytes);
    await assert.rejects(
      world.reader(node).read(STREAM, 10, 40, NO_LIMIT),
      (error) => isFault(error, "corrupt"),
    );
  });
});

describe("composite index", () => {
  const entry = (start: number, end: number, stream = 0): IndexEntry => ({
    streamId: streamId(stream),
    start,
    end,
    recordCount: 1,
    position: 0,
    size: 50,
  });
  const link = (id: number, ...entries: readonly IndexEntry[]) => ({
    objectId: objectId(id),
    bucket: 0,
    entries,
  });

  test("finds the link of an offset", () => {
    const bytes = encodeComposite([link(1, entry(10, 25), entry(25, 30)), link(2, entry(30, 40))]);
    const index = new CompositeIndex(bytes);
    const found = [9, 10, 29, 30, 39, 40].map((at) => index.at(at)?.objectId ?? null);
    assert.deepEqual(found, [null, 1, 1, 2, 2, null]);
    assert.equal(index.bytes, bytes.length);
  });

  test("links must continue each other, in one stream", () => {
    for (
      const wrong of [
        [link(1, entry(0, 5)), link(2, entry(6, 9))],
        [link(1, entry(0, 5)), link(2, entry(4, 9))],
        [link(1, entry(0, 5)), link(2, entry(5, 9, 1))],
        [link(1, entry(0, 5), entry(6, 8))],
        [],
      ]
    ) assert.throws(() => new CompositeIndex(encodeComposite(wrong)), /Composite object/);
  });
});
