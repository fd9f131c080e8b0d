/**
 * Faults 25 to 28 of the thirty: objects that are deleted twice, in part, too late or not at all. Each ends with
 * a check of the whole store: nothing is lost, and nothing is left that nobody deletes.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryStore } from "../../src/object/memory.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { parseDataKey } from "../../src/object/object_key.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { batch, Quirks } from "../quirks/quirks.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { check, contentOf, stateOf } from "../support/stored_world.ts";
import { drive, FaultWorld } from "./world.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Each stream an object of its own, soon. */
const SPLIT = {
  "skerry.upload.interval.ms": "5000",
  "skerry.upload.split.bytes": "1",
  "skerry.compaction.enable": "false",
};

async function dataKeys(world: FaultWorld): Promise<string[]> {
  const { clusterId } = world.q.node.node;
  const found: string[] = [];
  for await (const { key } of world.bucket.list("")) {
    if (parseDataKey(clusterId, key) !== null) found.push(key);
  }
  return found;
}

async function produce(world: FaultWorld, topic: string, values: readonly string[], partition = 0) {
  const q = new Quirks(world.q.node);
  const { error } = await drive(world.clock, q.produce(topic, batch(values), { partition }));
  assert.equal(error, "NONE");
}

async function deleteTopic(world: FaultWorld, name: string): Promise<void> {
  const request = { topicNames: [name], timeoutMs: 30_000 };
  const asked = new Quirks(world.q.node).call(deleteTopicsApi, 5, request);
  const answer = await drive(world.clock, asked);
  assert.equal(errorName(answer.responses[0]!.errorCode), "NONE");
}

/** A topic whose partitions have objects, one that stays beside it, and the keys that the deletion makes garbage. */
async function withGarbage(partitions: number, bucket?: ObjectStore, clock = createFakeClock()) {
  const world = new FaultWorld({
    kafka: SPLIT,
    clock,
    ...(bucket === undefined ? {} : { bucket }),
  });
  const q = await world.start();
  await drive(world.clock, q.topic("kept"));
  await produce(world, "kept", ["k"]);
  await world.clock.advance(20_000);
  const before = new Set(await dataKeys(world));
  await drive(world.clock, q.topic("gone", partitions));
  for (let i = 0; i < partitions; i++) await produce(world, "gone", [`v${i}`], i);
  await world.clock.advance(20_000);
  const doomed = (await dataKeys(world)).filter((key) => !before.has(key));
  assert.ok(doomed.length >= partitions);
  await deleteTopic(world, "gone");
  return { world, doomed };
}

async function rowsOf(world: FaultWorld, keys: readonly string[]): Promise<string[]> {
  const { clusterId } = world.q.node.node;
  const { objects } = await stateOf(await contentOf(world.bucket));
  return keys.filter((key) => objects.has(parseDataKey(clusterId, key)!));
}

async function stored(world: FaultWorld, keys: readonly string[]): Promise<string[]> {
  const there = new Set(await dataKeys(world));
  return keys.filter((key) => there.has(key));
}

async function isClean(world: FaultWorld): Promise<void> {
  await drive(world.clock, world.q.node.close());
  const { summary, findings, text } = await check(world.bucket);
  assert.equal(summary.verdict, "clean", text);
  const orphans = findings.filter((one) => one.severity === "reclaimable" && one.kind === "orphan");
  assert.deepEqual(orphans, []);
}

test("fault 25: who deletes dies between the delete and the purge: deleted again, then purged", async () => {
  const { world, doomed } = await withGarbage(2);
  let deletes = 0;
  world.store.setPlan(({ op, key }) => {
    if (deletes > 0) return { kind: "hang", happens: false };
    if (op !== "delete" || !doomed.includes(key)) return undefined;
    deletes += 1;
    return { kind: "hang", happens: true };
  });
  await world.clock.advance(18 * MINUTE_MS);
  assert.equal(deletes, 1);
  assert.deepEqual(await stored(world, doomed), [], "the store has done it");
  assert.deepEqual(await rowsOf(world, doomed), doomed, "nobody was told: the rows stay");
  world.kill();
  await world.start();
  let again = 0;
  world.store.setPlan(({ op, key }) => {
    if (op === "delete" && doomed.includes(key)) again += 1;
    return undefined;
  });
  await world.clock.advance(5 * MINUTE_MS);
  assert.equal(again, 1, "once more");
  assert.deepEqual(await rowsOf(world, doomed), [], "then purged");
  assert.deepEqual(await world.values("kept"), ["k"]);
  await isClean(world);
});

