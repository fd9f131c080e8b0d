import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../tests/support/broker_world.ts";
import { TopicWatches } from "./topic_watches.ts";

async function rig() {
  const world = await createBrokerWorld({ routes: () => [] });
  const topicId = await world.createTopic("t", 2);
  const logs = [await world.log("t", 0), await world.log("t", 1)] as const;
  const watches = new TopicWatches(world.services);
  const woken: string[] = [];
  const watch = (name: string, partitions: readonly number[] | null) =>
    watches.watch(topicId, partitions, () => void woken.push(name));
  const append = async (partition: 0 | 1) => {
    const appended = logs[partition].append(world.batch("v"));
    assert.ok(appended.ok);
    await appended.durable;
    await world.clock.settle();
    return woken.splice(0);
  };
  return { world, topicId, watches, watch, append, woken };
}

test("those who wait for a partition, or for any, wake when it moves, until they stop", async () => {
  const { watch, append, watches } = await rig();
  const stopAll = watch("all", null);
  const stopOne = watch("one", [1]);
  assert.deepEqual(await append(0), ["all"]);
  assert.deepEqual(await append(1), ["all", "one"]);
  stopAll();
  assert.deepEqual(await append(1), ["one"]);
  stopOne();
  assert.deepEqual(await append(1), []);
  assert.deepEqual(await append(0), []);
  assert.equal(watches.size, 0, "no log is listened to for nobody");
});

test("a thousand who wait cost one listener on each log", async () => {
  const { watch, append, watches } = await rig();
  const stops = Array.from({ length: 1_000 }, () => watch("x", null));
  assert.equal(watches.size, 2);
  assert.equal((await append(0)).length, 1_000);
  for (const stop of stops) stop();
});

test("a topic that grows or goes wakes all who wait for it", async () => {
  const { watch, world, topicId, woken } = await rig();
  watch("one", [1]);
  watch("all", null);
  await world.services.topics.grow("t", 3);
  assert.deepEqual(woken.splice(0), ["all", "one"]);
  await world.services.topics.delete(topicId);
  assert.deepEqual(new Set(woken), new Set(["all", "one"]));
});

test("the end wakes everybody once and forgets them", async () => {
  const { watch, append, watches, woken } = await rig();
  watch("all", null);
  watch("some", [0, 1]);
  watches.close();
  assert.deepEqual(woken.splice(0), ["all", "some"]);
  assert.deepEqual(await append(0), []);
});
