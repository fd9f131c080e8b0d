import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { brokerConfig } from "../../../../tests/support/broker_world.ts";
import { loadedShard } from "../../../../tests/support/group_shard.ts";
import { createFakeClock } from "../../../../tests/support/fake_clock.ts";
import { createMemoryLog, type MemoryLog } from "../../../../tests/support/memory_log.ts";
import { testEnv } from "../../../../tests/support/test_env.ts";
import { FaultError } from "../../../lib/errors.ts";
import { logConfigOf } from "../../topic_config.ts";
import { ShardMemory } from "../../shard/shard_memory.ts";
import { NEVER, type OffsetEntry } from "../offset_table.ts";
import type { Shard, ShardOptions } from "../shard.ts";
import { GroupLeases } from "./group_leases.ts";
import { acknowledge, giveBack, lease, type LeaseWindow, windowAt } from "./window.ts";

const RETENTION_MS = 86_400_000;
const TOPIC_ID = "0123456789abcdef0123456789abcdef";
const AT = { topic: "t", topicId: TOPIC_ID, partition: 0 };

const clock = createFakeClock();
const env = testEnv({ clock });

function memoryLog(): MemoryLog {
  return createMemoryLog(logConfigOf({}, brokerConfig()));
}

function shardOver(
  log: Shard["log"],
  memory = new ShardMemory(2 ** 40),
  over: Partial<ShardOptions> = {},
): Promise<Shard> {
  return loadedShard(env, log, { retentionMs: RETENTION_MS, memory, ...over });
}

function leasesOf(shard: Shard, groupId = "g"): GroupLeases {
  return new GroupLeases(shard, groupId, RETENTION_MS);
}

function committedAt(offset: number): OffsetEntry {
  return {
    topic: "t",
    partition: 0,
    offset,
    leaderEpoch: -1,
    metadata: "",
    committedAtMs: clock.nowMs(),
    expireAtMs: NEVER,
    topicId: TOPIC_ID,
  };
}

function start(leases: GroupLeases): LeaseWindow {
  return leases.windowOf(AT) ?? windowAt(TOPIC_ID, -1, 0);
}

function leaseOne(leases: GroupLeases, first: number, last: number, holder: number) {
  const window = lease(start(leases), { first, last }, holder, clock.nowMs() + 60_000);
  return leases.change([{ at: AT, window, commit: false }]);
}

test("a lease is of this group and this partition, and survives a reload", async () => {
  const log = memoryLog();
  const shard = await shardOver(log);
  await leaseOne(leasesOf(shard), 0, 4, 7);
  assert.equal(leasesOf(shard, "other").windowOf(AT), null);
  assert.equal(leasesOf(shard).windowOf({ ...AT, partition: 1 }), null);
  const again = await shardOver(log);
  assert.deepEqual(leasesOf(again).windowOf(AT), leasesOf(shard).windowOf(AT));
  assert.ok(again.find("g") !== undefined);
});

test("a window of an earlier topic of the same name counts for nothing", async () => {
  const shard = await shardOver(memoryLog());
  await leaseOne(leasesOf(shard), 0, 4, 7);
  assert.equal(leasesOf(shard).windowOf({ ...AT, topicId: "f".repeat(32) }), null);
});

test("who commits last in the log decides, also while both are under way", async () => {
  const log = memoryLog();
  const shard = await shardOver(log);
  const leases = leasesOf(shard);
  await leaseOne(leases, 0, 9, 7);
  log.durability = "manual";
  const acked = acknowledge(start(leases), 7, { first: 0, last: 3 }).window;
  const own = leases.change([{ at: AT, window: acked, commit: true }]);
  // In memory at once, for the next poll; for others once it is durable.
  assert.equal(start(leases).start, 4);
  assert.equal(shard.find("g")!.offsets.size, 0);
  const others = shard.commit(shard.find("g")!, [committedAt(2)]);
  log.confirm();
  await Promise.all([own, others]);
  assert.deepEqual(leases.windowOf(AT), windowAt(TOPIC_ID, 2));

  const leased = leaseOne(leases, 2, 5, 8);
  log.confirm();
  await leased;
  const earlier = shard.commit(shard.find("g")!, [committedAt(50)]);
  const before = start(leases);
  const later = leases.change([{
    at: AT,
    window: acknowledge(before, 8, { first: 2, last: 2 }).window,
    commit: true,
  }]);
  log.confirm();
  await Promise.all([earlier, later]);
  assert.equal(start(leases).start, 3);
  assert.equal(start(leases).spans.length, 1);
  assert.deepEqual(leasesOf(await shardOver(log)).windowOf(AT), start(leases));
});