test("fault 26: a delete answers 200 with errors for three keys: the others are purged, the three tried again", async () => {
  const { world, doomed } = await withGarbage(8);
  const stubborn = doomed.slice(0, 3);
  const real = world.store.delete.bind(world.store);
  let isStubborn = true;
  world.store.delete = async (keys) => {
    const failed = isStubborn ? keys.filter((key) => stubborn.includes(key)) : [];
    const { gone } = await real(keys.filter((key) => !failed.includes(key)));
    return { gone, failed };
  };
  await world.clock.advance(18 * MINUTE_MS);
  assert.deepEqual(await stored(world, doomed), stubborn);
  assert.deepEqual(await rowsOf(world, doomed), stubborn, "only what was confirmed is purged");
  isStubborn = false;
  await world.clock.advance(3 * MINUTE_MS);
  assert.deepEqual(await stored(world, doomed), []);
  assert.deepEqual(await rowsOf(world, doomed), []);
  assert.deepEqual(await world.values("kept"), ["k"]);
  await isClean(world);
});

test("fault 27: a compaction's output is written when its stream is deleted: commit refused, nothing leaks", async () => {
  const world = new FaultWorld({
    kafka: {
      "skerry.upload.interval.ms": "5000",
      "skerry.compaction.interval.ms": "1000",
      "skerry.compaction.objects.min": "4",
    },
  });
  const q = await world.start();
  await drive(world.clock, q.topic("kept"));
  await produce(world, "kept", ["k"]);
  await drive(world.clock, q.topic("gone"));
  const { clusterId } = q.node.node;
  let output = "";
  let isLast = false;
  world.store.setPlan(({ op, key }) => {
    const isData = op === "put" && parseDataKey(clusterId, key) !== null;
    if (!isData || !isLast || output !== "") return undefined;
    // All is uploaded: this is a compaction's.
    output = key;
    return { kind: "delay", delayMs: 30_000 };
  });
  let uploads = 0;
  for (; uploads < 12 && output === ""; uploads++) {
    isLast = false;
    await produce(world, "gone", [`v${uploads}`]);
    await world.clock.advance(4_900);
    for (let i = 0; i < 20 && (await dataKeys(world)).length <= uploads; i++) {
      await world.clock.advance(20);
    }
    isLast = true;
    await world.clock.advance(2_500);
  }
  assert.notEqual(output, "", "it compacts");
  const inputs = await dataKeys(world);
  await deleteTopic(world, "gone");
  let written = 0;
  world.store.setPlan(({ op, key }) => {
    if (op === "delete" && key === output) written += 1;
    return undefined;
  });
  await world.clock.advance(40_000);
  assert.equal(written, 1, "it was written in vain, and its writer deletes it");
  const { objects } = await stateOf(await contentOf(world.bucket));
  const row = objects.get(parseDataKey(clusterId, output)!);
  assert.notEqual(row?.state, "committed");
  await world.clock.advance(20 * MINUTE_MS);
  assert.deepEqual(await world.values("kept"), ["k"]);
  assert.ok(inputs.length > 2);
  await drive(world.clock, world.q.node.close());
  // What is left is swept when the node's next life is a quarter of an hour old.
  await world.start();
  await world.clock.advance(20 * MINUTE_MS);
  assert.deepEqual(await stored(world, [output]), []);
  assert.deepEqual(await world.values("kept"), ["k"]);
  await isClean(world);
});

test("fault 28: a duplicate PUT lands late and brings a purged object back: unreferenced, the audit deletes it", async () => {
  const clock = createFakeClock();
  const days = { skewMs: 0 };
  const bucket = createMemoryStore({ ...clock, nowMs: () => clock.nowMs() + days.skewMs });
  const { world, doomed } = await withGarbage(1, bucket, clock);
  const [ghost] = doomed;
  const { bytes } = (await world.bucket.get(ghost!))!;
  await world.clock.advance(18 * MINUTE_MS);
  assert.deepEqual(await stored(world, doomed), []);
  assert.deepEqual(await rowsOf(world, doomed), [], "purged");
  await world.bucket.put(ghost!, bytes);
  await world.clock.advance(HOUR_MS);
  assert.deepEqual(await stored(world, doomed), [ghost], "too young for the first audit");
  world.kill();
  days.skewMs += 25 * HOUR_MS;
  await world.start();
  await world.clock.advance(HOUR_MS + MINUTE_MS);
  assert.deepEqual(await stored(world, doomed), [], "the audit deletes it");
  assert.equal((await world.values("kept"))[0], "k");
  await isClean(world);
});
