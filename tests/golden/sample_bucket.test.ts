/**
 * A whole bucket that an earlier build left behind after four lives (`make_bucket.ts`): this build proves it
 * clean, opens it, recovers its last WAL, reads every record and offset that was acknowledged, and goes on
 * writing. In the directory store it is opened as it lies there, for there the path is the key.
 */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { openDirStore } from "../../src/adapters/dir_store.ts";
import { storeSource } from "../../src/inspect/byte_source.ts";
import { inspect } from "../../src/inspect/inspect.ts";
import { kindOf } from "../../src/inspect/kind.ts";
import { toHex } from "../../src/lib/bytes.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { describeGroupsApi } from "../../src/protocol/message/15_describe_groups.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { drive, FaultWorld } from "../faults/world.ts";
import { batch, batchesOf, textOf } from "../quirks/quirks.ts";
import { check, type Content, stateOf, storeOf } from "../support/stored_world.ts";
import { testEnv } from "../support/test_env.ts";

const FOLDER = fileURLToPath(new URL("samples/bucket-1", import.meta.url));
const CLUSTER_ID = "88nr_Ssw8FxwcQouvSLgsg";

function readFolder(): Content {
  const content: Content = new Map();
  for (const file of readdirSync(FOLDER, { recursive: true, encoding: "utf8" })) {
    const path = join(FOLDER, file);
    if (statSync(path).isFile()) {
      content.set(file.replaceAll("\\", "/"), readFileSync(path).slice());
    }
  }
  return content;
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);
const image = (i: number) => `image-${i}-${"x".repeat(600)}`;

/** Values of each partition from its log start on; null is a deletion. */
const VALUES: readonly (readonly [
  topic: string,
  partition: number,
  from: number,
  values: (string | null)[],
])[] = [
  ["orders", 0, 0, upTo(27).map((i) => `order-0-${i}`)],
  ["orders", 1, 0, upTo(13).map((i) => `order-1-${i}`)],
  ["payments", 0, 0, upTo(13).map((i) => `payment-${i}`)],
  ["images", 0, 0, upTo(14).map(image)],
  ["settings", 0, 0, upTo(13).map((i) => i === 5 ? null : `v${i}`)],
  // Retention took the segments of eight records.
  ["tail", 0, 8, [8, 9, 10, 11, 12].map((i) => `tail-${i}-${"y".repeat(300)}`)],
];

interface Read {
  readonly logStartOffset: number;
  readonly highWatermark: number;
  readonly values: (string | null)[];
  readonly keys: (string | null)[];
}

async function readAll(
  world: FaultWorld,
  topic: string,
  partition: number,
  from: number,
): Promise<Read> {
  const values: (string | null)[] = [];
  const keys: (string | null)[] = [];
  for (let at = from;;) {
    const answer = await drive(world.clock, world.q.fetch(topic, at, { partition }));
    assert.equal(answer.error, "NONE", `${topic}-${partition} at ${at}`);
    const batches = batchesOf(answer.records);
    if (batches.length === 0) {
      const { logStartOffset, highWatermark } = answer;
      return { logStartOffset, highWatermark, values, keys };
    }
    for (const { baseOffset, lastOffsetDelta, records } of batches) {
      assert.equal(baseOffset, at, `${topic}-${partition}`);
      values.push(...records.map(({ value }) => textOf(value)));
      keys.push(...records.map(({ key }) => textOf(key)));
      at = baseOffset + lastOffsetDelta + 1;
    }
  }
}

async function committed(world: FaultWorld, groupId: string): Promise<unknown[]> {
  const topics = [{ name: "orders", partitionIndexes: [0] }];
  const answer = await drive(world.clock, world.q.call(offsetFetchApi, 7, { groupId, topics }));
  assert.equal(errorName(answer.errorCode), "NONE");
  const { committedOffset, metadata } = answer.topics[0]!.partitions[0]!;
  return [committedOffset, metadata];
}

