/**
 * Trouble that no produce meets: uploads that fail, an idle node whose store is gone, cold reads of objects
 * that do not come. Each shows, hurts nobody else, and ends by itself.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  METADATA_POLL_MS,
  STORE_BACKOFF_CAP_MS,
  STORE_READS_MAX,
  UPLOAD_INTERVAL_MS,
  WAL_REFUSED_MS,
} from "../../src/lib/limits.ts";
import { batch, Quirks } from "../quirks/quirks.ts";
import type { FaultPlan } from "../support/faulty_store.ts";
import { committedOffset, drive, FaultWorld, readsAtOnce } from "./world.ts";

const isWal = (key: string) => key.includes("/wal/");
const isMeta = (key: string) => key.startsWith("meta/");

/** Data objects only. */
const noUploads: FaultPlan = ({ op, key }) =>
  op === "put" && !isWal(key) && !isMeta(key) ? { kind: "fail", code: "store-full" } : undefined;

test("uploads that fail make the node unready, not slow, and are made up for", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const sent: string[] = [];
  const produce = async () => {
    const value = `v${sent.length}`;
    // A connection of its own: idle ones are closed meanwhile.
    const produced = new Quirks(q.node).produce("t", batch([value]));
    assert.equal((await drive(world.clock, produced)).error, "NONE");
    sent.push(value);
  };
  await produce();
  world.store.setPlan(noUploads);
  await world.clock.advance(UPLOAD_INTERVAL_MS + 60_000);
  assert.match(await world.ready(), /upload/);
  await produce();
  await readsAtOnce(world, new Quirks(q.node), "t");
  assert.match(await world.ready(), /upload/, "a write that works does not hide it");

  world.store.setPlan();
  await world.clock.advance(30_000);
  assert.equal(await world.ready(), "");
  await produce();
  await drive(world.clock, q.node.close());
  await world.start();
  assert.deepEqual(await world.values("t"), sent);
});

test("an idle node finds out that its store is gone, and that it is back", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  await world.clock.advance(METADATA_POLL_MS);
  assert.equal(await world.ready(), "");
  world.store.setPlan(() => ({ kind: "fail" }));
  await world.clock.advance(2 * METADATA_POLL_MS);
  assert.match(await world.ready(), /metadata/);
  world.store.setPlan();
  await world.clock.advance(2 * METADATA_POLL_MS);
  assert.equal(await world.ready(), "");
});

test("a metadata log that refuses entries shows within seconds, not when producers are refused", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  await world.clock.advance(METADATA_POLL_MS);
  world.store.setPlan(({ op, key }) =>
    op === "put" && isMeta(key) ? { kind: "fail", code: "store-denied" } : undefined
  );
  const created = q.topic("u");
  await world.clock.advance(WAL_REFUSED_MS + STORE_BACKOFF_CAP_MS);
  assert.match(await world.ready(), /metadata cannot be written/);
  world.store.setPlan();
  await drive(world.clock, created);
  assert.equal(await world.ready(), "");
});

test("a cold read that fails is retriable, and others are served meanwhile", async () => {
  const world = new FaultWorld();
  const first = await world.start();
  await drive(world.clock, first.topic("t"));
  await drive(world.clock, first.topic("hot"));
  assert.equal((await drive(world.clock, first.produce("t", batch(["cold"])))).error, "NONE");
  await drive(world.clock, first.node.close());

  const q = await world.start();
  // Opens both logs; what was written in this life is in memory.
  assert.equal((await drive(world.clock, q.produce("t", batch(["warm"])))).error, "NONE");
  assert.equal((await drive(world.clock, q.produce("hot", batch(["v"])))).error, "NONE");
  const reader = new Quirks(q.node);
  const writer = new Quirks(q.node);
  const reads: FaultPlan = ({ op, key }) =>
    op === "get" && !isMeta(key) && !isWal(key)
      ? { kind: "silence", delayMs: 3_000, happens: false }
      : undefined;
  world.store.setPlan(reads);
  const cold = q.fetch("t", 0);
  const overHttp = world.fetch("/v1/topics/t/partitions/0/records?offset=0");
  await readsAtOnce(world, reader, "hot");
  assert.equal((await drive(world.clock, writer.produce("hot", batch(["w"])))).error, "NONE");
  assert.equal((await drive(world.clock, cold)).error, "KAFKA_STORAGE_ERROR");
  const response = await drive(world.clock, overHttp);
  assert.equal(response.status, 503);
  assert.equal(response.headers.get("retry-after"), "1");
  world.store.setPlan();
  assert.deepEqual(await world.values("t"), ["cold", "warm"]);
});

