/**
 * Faults 9 to 14 of the thirty: recoverers that die, race or meet the node that they recover. The dead are whole
 * nodes with records in their WAL; afterwards a node starts and is asked for all of them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCollector } from "../../src/controller/collector.ts";
import { walKey as walRow } from "../../src/controller/image.ts";
import { type NodeEpoch, nodeId } from "../../src/lib/brand.ts";
import { isFault } from "../../src/lib/errors.ts";
import { logPrefix, parseWalKey, walEpochPrefix } from "../../src/object/object_key.ts";
import { readWalHeader } from "../../src/storage/wal/wal_object.ts";
import { batch } from "../quirks/quirks.ts";
import { faultyStore } from "../support/faulty_store.ts";
import { check } from "../support/stored_world.ts";
import { testEnv } from "../support/test_env.ts";
import { failureOf, type Recoverer, recovererOf, VICTIM } from "./second_node.ts";
import { drive, FaultWorld } from "./world.ts";

const VALUES = ["a", "b", "c"];

async function withRecords(kafka: Readonly<Record<string, string>> = {}): Promise<FaultWorld> {
  const world = new FaultWorld({ kafka });
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  for (const value of VALUES) {
    assert.equal((await drive(world.clock, q.produce("t", batch([value])))).error, "NONE");
  }
  return world;
}

async function killed(): Promise<FaultWorld> {
  const world = await withRecords();
  world.kill();
  return world;
}

interface Seal {
  readonly slot: number;
  /** Position of the recovery entry whose recoverer put it. */
  readonly by: number;
}

async function sealOf(world: FaultWorld, epoch: NodeEpoch): Promise<Seal | null> {
  const { clusterId } = world.q.node.node;
  for await (const { key } of world.bucket.list(walEpochPrefix(clusterId, VICTIM, epoch))) {
    const header = readWalHeader((await world.bucket.get(key))!.bytes);
    if (header.bodyLength > 0) continue;
    return { slot: parseWalKey(clusterId, key)!.slot, by: header.sticky };
  }
  return null;
}

async function begun(world: FaultWorld, one: Recoverer, epoch: NodeEpoch): Promise<number> {
  const began = await drive(world.clock, one.recovery.beginRecovery(VICTIM, epoch));
  assert.ok(began.ok);
  return began.wal.recovery;
}

/** The node starts and has everything, once; the store is as it should be. */
async function allThere(world: FaultWorld, values: readonly string[] = VALUES): Promise<void> {
  await world.start();
  assert.deepEqual(await world.values("t"), values);
  await drive(world.clock, world.q.node.close());
  const { summary, text } = await check(world.bucket);
  assert.equal(summary.verdict, "clean", text);
}

test("fault 09: a recoverer dies after BeginRecovery: the next has a higher position and the same sealed end", async () => {
  const world = await killed();
  const first = await drive(world.clock, recovererOf(world));
  const epoch = await drive(world.clock, first.victimEpoch());
  const low = await begun(world, first, epoch);
  await drive(world.clock, first.close());
  const second = await drive(world.clock, recovererOf(world, { id: 3 }));
  const recovered = await drive(world.clock, second.recover(epoch));
  const seal = (await sealOf(world, epoch))!;
  assert.ok(seal.by > low, "a recovery of its own");
  assert.deepEqual([recovered.wals, recovered.slots], [1, seal.slot]);
  await drive(world.clock, second.close());
  await allThere(world);
});

test("fault 10: a recoverer dies after it sealed: the next adopts the seal, at the same slot", async () => {
  const world = await killed();
  // Nothing but the seal gets through: objects and the last entry do not.
  const line = faultyStore(world.bucket, world.clock);
  const first = await drive(world.clock, recovererOf(world, { store: line }));
  const epoch = await drive(world.clock, first.victimEpoch());
  const isSlot = (key: string) => key.includes("/wal/");
  let isSealed = false;
  line.setPlan(({ op, key }) => {
    if (isSealed) return { kind: "fail" };
    isSealed = op === "put" && isSlot(key);
    return undefined;
  });
  await assert.rejects(drive(world.clock, first.recover(epoch)), (error) => isFault(error));
  const seal = (await sealOf(world, epoch))!;
  const second = await drive(world.clock, recovererOf(world, { id: 3 }));
  await drive(world.clock, second.recover(epoch));
  assert.deepEqual(
    await sealOf(world, epoch),
    seal,
    "of the dead recoverer, with its lower position",
  );
  const image = await drive(world.clock, second.metadata.fresh());
  const { state } = image.wals.get(walRow(VICTIM, epoch))!;
  assert.deepEqual(state, { kind: "sealed", slot: seal.slot });
  await allThere(world);
});

