/**
 * Clocks that are wrong: the wall clock jumps by a day in both directions while the node works, and the
 * store's clock is a day away from ours. Only timestamps may show it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { createFakeClock, type FakeClock } from "../support/fake_clock.ts";
import { GroupMember } from "../quirks/group_member.ts";
import { batch } from "../quirks/quirks.ts";
import {
  assertOnce,
  committedOffset,
  Committer,
  drive,
  FaultWorld,
  HttpProducer,
  IdempotentProducer,
} from "./world.ts";

const DAY_MS = 86_400_000;

interface SkewedClock extends FakeClock {
  skewMs: number;
}

function skewedClock(): SkewedClock {
  const clock = createFakeClock();
  const skewed: SkewedClock = {
    ...clock,
    skewMs: 0,
    nowMs: () => clock.nowMs() + skewed.skewMs,
    get timers() {
      return clock.timers;
    },
  };
  return skewed;
}

/** The store as a machine of its own, whose clock nobody but the test moves. */
function bucketWithClock(clock: FakeClock, at: { skewMs: number }): ObjectStore {
  return createMemoryStore({
    nowMs: () => 1_700_000_000_000 + Math.floor(clock.monotonicMs()) + at.skewMs,
    monotonicMs: () => clock.monotonicMs(),
    after: (delayMs, work) => clock.after(delayMs, work),
  });
}

test("a broker a day behind refuses records of now as Kafka does, and takes them once its clock is set", async () => {
  const clock = skewedClock();
  const world = new FaultWorld({ clock });
  const q = await world.start();
  await drive(clock, q.topic("t"));
  clock.skewMs = -DAY_MS;
  assert.equal((await drive(clock, q.produce("t", batch(["a"])))).error, "INVALID_TIMESTAMP");
  clock.skewMs = 0;
  assert.equal((await drive(clock, q.produce("t", batch(["b"])))).error, "NONE");
  assert.deepEqual(await world.values("t"), ["b"]);
});

test("group members keep their sessions when the wall clock jumps", async () => {
  const clock = skewedClock();
  const world = new FaultWorld({ clock });
  const q = await world.start();
  await drive(clock, q.topic("t"));
  const member = new GroupMember(q, { sessionTimeoutMs: 10_000 });
  assert.equal((await drive(clock, member.enter())).error, "NONE");
  assert.equal((await drive(clock, member.sync({ [member.id]: "all" }))).error, "NONE");
  for (const skewMs of [DAY_MS, -DAY_MS, 0]) {
    clock.skewMs = skewMs;
    await clock.advance(8_000);
    assert.equal(await drive(clock, member.beat()), "NONE");
  }
  await clock.advance(11_000);
  assert.equal(await drive(clock, member.beat()), "UNKNOWN_MEMBER_ID", "real time counts");
});

for (
  const [name, jumpsMs, storeJumpsMs] of [
    ["the wall clock jumps a day ahead and back", [DAY_MS, 0], [0, 0]],
    ["the wall clock jumps a day back and ahead", [-DAY_MS, DAY_MS], [0, 0]],
    ["the store's clock is a day ahead, then a day behind", [0, 0], [DAY_MS, -DAY_MS]],
  ] as const
) {
  test(name, async () => {
    const clock = skewedClock();
    const storeClock = { skewMs: 0 };
    const bucket = bucketWithClock(clock, storeClock);
    // Kafka refuses records that seem to come from the future; this is about all else.
    const kafka = { "log.message.timestamp.after.max.ms": String(2 * DAY_MS) };
    const world = new FaultWorld({ clock, bucket, kafka });
    const q = await world.start();
    await drive(clock, q.topic("t"));
    const clients = [
      await IdempotentProducer.connect(world, "t"),
      new HttpProducer(world, "t"),
      new Committer(world, "t"),
    ].map((client) => client.start());
    for (const [i, jumpMs] of jumpsMs.entries()) {
      await clock.advance(10_000);
      clock.skewMs = jumpMs;
      storeClock.skewMs = storeJumpsMs[i]!;
      await clock.advance(100_000);
      assert.equal(await world.ready(), "");
    }
    for (const client of clients) {
      await client.stop();
      assert.equal(client.failure, null);
      assert.deepEqual([...client.refused], [], "nobody is refused because of a clock");
      assert.ok(client.acknowledged.length > 500);
    }
    const [producer, http, committer] = clients;
    for (const clean of [false, true]) {
      const found = await world.values("t");
      assertOnce(found, producer!.acknowledged);
      assertOnce(found, http!.acknowledged);
      assert.equal(await committedOffset(world, "t"), Number(committer!.acknowledged.at(-1)));
      if (clean) await drive(clock, world.q.node.close());
      else world.kill();
      clock.skewMs = -clock.skewMs;
      await world.start();
    }
    assertOnce(await world.values("t"), producer!.acknowledged);
  });
}
