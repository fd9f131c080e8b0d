/** One partition of transactional ids over a real log: turns, durability, reload, rewrite, expiry. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHarness, type Harness } from "../../../tests/support/partition_harness.ts";
import { FaultError, isFault } from "../../lib/errors.ts";
import { TXN_QUEUE_MAX } from "../../lib/limits.ts";
import { ShardMemory } from "../shard/shard_memory.ts";
import { NO_PARTITIONS, partitionsOf, type Transaction, type TxnPartition } from "./transaction.ts";
import { TxnShard, type TxnShardOptions } from "./txn_shard.ts";

const DAY_MS = 86_400_000;
const PARTITIONS = partitionsOf([{ topic: "t", partition: 0 }, { topic: "t", partition: 1 }]);

function rowOf({ nowMs }: Harness, over: Partial<Transaction> = {}): Transaction {
  return {
    transactionalId: "tx",
    producerId: 1000,
    previousProducerId: -1,
    nextProducerId: -1,
    producerEpoch: 0,
    lastProducerEpoch: -1,
    timeoutMs: 60_000,
    status: "Empty",
    partitions: NO_PARTITIONS,
    startedAtMs: -1,
    updatedAtMs: nowMs,
    isV2: false,
    ...over,
  };
}

async function open(
  { env, log }: Harness,
  over: Partial<TxnShardOptions> = {},
): Promise<TxnShard> {
  const shard = new TxnShard({
    env,
    log,
    sendMarkers: () => new Promise(() => {}),
    memory: new ShardMemory(2 ** 40),
    expirationMs: 7 * DAY_MS,
    compactBytesMin: 1 << 20,
    ...over,
  });
  await shard.load();
  shard.start();
  return shard;
}

function put(shard: TxnShard, row: Transaction): Promise<unknown> {
  return shard.change(row.transactionalId, ({ store }) => store(row));
}

/** Enough for work in memory to come to its end. */
async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

test("a change counts once it is durable, and the next one waits for its turn", async () => {
  const harness = await createHarness();
  const shard = await open(harness);
  harness.streams.durability = "manual";
  const seen: (number | undefined)[] = [];
  const changes = [1, 2].map((producerEpoch) =>
    shard.change("tx", async ({ row, store }) => {
      seen.push(row?.producerEpoch);
      await store(rowOf(harness, { producerEpoch }));
    })
  );
  await settle();
  assert.deepEqual([seen, shard.find("tx")], [[undefined], undefined]);
  harness.streams.confirm();
  await settle();
  assert.deepEqual([seen, shard.find("tx")?.producerEpoch], [[undefined, 1], 1]);
  harness.streams.confirm();
  await Promise.all(changes);
  assert.equal(shard.find("tx")?.producerEpoch, 2);
});

test("what cannot be appended changes nothing, and leaves nothing behind", async () => {
  const harness = await createHarness();
  const shard = await open(harness);
  const full = new FaultError("overloaded", "full", { retriable: true });
  harness.streams.fail = (op) => op === "append" ? full : null;
  await assert.rejects(put(shard, rowOf(harness)), (error) => isFault(error, "overloaded"));
  harness.streams.fail = null;
  assert.equal(shard.find("tx"), undefined);
  assert.ok(!shard.closed);
  await put(shard, rowOf(harness, { producerEpoch: 5 }));
  assert.equal(shard.find("tx")?.producerEpoch, 5);
});

test("a write without an outcome closes the shard: the log says what it came to", async () => {
  const harness = await createHarness();
  const shard = await open(harness);
  await put(shard, rowOf(harness, { producerEpoch: 1 }));
  harness.streams.durability = "manual";
  const lost = put(shard, rowOf(harness, { producerEpoch: 2 }));
  const waiting = put(shard, rowOf(harness, { producerEpoch: 3 }));
  lost.catch(() => {});
  waiting.catch(() => {});
  await settle();
  await harness.crash();
  await assert.rejects(lost);
  await assert.rejects(waiting, "nothing is decided on a row that may be old");
  assert.ok(shard.closed);
  harness.streams.durability = "auto";
  assert.equal((await open(harness)).find("tx")?.producerEpoch, 1);
});

