/**
 * Faults 6, 7, 8, 19 and 30 of the thirty: nodes that go on although another one has taken over, because they
 * were doubled, stopped, suspended for days, or cut off from the store or from its log.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeEpoch, position } from "../../src/lib/brand.ts";
import { partitionKey, walKey as walRow } from "../../src/controller/image.ts";
import { logKey, parseWalKey } from "../../src/object/object_key.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { batch, Quirks } from "../quirks/quirks.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { failureOf, recovererOf, successorOf, VICTIM } from "./second_node.ts";
import { assertOnce, drive, FaultWorld, IdempotentProducer } from "./world.ts";

const DAY_MS = 86_400_000;

async function started(world: FaultWorld): Promise<Quirks> {
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  assert.equal((await drive(world.clock, q.produce("t", batch(["before"])))).error, "NONE");
  return q;
}

for (const step of ["WAL create", "log append"] as const) {
  test(`fault 06: two processes with one node id: the earlier one's next ${step} is refused, and it ends`, async () => {
    const world = new FaultWorld();
    const q = await started(world);
    const failed = failureOf(world);
    const second = successorOf(world);
    await second.start();
    if (step === "WAL create") {
      const answer = await drive(world.clock, q.produce("t", batch(["stale"])));
      assert.equal(answer.error, "NOT_LEADER_OR_FOLLOWER");
    } else {
      // What it asks for in its own name; a topic anybody may create.
      const log = await drive(world.clock, recovererOf(second));
      const by = { nodeId: VICTIM, epoch: nodeEpoch(1) };
      for (
        const command of [{ type: "reserve-ids", by, count: 1 }, {
          type: "assign-leaders",
          by,
        }] as const
      ) {
        const decided = await drive(world.clock, log.metadata.submit(command));
        assert.deepEqual([decided.ok, !decided.ok && decided.reason], [false, "fenced"]);
      }
    }
    await world.clock.advance(12_000);
    assert.equal(failed()?.code, "fenced");
    assert.deepEqual(await second.values("t"), ["before"]);
    const next = await drive(world.clock, second.q.produce("t", batch(["after"])));
    assert.deepEqual([next.error, next.baseOffset], ["NONE", 1]);
  });
}

test("fault 07: paused 60 s, recovered meanwhile, resumes: retriable errors, registers anew, nothing lost or twice", async () => {
  // The store and the recoverer live by a clock of their own: the victim's stands still while it is stopped.
  const others = createFakeClock();
  const bucket = createMemoryStore(others);
  const world = new FaultWorld({ bucket });
  const q = await started(world);
  const failed = failureOf(world);
  const producer = (await IdempotentProducer.connect(world, "t")).start(50);
  await world.clock.advance(1_000);
  const recoverer = await drive(others, recovererOf(world, { clock: others }));
  const epoch = await drive(others, recoverer.victimEpoch());
  // Sent before it stops, so that it waits in the process; the answer of the store would come afterwards.
  world.store.setPlan(({ op, key }) =>
    op === "put" && key.includes("/wal/") ? { kind: "delay", delayMs: 1 } : undefined
  );
  const waiting = new Quirks(q.node).produce("t", batch(["waiting"]));
  await world.clock.settle();
  const before = producer.acknowledged.length;

  await drive(others, recoverer.recover());
  await others.advance(60_000);
  assert.equal(producer.acknowledged.length, before, "it stands still");

  world.store.setPlan();
  assert.equal((await drive(world.clock, waiting)).error, "NOT_LEADER_OR_FOLLOWER");
  await world.clock.advance(5_000);
  assert.equal(failed(), null, failed()?.message);
  assert.equal(await world.ready(), "");
  assert.ok(await drive(others, recoverer.victimEpoch()) > epoch, "registered again");
  await producer.stop();
  assert.equal(producer.failure, null);
  assert.ok(producer.acknowledged.length > before + 3);
  const found = await world.values("t");
  assertOnce(found, producer.acknowledged);
  assert.equal(found.filter((value) => value === "waiting").length, 0, "never acknowledged");
  assert.equal(found[0], "before");
});

test("fault 08: suspended 8 days, its seal and the old log are deleted, wakes with a PUT under way: superseded", async () => {
  const others = createFakeClock();
  const stored = { skewMs: 0 };
  const bucket = createMemoryStore({
    ...others,
    nowMs: () => others.nowMs() + stored.skewMs,
  });
  const kafka = { "skerry.metadata.snapshot.entries": "10" };
  const world = new FaultWorld({ bucket, kafka });
  const q = await started(world);
  const failed = failureOf(world);
  const { clusterId } = q.node.node;
  const slotsOf = async (epoch: number) => {
    const found: string[] = [];
    for await (const { key } of bucket.list("")) {
      if (parseWalKey(clusterId, key)?.nodeEpoch === epoch) found.push(key);
    }
    return found;
  };
  const firstEpoch = 1;
  assert.ok((await slotsOf(firstEpoch)).length > 0);
  // Under way for as long as the machine sleeps.
  world.store.setPlan(({ op, key }) =>
    op === "put" && key.includes("/wal/") ? { kind: "delay", delayMs: 10 } : undefined
  );
  const errors: string[] = [];
  const waiting = new Quirks(q.node).produce("t", batch(["late"]), { timeoutMs: 120_000 })
    .then(({ error }) => void errors.push(error), () => void errors.push("no answer"));
  await world.clock.settle();

  // Its successors work, and days pass in the store: the victim's clocks stand still.
  let current = new FaultWorld({ clock: others, bucket, kafka, seed: 50 });
  for (let day = 0; day <= 8; day += 4) {
    current = new FaultWorld({ clock: others, bucket, kafka, seed: 50 + day });
    await current.start();
    for (let i = 0; i < 12; i++) await drive(others, current.q.topic(`filler-${day}-${i}`));
    await others.advance(150_000);
    if (day === 8) break;
    await drive(others, current.q.node.close());
    stored.skewMs += 4 * DAY_MS;
  }
  assert.deepEqual(await slotsOf(firstEpoch), [], "the seal is deleted");
  assert.equal(await bucket.head(logKey(clusterId, position(1))), null, "so is the old log");

  await world.clock.advance(60_000);
  await drive(world.clock, waiting);
  assert.deepEqual(errors, ["NOT_LEADER_OR_FOLLOWER"], "asked before it acknowledged");
  assert.equal(failed()?.code, "fenced");
  assert.deepEqual(await current.values("t"), ["before"]);
});

test("fault 19: the store is unreachable from one node only: it is recovered, and acknowledges nothing", async () => {
  const world = new FaultWorld();
  const q = await started(world);
  const failed = failureOf(world);
  const producer = (await IdempotentProducer.connect(world, "t")).start(50);
  await world.clock.advance(2_000);
  const recoverer = await drive(world.clock, recovererOf(world));
  world.store.setPlan(() => ({ kind: "fail" }));
  await world.clock.advance(10_000);
  const before = producer.acknowledged.length;
  await drive(world.clock, recoverer.recover());
  const { requester: by, metadata } = recoverer;
  const assigned = await drive(world.clock, metadata.submit({ type: "assign-leaders", by }));
  assert.ok(assigned.ok);
  const image = await drive(world.clock, metadata.fresh());
  const topicId = [...image.topics.values()].find(({ name }) => name === "t")!.topicId;
  assert.equal(image.partitions.get(partitionKey(topicId, 0))?.leader, by.nodeId, "it moved");
  await world.clock.advance(20_000);
  assert.equal(producer.acknowledged.length, before, "who is cut off acknowledges nothing");
  assert.notEqual(await world.ready(), "");
  assert.equal(failed(), null);
  assert.ok(producer.refused.size > 0);
  assert.equal(producer.failure, null);
  assert.equal(q.client.isClosed, false);
});

test("fault 30: cut off from the log but not from producers: recovered after 10 s, acknowledged up to the seal", async () => {
  const world = new FaultWorld();
  await started(world);
  const producer = (await IdempotentProducer.connect(world, "t")).start(50);
  await world.clock.advance(2_000);
  const recoverer = await drive(world.clock, recovererOf(world));
  const epoch = await drive(world.clock, recoverer.victimEpoch());
  world.store.setPlan(({ key }) => key.startsWith("meta/") ? { kind: "fail" } : undefined);
  const atCut = producer.acknowledged.length;
  await world.clock.advance(10_000);
  const atSeal = producer.acknowledged.length;
  assert.ok(atSeal > atCut + 20, "it goes on with what it owns");

  await drive(world.clock, recoverer.recover());
  const sealed = producer.acknowledged.length;
  await world.clock.advance(10_000);
  assert.ok(producer.acknowledged.length <= sealed + 1, "after the seal nothing is acknowledged");
  const acknowledged = [...producer.acknowledged];
  const image = await drive(world.clock, recoverer.metadata.fresh());
  const state = image.wals.get(walRow(VICTIM, nodeEpoch(epoch)))?.state.kind;
  assert.equal(state, "sealed");

  const second = successorOf(world);
  await second.start();
  const found = await second.values("t");
  assertOnce(found, acknowledged);
  assert.equal(found.length, new Set(found).size);
});