test("what is not stored ends the shard, and a reload knows what was there before", async () => {
  const log = memoryLog();
  const shard = await shardOver(log);
  const leases = leasesOf(shard);
  await leaseOne(leases, 0, 9, 7);
  const before = start(leases);
  log.durability = "manual";
  const window = acknowledge(before, 7, { first: 0, last: 9 }).window;
  const lost = leases.change([{ at: AT, window, commit: true }]);
  let woken = 0;
  leases.onFree(() => void (woken += 1));
  log.reject(new FaultError("store-unavailable", "away", { retriable: true }));
  await assert.rejects(lost, /away/);
  assert.equal(leases.refusal, "NOT_COORDINATOR");
  assert.equal(woken, 1);
  assert.deepEqual(leasesOf(await shardOver(log)).windowOf(AT), before);
});

test("when the log takes nothing, nothing has happened", async () => {
  const log = memoryLog();
  const shard = await shardOver(log);
  const leases = leasesOf(shard);
  await leaseOne(leases, 0, 9, 7);
  const before = start(leases);
  log.refusal = "NOT_LEADER_OR_FOLLOWER";
  const window = acknowledge(before, 7, { first: 0, last: 9 }).window;
  assert.throws(() => leases.change([{ at: AT, window, commit: true }]), /Cannot store/);
  assert.deepEqual(start(leases), before);
  assert.equal(leases.refusal, null);
});

test("nothing under way leaves one offset behind, and a tombstone", async () => {
  const log = memoryLog();
  const memory = new ShardMemory(2 ** 40);
  const shard = await shardOver(log, memory);
  const leases = leasesOf(shard);
  const entry = shard.findOrCreate("g");
  await shard.commit(entry, [committedAt(0)]);
  const idleBytes = memory.bytes;
  await leaseOne(leases, 0, 9, 7);
  assert.ok(memory.bytes > idleBytes);
  const window = acknowledge(start(leases), 7, { first: 0, last: 9 }).window;
  await leases.change([{ at: AT, window, commit: true }]);
  assert.deepEqual(shard.leases.partitionsOf("g"), []);
  const again = await shardOver(log);
  assert.deepEqual(again.leases.partitionsOf("g"), []);
  assert.deepEqual(leasesOf(again).windowOf(AT), windowAt(TOPIC_ID, 10));
  shard.close();
  assert.equal(memory.bytes, 0);
});

test("a deleted group takes its leases along, also after a reload", async () => {
  const log = memoryLog();
  const shard = await shardOver(log);
  await leaseOne(leasesOf(shard), 0, 9, 7);
  await shard.delete(shard.find("g")!);
  assert.equal(leasesOf(shard).windowOf(AT), null);
  const again = await shardOver(log);
  assert.equal(again.find("g"), undefined);
  assert.equal(leasesOf(again).windowOf(AT), null);
});

test("a log that is written anew has all that is leased", async () => {
  const log = memoryLog();
  const shard = await shardOver(log, undefined, { compactBytesMin: 0 });
  const leases = leasesOf(shard);
  await leaseOne(leases, 0, 9, 7);
  for (let i = 0; i < 50; i++) {
    const window = giveBack(start(leases), 7, { first: 3, last: 3 }, clock.nowMs() + i).window;
    await leases.change([{ at: AT, window, commit: false }]);
  }
  const startBefore = log.logStartOffset;
  await shard.maintain(clock.nowMs());
  assert.ok(log.logStartOffset > startBefore);
  const again = await shardOver(log);
  assert.deepEqual(leasesOf(again).windowOf(AT), start(leases));
});

