/**
 * Makes a sample of a whole bucket with the present code: `bun tests/golden/make_bucket.ts FOLDER`. Run it once
 * for each format version, never over an old sample: old ones prove that what is stored stays readable.
 * Four lives of a node leave all kinds of objects behind; `samples.test.ts` says what must be in them.
 */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { drive, FaultWorld } from "../faults/world.ts";
import { GroupMember, stableGroup } from "../quirks/group_member.ts";
import { batch, type BatchOptions, type RecordInput, TIME } from "../quirks/quirks.ts";
import { addSnapshot, check, contentOf } from "../support/stored_world.ts";

const QUICK_UPLOADS = { "skerry.upload.interval.ms": "1000", "skerry.upload.split.bytes": "500" };
const NO_COMPACTION = { "skerry.compaction.enable": "false" };
/** Small objects are merged: many become few. */
const MERGE = { "skerry.compaction.interval.ms": "1000", "skerry.compaction.objects.min": "3" };
/** Nothing is small enough to be merged: stream objects are linked. */
const LINK = {
  ...MERGE,
  "skerry.compaction.merge.bytes.max": "1",
  "skerry.compaction.link.bytes.min": "0",
};

const first = new FaultWorld({ kafka: { ...QUICK_UPLOADS, ...NO_COMPACTION } });
const { clock, bucket } = first;
let world = first;
let lives = 0;

/** The next life of the node, with other settings, on the same bucket. */
async function live(kafka: Readonly<Record<string, string>>): Promise<void> {
  world = new FaultWorld({
    clock,
    bucket,
    seed: ++lives * 100,
    kafka: { ...QUICK_UPLOADS, ...kafka },
  });
  await world.start();
}

async function produce(
  topic: string,
  records: readonly (string | RecordInput)[],
  options: BatchOptions = {},
  partition = 0,
): Promise<void> {
  const work = world.q.produce(topic, batch(records, options), { partition });
  assert.equal((await drive(clock, work)).error, "NONE");
}

/** Each in a segment of its own, so that retention has something to take. */
async function produceTail(i: number): Promise<void> {
  await produce("tail", [{ value: `tail-${i}-${"y".repeat(300)}`, timestamp: TIME + i * 10_000 }]);
}

let round = 0;
let producerId = -1;

/** A little for every topic; then time for the upload. */
async function produceRound(): Promise<void> {
  const i = round++;
  await produce("orders", [`order-0-${2 * i}`, `order-0-${2 * i + 1}`]);
  await produce("orders", [`order-1-${i}`], { codec: "gzip" }, 1);
  await produce("payments", [`payment-${i}`], { producer: [producerId, 0, i] });
  await produce("images", [`image-${i}-${"x".repeat(600)}`]);
  const codec = ([null, "gzip", "snappy", "lz4"] as const)[i % 4]!;
  await produce("settings", [{ key: `k${i % 3}`, value: `v${i}` }], { codec });
  await produceTail(i);
  await clock.advance(3_000);
}

async function commit(groupId: string, offset: number): Promise<void> {
  const committing = world.q.commit(groupId, "orders", offset, { metadata: "meta" });
  assert.equal(await drive(clock, committing), "NONE");
}

// First life: topics, uploads without compaction, then kill -9.
await first.start();
await drive(clock, world.q.topic("orders", 2, { "retention.ms": "-1" }));
await drive(clock, world.q.topic("payments", 1, { "retention.ms": "-1" }));
await drive(clock, world.q.topic("images", 1, { "retention.ms": "-1" }));
await drive(clock, world.q.topic("settings", 1, { "cleanup.policy": "compact" }));
await drive(
  clock,
  world.q.topic("tail", 1, {
    "segment.ms": "1000",
    "retention.bytes": "1024",
    "retention.ms": "-1",
  }),
);
await drive(clock, world.q.topic("gone"));
const init = await drive(
  clock,
  world.q.call(initProducerIdApi, 4, {
    transactionalId: null,
    transactionTimeoutMs: 60_000,
    producerId: -1,
    producerEpoch: -1,
  }),
);
producerId = init.producerId;
await produce("gone", ["never to be seen"]);
for (let i = 0; i < 5; i++) await produceRound();
await produce("orders", [`order-0-10`, `order-0-11`]);
await produce("orders", [`order-1-5`], { codec: "gzip" }, 1);
world.kill();

// Second life: recovery, merges, a clean stop.
round = 6;
await live(MERGE);
await produce("payments", [`payment-5`], { producer: [producerId, 0, 5] });
await produce("images", [`image-5-${"x".repeat(600)}`]);
await produce("settings", [{ key: "k2", value: null }]);
await produceTail(5);
for (let i = 0; i < 2; i++) await produceRound();
await clock.advance(10_000);
await drive(clock, world.q.node.close());

// Third life: composites, a deleted topic, retention, a snapshot.
await live({ ...LINK, "log.retention.check.interval.ms": "1000" });
for (let i = 0; i < 3; i++) await produceRound();
await drive(clock, world.q.call(deleteTopicsApi, 5, { topicNames: ["gone"], timeoutMs: 1000 }));
await clock.advance(10_000);
await commit("billing", 7);
await drive(clock, world.q.node.close());
const content = await contentOf(bucket);
const snapshot = await addSnapshot(content);
await bucket.put(snapshot, content.get(snapshot)!);

// Fourth life: fresh uploads, groups, and kill -9 with records that are only in the WAL.
await live(NO_COMPACTION);
await produceRound();
await commit("billing", 9);
await commit("audit", 3);
const member = { clientId: "reader", sessionTimeoutMs: 300_000 };
await stableGroup(world.q, [new GroupMember(world.q, { ...member, group: "readers" })]);
const left = new GroupMember(world.q, { ...member, group: "left" });
await stableGroup(world.q, [left]);
assert.equal(await drive(clock, left.leave()), "NONE");
await clock.advance(3_000);
await produceRound();
await clock.advance(20_000);
await produce("orders", ["order-0-26"]);
await produce("images", [`image-13-${"x".repeat(600)}`]);
world.kill();

const { summary, text } = await check(bucket);
assert.equal(summary.verdict, "clean", text);
const folder = process.argv[2];
if (folder !== undefined) {
  for (const [key, bytes] of await contentOf(bucket)) {
    const path = join(folder, key);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes, { flag: "wx" });
  }
}
process.stdout.write(`${JSON.stringify(summary)}\n`);
process.exit(0);
