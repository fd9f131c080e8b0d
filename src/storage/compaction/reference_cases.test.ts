/** More of AutoMQ's CompactionUploaderTest and StreamObjectCompactorTest, with their numbers. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  COMPACTION_CLUSTER,
  COMPACTION_NODE,
  CompactionWorld,
  type Incarnation,
  piece,
} from "../../../tests/support/compaction_world.ts";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { objectId, streamId } from "../../lib/brand.ts";
import { dataKey } from "../../object/object_key.ts";
import { type CompositeLink, decodeComposite } from "../format/composite.ts";
import { readIndex } from "../format/object_reader.ts";
import type { StreamObjectRef } from "../ports.ts";
import { CompactionBudget } from "./budget.ts";
import { DEFAULT_COMPACTION_OPTIONS } from "./options.ts";
import { runSets } from "./run.ts";
import { runStream } from "./stream_run.ts";
import { planStream } from "./stream_plan.ts";

const STREAM = 3;
const kib = (start: number, end: number) => piece(STREAM, start, end, 1024);
const own = (node: Incarnation) =>
  node.managers.objects.viewObjects(streamId(STREAM))!.streamObjects;

/** Objects 1 = [10,13),[13,16); 2 = [16,17),[17,18); between them and 3 = [30,31); 4 = [31,32),[32,33) others'. */
async function fixture(): Promise<{ world: CompactionWorld; node: Incarnation }> {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, STREAM + 1);
  await world.trim(node, STREAM, 10);
  await world.commit(node, [], [[kib(10, 13), kib(13, 16)]]);
  await world.commit(node, [], [[kib(16, 17), kib(17, 18)]]);
  await world.commit(node, [kib(18, 30)]);
  await world.commit(node, [], [[kib(30, 31)]]);
  await world.commit(node, [], [[kib(31, 32), kib(32, 33)]]);
  return { world, node };
}

async function linksOf(world: CompactionWorld, { objectId: id }: StreamObjectRef) {
  const got = await world.base.get(dataKey(COMPACTION_CLUSTER, id));
  return decodeComposite(got!.bytes);
}

const entriesOf = (links: readonly CompositeLink[]) =>
  links.flatMap(({ entries }) => entries.map(({ start, end }) => [start, end]));