for (const first of ["the higher", "the lower"] as const) {
  test(`fault 11: two recoverers race, ${first} one seals first: one seal, and only the later one finishes`, async () => {
    const world = await killed();
    const line = faultyStore(world.bucket, world.clock);
    const low = await drive(world.clock, recovererOf(world, { store: line }));
    const high = await drive(world.clock, recovererOf(world, { id: 3 }));
    const epoch = await drive(world.clock, low.victimEpoch());
    // The lower one stands still before its seal, or behind it, until the other has finished.
    let isSealed = false;
    line.setPlan(({ op, key }) => {
      const isSeal = op === "put" && key.includes("/wal/");
      const stops = first === "the higher" ? isSeal : isSealed;
      isSealed ||= isSeal;
      return stops ? { kind: "delay", delayMs: 8_000 } : undefined;
    });
    const racing = low.recover(epoch).then(() => null, (error: unknown) => error);
    await world.clock.advance(5_000);
    line.setPlan();
    await drive(world.clock, high.recover(epoch));
    const rows = async () => {
      const { objects } = await drive(world.clock, high.metadata.fresh());
      return [...objects.values()].map(({ objectId, state }) => `${objectId} ${state}`);
    };
    const finished = await rows();
    // At the seal it is told; at the commit the work is done already, and it adds nothing.
    const fault = await drive(world.clock, racing);
    assert.ok(fault === null ? first === "the lower" : isFault(fault, "fenced"), String(fault));
    assert.deepEqual(await rows(), finished, "only one of them uploaded");
    const image = await drive(world.clock, high.metadata.fresh());
    const { state } = image.wals.get(walRow(VICTIM, epoch))!;
    const seal = (await sealOf(world, epoch))!;
    assert.deepEqual(state, { kind: "sealed", slot: seal.slot });
    await allThere(world);
  });
}

test("fault 12: a recoverer dies after its objects are uploaded: the next uploads again, the first ones are swept", async () => {
  const world = await killed();
  const line = faultyStore(world.bucket, world.clock);
  const first = await drive(world.clock, recovererOf(world, { store: line }));
  const epoch = await drive(world.clock, first.victimEpoch());
  const { clusterId } = world.q.node.node;
  let uploaded = "";
  line.setPlan(({ op, key }) => {
    if (uploaded !== "") return { kind: "fail" };
    if (op === "put" && !key.includes("/wal/") && !key.startsWith("meta/")) uploaded = key;
    return undefined;
  });
  await assert.rejects(drive(world.clock, first.recover(epoch)), (error) => isFault(error));
  assert.ok(await world.bucket.head(uploaded), "the object is there, and no row names it");

  const second = await drive(world.clock, recovererOf(world, { id: 3 }));
  const { objects } = await drive(world.clock, second.recover(epoch));
  assert.ok(objects > 0, "uploaded again");
  // The dead recoverer's node comes back, recovers itself and collects what its last life left.
  const back = await drive(world.clock, recovererOf(world, { seed: 900 }));
  const own = (await drive(world.clock, back.metadata.fresh())).wals;
  for (const { nodeId: node, epoch: dead, state } of own.values()) {
    if (node !== nodeId(2) || state.kind === "sealed" || dead === back.requester.epoch) continue;
    const began = await drive(world.clock, back.recovery.beginRecovery(node, dead));
    assert.ok(began.ok);
    const commit = {
      wal: began.wal,
      streamSetObject: null,
      streamObjects: [],
      ends: [],
      sealedSlot: 0,
    };
    assert.ok((await drive(world.clock, back.recovery.finishRecovery(commit))).ok);
  }
  const collector = createCollector({
    store: world.bucket,
    env: testEnv({ clock: world.clock }),
    clusterId,
    metadata: back.metadata,
    requester: () => back.requester,
    intervalMs: null,
  });
  await world.clock.advance(16 * 60_000);
  const { sweptEpochs } = await drive(world.clock, collector.collect());
  assert.equal(sweptEpochs, 1);
  assert.equal(await world.bucket.head(uploaded), null, "swept with the recoverer's epoch");
  await allThere(world);
});

