/**
 * Faults 17, 18 and 29 of the thirty: a store that ignores conditions, one that is out for a minute, and a clock
 * that is a day off. What S3 itself says of clocks is in `startup.test.ts`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryStore } from "../../src/object/memory.ts";
import { parseDataKey } from "../../src/object/object_key.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { startNode } from "../../src/node/node.ts";
import { isFault } from "../../src/lib/errors.ts";
import { batch, Quirks } from "../quirks/quirks.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { nodeOptions } from "../support/node_options.ts";
import { testEnv } from "../support/test_env.ts";
import { failureOf } from "./second_node.ts";
import { assertOnce, drive, FaultWorld, IdempotentProducer } from "./world.ts";

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

test("fault 17: the store ignores If-None-Match: the start is refused in one line, nothing stays behind", async () => {
  const clock = createFakeClock();
  const inner = createMemoryStore(clock);
  const careless = {
    ...inner,
    put: (key: string, body: Uint8Array) => inner.put(key, body, {}),
  };
  const env = testEnv({ clock });
  const starting = startNode(nodeOptions(careless, { env, storeKind: "s3" }));
  await assert.rejects(drive(clock, starting), (error) => {
    assert.ok(isFault(error, "config"), String(error));
    assert.match(error.message, /If-None-Match/);
    assert.equal(error.message.includes("\n"), false);
    return true;
  });
  const left: string[] = [];
  for await (const { key } of inner.list("")) left.push(key);
  assert.deepEqual(left, []);
});

test("fault 18: the store says 503 for a minute: retriable errors or waiting, nobody is fenced, nothing is lost", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const failed = failureOf(world);
  const producer = (await IdempotentProducer.connect(world, "t")).start(200);
  await world.clock.advance(2_000);
  const { clusterId } = q.node.node;
  world.store.setPlan(() => ({ kind: "fail" }));
  const before = producer.acknowledged.length;
  await world.clock.advance(MINUTE_MS);
  assert.equal(producer.acknowledged.length, before, "nothing is acknowledged meanwhile");
  assert.deepEqual([...producer.refused], ["REQUEST_TIMED_OUT"]);
  assert.equal(failed(), null);
  world.store.setPlan();
  await world.clock.advance(15_000);
  assert.ok(producer.acknowledged.length > before + 3, "goes on by itself");
  await producer.stop();
  assert.equal(failed(), null);
  assert.equal(await world.ready(), "");
  assertOnce(await world.values("t"), producer.acknowledged);
  world.kill();
  await world.start();
  assert.equal(world.q.node.node.clusterId, clusterId);
  assertOnce(await world.values("t"), producer.acknowledged);
});

for (const jumpMs of [DAY_MS, -DAY_MS]) {
  const name = jumpMs > 0 ? "ahead" : "back";
  test(`fault 29: the node's clock jumps a day ${name}: nobody is fenced, nothing is collected sooner or later`, async () => {
    const clock = createFakeClock();
    const own = { skewMs: 0 };
    const skewed = { ...clock, nowMs: () => clock.nowMs() + own.skewMs };
    Object.defineProperty(skewed, "timers", { get: () => clock.timers });
    const kafka = {
      "skerry.upload.interval.ms": "5000",
      "skerry.upload.split.bytes": "1",
      "skerry.compaction.enable": "false",
      "log.message.timestamp.after.max.ms": String(2 * DAY_MS),
    };
    const world = new FaultWorld({ clock: skewed, bucket: createMemoryStore(clock), kafka });
    const q = await world.start();
    const failed = failureOf(world);
    const { clusterId } = q.node.node;
    const objects = async () => {
      const found: string[] = [];
      for await (const { key } of world.bucket.list("")) {
        if (parseDataKey(clusterId, key) !== null) found.push(key);
      }
      return found;
    };
    const produce = async (topic: string, value: string) => {
      const asked = new Quirks(q.node).produce(topic, batch([value]));
      assert.equal((await drive(clock, asked)).error, "NONE");
    };
    await drive(clock, q.topic("kept"));
    await produce("kept", "a");
    await drive(clock, q.topic("gone"));
    await produce("gone", "x");
    await clock.advance(20_000);
    const before = await objects();
    const request = { topicNames: ["gone"], timeoutMs: 30_000 };
    await drive(clock, new Quirks(q.node).call(deleteTopicsApi, 5, request));
    own.skewMs = jumpMs;
    await clock.advance(13 * MINUTE_MS);
    const early = await objects();
    assert.ok(before.every((key) => early.includes(key)), "T_RETAIN is by the store's clock");
    await produce("kept", "b");
    await clock.advance(5 * MINUTE_MS);
    const after = await objects();
    assert.ok(before.some((key) => !after.includes(key)), "and over in time");
    assert.equal(failed(), null, failed()?.message);
    assert.equal(await world.ready(), "");
    assert.deepEqual(await world.values("kept"), ["a", "b"]);
    world.kill();
    await world.start();
    assert.deepEqual(await world.values("kept"), ["a", "b"]);
  });
}
