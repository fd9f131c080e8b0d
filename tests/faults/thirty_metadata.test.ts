/**
 * Faults 15, 16 and 20 to 24 of the thirty: the metadata log loses answers, is busy, out of reach, silent or
 * trimmed, and its snapshots are damaged. 21 and 22 as this log knows them: it has no leader and no watch.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryStore } from "../../src/object/memory.ts";
import { logPrefix, snapshotPrefix } from "../../src/object/object_key.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { errorName, isRetriable } from "../../src/protocol/error_code.ts";
import { UPLOAD_INTERVAL_MS } from "../../src/lib/limits.ts";
import { uuidOf } from "../../src/lib/uuid.ts";
import { batch, Quirks } from "../quirks/quirks.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import type { StoreCall, StoreFault } from "../support/faulty_store.ts";
import { recovererOf } from "./second_node.ts";
import { assertOnce, drive, FaultWorld, IdempotentProducer, readsAtOnce } from "./world.ts";

const DAY_MS = 86_400_000;

async function createTopic(world: FaultWorld, name: string, timeoutMs = 30_000): Promise<string> {
  const topics = [{ name, numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }];
  const asked = new Quirks(world.q.node).call(createTopicsApi, 7, { topics, timeoutMs });
  const answer = await drive(world.clock, asked, "a topic");
  return errorName(answer.topics[0]!.errorCode);
}

async function topicNames(world: FaultWorld): Promise<string[]> {
  const { topics } = await drive(world.clock, new Quirks(world.q.node).metadata(null));
  return topics.map(({ name }) => name ?? "").toSorted();
}

function isEntry({ op, key }: StoreCall): boolean {
  return op === "put" && key.includes("/log/");
}

async function entries(world: FaultWorld): Promise<number> {
  let count = 0;
  for await (const _ of world.bucket.list(logPrefix(world.q.node.node.clusterId))) count += 1;
  return count;
}

test("fault 15: the answer of a log append is lost and another node appends the next: one result, once", async () => {
  const world = new FaultWorld();
  await world.start();
  const before = await entries(world);
  let lost = 0;
  world.store.setPlan((call): StoreFault | undefined => {
    if (!isEntry(call)) return undefined;
    if (lost++ === 0) return { kind: "lose-answer" };
    // Its repeat comes when the next position is taken.
    return { kind: "delay", delayMs: 3_000 };
  });
  const asked = createTopic(world, "t");
  const other = await recovererOf(world);
  assert.equal(await asked, "NONE");
  assert.ok(lost >= 2, "it was asked again");
  world.store.setPlan();
  assert.equal(await entries(world), before + 2, "the topic and the other node");
  assert.deepEqual(await topicNames(world), ["t"]);
  assert.equal(await createTopic(world, "t"), "TOPIC_ALREADY_EXISTS");
  await other.close();
});

test("fault 16: a log append is answered 409: the same bytes again, never told as a conflict", async () => {
  const clock = createFakeClock();
  const inner = createMemoryStore(clock);
  const bodies: Uint8Array[] = [];
  const world = new FaultWorld({ clock, bucket: inner });
  await world.start();
  const before = await entries(world);
  const real = world.store.put.bind(world.store);
  world.store.put = (key, body, options) => {
    if (key.includes("/log/")) bodies.push(body.slice());
    return real(key, body, options);
  };
  let refusals = 0;
  world.store.setPlan((call) => isEntry(call) && refusals++ < 4 ? { kind: "fail" } : undefined);
  assert.equal(await createTopic(world, "t"), "NONE");
  assert.equal(bodies.length, 5);
  for (const body of bodies) assert.deepEqual(body, bodies[0]);
  assert.equal(await entries(world), before + 1);
});

test("fault 20: the log is out of reach, the store is not: produce and fetch go on, the rest waits and is made up for", async () => {
  const kafka = { "skerry.upload.age.ms.max": "900000" };
  const world = new FaultWorld({ kafka });
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const producer = (await IdempotentProducer.connect(world, "t")).start(2_000);
  await world.clock.advance(5_000);
  world.store.setPlan(({ key }) => key.startsWith("meta/") ? { kind: "fail" } : undefined);
  const before = producer.acknowledged.length;
  const refusal = await createTopic(world, "u", 5_000);
  assert.ok(isRetriable(refusal as Parameters<typeof isRetriable>[0]), refusal);
  await world.clock.advance(UPLOAD_INTERVAL_MS + 60_000);
  assert.ok(producer.acknowledged.length > before + 300, "on open streams writing goes on");
  assert.deepEqual([...producer.refused], []);
  await readsAtOnce(world, new Quirks(q.node), "t");
  assert.notEqual(await world.ready(), "", "and it is told");
  // At the cap of what is not uploaded: back-pressure, with an error that clients try again.
  await world.clock.advance(300_000);
  assert.ok(producer.refused.size > 0, "the cap is reached");
  assert.equal(producer.failure, null);

  world.store.setPlan();
  await world.clock.advance(60_000);
  assert.equal(await world.ready(), "", "everything is committed");
  assert.equal(await createTopic(world, "u"), "NONE");
  const healed = producer.acknowledged.length;
  await world.clock.advance(10_000);
  assert.ok(producer.acknowledged.length > healed, "goes on by itself");
  await producer.stop();
  world.kill();
  await world.start();
  assertOnce(await world.values("t"), producer.acknowledged);
});

test("fault 21: whoever orders the log fails for a second: commits pause, no client hears of it", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const sinceMs = world.clock.monotonicMs();
  world.store.setPlan(({ key }) =>
    key.startsWith("meta/") && world.clock.monotonicMs() - sinceMs < 1_000
      ? { kind: "fail" }
      : undefined
  );
  assert.equal(await createTopic(world, "u"), "NONE");
  const tookMs = world.clock.monotonicMs() - sinceMs;
  assert.ok(tookMs >= 1_000 && tookMs < 5_000, `${tookMs} ms`);
  assert.equal((await drive(world.clock, q.produce("u", batch(["a"])))).error, "NONE");
});

test("fault 22: looks at the log hang without an answer: given up, and a later look finds newer entries", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const other = await drive(world.clock, recovererOf(world));
  let hanging = 0;
  world.store.setPlan(({ op, key }) =>
    op === "get" && key.includes("/log/") && hanging++ < 2
      ? { kind: "silence", delayMs: 30_000, happens: false }
      : undefined
  );
  await world.clock.advance(10_000);
  assert.ok(hanging > 0, "the look hangs");
  const created = await drive(
    world.clock,
    other.metadata.submit({
      type: "create-topic",
      topicId: uuidOf(new Uint8Array(16).fill(7)),
      name: "news",
      partitions: 1,
      replicationFactor: 1,
      configs: {},
      internal: false,
    }),
  );
  assert.ok(created.ok);
  await world.clock.advance(90_000);
  assert.deepEqual(await topicNames(world), ["news", "t"]);
  assert.equal(await world.ready(), "");
  await drive(world.clock, other.close());
});

test("fault 23: a node that was away while the log was trimmed loads the snapshot and the tail", async () => {
  const clock = createFakeClock();
  const stored = { skewMs: 0 };
  const bucket = createMemoryStore({ ...clock, nowMs: () => clock.nowMs() + stored.skewMs });
  const kafka = { "skerry.metadata.snapshot.entries": "10" };
  const world = new FaultWorld({ clock, bucket, kafka });
  await world.start();
  const away = await drive(clock, recovererOf(world));
  const last = away.metadata.view().at;
  for (let day = 0; day < 3; day++) {
    for (let i = 0; i < 30; i++) await drive(clock, world.q.topic(`t-${day}-${i}`));
    stored.skewMs += 2 * DAY_MS;
  }
  await drive(clock, world.q.topic("last"));
  await clock.advance(5_000);
  const { clusterId } = world.q.node.node;
  const positions: string[] = [];
  for await (const { key } of bucket.list(logPrefix(clusterId))) positions.push(key.slice(-8));
  assert.ok(Number(positions[0]) > last + 1, "what it would read next is gone");

  const fresh = await drive(clock, away.metadata.fresh(true));
  assert.equal(fresh.topics.size, 91, "snapshot and tail");
  const put = { type: "put-kv", key: "k", value: "v", expectedVersion: 0 } as const;
  assert.ok((await drive(clock, away.metadata.submit(put))).ok, "and it takes part again");
  // A start reads no more than that, too.
  world.kill();
  await world.start();
  assert.equal((await topicNames(world)).length, 91);
});

/** Half of the newest snapshot is lost, or it was never finished. */
for (const damage of ["cut", "changed"] as const) {
  test(`fault 24: the newest snapshot is ${damage}: the one before with a longer tail, and an alarm`, async () => {
    const world = new FaultWorld({ kafka: { "skerry.metadata.snapshot.entries": "10" } });
    await world.start();
    for (let i = 0; i < 35; i++) await drive(world.clock, world.q.topic(`t${i}`));
    assert.equal((await drive(world.clock, world.q.produce("t0", batch(["a"])))).error, "NONE");
    await world.clock.advance(5_000);
    world.kill();
    const snapshots: string[] = [];
    for await (const { key } of world.bucket.list(snapshotPrefix(world.q.node.node.clusterId))) {
      snapshots.push(key);
    }
    assert.ok(snapshots.length >= 2);
    await spoil(world.bucket, snapshots.at(-1)!, damage);
    await world.start();
    assert.equal((await topicNames(world)).length, 35);
    assert.deepEqual(await world.values("t0"), ["a"]);
    const read = world.store.calls.filter(({ op, key }) => op === "get" && snapshots.includes(key));
    assert.deepEqual(
      read.map(({ key }) => key).slice(0, 2),
      snapshots.slice(-2).toReversed(),
      "the older one after the newer one",
    );
  });
}

async function spoil(bucket: ObjectStore, key: string, how: "cut" | "changed"): Promise<void> {
  const { bytes } = (await bucket.get(key))!;
  const spoiled = how === "cut" ? bytes.slice(0, bytes.length >> 1) : bytes.slice();
  if (how === "changed") spoiled[bytes.length - 5]! ^= 1;
  await bucket.put(key, spoiled);
}