for (const first of ["the commit", "BeginRecovery"] as const) {
  test(`fault 13: an upload of the old node beside a BeginRecovery, ${first} comes first: one order, nothing lost`, async () => {
    const world = await withRecords({ "skerry.upload.interval.ms": "60000" });
    const failed = failureOf(world);
    const { clusterId } = world.q.node.node;
    const recoverer = await drive(world.clock, recovererOf(world));
    const epoch = await drive(world.clock, recoverer.victimEpoch());
    const trimOf = async () =>
      (await drive(world.clock, recoverer.metadata.fresh())).wals.get(walRow(VICTIM, epoch))!
        .walTrim;
    let entries = 0;
    world.store.setPlan(({ op, key }) => {
      const isEntry = op === "put" && key.startsWith(logPrefix(clusterId));
      if (isEntry) entries += 1;
      // Ids are reserved already: the next entry is the commit.
      return isEntry && first === "BeginRecovery" ? { kind: "delay", delayMs: 5_000 } : undefined;
    });
    for (let i = 0; entries === 0 && i < 700; i++) await world.clock.advance(100);
    assert.ok(entries > 0, "it uploads");
    if (first === "the commit") await world.clock.advance(1_000);
    const began = await drive(world.clock, recoverer.recovery.beginRecovery(VICTIM, epoch));
    assert.ok(began.ok);
    world.store.setPlan();
    if (first === "the commit") assert.ok(began.wal.walTrim > 0, "its trim is seen");
    else assert.equal(began.wal.walTrim, 0, "its commit comes too late");
    await world.clock.advance(6_000);
    assert.equal(await trimOf() >= began.wal.walTrim, true);
    await world.clock.advance(20_000);
    assert.equal(failed(), null, failed()?.message);
    assert.deepEqual(await world.values("t"), VALUES);
    await drive(world.clock, world.q.node.close());
    await allThere(world);
  });
}

test("fault 14: the old node deletes trimmed slots while recovery scans: it begins at the trim and misses nothing", async () => {
  const world = await withRecords({ "skerry.upload.interval.ms": "60000" });
  const q = world.q;
  const recoverer = await drive(world.clock, recovererOf(world));
  const epoch = await drive(world.clock, recoverer.victimEpoch());
  const { clusterId } = q.node.node;
  const slots = async () => {
    const found: number[] = [];
    for await (const { key } of world.bucket.list(walEpochPrefix(clusterId, VICTIM, epoch))) {
      found.push(parseWalKey(clusterId, key)!.slot);
    }
    return found.toSorted((a, b) => a - b);
  };
  // The upload is committed, its deletes are on their way for a long time.
  let deletes = 0;
  world.store.setPlan(({ op, key }) => {
    if (op !== "delete" || !key.includes("/wal/")) return undefined;
    deletes += 1;
    return { kind: "delay", delayMs: 1_000 };
  });
  for (let i = 0; deletes === 0 && i < 700; i++) await world.clock.advance(100);
  assert.ok(deletes > 0);
  assert.equal((await drive(world.clock, q.produce("t", batch(["d"])))).error, "NONE");
  assert.equal((await slots())[0], 0, "trimmed and still there");
  const line = faultyStore(
    world.bucket,
    world.clock,
    ({ op }) => op === "get" || op === "list" ? { kind: "delay", delayMs: 300 } : undefined,
  );
  const slow = await drive(world.clock, recovererOf(world, { id: 3, store: line }));
  const recovered = await drive(world.clock, slow.recover(epoch));
  assert.equal(recovered.slots, 1, "one slot from the trim on");
  const reads = line.calls.filter(({ op, key }) => op === "get" && key.includes("/wal/"))
    .map(({ key }) => parseWalKey(clusterId, key)!.slot);
  assert.ok(!reads.includes(0), "what is trimmed is never looked at");
  world.kill();
  await allThere(world, [...VALUES, "d"]);
});
