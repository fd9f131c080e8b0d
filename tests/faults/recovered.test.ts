/**
 * Another node recovers a node that is alive: its WAL is sealed, its streams are closed, and its node id is
 * still its own. It forgets what it held, recovers and registers again in the same process: ports stay open,
 * clients retry and go on, and nothing that was acknowledged is lost or there twice.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { batch, Quirks } from "../quirks/quirks.ts";
import { failureOf, recovererOf, VICTIM } from "./second_node.ts";
import {
  assertAll,
  assertOnce,
  committedOffset,
  Committer,
  drive,
  FaultWorld,
  HttpProducer,
  IdempotentProducer,
} from "./world.ts";

async function loaded(world: FaultWorld) {
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const producer = (await IdempotentProducer.connect(world, "t")).start(50);
  const http = new HttpProducer(world, "t").start(50);
  const committer = new Committer(world, "t").start(50);
  await world.clock.advance(3_000);
  return { q, producer, http, committer };
}

test("a node whose WAL a recoverer sealed goes on in the same process, with all that was acknowledged", async () => {
  const world = new FaultWorld();
  const { q, producer, http, committer } = await loaded(world);
  const failed = failureOf(world);
  const recoverer = await drive(world.clock, recovererOf(world));
  const reader = new Quirks(q.node);

  for (let round = 0; round < 3; round++) {
    const epoch = await drive(world.clock, recoverer.victimEpoch());
    await drive(world.clock, recoverer.recover());
    const clients = [producer, http, committer];
    const before = clients.map(({ acknowledged }) => acknowledged.length);
    await world.clock.advance(5_000);
    assert.equal(failed(), null, failed()?.message);
    assert.equal(await world.ready(), "");
    for (const [i, { acknowledged, failure, constructor }] of clients.entries()) {
      assert.equal(failure, null);
      assert.ok(acknowledged.length > before[i]! + 3, `${constructor.name} does not go on`);
    }
    assert.ok(await drive(world.clock, recoverer.victimEpoch()) > epoch, "registered again");
  }
  for (const client of [producer, http, committer]) await client.stop();
  assert.ok(producer.refused.size > 0, "clients were told to try again");

  const check = async () => {
    const found = await world.values("t");
    assertOnce(found, producer.acknowledged);
    assertAll(found, http.acknowledged);
    assert.equal(await committedOffset(world, "t"), Number(committer.acknowledged.at(-1)));
  };
  await check();
  const old = await drive(world.clock, reader.fetch("t", 0));
  assert.equal(old.error, "NONE", "the connection from before still works");
  await drive(world.clock, recoverer.close());
  await drive(world.clock, q.node.close());
  await world.start();
  await check();
  await drive(world.clock, world.q.node.close());
});

test("a recovery that was begun and left is enough: the node finishes it itself", async () => {
  const world = new FaultWorld();
  const { q, producer, http, committer } = await loaded(world);
  const failed = failureOf(world);
  const recoverer = await drive(world.clock, recovererOf(world));
  const epoch = await drive(world.clock, recoverer.victimEpoch());
  assert.ok((await drive(world.clock, recoverer.recovery.beginRecovery(VICTIM, epoch))).ok);
  await world.clock.advance(15_000);
  const before = producer.acknowledged.length;
  await world.clock.advance(5_000);
  assert.equal(failed(), null, failed()?.message);
  assert.ok(producer.acknowledged.length > before + 3);
  for (const client of [producer, http, committer]) await client.stop();
  assertOnce(await world.values("t"), producer.acknowledged);
  await drive(world.clock, recoverer.close());
  await drive(world.clock, q.node.close());
});

test("a recovery during an outage: the node is unready until the store is back, then goes on", async () => {
  const world = new FaultWorld();
  const { q, producer, http, committer } = await loaded(world);
  const failed = failureOf(world);
  const recoverer = await drive(world.clock, recovererOf(world));
  // The victim alone is cut off; the recoverer reaches the bucket.
  world.store.setPlan(() => ({ kind: "fail" }));
  await drive(world.clock, recoverer.recover());
  await world.clock.advance(60_000);
  assert.notEqual(await world.ready(), "");
  assert.equal(failed(), null, failed()?.message);
  world.store.setPlan();
  await world.clock.advance(40_000);
  assert.equal(await world.ready(), "");
  assert.equal(failed(), null, failed()?.message);
  for (const client of [producer, http, committer]) await client.stop();
  const found = await world.values("t");
  assertOnce(found, producer.acknowledged);
  assertAll(found, http.acknowledged);
  await drive(world.clock, recoverer.close());
  await drive(world.clock, q.node.close());
});

test("closing in the middle of it ends in time, even without the store", async () => {
  const world = new FaultWorld();
  const { q, producer, http, committer } = await loaded(world);
  for (const client of [producer, http, committer]) await client.stop();
  const recoverer = await drive(world.clock, recovererOf(world));
  await drive(world.clock, recoverer.recover());
  await world.clock.advance(1);
  // Noticed at the next look at the log or the next write; then the store is gone.
  const pending = q.produce("t", batch(["x"])).catch(() => null);
  world.store.setPlan(({ op }) => op === "get" ? undefined : { kind: "hang", happens: false });
  await world.clock.advance(15_000);
  const startedMs = world.clock.monotonicMs();
  await drive(world.clock, q.node.close().catch(() => {}));
  assert.ok(world.clock.monotonicMs() - startedMs < 30_000);
  await drive(world.clock, pending);
  await drive(world.clock, recoverer.close());
  await world.start();
  assertOnce(await world.values("t"), producer.acknowledged);
  await drive(world.clock, world.q.node.close());
});

test("who is recovered and replaced stops for good", async () => {
  const world = new FaultWorld();
  const { q, producer, http, committer } = await loaded(world);
  const failed = failureOf(world);
  const recoverer = await drive(world.clock, recovererOf(world));
  world.store.setPlan(() => ({ kind: "fail" }));
  await drive(world.clock, recoverer.recover());
  const second = new FaultWorld({ clock: world.clock, bucket: world.bucket, seed: 100 });
  await second.start();
  world.store.setPlan();
  await world.clock.advance(30_000);
  assert.equal(failed()?.code, "fenced");
  const found = await second.values("t");
  assertOnce(found, producer.acknowledged);
  assertAll(found, http.acknowledged);
  for (const client of [producer, http, committer]) assert.equal(client.failure, null);
  await drive(world.clock, recoverer.close());
  await drive(world.clock, q.node.close());
  await drive(world.clock, second.q.node.close());
});
