/**
 * Groups over HTTP while the node dies at any write to its store, restarts, is replaced by another one, or is
 * left alone: nothing that was acknowledged comes again, all else does, and empty polls cost nothing.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { sleep } from "../../src/env/clock.ts";
import { ROLL_CALL_MS } from "../../src/lib/limits.ts";
import { batch } from "../quirks/quirks.ts";
import type { FaultPlan, StoreCall } from "../support/faulty_store.ts";
import { type Acked, HttpGroup, offsetsOf, type Polled } from "../support/http_group.ts";
import { drive, FaultWorld } from "./world.ts";

const RECORDS = 12;
const TURNS = 3;
const LEASE_MS = 60_000;
const MINUTE_MS = 60_000;

async function fill(world: FaultWorld): Promise<void> {
  await world.q.topic("t");
  const values = Array.from({ length: RECORDS }, (_, i) => `v${i}`);
  assert.equal((await world.q.produce("t", batch(values))).error, "NONE");
}

async function started(): Promise<{ world: FaultWorld; group: HttpGroup }> {
  const world = new FaultWorld();
  await world.start();
  await drive(world.clock, fill(world));
  return { world, group: new HttpGroup(world) };
}

const POLL = { max: 4, order: "none", lease: LEASE_MS };

test("a restart knows what is leased, to whom, and how often it was delivered", async () => {
  const { world, group } = await started();
  const one = await group.poll({ ...POLL, member: "m", retry: "1" });
  const two = await group.poll(POLL);
  const nack = [{ topic: "t", partition: 0, offset: 5, delay: 2 * LEASE_MS }];
  await group.ack(two.ack, { nack });
  await drive(world.clock, world.q.node.close());
  await world.start();
  assert.deepEqual(offsetsOf(await group.poll({ ...POLL, max: 100 })), [8, 9, 10, 11]);
  const again = await group.poll({ ...POLL, member: "m", retry: "1" });
  assert.deepEqual([offsetsOf(again), again.ack], [offsetsOf(one), one.ack]);
  assert.equal((await group.ack(one.ack)).offsets[0]!.committed, 5);
  await world.clock.advance(2 * LEASE_MS);
  const late = await group.poll({ ...POLL, max: 100 });
  assert.deepEqual(
    late.records.map(({ offset, deliveryCount }) => [offset, deliveryCount]),
    [[5, 2]],
  );
  await drive(world.clock, world.q.node.close());
});

test("another node that takes over takes acknowledgements of what the first one leased", async () => {
  const { world, group } = await started();
  const lease = 2 * ROLL_CALL_MS + LEASE_MS;
  const { ack } = await group.poll({ ...POLL, lease });
  // Its lease is durable with this one's offset.
  const other = await group.poll({ ...POLL, autoCommit: true });
  assert.deepEqual(offsetsOf(other), [4, 5, 6, 7]);
  world.kill();
  await drive(world.clock, world.q.node.close()).catch(() => {});
  const { clock, bucket } = world;
  const second = new FaultWorld({ clock, bucket, seed: 600, nodeId: 2 });
  await second.start();
  await clock.advance(ROLL_CALL_MS + 5_000);
  const there = new HttpGroup(second);
  assert.deepEqual(offsetsOf(await there.poll(POLL)), [8, 9, 10, 11]);
  assert.equal((await there.ack(ack)).offsets[0]!.committed, 8);
  await drive(clock, second.q.node.close());
});

/** What a client knows for certain. */
interface Known {
  /** Its node is dead: the client of that time is no client of the next one. */
  readonly isDead: () => boolean;
  readonly acknowledged: Set<number>;
  /** Asked to be acknowledged, with or without an answer. */
  readonly asked: Set<number>;
  /** Writes before the group is used. */
  before: number;
}

async function answered<T>(
  world: FaultWorld,
  { isDead }: Known,
  ask: () => Promise<{ status: number; body: T }>,
) {
  for (;;) {
    const { status, body } = await ask();
    assert.ok(!isDead(), "dead");
    if (status === 200) return body;
    assert.ok(status === 503, `${status} ${JSON.stringify(body)}`);
    await sleep(world.clock, 100);
  }
}

/** Polls and acknowledges, from the second time on with a record given back. */
async function work(world: FaultWorld, known: Known): Promise<void> {
  const group = new HttpGroup(world);
  for (let turn = 0; turn < TURNS; turn++) {
    const body = { topics: ["t"], ...POLL };
    const polled = await answered(world, known, () => group.send<Polled>("POST", "/poll", body));
    const offsets = offsetsOf(polled);
    for (const offset of offsets) known.asked.add(offset);
    const [returned] = offsets;
    const nack = turn === 0
      ? []
      : [{ topic: "t", partition: 0, offset: returned, delay: LEASE_MS }];
    const ack = { ack: polled.ack, nack };
    await answered(world, known, () => group.send<Acked>("POST", "/ack", ack));
    for (const offset of offsets) {
      if (turn === 0 || offset !== returned) known.acknowledged.add(offset);
    }
  }
}