test("an end that is stored is carried through, by whoever opens the log next", async () => {
  const harness = await createHarness();
  const first = await open(harness);
  const row = rowOf(harness, { status: "PrepareCommit", partitions: PARTITIONS, startedAtMs: 1 });
  await put(first, row);
  first.close();
  let finish: () => void = () => {};
  const sent: string[][] = [];
  const shard = await open(harness, {
    sendMarkers: async ({ status, partitions }, coordinatorEpoch, done) => {
      sent.push([status, String(coordinatorEpoch), ...partitions.keys()]);
      done({ topic: "t", partition: 0 });
      await new Promise<void>((resolve) => void (finish = resolve));
    },
  });
  assert.deepEqual(sent, [["PrepareCommit", String(harness.log.leaderEpoch), "t-0", "t-1"]]);
  assert.deepEqual(shard.openPartitions("tx"), [{ topic: "t", partition: 1 }]);
  finish();
  await settle();
  assert.equal(shard.find("tx")?.status, "CompleteCommit");
  assert.deepEqual(shard.openPartitions("tx"), []);
  assert.equal((await open(harness)).find("tx")?.status, "CompleteCommit");
});

test("too many that wait, and too many ids, are refused", async () => {
  const harness = await createHarness();
  const shard = await open(harness, { idsMax: 1 });
  harness.streams.durability = "manual";
  const changes = Array.from({ length: TXN_QUEUE_MAX }, () => put(shard, rowOf(harness)));
  assert.equal(await put(shard, rowOf(harness)), "CONCURRENT_TRANSACTIONS");
  assert.equal(await put(shard, rowOf(harness, { transactionalId: "ty" })), "POLICY_VIOLATION");
  harness.streams.durability = "auto";
  harness.streams.confirm();
  await Promise.all(changes);
});

test("what ids and their partitions hold is bounded; an end never is, and all of it is given back", async () => {
  const harness = await createHarness();
  const memory = new ShardMemory(8_000);
  const shard = await open(harness, { memory });
  const opened = { status: "Ongoing", partitions: PARTITIONS, startedAtMs: harness.nowMs } as const;
  await put(shard, rowOf(harness, opened));
  const small = memory.bytes;
  const many = Array.from({ length: 500 }, (_, partition) => ({ topic: "t", partition }));
  const grown = rowOf(harness, { ...opened, partitions: partitionsOf(many) });
  await assert.rejects(put(shard, grown), (error) => isFault(error, "overloaded"));
  const long = rowOf(harness, { transactionalId: "x".repeat(9_000) });
  await assert.rejects(put(shard, long), (error) => isFault(error, "overloaded"));
  assert.equal(memory.bytes, small);
  memory.change(8_000);
  await put(shard, rowOf(harness, { ...opened, status: "PrepareAbort" }));
  assert.equal(shard.find("tx")?.status, "PrepareAbort");
  memory.change(-8_000);
  const again = new ShardMemory(8_000);
  await open(harness, { memory: again });
  assert.equal(again.bytes, memory.bytes);
  shard.close();
  assert.equal(memory.bytes, 0);
});

test("an id that expires gives its memory back", async () => {
  const harness = await createHarness();
  const memory = new ShardMemory(8_000);
  const shard = await open(harness, { memory });
  await put(shard, rowOf(harness));
  assert.ok(memory.bytes > 0);
  harness.nowMs += 8 * DAY_MS;
  await shard.expire(harness.nowMs);
  assert.equal(memory.bytes, 0);
  const reloaded = new ShardMemory(8_000);
  await open(harness, { memory: reloaded });
  assert.equal(reloaded.bytes, 0);
});

test("a hollow log is rewritten, with what is under way in it", async () => {
  const harness = await createHarness();
  const shard = await open(harness, { compactBytesMin: 2_000 });
  for (let producerEpoch = 0; producerEpoch < 30; producerEpoch++) {
    await put(shard, rowOf(harness, { producerEpoch }));
  }
  await put(shard, rowOf(harness, { transactionalId: "ty" }));
  harness.streams.durability = "manual";
  const running = put(shard, rowOf(harness, { producerEpoch: 30 }));
  await settle();
  const maintained = shard.maintain(harness.nowMs);
  await settle();
  harness.streams.durability = "auto";
  harness.streams.confirm();
  await Promise.all([running, maintained]);
  assert.ok(harness.log.logStartOffset >= 32, String(harness.log.logStartOffset));
  const again = await open(harness);
  assert.deepEqual([...again.rows()].map((row) => [row.transactionalId, row.producerEpoch]), [
    ["tx", 30],
    ["ty", 0],
  ]);
  const { appends } = harness.streams;
  await shard.maintain(harness.nowMs);
  assert.equal(harness.streams.appends, appends, "idle writes nothing");
});