test("maintenance leaves a group alone that is in use, and ends what nobody needs", async () => {
  const log = memoryLog();
  let exists = true;
  const shard = await shardOver(log, undefined, { topicExists: () => exists });
  const leases = leasesOf(shard);
  await leaseOne(leases, 0, 9, 7);
  await shard.maintain(clock.nowMs());
  assert.equal(start(leases).spans.length, 1);
  await clock.advance(RETENTION_MS);
  await shard.maintain(clock.nowMs());
  assert.equal(start(leases).spans.length, 1);
  // The lease, and a retention behind its end.
  await clock.advance(60_000);
  await shard.maintain(clock.nowMs());
  assert.equal(shard.find("g"), undefined);
  assert.equal((await shardOver(log)).find("g"), undefined);

  await leaseOne(leases, 0, 9, 7);
  exists = false;
  await shard.maintain(clock.nowMs());
  assert.equal(leases.windowOf(AT), null);
});

test("names that anybody may think of hold no memory", async () => {
  const memory = new ShardMemory(2 ** 40);
  const shard = await shardOver(memoryLog(), memory);
  for (let i = 0; i < 100; i++) {
    const leases = leasesOf(shard, `g${i}`);
    leases.polled(1);
    assert.ok(leases.tryLock(AT));
    leases.remember({ at: AT, window: windowAt(TOPIC_ID, -1, 5) });
    const stop = leases.onFree(() => {});
    leases.unlock([AT]);
    stop();
  }
  assert.equal(memory.bytes, 0);
});

test("one that finds a partition locked is called when it is free", async () => {
  const shard = await shardOver(memoryLog());
  const leases = leasesOf(shard);
  let woken = 0;
  leases.onFree(() => void (woken += 1));
  assert.ok(leases.tryLock(AT));
  leases.unlock([AT]);
  assert.equal(woken, 0);
  assert.ok(leases.tryLock(AT));
  assert.ok(!leases.tryLock(AT));
  leases.unlock([AT]);
  assert.equal(woken, 1);
});

const step = fc.oneof(
  fc.record({ do: fc.constant("lease" as const), count: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ do: fc.constant("ack" as const), first: fc.nat(12), count: fc.nat(4) }),
  fc.record({ do: fc.constant("commit" as const), offset: fc.nat(20) }),
  fc.record({ do: fc.constant("confirm" as const) }),
  fc.record({ do: fc.constant("rewrite" as const) }),
);

test("at rest a reload knows what memory knows, whoever committed in between", async () => {
  const oneWalk = fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
    const log = memoryLog();
    log.durability = "manual";
    const shard = await shardOver(log, undefined, { compactBytesMin: 0 });
    const leases = leasesOf(shard);
    const pending: Promise<unknown>[] = [];
    for (const one of steps) {
      const window = start(leases);
      if (one.do === "lease") {
        const first = window.spans.at(-1)?.last ?? window.start - 1;
        pending.push(leaseOne(leases, first + 1, first + one.count, 7));
      } else if (one.do === "ack") {
        const range = { first: one.first, last: one.first + one.count };
        const { window: next } = acknowledge(window, 7, range);
        pending.push(
          leases.change([{ at: AT, window: next, commit: next.start !== window.start }]),
        );
      } else if (one.do === "commit") {
        pending.push(shard.commit(shard.findOrCreate("g"), [committedAt(one.offset)]));
      } else {
        log.confirm();
        await Promise.all(pending);
        if (one.do === "confirm") continue;
        const rewriting = shard.maintain(clock.nowMs());
        for (let i = 0; i < 5; i++) {
          await Promise.resolve();
          log.confirm();
        }
        await rewriting;
      }
    }
    log.confirm();
    await Promise.all(pending);
    log.durability = "auto";
    const again = await shardOver(log);
    assert.deepEqual(leasesOf(again).windowOf(AT), leases.windowOf(AT));
  });
  await fc.assert(oneWalk, { numRuns: 60 });
});
