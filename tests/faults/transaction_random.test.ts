/**
 * Random transactional clients on a whole node that is killed now and then, against a model: each transaction is
 * whole or gone in every partition, what was answered holds, epochs never go back, and nothing stays open.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { seededRandom } from "../../src/env/random.ts";
import { committedValues } from "../support/read_committed.ts";
import { fetchOffset, stateOf, TxnClient } from "../support/txn_client.ts";
import { type History, PARTITIONS, runClient, TOPIC } from "./random_transactions.ts";
import { drive, FaultWorld } from "./world.ts";

const IDS = ["one", "two"];
const STEPS_MAX = 2_000;

/** Lives of the node: each ends with kill -9 after so many store calls, the last one when its clients are done. */
async function live(
  world: FaultWorld,
  seed: number,
  callsMax: number,
  history: History,
): Promise<void> {
  let calls = 0;
  let isDead = false;
  await world.start(() => {
    if (isDead) return { kind: "hang", happens: false };
    calls += 1;
    isDead = calls > callsMax;
    return isDead ? { kind: "hang", happens: calls % 2 === 0 } : undefined;
  }).catch((error: unknown) => {
    if (!isDead) throw error;
  });
  if (isDead) return;
  let running = 0;
  let failure: unknown = null;
  for (let at = 0; at < 3; at++) {
    running += 1;
    // Two of them share an id: the younger one fences the other.
    const plan = { transactionalId: IDS[at % 2]!, isV2: (seed + at) % 2 === 0, transactions: 4 };
    runClient(world, seededRandom(seed * 10 + at), plan, history).then(
      () => void (running -= 1),
      (error: unknown) => void (failure ??= error),
    );
  }
  for (let step = 0; running > 0 && !isDead; step++) {
    if (failure !== null) throw failure;
    assert.ok(step < STEPS_MAX, "the clients never end");
    await world.clock.advance(50);
  }
  world.kill();
}

function checkEpochs({ epochs }: History): void {
  const last = new Map<number, number>();
  const owner = new Map<number, string>();
  for (const { transactionalId, id, epoch } of epochs) {
    assert.equal(owner.get(id) ?? transactionalId, transactionalId, "an id has one owner");
    assert.ok(epoch > (last.get(id) ?? -1), `epoch ${epoch} of ${id} after ${last.get(id)}`);
    owner.set(id, transactionalId);
    last.set(id, epoch);
  }
}

async function check(world: FaultWorld, history: History): Promise<void> {
  await world.start();
  const { q, clock } = world;
  for (const transactionalId of IDS) {
    const client = new TxnClient(q, transactionalId);
    for (let error = ""; error !== "NONE";) {
      error = await drive(clock, client.init());
      assert.ok(error === "NONE" || error === "CONCURRENT_TRANSACTIONS", error);
      await clock.advance(50);
    }
    assert.equal(await drive(clock, stateOf(q, transactionalId)), "Empty");
  }
  const seen: string[][] = [];
  for (let partition = 0; partition < PARTITIONS; partition++) {
    seen.push(await drive(clock, committedValues(q, TOPIC, partition)));
    const at = await drive(clock, q.fetch(TOPIC, 0, { partition, isolationLevel: 1 }));
    assert.equal(at.lastStableOffset, at.highWatermark, "nothing stays open");
  }
  const visible = new Set(seen.flat());
  assert.equal(seen.flat().length, seen.reduce((sum, one) => sum + new Set(one).size, 0), "once");
  for (const { value, partitions, outcome } of history.transactions) {
    if (outcome === "committed" && partitions.length > 0) assert.ok(visible.has(value), value);
    if (outcome === "aborted" || outcome === "open") assert.ok(!visible.has(value), value);
    const places = seen.flatMap((one, partition) => one.includes(value) ? [partition] : []);
    if (visible.has(value)) assert.deepEqual(places, [...partitions], `${value} is whole`);
  }
  await checkOffsets(world, history, visible);
  checkEpochs(history);
}

/** A group's offset is one that a transaction committed for it. */
async function checkOffsets(
  { q, clock }: FaultWorld,
  { transactions }: History,
  visible: ReadonlySet<string>,
): Promise<void> {
  for (const group of ["group-0", "group-1"]) {
    const offset = await drive(clock, fetchOffset(q, group, TOPIC));
    const committed = transactions.filter((one) => one.group === group && one.offset !== null)
      .filter((one) => one.outcome === "committed" || one.outcome === "unknown");
    if (offset === -1) {
      assert.deepEqual(committed.filter((one) => one.outcome === "committed"), []);
      continue;
    }
    const found = committed.find((one) => one.offset === offset);
    assert.ok(found !== undefined, `offset ${offset} of ${group} was never committed`);
    assert.equal(found.partitions.length === 0 || visible.has(found.value), true);
  }
}

async function run(seed: number, lives: readonly number[]): Promise<void> {
  const world = new FaultWorld();
  await world.start();
  await drive(world.clock, world.q.topic(TOPIC, PARTITIONS));
  await drive(world.clock, world.q.node.close());
  const history: History = { transactions: [], epochs: [], next: 0 };
  for (const [at, calls] of lives.entries()) {
    await live(world, seed * 10 + at, calls, history);
    await world.clock.settle();
  }
  await check(world, history);
  await drive(world.clock, world.q.node.close());
}

test("random clients and crashes: every transaction is whole or gone", async () => {
  const lives = fc.array(fc.integer({ min: 10, max: 300 }), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 1e6 }), lives, run),
    { numRuns: 3 },
  );
});