test("a partition and a group open after a restart while all cold reads hang", async () => {
  const world = new FaultWorld();
  const first = await world.start();
  await drive(world.clock, first.topic("cold", STORE_READS_MAX));
  await drive(world.clock, first.topic("late"));
  const produce = async (topic: string, value: string, partitions = 1) => {
    const produced = Array.from({ length: partitions }, async (_, partition) => {
      const sent = new Quirks(world.q.node).produce(topic, batch([value]), { partition });
      assert.equal((await sent).error, "NONE");
    });
    await drive(world.clock, Promise.all(produced));
  };
  await produce("cold", "old", STORE_READS_MAX);
  await produce("late", "v");
  const committed = new Quirks(first.node).commit("faults", "late", 1);
  assert.equal(await drive(world.clock, committed), "NONE");
  await drive(world.clock, first.node.close());

  const q = await world.start();
  // Their logs are open, and what comes now is in memory: only "old" is read from an object.
  await produce("cold", "new", STORE_READS_MAX);
  let asked = 0;
  world.store.setPlan(({ op, key }) => {
    const isRead = op === "get" && !isMeta(key) && !isWal(key);
    return isRead && ++asked <= STORE_READS_MAX ? { kind: "hang", happens: false } : undefined;
  });
  // Twice as many: those that come later wait for the permits of the first.
  for (let i = 0; i < 2 * STORE_READS_MAX; i++) {
    const partition = i % STORE_READS_MAX;
    void new Quirks(q.node).fetch("cold", 0, { partition }).catch(() => {});
    await world.clock.settle();
  }
  const metrics = await (await world.fetch("/metrics")).text();
  const active = `skerry_object_store_active{permit="read"} ${STORE_READS_MAX}\n`;
  assert.ok(metrics.includes(active), "every permit of cold reads is taken");
  const startedMs = world.clock.monotonicMs();
  await produce("late", "w");
  assert.equal(await committedOffset(world, "late"), 1);
  assert.ok(world.clock.monotonicMs() - startedMs < 2_000, "an open waits for cold reads");
});

test("a commit that goes back while a later one is under way is the last word", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const commit = async (offset: number) => {
    assert.equal(await new Quirks(q.node).commit("faults", "t", offset), "NONE");
  };
  await drive(world.clock, commit(5));
  world.store.setPlan(({ op }) => op === "put" ? { kind: "delay", delayMs: 1_000 } : undefined);
  const both = [commit(6)];
  await world.clock.settle();
  both.push(commit(5));
  await drive(world.clock, Promise.all(both));
  assert.equal(await committedOffset(world, "t"), 5);
});

test("compaction whose reads hang holds up no produce, no upload and no hot read", async () => {
  const world = new FaultWorld({
    kafka: {
      "skerry.upload.interval.ms": "1000",
      "skerry.compaction.interval.ms": "1000",
      "skerry.compaction.objects.min": "2",
    },
  });
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const values: string[] = [];
  const produce = async () => {
    const value = `v${values.length}`;
    const produced = new Quirks(q.node).produce("t", batch([value]), { timeoutMs: 5_000 });
    const startedMs = world.clock.monotonicMs();
    assert.equal((await drive(world.clock, produced)).error, "NONE");
    assert.ok(world.clock.monotonicMs() - startedMs < 1_000, "a produce waits for compaction");
    values.push(value);
    await world.clock.advance(2_000);
  };
  // Nobody reads objects but compaction: consumers are served from memory.
  const hangs: FaultPlan = ({ op, key }) =>
    op === "get" && !isWal(key) && !isMeta(key) ? { kind: "hang", happens: false } : undefined;
  world.store.setPlan(hangs);
  for (let i = 0; i < 4; i++) await produce();
  await world.clock.advance(60_000);
  const active = await (await world.fetch("/metrics")).text();
  assert.match(active, /^skerry_object_store_active\{permit="compaction"\} [1-9]/m, "it hangs");
  for (let i = 0; i < 10; i++) await produce();
  assert.equal(await world.metric("skerry_log_cache_uncommitted_bytes"), 0, "uploads go on");
  await readsAtOnce(world, new Quirks(q.node), "t");
  assert.equal(await world.ready(), "");
  world.store.setPlan();
  await drive(world.clock, q.node.close());
  await world.start();
  assert.deepEqual(await world.values("t"), values);
});
