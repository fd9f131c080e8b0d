/**
 * A transactional producer on a whole node, in which every single store call meets kill -9, before or after its
 * effect. Afterwards each transaction is whole or gone, in every partition and in the group's offsets alike; what
 * was answered holds; nothing stays open.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/env/clock.ts";
import { isRetriable } from "../../src/protocol/error_code.ts";
import type { FaultPlan, StoreFault } from "../support/faulty_store.ts";
import { fetchOffset, stateOf, TxnClient } from "../support/txn_client.ts";
import { committedValues } from "../support/read_committed.ts";
import { drive, FaultWorld } from "./world.ts";

const PARTITIONS = [0, 1];

/** What the client was told; an end without an answer may have gone either way, but one way only. */
interface Told {
  readonly committed: string[];
  readonly aborted: string[];
  /** The transaction whose commit or abort was asked and not answered. */
  asked: { readonly value: string; readonly commit: boolean } | null;
  /** Of the last transaction that committed for sure. */
  offset: number;
}

async function untilDone(world: FaultWorld, ask: () => Promise<string>): Promise<void> {
  for (;;) {
    const error = await ask();
    if (error === "NONE") return;
    assert.ok(isRetriable(error as Parameters<typeof isRetriable>[0]), error);
    await sleep(world.clock, 100);
  }
}

async function transaction(
  world: FaultWorld,
  client: TxnClient,
  told: Told,
  [value, offset, commit]: readonly [string, number, boolean],
): Promise<void> {
  const again = (ask: () => Promise<string>) => untilDone(world, ask);
  if (!client.isV2) await again(() => client.add("t", PARTITIONS));
  for (const partition of PARTITIONS) {
    await again(() => client.produce("t", [value], { partition }));
  }
  if (!client.isV2) await again(() => client.addOffsets("g"));
  await again(() => client.commitOffset("g", "t", offset));
  told.asked = { value, commit };
  await again(() => client.end(commit));
  told.asked = null;
  if (commit) told.offset = offset;
  (commit ? told.committed : told.aborted).push(value);
}

async function scenario(world: FaultWorld, isV2: boolean, plan: FaultPlan, told: Told) {
  await world.begin(plan);
  await world.q.topic("t", PARTITIONS.length);
  const client = new TxnClient(world.q, "tx", { isV2 });
  await untilDone(world, () => client.init());
  await transaction(world, client, told, ["a", 1, true]);
  await transaction(world, client, told, ["b", 2, false]);
  await transaction(world, client, told, ["c", 3, true]);
  // The end's last records: nobody waits for them but the next transaction.
  await untilDone(world, () => client.init({ keep: true }));
}

const STEPS_MAX = 400;

async function run(world: FaultWorld, isV2: boolean, plan: FaultPlan, isDead: () => boolean) {
  const told: Told = { committed: [], aborted: [], asked: null, offset: -1 };
  let ended = false;
  const running = scenario(world, isV2, plan, told).finally(() => void (ended = true));
  running.catch(() => {});
  await world.clock.settle();
  for (let i = 0; !ended && !isDead(); i++) {
    assert.ok(i < STEPS_MAX, "the scenario never ends");
    await world.clock.advance(250);
  }
  if (ended) await running;
  return told;
}

async function check(world: FaultWorld, isV2: boolean, told: Told): Promise<void> {
  await world.start();
  const { topics } = await drive(world.clock, world.q.metadata(["t"]));
  if (topics[0]!.errorCode !== 0) return;
  const client = new TxnClient(world.q, "tx", { isV2 });
  await drive(world.clock, untilDone(world, () => client.init()));
  assert.equal(await drive(world.clock, stateOf(world.q, "tx")), "Empty");
  const seen: string[][] = [];
  for (const partition of PARTITIONS) {
    seen.push(await drive(world.clock, committedValues(world.q, "t", partition)));
    const answer = await drive(
      world.clock,
      world.q.fetch("t", 0, { partition, isolationLevel: 1 }),
    );
    assert.equal(answer.lastStableOffset, answer.highWatermark, "nothing stays open");
  }
  const [first] = seen;
  for (const other of seen) assert.deepEqual(other, first, "whole or gone, in all partitions");
  const mayBe = told.asked?.commit === true ? [...told.committed, told.asked.value] : null;
  const isThere = mayBe !== null && first!.length === mayBe.length;
  assert.deepEqual(first, isThere ? mayBe : told.committed);
  const offset = await drive(world.clock, fetchOffset(world.q, "g", "t"));
  const newest = first!.at(-1);
  assert.equal(offset, newest === undefined ? -1 : newest === "a" ? 1 : 3, "as do the offsets");
  await drive(world.clock, world.q.node.close());
}

for (const isV2 of [false, true]) {
  const rules = isV2 ? "transactions v2" : "the old rules";
  test(`${rules}: kill -9 at every store call leaves each transaction whole or gone`, async () => {
    const world = new FaultWorld();
    let calls = 0;
    const told = await run(world, isV2, () => void (calls += 1), () => false);
    assert.deepEqual([told.committed, told.aborted], [["a", "c"], ["b"]]);
    assert.ok(calls > 20, `only ${calls} calls`);
    await drive(world.clock, world.q.node.close());
    // Before one call is after the one before it: every second is enough to be everywhere once. By the old rules
    // there are more requests and no more steps of the coordinator.
    const step = isV2 ? 2 : 4;
    for (const happens of [false, true]) {
      for (let nth = 1; nth <= calls; nth += step) {
        const crashed = new FaultWorld();
        let seen = 0;
        const isDead = () => seen >= nth;
        const known = await run(crashed, isV2, () => {
          if (isDead()) return { kind: "hang", happens: false };
          seen += 1;
          return isDead() ? { kind: "hang", happens } : undefined;
        }, isDead);
        try {
          await check(crashed, isV2, known);
        } catch (error) {
          const when = `call ${nth} of ${calls}, ${happens ? "after" : "before"} its effect`;
          throw new Error(`${when}: ${String(error)}`, { cause: error });
        }
      }
    }
  });
}

test("a fault at every other store call of a transaction is got over", async () => {
  const world = new FaultWorld();
  let calls = 0;
  await run(world, true, () => void (calls += 1), () => false);
  await drive(world.clock, world.q.node.close());
  const faults: readonly StoreFault[] = [
    { kind: "fail" },
    { kind: "lose-answer" },
    { kind: "late", delayMs: 700 },
  ];
  for (let nth = 1; nth <= calls; nth += 2) {
    const faulty = new FaultWorld();
    const fault = faults[nth % faults.length];
    let seen = 0;
    const told = await run(faulty, true, () => ++seen === nth ? fault : undefined, () => false);
    const when = `${fault?.kind} at call ${nth} of ${calls}`;
    assert.deepEqual([told.committed, told.aborted], [["a", "c"], ["b"]], when);
    await drive(faulty.clock, faulty.q.node.close());
    await check(faulty, true, told);
  }
});
