/**
 * Two instances with one node id on one store. The first stops and acknowledges nothing any more, even when
 * its writes were under way or it stood still meanwhile; the second has all that was acknowledged.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { batch } from "../quirks/quirks.ts";
import { failureOf, successorOf } from "./second_node.ts";
import {
  assertAll,
  assertOnce,
  drive,
  FaultWorld,
  HttpProducer,
  IdempotentProducer,
} from "./world.ts";

test("a second instance takes over under load; the first stops as fenced", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const producer = (await IdempotentProducer.connect(world, "t")).start(50);
  const http = new HttpProducer(world, "t").start(50);
  const failed = failureOf(world);
  await world.clock.advance(3_000);

  const second = successorOf(world);
  await second.start();
  const [produced, posted] = [producer.acknowledged.length, http.acknowledged.length];
  await world.clock.advance(15_000);
  assert.equal(failed()?.code, "fenced");
  assert.match(await world.ready(), /enced/);
  assert.equal(producer.acknowledged.length, produced, "a fenced node acknowledges nothing");
  assert.equal(http.acknowledged.length, posted, "a fenced node acknowledges nothing");
  assert.ok(produced > 20 && posted > 20);
  for (const client of [producer, http]) {
    assert.equal(client.failure, null, "clients are told to look elsewhere");
    assert.ok(client.refused.size > 0);
  }

  const found = await second.values("t");
  assertOnce(found, producer.acknowledged);
  assertAll(found, http.acknowledged);
  const next = await drive(world.clock, second.q.produce("t", batch(["next"])));
  assert.deepEqual([next.error, next.baseOffset], ["NONE", found.length]);
  await drive(world.clock, q.node.close());
  assert.deepEqual(
    await second.values("t"),
    [...found, "next"],
    "closing the first changes nothing",
  );
  await drive(world.clock, second.q.node.close());
});

test("an instance that stood still wakes up with writes under way, and none of them counts", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  await drive(world.clock, q.produce("t", batch(["before"])));
  const failed = failureOf(world);

  // Stopped: what it has just sent to the store arrives when it is long replaced.
  world.store.setPlan(() => ({ kind: "delay", delayMs: 60_000 }));
  const errors: string[] = [];
  for (let i = 0; i < 4; i++) {
    void q.produce("t", batch([`late ${i}`]), { timeoutMs: 120_000 })
      .then(({ error }) => void errors.push(error));
  }
  await world.clock.settle();
  const second = successorOf(world);
  await second.start();
  const after = await drive(world.clock, second.q.produce("t", batch(["after"])));
  assert.equal(after.error, "NONE");

  world.store.setPlan();
  await world.clock.advance(70_000);
  assert.equal(failed()?.code, "fenced");
  assert.deepEqual(errors, Array.from({ length: 4 }, () => "NOT_LEADER_OR_FOLLOWER"));
  assert.deepEqual(await second.values("t"), ["before", "after"]);
  await drive(world.clock, q.node.close());
  await drive(world.clock, second.q.node.close());
});

test("ten instances one after the other, each killed by the next, lose nothing", async () => {
  const world = new FaultWorld();
  let current = world;
  await current.start();
  await drive(world.clock, current.q.topic("t"));
  const sent: string[] = [];
  for (let i = 0; i < 10; i++) {
    const value = `by ${i}`;
    const answer = await drive(world.clock, current.q.produce("t", batch([value])));
    assert.equal(answer.error, "NONE");
    sent.push(value);
    const failed = failureOf(current);
    const next = new FaultWorld({ clock: world.clock, bucket: world.bucket, seed: 200 + i });
    await next.start();
    await world.clock.advance(11_000);
    assert.equal(failed()?.code, "fenced");
    current = next;
  }
  assert.deepEqual(await current.values("t"), sent);
});
