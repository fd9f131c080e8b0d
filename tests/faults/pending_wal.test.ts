/**
 * While the WAL's object cannot be created, producers time out instead of hanging; what they send again
 * afterwards is found to be there already. Past the bound new produces are refused, so memory stays bounded.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { WAL_UNACKNOWLEDGED_BYTES_MAX } from "../../src/lib/limits.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { batch, Quirks } from "../quirks/quirks.ts";
import type { FaultPlan } from "../support/faulty_store.ts";
import { drive, FaultWorld, readsAtOnce } from "./world.ts";

const MIB = 1024 * 1024;

/** No create gets an answer for a minute; half of them happen. */
const blackHole: FaultPlan = ({ op, number }) =>
  op === "put" ? { kind: "silence", delayMs: 60_000, happens: number % 2 === 0 } : undefined;

async function producerId(world: FaultWorld): Promise<number> {
  const asked = world.q.call(initProducerIdApi, 4, {
    transactionalId: null,
    transactionTimeoutMs: 60_000,
    producerId: -1,
    producerEpoch: -1,
  });
  return (await drive(world.clock, asked)).producerId;
}

test("a produce times out while its WAL object is pending, and its retry is no duplicate", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const id = await producerId(world);
  const send = (sequence: number) =>
    q.produce("t", batch([`v${sequence}`], { producer: [id, 0, sequence] }), { timeoutMs: 5_000 });
  assert.equal((await drive(world.clock, send(0))).error, "NONE");

  world.store.setPlan(blackHole);
  const startedMs = world.clock.monotonicMs();
  assert.equal((await drive(world.clock, send(1))).error, "REQUEST_TIMED_OUT");
  const tookMs = world.clock.monotonicMs() - startedMs;
  assert.ok(tookMs >= 5_000 && tookMs < 6_000, `timed out after ${tookMs} ms`);
  assert.equal((await drive(world.clock, send(1))).error, "REQUEST_TIMED_OUT", "a retry waits too");
  assert.equal((await drive(world.clock, send(2))).error, "REQUEST_TIMED_OUT");

  world.store.setPlan();
  await world.clock.advance(90_000);
  const again = await drive(world.clock, send(1));
  assert.deepEqual([again.error, again.baseOffset], ["NONE", 1], "the original offset");
  assert.equal((await drive(world.clock, send(2))).baseOffset, 2);
  assert.equal((await drive(world.clock, send(3))).baseOffset, 3);
  assert.deepEqual(await world.values("t"), ["v0", "v1", "v2", "v3"]);
  world.kill();
  await world.start();
  assert.deepEqual(await world.values("t"), ["v0", "v1", "v2", "v3"]);
});

test("an HTTP produce gets 504 with Retry-After while its WAL object is pending", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  await drive(world.clock, q.produce("t", batch(["first"])));
  world.store.setPlan(blackHole);
  const startedMs = world.clock.monotonicMs();
  const post = world.fetch("/v1/topics/t/records", { method: "POST", body: "late" });
  const response = await drive(world.clock, post);
  const tookMs = world.clock.monotonicMs() - startedMs;
  assert.ok(tookMs >= 30_000 && tookMs < 31_000, `answered after ${tookMs} ms`);
  assert.equal(response.status, 504);
  assert.equal(response.headers.get("retry-after"), "1");
  const problem = await response.json() as { kafka: { name: string; retriable: boolean } };
  assert.equal(problem.kafka.name, "REQUEST_TIMED_OUT");
  assert.equal(problem.kafka.retriable, true);
  world.store.setPlan();
  await world.clock.advance(90_000);
  assert.deepEqual(await world.values("t"), ["first", "late"]);
});

test("past 256 MiB unacknowledged, produces are refused and everything drains later", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t", 1, { "max.message.bytes": String(20 * MIB) }));
  await drive(world.clock, q.produce("t", batch(["first"])));
  const big = batch(["x".repeat(16 * MIB)]);
  const reader = new Quirks(q.node);

  world.store.setPlan(({ op }) => op === "put" ? { kind: "fail" } : undefined);
  let accepted = 0;
  for (;;) {
    const { error } = await drive(world.clock, q.produce("t", big, { timeoutMs: 1_000 }));
    if (error !== "REQUEST_TIMED_OUT") {
      assert.equal(error, "NOT_ENOUGH_REPLICAS");
      break;
    }
    accepted += 1;
    assert.ok(accepted * big.length <= WAL_UNACKNOWLEDGED_BYTES_MAX, "it takes more and more");
    await readsAtOnce(world, reader, "t");
  }
  assert.ok(accepted >= 15, `refused after ${accepted}`);
  const over = await world.fetch("/v1/topics/t/records", {
    method: "POST",
    body: "x".repeat(16 * MIB),
  });
  assert.deepEqual([over.status, over.headers.get("retry-after")], [503, "1"]);
  assert.match(await over.text(), /NOT_ENOUGH_REPLICAS/);
  assert.ok(
    await world.metric("skerry_wal_unacknowledged_bytes") <= WAL_UNACKNOWLEDGED_BYTES_MAX,
  );

  world.store.setPlan();
  await world.clock.advance(20_000);
  assert.equal(await world.metric("skerry_wal_unacknowledged_bytes"), 0);
  const last = await drive(world.clock, q.produce("t", batch(["last"])));
  assert.equal(last.error, "NONE");
  assert.equal(await world.ready(), "");
});