async function scenario(world: FaultWorld, plan: FaultPlan, known: Known): Promise<void> {
  await world.begin(plan);
  await fill(world);
  known.before = world.store.calls.filter(isWrite).length;
  await work(world, known);
  if (!known.isDead()) await world.q.node.close();
}

async function run(world: FaultWorld, plan: FaultPlan, isDead: () => boolean): Promise<Known> {
  const known: Known = { isDead, acknowledged: new Set(), asked: new Set(), before: 0 };
  let ended = false;
  const running = scenario(world, plan, known).finally(() => void (ended = true));
  running.catch(() => {});
  await world.clock.settle();
  for (let i = 0; !ended && !isDead(); i++) {
    assert.ok(i < 400, "the scenario never ends");
    await world.clock.advance(250);
  }
  if (ended && !isDead()) await running;
  return known;
}

/** After all leases have ended: everything but what was acknowledged comes, each once. */
async function drain(world: FaultWorld, known: Known): Promise<void> {
  const { clock } = world;
  await clock.advance(2 * LEASE_MS);
  const topic = await world.fetch("/v1/topics/t/partitions/0/records");
  if (topic.status === 404) return assert.equal(known.asked.size, 0);
  const { records } = await topic.json() as { records: readonly { offset: number }[] };
  const group = new HttpGroup(world);
  const found: number[] = [];
  for (let turn = 0; turn < RECORDS; turn++) {
    const polled = await group.poll({ ...POLL, max: 100 });
    if (polled.records.length === 0) break;
    found.push(...offsetsOf(polled));
    await group.ack(polled.ack);
  }
  assert.equal(new Set(found).size, found.length);
  for (const offset of found) assert.ok(!known.acknowledged.has(offset), `${offset} comes again`);
  for (const { offset } of records) {
    assert.ok(known.asked.has(offset) || found.includes(offset), `${offset} is lost`);
  }
  if (records.length === 0) return;
  const { offsets } = await group.get<{ offsets: { offset: number }[] }>("/offsets");
  assert.deepEqual(offsets.map(({ offset }) => offset), [RECORDS]);
}

function isWrite({ op }: StoreCall): boolean {
  return op !== "get" && op !== "head" && op !== "list";
}

test("the node dies at any write to its store: nothing acknowledged comes again, nothing is lost", async () => {
  const counted = new FaultWorld();
  let calls = 0;
  const whole = await run(counted, (call) => void (calls += isWrite(call) ? 1 : 0), () => false);
  assert.equal(whole.acknowledged.size, RECORDS - TURNS + 1);
  assert.ok(calls > whole.before + TURNS, `only ${calls} calls`);
  for (const happens of [false, true]) {
    for (let nth = whole.before; nth <= calls; nth++) {
      const world = new FaultWorld();
      let seen = 0;
      const isDead = () => seen >= nth;
      const known = await run(world, (call) => {
        if (isDead()) return { kind: "hang", happens: false };
        if (!isWrite(call)) return undefined;
        seen += 1;
        return isDead() ? { kind: "hang", happens } : undefined;
      }, isDead);
      await world.clock.settle();
      await world.start();
      await drain(world, known).catch((error: unknown) => {
        throw new Error(`call ${nth}, ${happens}: ${String(error)}`, { cause: error });
      });
      await drive(world.clock, world.q.node.close());
    }
  }
});

test("any write that fails or loses its answer is made good, and the group goes on", async () => {
  const counted = new FaultWorld();
  let calls = 0;
  const { before } = await run(counted, (call) => {
    if (isWrite(call)) calls += 1;
    return undefined;
  }, () => false);
  for (let nth = before; nth <= calls; nth++) {
    const world = new FaultWorld();
    let seen = 0;
    const plan: FaultPlan = (call) =>
      isWrite(call) && ++seen === nth
        ? { kind: nth % 2 === 0 ? "fail" : "lose-answer", code: "store-unavailable" }
        : undefined;
    const known = await run(world, plan, () => false);
    assert.equal(known.acknowledged.size, RECORDS - TURNS + 1, `call ${nth}`);
    await world.start();
    await drain(world, known);
    await drive(world.clock, world.q.node.close());
  }
});

/** Whether the request is answered without any time passing. */
async function isAtOnce(world: FaultWorld, work: Promise<unknown>): Promise<boolean> {
  let isDone = false;
  work.then(() => void (isDone = true), () => {});
  await world.clock.settle();
  return isDone;
}

