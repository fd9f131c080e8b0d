/** Memory permits and read permits of a whole node: what is cold or stuck never stands before what is hot. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { STORE_READS_MAX } from "../../src/lib/limits.ts";
import { drive, FaultWorld, readsAtOnce } from "../faults/world.ts";
import { Quirks } from "../quirks/quirks.ts";
import { readExposition } from "./exposition.ts";

async function post(world: FaultWorld, topic: string): Promise<void> {
  const path = `/v1/topics/${topic}/records`;
  const posting = world.fetch(path, { method: "POST", body: "x".repeat(1_000) });
  assert.equal((await drive(world.clock, posting)).status, 200);
}

async function gauges(world: FaultWorld, name: string): Promise<Record<string, number>> {
  const page = readExposition(await (await world.fetch("/metrics")).text());
  const samples = page.get(name)?.samples ?? [];
  return Object.fromEntries(
    samples.map(({ labels, value }) => [labels["class"] ?? labels["permit"] ?? "", value]),
  );
}

test("a hundred cold reads that hang hold up no hot read, no write and no metadata", async () => {
  const kafka = { "skerry.upload.interval.ms": "1000", "skerry.compaction.enable": "false" };
  const world = new FaultWorld({ kafka });
  await world.start();
  const topics = Array.from({ length: 100 }, (_, i) => `cold-${i}`);
  for (const topic of topics) {
    await post(world, topic);
    // Each in an object of its own: reads of one object would share a request.
    await world.clock.advance(2_000);
  }
  // After a restart nothing of it is in memory.
  await drive(world.clock, world.q.node.close());
  await world.start();
  await post(world, "hot");
  for (const topic of topics) await drive(world.clock, world.q.fetch(topic, 1, { maxWaitMs: 0 }));
  const isData = (key: string) => !key.startsWith("meta/") && !key.includes("/wal/");
  world.store.setPlan(({ op, key }) =>
    op === "get" && isData(key) ? { kind: "hang", happens: false } : undefined
  );
  let answered = 0;
  for (const topic of topics) {
    const client = new Quirks(world.q.node);
    client.fetch(topic, 0, { maxWaitMs: 600_000 }).then(() => void answered++, () => {});
  }
  await world.clock.advance(1_000);
  assert.equal(answered, 0, "they hang");
  const active = await gauges(world, "skerry_object_store_active");
  assert.equal(active["read"], STORE_READS_MAX, "they have all the reads that there are");
  const used = await gauges(world, "skerry_permits_used_bytes");
  assert.equal(used["hot_fetch"], 0);
  await readsAtOnce(world, world.q, "hot");
  await post(world, "hot");
  await post(world, "new");
  await world.clock.advance(60_000);
  assert.equal(await world.ready(), "", "the end of the metadata log is still looked at");
  await post(world, "newer");
  assert.equal(answered, 0, "they hang all the while");
  world.store.setPlan();
  world.kill();
});