describe("StreamObjectCompactorTest", () => {
  test("MAJOR from 14: a composite of 1 and 2, one of 3 and 4, with the entries of their links", async () => {
    const { world, node } = await fixture();
    await world.trim(node, STREAM, 14);
    const [one, two, three, four] = own(node);
    // Ours waits for more neighbours, of like size, before it links; a rewrite of these is the same.
    for (const objects of [[one!, two!], [three!, four!]]) {
      const job = { kind: "link", objects } as const;
      const done = await world.drive(runStream(world.runParts(node), streamId(STREAM), job));
      assert.equal(done.kind, "done");
    }
    const [before, behind, ...others] = own(node);
    assert.deepEqual(others, []);
    const links = [await linksOf(world, before!), await linksOf(world, behind!)];
    assert.deepEqual(links.map((one) => one.length), [2, 2]);
    assert.deepEqual([behind!.start, behind!.end], [30, 33]);
    assert.deepEqual(entriesOf(links[1]!), [[30, 31], [31, 32], [32, 33]]);
    assert.equal(before!.end, 18);
    // Theirs leaves out [10, 13), below 14; ours keeps the index of a link whole as long as it is linked.
    assert.deepEqual(entriesOf(links[0]!), [[10, 13], [13, 16], [16, 17], [17, 18]]);
    await world.check(node);
  });

  test("composite of a composite and [18,19), start 17: [16,19) with 3 entries, object 1 destroyed, 2 kept", async () => {
    const world = new CompactionWorld();
    const node = await world.start();
    await world.createStreams(node, STREAM + 1);
    await world.trim(node, STREAM, 10);
    const [first] = await world.commit(node, [], [[kib(10, 13), kib(13, 16)]]);
    const [second] = await world.commit(node, [], [[kib(16, 17), kib(17, 18)]]);
    const link = async () => {
      const job = { kind: "link", objects: own(node) } as const;
      const done = await world.drive(runStream(world.runParts(node), streamId(STREAM), job));
      assert.equal(done.kind, "done");
      return own(node)[0]!;
    };
    const composite = await link();
    assert.deepEqual([composite.start, composite.end], [10, 18]);
    assert.equal(entriesOf(await linksOf(world, composite)).length, 4);
    const [third] = await world.commit(node, [], [[kib(18, 19)]]);
    await world.trim(node, STREAM, 17);
    const next = await link();
    assert.deepEqual([next.start, next.end], [16, 19]);
    const links = await linksOf(world, next);
    assert.deepEqual(links.map((one) => one.objectId), [second, third]);
    assert.deepEqual(entriesOf(links), [[16, 17], [17, 18], [18, 19]]);
    const { objects } = node.metadata.view();
    const states = [first!, composite.objectId, second!, third!].map((id) =>
      objects.get(id)?.state
    );
    assert.deepEqual(states, ["destroyed", "destroyed", "committed", "committed"]);
    await world.check(node);
  });

  test("group0, max 512: of 1024 [16,18), 1, 1, a gap, 1, 1 the small neighbours are merged", () => {
    let at = 16;
    const objects = [[1024, 2, 0], [1, 1, 0], [1, 1, 0], [1, 1, 5], [1, 1, 0]].map(
      ([size, offsets, gap], i): StreamObjectRef => {
        const start = at + gap!;
        at = start + offsets!;
        return {
          objectId: objectId(2 + i),
          kind: "stream",
          size: size!,
          attributes: 0,
          checksums: { bytesCrc: 0, indexCrc: 0 },
          start,
          end: at,
        };
      },
    );
    const options = { ...DEFAULT_COMPACTION_OPTIONS, objectsMin: 2, mergeBytesMax: 512 };
    const plan = (of: readonly StreamObjectRef[]) => {
      const job = planStream({ start: 0, objects: of, cleanFrom: 0, isPressing: false }, options);
      return job === null ? null : [job.kind, job.objects.map(({ objectId: id }) => id)];
    };
    assert.deepEqual(plan(objects), ["merge", [3, 4]]);
    assert.deepEqual(plan([objects[0]!, ...objects.slice(3)]), ["merge", [5, 6]]);
    assert.equal(plan(objects.slice(0, 2)), null, "[2] stays as it is");
  });
});

test("CompactionUploaderTest: a joined object is its blocks, 36 bytes per entry and 48, without a gap", async () => {
  const world = new CompactionWorld();
  const node = await world.start();
  await world.createStreams(node, 3);
  await world.commit(node, [piece(0, 0, 15, 2), piece(1, 0, 30, 2), piece(1, 30, 60, 22)]);
  await world.commit(node, [piece(0, 15, 20, 1), piece(2, 0, 60, 52)]);
  const sets = node.managers.objects.streamSetObjects(COMPACTION_NODE);
  const done = await world.drive(runSets(world.runParts(node), "join", sets));
  assert.equal(done.kind, "done");
  const [joined] = node.managers.objects.streamSetObjects(COMPACTION_NODE);
  const index = await readIndex(
    world.base,
    dataKey(COMPACTION_CLUSTER, joined!.objectId),
    joined!,
  );
  const entries = Array.from({ length: index!.count }, (_, i) => index!.entry(i));
  let position = 0;
  for (const entry of entries) {
    assert.equal(entry.position, position);
    position += entry.size;
  }
  const payloads = [2, 2, 22, 1, 52];
  assert.equal(position, payloads.reduce((sum, bytes) => sum + bytes + 43, 0));
  assert.equal(joined!.size, position + 36 * entries.length + 48);
  await world.check(node);
});

test("AsyncRateLimiterTest, 1 per second: 2, then 1, then 1 begin after 0, 2 and 3 seconds", async () => {
  const clock = createFakeClock();
  const budget = new CompactionBudget(clock, 1);
  const { signal } = new AbortController();
  const begun: number[] = [];
  for (const bytes of [2, 1, 1]) {
    void budget.read(bytes, signal, async () => void begun.push(clock.monotonicMs()));
  }
  await clock.advance(10_000);
  assert.deepEqual(begun, [0, 2_000, 3_000]);
});
