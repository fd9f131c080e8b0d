/**
 * Faults 1 to 5 of the thirty, at a whole node: WAL objects whose answers are lost, which come late, twice or
 * never. What the WAL alone does is in `tests/contract/wal_faults.test.ts`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ProduceOptions } from "../quirks/quirks.ts";
import { batch, Quirks } from "../quirks/quirks.ts";
import type { FaultPlan, StoreFault } from "../support/faulty_store.ts";
import { failureOf, successorOf } from "./second_node.ts";
import { drive, FaultWorld } from "./world.ts";

const PRODUCER = 4_711;

/** A record with the sequence that stays the same when it is sent again. */
function numbered(value: string, sequence: number): Uint8Array {
  return batch([value], { producer: [PRODUCER, 0, sequence] });
}

async function started(kafka: Readonly<Record<string, string>> = {}): Promise<FaultWorld> {
  const world = new FaultWorld({ kafka });
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  // Opens the partition, which writes records of its own.
  assert.equal((await drive(world.clock, q.produce("t", batch(["first"])))).error, "NONE");
  return world;
}

async function send(world: FaultWorld, value: string, sequence: number, over?: ProduceOptions) {
  const { error, baseOffset } = await drive(
    world.clock,
    world.q.produce("t", numbered(value, sequence), over),
  );
  return [error, baseOffset];
}

/** Meets the n-th PUT of a WAL slot, counted from now; 0: all of them. */
function onSlot(nth: number, fault: StoreFault): FaultPlan {
  let seen = 0;
  return ({ op, key }) => {
    if (op !== "put" || !key.includes("/wal/")) return undefined;
    return ++seen === nth || nth === 0 ? fault : undefined;
  };
}

function slotPuts(world: FaultWorld): string[] {
  return world.store.calls.filter(({ op, key }) => op === "put" && key.includes("/wal/"))
    .map(({ key }) => key);
}

async function slots(world: FaultWorld): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of world.bucket.list("")) if (key.includes("/wal/")) found.push(key);
  return found;
}

test("fault 01: a WAL PUT succeeds and its answer is lost: the retry finds its own bytes, one acknowledgement", async () => {
  const world = await started();
  const before = slotPuts(world).length;
  world.store.setPlan(onSlot(1, { kind: "lose-answer" }));
  assert.deepEqual(await send(world, "a", 0), ["NONE", 1]);
  const [first, again, ...more] = slotPuts(world).slice(before);
  assert.deepEqual([again, more], [first, []], "the same slot, once more");
  assert.deepEqual(await send(world, "b", 1), ["NONE", 2]);
  world.kill();
  await world.start();
  assert.deepEqual(await world.values("t"), ["first", "a", "b"]);
});

test("fault 02: a WAL PUT is delayed by 30 s, its retry succeeds first: what lands later has no effect", async () => {
  const world = await started();
  world.store.setPlan(onSlot(1, { kind: "late", delayMs: 30_000 }));
  const startedMs = world.clock.monotonicMs();
  assert.deepEqual(await send(world, "a", 0), ["NONE", 1]);
  assert.ok(world.clock.monotonicMs() - startedMs < 30_000, "the retry was first");
  const slot = slotPuts(world).at(-1)!;
  const stored = await world.bucket.get(slot);
  await world.clock.advance(40_000);
  assert.deepEqual(
    await world.bucket.get(slot).then((got) => got?.lastModifiedMs),
    stored?.lastModifiedMs,
  );
  assert.deepEqual(await send(world, "b", 1), ["NONE", 2]);
  world.kill();
  await world.start();
  assert.deepEqual(await world.values("t"), ["first", "a", "b"]);
});

/** A record whose PUT leaves, without an answer, and lands `delayMs` later, when the process is dead. */
async function diedBeforeItLanded(delayMs: number): Promise<FaultWorld> {
  const world = await started();
  let isFirst = true;
  world.store.setPlan(({ op, key }) => {
    if (op !== "put" || !key.includes("/wal/")) return undefined;
    const fault: StoreFault = isFirst
      ? { kind: "late", delayMs }
      : { kind: "hang", happens: false };
    isFirst = false;
    return fault;
  });
  const { error } = await drive(
    world.clock,
    world.q.produce("t", numbered("a", 0), { timeoutMs: 1_000 }),
  );
  assert.equal(error, "REQUEST_TIMED_OUT", "never acknowledged");
  world.kill();
  return world;
}

test("fault 03: the PUT of a dead node lands before the seal: recovered, and the producer's retry is no duplicate", async () => {
  const world = await diedBeforeItLanded(5_000);
  await world.clock.advance(6_000);
  await world.start();
  assert.deepEqual(
    await world.values("t"),
    ["first", "a"],
    "recovered although never acknowledged",
  );
  assert.deepEqual(await send(world, "a", 0), ["NONE", 1]);
  assert.deepEqual(await send(world, "b", 1), ["NONE", 2]);
  assert.deepEqual(await world.values("t"), ["first", "a", "b"]);
});

test("fault 04: it lands after the seal: refused by the store, not visible, and the producer's retry is in once", async () => {
  const world = await diedBeforeItLanded(60_000);
  await world.start();
  assert.deepEqual(await world.values("t"), ["first"]);
  await world.clock.advance(70_000);
  assert.deepEqual(await world.values("t"), ["first"], "the seal is in its slot");
  assert.deepEqual(await send(world, "a", 0), ["NONE", 1]);
  world.kill();
  await world.start();
  assert.deepEqual(await world.values("t"), ["first", "a"]);
});

test("fault 05: of three slots in flight the later two are stored, the first is not: none counts, all is garbage", async () => {
  // Without a budget of PUTs a third bulk waits for one of two to end.
  const world = await started({ "skerry.wal.puts.per.hour": "1000000" });
  const failed = failureOf(world);
  const puts = new Set<string>();
  world.store.setPlan(({ op, key }) => {
    if (op !== "put" || !key.includes("/wal/")) return undefined;
    puts.add(key);
    return key === [...puts][0] ? { kind: "hang", happens: false } : undefined;
  });
  const errors: string[] = [];
  for (let sequence = 0; sequence < 3; sequence++) {
    const q = new Quirks(world.q.node);
    void q.produce("t", numbered(`lost ${sequence}`, sequence), { timeoutMs: 120_000 })
      .then(
        ({ error }) => void errors.push(error),
        (error: unknown) => void errors.push(String(error)),
      );
    await world.clock.advance(100);
  }
  await world.clock.advance(5_000);
  const [first, ...later] = puts;
  assert.equal(later.length, 2, "three slots in flight");
  for (const key of later) assert.ok(await world.bucket.head(key), "stored");
  assert.equal(await world.bucket.head(first!), null);
  assert.equal(errors.length, 0, "none is acknowledged");

  const second = successorOf(world);
  await second.start();
  await world.clock.advance(15_000);
  assert.equal(failed()?.code, "fenced");
  await drive(world.clock, world.q.node.close().catch(() => {}));
  assert.equal(errors.length, 3);
  assert.ok(!errors.includes("NONE"), errors.join(" "));
  assert.deepEqual(await second.values("t"), ["first"]);
  const left = (await slots(world)).filter((key) =>
    key.startsWith(first!.slice(0, first!.lastIndexOf("/")))
  );
  assert.deepEqual(
    left,
    [first],
    "the seal in the first empty slot; what lay behind it is deleted",
  );
  assert.deepEqual(await send(second, "lost 0", 0), ["NONE", 1]);
});