test("ids expire that nobody used for long and that are at rest; others never", async () => {
  const harness = await createHarness();
  const shard = await open(harness);
  await put(shard, rowOf(harness));
  await put(shard, rowOf(harness, { transactionalId: "done", status: "CompleteAbort" }));
  const open1 = { status: "Ongoing", partitions: PARTITIONS, startedAtMs: harness.nowMs } as const;
  await put(shard, rowOf(harness, { ...open1, transactionalId: "open" }));
  const ending = { status: "PrepareAbort", partitions: PARTITIONS, startedAtMs: 1 } as const;
  await put(shard, rowOf(harness, { ...ending, transactionalId: "ending" }));
  harness.nowMs += 7 * DAY_MS - 1;
  await shard.expire(harness.nowMs);
  assert.equal([...shard.rows()].length, 4);
  harness.nowMs += 1;
  await shard.expire(harness.nowMs);
  const kept = (one: TxnShard) => [...one.rows()].map(({ transactionalId }) => transactionalId);
  assert.deepEqual(kept(shard), ["open", "ending"]);
  assert.deepEqual(kept(await open(harness)), ["open", "ending"]);
});

test("a record that nobody can read is passed over", async () => {
  const harness = await createHarness();
  const shard = await open(harness);
  await put(shard, rowOf(harness));
  const broken = harness.batch(["no transaction"], { key: "no id" });
  const appended = harness.log.append(broken);
  assert.ok(appended.ok);
  await appended.durable;
  assert.equal((await open(harness)).find("tx")?.producerId, 1000);
});

test("a log is not encoded anew to find out that it is worth keeping", async () => {
  const harness = await createHarness();
  const shard = await open(harness, { compactBytesMin: 0 });
  let looks = 0;
  class Counted extends Map<string, TxnPartition> {
    override values() {
      looks += 1;
      return super.values();
    }
  }
  const opened = { status: "Ongoing", startedAtMs: harness.nowMs } as const;
  const row = rowOf(harness, { ...opened, partitions: new Counted(PARTITIONS) });
  await put(shard, row);
  looks = 0;
  for (let n = 0; n < 3; n++) {
    await put(shard, rowOf(harness, { transactionalId: `other-${n}` }));
    await shard.maintain(harness.nowMs);
  }
  assert.deepEqual([looks, harness.log.logStartOffset], [0, 0]);
  for (let n = 0; n < 60; n++) await put(shard, rowOf(harness, { transactionalId: "other-0" }));
  await shard.maintain(harness.nowMs);
  assert.ok(looks > 0 && harness.log.logStartOffset > 0, "a hollow one is");
});

test("what is alive is counted through tombstones and reloads", async () => {
  const harness = await createHarness();
  const first = await open(harness, { compactBytesMin: 0 });
  await put(first, rowOf(harness));
  await put(first, rowOf(harness, { transactionalId: "large-".repeat(200) }));
  harness.nowMs += 8 * DAY_MS;
  await first.expire(harness.nowMs);
  await put(first, rowOf(harness));
  first.close();
  const shard = await open(harness, { compactBytesMin: 0 });
  // One small record is alive in a log of more than a thousand bytes.
  await shard.maintain(harness.nowMs);
  assert.equal(harness.log.logStartOffset, 5);
  assert.deepEqual([...(await open(harness)).rows()].map((row) => row.transactionalId), ["tx"]);
});

test("a transaction times out in its turn, however many changes wait before", async () => {
  const harness = await createHarness();
  const shard = await open(harness);
  const opened = { status: "Ongoing", partitions: PARTITIONS, startedAtMs: harness.nowMs } as const;
  await put(shard, rowOf(harness, opened));
  harness.nowMs += 60_000;
  harness.streams.durability = "manual";
  const changes = Array.from({ length: TXN_QUEUE_MAX }, () => put(shard, rowOf(harness, opened)));
  const maintained = shard.maintain(harness.nowMs);
  harness.streams.durability = "auto";
  harness.streams.confirm();
  await Promise.all([...changes, maintained]);
  const { status, producerEpoch } = shard.find("tx")!;
  assert.deepEqual([status, producerEpoch], ["PrepareAbort", 1]);
});
