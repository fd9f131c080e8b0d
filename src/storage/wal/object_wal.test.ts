/** What is particular to this WAL: batching, limits, metrics. The contract is tests/contract/wal.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createWalTestStore } from "../../../tests/contract/wal_store.ts";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { type FaultPlan, faultyStore } from "../../../tests/support/faulty_store.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { nodeEpoch, nodeId, streamEpoch, streamId } from "../../lib/brand.ts";
import { FaultError, isFault } from "../../lib/errors.ts";
import { SLOT_BYTES, WAL_REFUSED_MS, WAL_STALLED_MS } from "../../lib/limits.ts";
import { createMemoryStore } from "../../object/memory.ts";
import { createObjectWal, type ObjectWalOptions } from "./object_wal.ts";
import { readWalObject } from "./wal_object.ts";
import { listWalSlots, slotKey } from "./wal_slots.ts";

const OWNER = { nodeId: nodeId(1), epoch: nodeEpoch(5) };
const MIB = 1024 * 1024;

function record(baseOffset: number, bytes = 10) {
  const payload = new Uint8Array(bytes);
  return { streamId: streamId(1), epoch: streamEpoch(1), baseOffset, count: 1, payload };
}

function setUp(overrides: Partial<ObjectWalOptions> = {}) {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const store = createWalTestStore(createMemoryStore(clock));
  const wal = createObjectWal({
    store,
    env,
    clusterId: "C",
    ...OWNER,
    policy: { kind: "unmetered" },
    ...overrides,
  });
  async function recordsPerSlot(): Promise<number[]> {
    const counts: number[] = [];
    for (let slot = 0;; slot++) {
      const got = await store.inner.get(slotKey("C", OWNER, slot));
      if (got === null) return counts;
      const object = readWalObject(got.bytes, OWNER, slot);
      counts.push(object.kind === "data" ? object.records.length : 0);
    }
  }
  return { clock, env, store, wal, recordsPerSlot };
}

test("records of one turn share a bulk and leave without a timer", async () => {
  const { clock, wal, recordsPerSlot } = setUp();
  for (let i = 0; i < 5; i++) wal.append(record(i));
  await clock.settle();
  assert.deepEqual(await recordsPerSlot(), [5]);
});

test("group commit: behind two PUTs records gather until one of them ends", async () => {
  const { clock, store, wal, recordsPerSlot } = setUp();
  store.hold = true;
  for (let i = 0; i < 10; i++) {
    wal.append(record(i));
    await clock.settle();
  }
  assert.equal(store.held.length, 2);
  store.hold = false;
  for (const put of store.held.splice(0)) await put.release();
  await clock.settle();
  assert.deepEqual(await recordsPerSlot(), [1, 1, 8]);
});

test("metered: after the burst bulks leave at the pace of the budget", async () => {
  const { clock, wal, recordsPerSlot } = setUp({
    policy: { kind: "metered", putsPerHour: 14_400 },
  });
  for (let i = 0; i < 300; i++) {
    wal.append(record(i));
    await clock.advance(10);
  }
  await clock.advance(1_000);
  const slots = await recordsPerSlot();
  assert.equal(slots.reduce((sum, count) => sum + count), 300);
  assert.ok(
    slots.length >= 18 && slots.length <= 8 + 13 + 1,
    `${slots.length} PUTs in three seconds`,
  );
});

test("a bulk closes before it would pass the soft cap; a larger record has its own", async () => {
  const { clock, wal, recordsPerSlot } = setUp();
  const slots = [5, 2, 2, 20, 1].map((mib, i) => wal.append(record(i, mib * MIB)).slot);
  assert.deepEqual(slots, [0, 0, 1, 2, 3]);
  await clock.settle();
  assert.deepEqual(await recordsPerSlot(), [2, 1, 1, 1]);
});

test("past the slot cap appends are refused until slots are committed", async () => {
  const { clock, wal } = setUp({ slotsMax: 2 });
  for (let i = 0; i < 2; i++) {
    wal.append(record(i));
    await clock.settle();
  }
  assert.throws(() => wal.append(record(2)), { code: "overloaded" });
  wal.trim(1);
  wal.append(record(2));
});

test("a record that waits counts with what waiting costs: tiny ones cannot fill the memory", async () => {
  const { clock, wal } = setUp();
  // 24 and 33 bytes of headers, one of payload, and a KiB for what is kept of it in memory.
  const most = Math.floor(256 * MIB / (24 + 33 + 1 + 1_024));
  for (const first of [0, most]) {
    for (let i = 0; i < most; i++) wal.append(record(first + i, 1));
    assert.throws(() => wal.append(record(first + most, 1)), { code: "overloaded" });
    await clock.settle();
    assert.equal(wal.state().unacknowledgedBytes, 0);
  }
});

test("keys and listing: one object per 64 MiB slot", async () => {
  const { clock, store, wal } = setUp();
  for (let i = 0; i < 2; i++) {
    wal.append(record(i));
    await clock.settle();
  }
  const found = [];
  for await (const { slot, key } of listWalSlots(store, "C", OWNER)) found.push([slot, key]);
  const prefix = "C4CA4238A0B923820DCC509A6F75849B/_kafka_C/1/5/wal/";
  assert.deepEqual(found, [
    [0, `${prefix}0-${SLOT_BYTES}`],
    [1, `${prefix}${SLOT_BYTES}-${2 * SLOT_BYTES}`],
  ]);
});

test("bulks, records, PUT latency and unacknowledged bytes are metered", async () => {
  const { clock, env, wal } = setUp();
  for (let i = 0; i < 3; i++) wal.append(record(i));
  await clock.settle();
  const text = env.metrics.render();
  for (
    const line of [
      "skerry_wal_records_total 3",
      "skerry_wal_bulk_bytes_count 1",
      "skerry_wal_put_seconds_count 1",
      "skerry_wal_unacknowledged_bytes 0",
    ]
  ) assert.ok(text.includes(`${line}\n`), line);
});

test("an idle WAL sends nothing and sets no timer", async () => {
  const { clock, store, wal } = setUp({ policy: { kind: "metered", putsPerHour: 14_400 } });
  wal.append(record(0));
  await clock.advance(10);
  let requests = 0;
  store.before = () => void (requests += 1);
  await clock.advance(3_600_000);
  assert.deepEqual([requests, clock.timers], [0, 0]);
});

function onFaulty(plan: FaultPlan) {
  const clock = createFakeClock();
  const faulty = faultyStore(createMemoryStore(clock), clock, plan);
  const env = testEnv({ clock });
  const options = { store: faulty, env, clusterId: "C", ...OWNER };
  const wal = createObjectWal({ ...options, policy: { kind: "unmetered" } });
  return { clock, faulty, wal };
}

test("a write that the store refuses is a problem after a second, one that it leaves waiting after five", async () => {
  for (
    const [kind, limitMs] of [["refused", WAL_REFUSED_MS], ["silent", WAL_STALLED_MS]] as const
  ) {
    const { clock, faulty, wal } = onFaulty(() =>
      kind === "refused" ? { kind: "fail" } : { kind: "hang", happens: false }
    );
    assert.equal(wal.state().problem, null);
    wal.append(record(0));
    await clock.advance(limitMs - 10);
    assert.equal(wal.state().problem, null, kind);
    await clock.advance(20);
    assert.match(wal.state().problem ?? "", kind === "refused" ? /Injected/ : /no answer yet/);
    if (kind === "silent") continue;
    faulty.setPlan();
    await clock.advance(3_000);
    assert.equal(wal.state().problem, null);
  }
});

test("a write that is refused once, or is slow and then refused once, is no problem", async () => {
  const { clock, faulty, wal } = onFaulty(({ number }) =>
    number === 1 ? { kind: "fail" } : undefined
  );
  wal.append(record(0));
  await clock.settle();
  assert.equal(wal.state().problem, null);
  await clock.advance(100);
  faulty.setPlan(() => ({ kind: "silence", delayMs: 3_000, happens: false }));
  const appended = wal.append(record(1));
  await clock.advance(3_000);
  faulty.setPlan();
  assert.equal(wal.state().problem, null);
  await clock.advance(100);
  await appended.durable;
});

test("a WAL that is given up fails what waits and ends at once; what had landed is found by recovery", async () => {
  const { clock, faulty, wal } = onFaulty(() => undefined);
  await wal.append(record(0)).durable;
  faulty.setPlan(() => ({ kind: "hang", happens: true }));
  const inFlight = wal.append(record(1));
  await clock.settle();
  const open = wal.append(record(2));
  const fault = new FaultError("closed", "Given up", { retriable: false });
  wal.abandon(fault);
  for (const { durable } of [inFlight, open]) {
    await assert.rejects(durable, (error) => error === fault);
  }
  assert.throws(() => wal.append(record(3)), (error) => isFault(error, "closed"));
  assert.equal(wal.state().unacknowledgedBytes, 0);
  assert.equal(wal.state().fenced, false);
  await wal.close();
  assert.equal(clock.timers, 0);
});