describe("bucket 1", () => {
  let content: Content;
  before(() => {
    content = readFolder();
  });

  test("is proved clean, with objects of every kind", async () => {
    const { summary, text, damaged } = await check(await storeOf(content));
    assert.equal(summary.verdict, "clean", text);
    assert.deepEqual(damaged, []);
    assert.deepEqual(
      [summary.clusterId, summary.position, summary.metadataEntries, summary.keys],
      [CLUSTER_ID, 134, 134, 192],
    );
    assert.deepEqual([summary.streams, summary.dataObjects, summary.walObjects], [19, 51, 5]);
    const state = await stateOf(content);
    const kinds = [...state.objects.values()].map(({ kind, state: of }) => `${kind} ${of}`);
    const count = (kind: string) => kinds.filter((one) => one === kind).length;
    assert.deepEqual(
      [
        "stream-set committed",
        "stream-set destroyed",
        "stream committed",
        "stream destroyed",
        "composite committed",
        "composite destroyed",
      ].map(count),
      [7, 12, 23, 6, 2, 1],
    );
    const wals = [...state.wals.values()].map(({ epoch, state: of }) => [epoch, of.kind]);
    assert.deepEqual(wals, [[1, "sealed"], [36, "sealed"], [66, "sealed"], [106, "open"]]);
  });

  test("is shown by inspect, object by object", async () => {
    const store = await storeOf(content);
    const kinds = new Map<string, number>();
    for await (const info of store.list("")) {
      const source = storeSource(store, info);
      const kind = (await kindOf(source))!;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      const walk = inspect(source, kind, testEnv().codecs);
      let next = await walk.next();
      while (next.done !== true) next = await walk.next();
      assert.equal(next.value, null, info.key);
    }
    assert.deepEqual([...kinds].toSorted(), [
      ["cluster", 1],
      ["composite", 3],
      ["data", 48],
      ["entry", 134],
      ["snapshot", 1],
      ["wal", 5],
    ]);
  });

  test("is opened: every record, offset, group and producer id is there; then it is used", async () => {
    const world = new FaultWorld({ bucket: await storeOf(content), seed: 7_000 });
    await world.start();
    assert.equal(world.q.node.node.clusterId, CLUSTER_ID);
    const { topics } = await drive(world.clock, world.q.metadata(null));
    const names = topics.map(({ name, partitions }) => `${name} ${partitions.length}`);
    assert.deepEqual(names.toSorted(), [
      "__consumer_offsets 8",
      "images 1",
      "orders 2",
      "payments 1",
      "settings 1",
      "tail 1",
    ]);
    for (const [topic, partition, from, values] of VALUES) {
      const read = await readAll(world, topic, partition, from);
      assert.deepEqual(read.values, values, `${topic}-${partition}`);
      assert.equal(read.logStartOffset, from);
      assert.equal(read.highWatermark, from + values.length);
      if (topic !== "settings") continue;
      assert.deepEqual(read.keys, upTo(13).map((i) => `k${i % 3}`));
    }
    assert.deepEqual(await committed(world, "billing"), [9, "meta"]);
    assert.deepEqual(await committed(world, "audit"), [3, "meta"]);
    assert.deepEqual(await committed(world, "nobody"), [-1, ""]);
    const asked = { groups: ["readers", "left"], includeAuthorizedOperations: false };
    const { groups } = await drive(world.clock, world.q.call(describeGroupsApi, 5, asked));
    const described = groups.map((group) => [
      group.groupState,
      group.protocolType,
      group.members.map((one) => `${one.clientId}: ${textOf(one.memberAssignment)}`),
    ]);
    assert.deepEqual(described, [
      ["Stable", "consumer", ["reader: partition 0"]],
      ["Empty", "consumer", []],
    ]);
    const fresh = await drive(
      world.clock,
      world.q.call(initProducerIdApi, 4, {
        transactionalId: null,
        transactionTimeoutMs: 60_000,
        producerId: -1,
        producerEpoch: -1,
      }),
    );
    assert.ok(fresh.producerId >= 1_000, "ids of the first block are not given twice");

    // The last batch of the producer again is a duplicate, the next one goes on.
    const payment = (sequence: number) =>
      world.q.produce("payments", batch([`payment-${sequence}`], { producer: [0, 0, sequence] }));
    const again = await drive(world.clock, payment(12));
    assert.deepEqual([again.error, again.baseOffset], ["NONE", 12]);
    const next = await drive(world.clock, payment(13));
    assert.deepEqual([next.error, next.baseOffset], ["NONE", 13]);
    const gap = await drive(world.clock, payment(15));
    assert.equal(gap.error, "OUT_OF_ORDER_SEQUENCE_NUMBER");
    await drive(world.clock, world.q.node.close());
    const { summary, text } = await check(world.bucket);
    assert.equal(summary.verdict, "clean", text);
  });

  test("is compacted and recovered again by this build, without a change to its records", async () => {
    const kafka = {
      "skerry.compaction.interval.ms": "1000",
      "skerry.compaction.objects.min": "2",
      "skerry.upload.interval.ms": "1000",
    };
    const world = new FaultWorld({ bucket: await storeOf(content), seed: 8_000, kafka });
    await world.start();
    for (const [topic, partition, from] of VALUES) await readAll(world, topic, partition, from);
    await world.clock.advance(60_000);
    const { summary, text } = await check(world.bucket);
    assert.equal(summary.verdict, "clean", text);
    world.kill();
    await world.start();
    for (const [topic, partition, from, values] of VALUES) {
      // Retention found two more segments to take.
      const gone = topic === "tail" ? 2 : 0;
      const read = await readAll(world, topic, partition, from + gone);
      assert.deepEqual(read.values, values.slice(gone), `${topic}-${partition}`);
    }
  });

  test("lies in a directory as the directory store lays it out", async () => {
    const folder = mkdtempSync(join(tmpdir(), "skerry-sample-"));
    try {
      cpSync(FOLDER, folder, { recursive: true });
      const store = await openDirStore(folder, testEnv());
      const keys: string[] = [];
      for await (const { key, size } of store.list("")) {
        keys.push(key);
        const got = await store.get(key);
        assert.equal(size, content.get(key)!.length);
        assert.equal(toHex(got!.bytes), toHex(content.get(key)!), key);
      }
      assert.deepEqual(keys.toSorted(), [...content.keys()].toSorted());
      assert.equal((await check(store)).summary.verdict, "clean");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
