/**
 * The bucket answers, but takes seconds: writes wait and are not refused while there is room, what is in memory is
 * read at once, back-pressure is retriable and ends by itself, and metrics and `/readyz` show where the time goes.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { batch } from "../quirks/quirks.ts";
import { assertOnce, drive, FaultWorld, IdempotentProducer, readsAtOnce } from "../faults/world.ts";
import { readExposition } from "./exposition.ts";

const MIB = 1024 * 1024;

async function running(kafka: Readonly<Record<string, string>> = {}): Promise<FaultWorld> {
  const world = new FaultWorld({ kafka });
  await world.start();
  const posting = world.fetch("/v1/topics/t/records", { method: "POST", body: "first" });
  assert.equal((await drive(world.clock, posting)).status, 200);
  return world;
}

test("answers after three seconds: every record is in once, in order, and hot reads do not wait", async () => {
  const world = await running();
  world.store.setPlan(() => ({ kind: "delay", delayMs: 3_000 }));
  const producer = await IdempotentProducer.connect(world, "t", 30_000);
  producer.start(100);
  await world.clock.advance(20_000);
  await readsAtOnce(world, world.q, "t");
  await world.clock.advance(20_000);
  await producer.stop();
  assert.ok(producer.acknowledged.length >= 5, String(producer.acknowledged.length));
  assert.deepEqual([...producer.refused], [], "nothing was refused");
  assert.equal(await world.ready(), "", "slow is not down");
  world.store.setPlan();
  assertOnce((await world.values("t")).slice(1), producer.acknowledged);
  const page = readExposition(await (await world.fetch("/metrics")).text());
  const took = page.get("skerry_object_store_request_seconds")!.samples
    .filter(({ name, labels }) =>
      name.endsWith("_bucket") && labels["class"] === "wal" && labels["op"] === "put"
    );
  const upTo = (le: string) => took.find(({ labels }) => labels["le"] === le)!.value;
  assert.ok(upTo("5") - upTo("2.5") >= 5, "the histogram shows three seconds");
  await drive(world.clock, world.q.node.close());
});

test("slower than the clients' patience: they time out, retry, and no record is there twice", async () => {
  const world = await running();
  world.store.setPlan(() => ({ kind: "delay", delayMs: 7_000 }));
  const producer = await IdempotentProducer.connect(world, "t", 2_000);
  producer.start(100);
  const reasons = new Set<string>();
  for (let i = 0; i < 120; i++) {
    await world.clock.advance(500);
    reasons.add(await world.ready());
  }
  assert.ok(reasons.size > 1, "a write that waits for 5 s makes the node unready");
  world.store.setPlan();
  await producer.stop();
  assert.deepEqual([...producer.refused], ["REQUEST_TIMED_OUT"]);
  assertOnce((await world.values("t")).slice(1), producer.acknowledged);
  await world.clock.advance(10_000);
  assert.equal(await world.ready(), "");
  await drive(world.clock, world.q.node.close());
});

test("more than the room for uploads: back-pressure that clients retry, and it ends by itself", async () => {
  // The smallest log cache, and a store that takes a minute for each data object but not for the WAL.
  const world = await running({ "skerry.log.cache.bytes": String(16 * MIB) });
  const slow = ({ op, key }: { readonly op: string; readonly key: string }) =>
    op.startsWith("put") && !key.includes("/wal/") && !key.startsWith("meta/");
  world.store.setPlan((call) => slow(call) ? { kind: "delay", delayMs: 60_000 } : undefined);
  const large = "x".repeat(MIB - 1_000);
  const acknowledged: string[] = [];
  let refusals = 0;
  for (let i = 0; i < 30; i++) {
    const value = `${i}-${large}`;
    const { error } = await drive(world.clock, world.q.produce("t", batch([value])));
    if (error === "NONE") acknowledged.push(value);
    else {
      assert.equal(error, "NOT_ENOUGH_REPLICAS");
      refusals += 1;
    }
  }
  assert.ok(refusals > 0, "there is back-pressure");
  assert.ok(acknowledged.length >= 14, "and it begins at the bound");
  assert.ok(await world.metric("skerry_log_cache_uncommitted_bytes") >= 15 * MIB);
  const since = await world.metric("skerry_log_cache_uncommitted_since_seconds");
  assert.ok(since > 0 && since <= world.clock.nowMs() / 1_000);
  await world.clock.advance(180_000);
  const { error } = await drive(world.clock, world.q.produce("t", batch(["last"])));
  assert.equal(error, "NONE", "it ended by itself");
  world.store.setPlan();
  await world.clock.advance(5_000);
  assert.deepEqual(await world.values("t"), ["first", ...acknowledged, "last"]);
  await drive(world.clock, world.q.node.close());
});
