/**
 * A scenario of a whole node (start, create a topic, produce, commit offsets, upload, stop, start again),
 * in which every single store call meets a crash, before or after its effect, or a fault. Afterwards
 * everything that was acknowledged is there, once.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorName, isRetriable } from "../../src/protocol/error_code.ts";
import { sleep } from "../../src/env/clock.ts";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { batch } from "../quirks/quirks.ts";
import type { FaultPlan, StoreFault } from "../support/faulty_store.ts";
import { assertOnce, committedOffset, drive, FaultWorld } from "./world.ts";

interface Acknowledged {
  topic: boolean;
  readonly values: string[];
  committed: number;
  closed: number;
}

/** A client's loop: again while it is told to. */
async function untilDone(world: FaultWorld, ask: () => Promise<string>): Promise<void> {
  for (;;) {
    const error = await ask();
    if (error === "NONE" || error === "TOPIC_ALREADY_EXISTS") return;
    assert.ok(isRetriable(error as Parameters<typeof isRetriable>[0]), error);
    await sleep(world.clock, 100);
  }
}

async function createTopic(world: FaultWorld): Promise<string> {
  const answer = await world.q.call(createTopicsApi, 7, {
    topics: [{ name: "t", numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
  });
  return errorName(answer.topics[0]!.errorCode);
}

async function producerId(world: FaultWorld): Promise<number> {
  let id = -1;
  await untilDone(world, async () => {
    const answer = await world.q.call(initProducerIdApi, 4, {
      transactionalId: null,
      transactionTimeoutMs: 60_000,
      producerId: -1,
      producerEpoch: -1,
    });
    id = answer.producerId;
    return errorName(answer.errorCode);
  });
  return id;
}

/** Two lives of a node; what it acknowledges is noted as it happens. */
async function scenario(world: FaultWorld, plan: FaultPlan, done: Acknowledged): Promise<void> {
  await world.begin(plan);
  await untilDone(world, () => createTopic(world));
  done.topic = true;
  const id = await producerId(world);
  const produce = async (sequence: number) => {
    const value = `v${sequence}`;
    const records = batch([value], { producer: [id, 0, sequence] });
    await untilDone(world, async () => (await world.q.produce("t", records)).error);
    done.values.push(value);
  };
  await produce(0);
  await produce(1);
  await untilDone(world, () => world.q.commit("faults", "t", 1));
  done.committed = 1;
  await world.q.node.close();
  done.closed = 1;
  await world.begin(plan);
  await produce(2);
  await untilDone(world, () => world.q.commit("faults", "t", 2));
  done.committed = 2;
  await world.q.node.close();
  done.closed = 2;
}

const STEPS_MAX = 400;

/** Runs until the scenario has ended, or the process is dead and nothing moves any more. */
async function run(
  world: FaultWorld,
  plan: FaultPlan,
  isDead: () => boolean,
): Promise<Acknowledged> {
  const done: Acknowledged = { topic: false, values: [], committed: -1, closed: 0 };
  let ended = false;
  const running = scenario(world, plan, done).finally(() => void (ended = true));
  running.catch(() => {});
  await world.clock.settle();
  for (let i = 0; !ended && !isDead(); i++) {
    assert.ok(i < STEPS_MAX, "the scenario never ends");
    await world.clock.advance(250);
  }
  if (ended) await running;
  return done;
}

async function check(world: FaultWorld, done: Acknowledged, when: string): Promise<void> {
  await world.start();
  assert.equal(world.q.node.node.clusterId.length > 0, true);
  if (done.topic) {
    const found = await world.values("t");
    try {
      assertOnce(found, done.values);
      assert.ok(found.length <= done.values.length + 1, `too much: ${found.join()}`);
    } catch (error) {
      throw new Error(`${when}: ${String(error)}`, { cause: error });
    }
    const committed = await committedOffset(world, "t");
    assert.ok(committed >= done.committed, `${when}: commit ${done.committed} is ${committed}`);
  }
  await drive(world.clock, world.q.node.close());
}

async function countCalls(): Promise<readonly string[]> {
  const world = new FaultWorld();
  const calls: string[] = [];
  const done = await run(world, ({ op, key }) => void calls.push(`${op} ${key}`), () => false);
  assert.deepEqual(done, { topic: true, values: ["v0", "v1", "v2"], committed: 2, closed: 2 });
  return calls;
}

test("a crash at every store call loses nothing that was acknowledged", async () => {
  const calls = await countCalls();
  assert.ok(calls.length > 20, `only ${calls.length} calls`);
  for (const happens of [false, true]) {
    for (let nth = 1; nth <= calls.length; nth++) {
      const world = new FaultWorld();
      let seen = 0;
      const isDead = () => seen >= nth;
      const done = await run(world, () => {
        if (isDead()) return { kind: "hang", happens: false };
        seen += 1;
        return isDead() ? { kind: "hang", happens } : undefined;
      }, isDead);
      // What it had under way with the store comes to its end.
      await world.clock.settle();
      await check(
        world,
        done,
        `crash ${happens ? "after" : "before"} call ${nth} (${calls[nth - 1]})`,
      );
    }
  }
});

for (const kind of ["fail", "lose-answer", "late"] as const) {
  test(`a fault at every store call is got over: ${kind}`, async () => {
    const calls = await countCalls();
    const fault: StoreFault = kind === "late" ? { kind, delayMs: 700 } : { kind };
    for (let nth = 1; nth <= calls.length; nth++) {
      const world = new FaultWorld();
      let seen = 0;
      const when = `${kind} at call ${nth} (${calls[nth - 1]})`;
      const done = await run(world, () => ++seen === nth ? fault : undefined, () => false).catch(
        (error: unknown) => {
          throw new Error(`${when}: ${String(error)}`, { cause: error });
        },
      );
      assert.deepEqual(done, { topic: true, values: ["v0", "v1", "v2"], committed: 2, closed: 2 });
      await check(world, done, when);
    }
  });
}