test("an acknowledgement is answered once it is durable; a lease is not waited for", async () => {
  const { world, group } = await started();
  await group.ack((await group.poll({ max: 1 })).ack);
  world.store.setPlan((call) => isWrite(call) ? { kind: "delay", delayMs: 5_000 } : undefined);
  const polling = group.send<Polled>("POST", "/poll", { topics: ["t"], ...POLL });
  assert.ok(await isAtOnce(world, polling));
  const { body: { ack } } = await polling;
  const waiting = [
    group.send("POST", "/ack", { ack }),
    group.send("POST", "/poll", { topics: ["t"], ...POLL, autoCommit: true }),
    group.send("PUT", "/offsets", { offsets: [{ topic: "t", partition: 0, offset: 1 }] }),
  ];
  for (const work of waiting) assert.ok(!await isAtOnce(world, work));
  for (const work of waiting) assert.equal((await drive(world.clock, work)).status, 200);
  world.store.setPlan();
  await drive(world.clock, world.q.node.close());
});

test("a client that goes away while its records are read has leased nothing", async () => {
  const { world, group } = await started();
  await drive(world.clock, world.q.node.close());
  await world.start();
  await group.poll({ topics: ["t"], from: "latest" });
  await drive(world.clock, world.q.node.close());
  await world.start();
  await group.put("/offsets", { offsets: [{ topic: "t", partition: 0, offset: 0 }] });
  world.store.setPlan(({ op }) => op === "get" ? { kind: "delay", delayMs: 5_000 } : undefined);
  const gone = new AbortController();
  const polling = group.send("POST", "/poll", { topics: ["t"], ...POLL }, gone.signal);
  polling.catch(() => {});
  assert.ok(!await isAtOnce(world, polling), "the read is from the store");
  gone.abort();
  await world.clock.advance(30_000);
  world.store.setPlan();
  const { records } = await group.poll(POLL);
  assert.deepEqual(records.map(({ deliveryCount }) => deliveryCount), Array(4).fill(undefined));
  await drive(world.clock, world.q.node.close());
});

test("a store that fails and comes back loses no acknowledgement", async () => {
  const { world, group } = await started();
  const { ack } = await group.poll(POLL);
  world.store.setPlan((call) => isWrite(call) ? { kind: "fail" } : undefined);
  const waiting = group.send<Acked>("POST", "/ack", { ack });
  await world.clock.advance(10_000);
  world.store.setPlan(() => undefined);
  const acked = await drive(world.clock, waiting);
  assert.equal(acked.status, 200, JSON.stringify(acked.body));
  assert.equal(acked.body.offsets[0]!.committed, 4);
  await drive(world.clock, world.q.node.close());
});

test("no PUT in an hour with ten groups that poll empty", async () => {
  const { world } = await started();
  const groups = Array.from({ length: 10 }, (_, i) => new HttpGroup(world, `idle-${i}`));
  for (const [i, group] of groups.entries()) {
    if (i % 2 === 0) await group.poll({ from: "latest" });
    else await group.ack((await group.poll()).ack);
  }
  const pollAll = () =>
    drive(
      world.clock,
      Promise.all(groups.map(async (group, i) => {
        const from = i % 2 === 0 ? "latest" : "earliest";
        const body = { topics: ["t"], from, wait: i % 3 === 0 ? 20_000 : 0 };
        const { status, body: polled } = await group.send<Polled>("POST", "/poll", body);
        assert.deepEqual([status, polled.records], [200, []]);
      })),
    );
  for (let minute = 0; minute < 15; minute++) {
    await pollAll();
    await world.clock.advance(MINUTE_MS - 20_000);
  }
  const writes = () => world.store.calls.filter(({ op }) => op === "put" || op === "putParts");
  const before = writes().length;
  for (let minute = 0; minute < 60; minute++) {
    await pollAll();
    await world.clock.advance(MINUTE_MS - 20_000);
  }
  assert.deepEqual(writes().slice(before), []);
  await drive(world.clock, world.q.node.close());
});

test("a group that is polled keeps its offset beyond the retention, with a write now and then", async () => {
  const world = new FaultWorld({ kafka: { "offsets.retention.minutes": "100" } });
  await world.start();
  await drive(world.clock, fill(world));
  const group = new HttpGroup(world);
  await group.ack((await group.poll({ max: RECORDS })).ack);
  const bulks = () =>
    world.store.calls.filter(({ op, key }) => op === "put" && key.includes("/wal/"));
  const before = bulks().length;
  for (let minute = 0; minute < 300; minute += 5) {
    assert.deepEqual((await group.poll()).records, []);
    await world.clock.advance(5 * MINUTE_MS);
  }
  const written = bulks().length - before;
  assert.ok(written > 20 && written <= 35, `${written} writes`);
  assert.deepEqual((await group.poll()).records, []);
  await drive(world.clock, world.q.node.close());
});
