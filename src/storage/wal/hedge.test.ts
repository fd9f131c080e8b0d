/** Hedged PUTs: one more at most, the same bytes into the same slot, and never a wrong acknowledgement. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createWalTestStore } from "../../../tests/contract/wal_store.ts";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { record } from "../../../tests/support/records.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { nodeEpoch, nodeId, position } from "../../lib/brand.ts";
import {
  WAL_HEDGE_BYTES_MAX,
  WAL_HEDGE_DELAY_MS_MIN,
  WAL_HEDGE_SAMPLES,
  WAL_HEDGE_SAMPLES_MIN,
} from "../../lib/limits.ts";
import { createMemoryStore } from "../../object/memory.ts";
import { HedgePace } from "./hedge_pace.ts";
import { createObjectWal, type ObjectWalOptions } from "./object_wal.ts";
import { encodeSeal } from "./wal_object.ts";
import { slotKey } from "./wal_slots.ts";

const OWNER = { nodeId: nodeId(1), epoch: nodeEpoch(5) };
const WARM = WAL_HEDGE_SAMPLES_MIN;

/** A WAL that knows what is usual, whose next PUTs are held. */
async function warm(overrides: Partial<ObjectWalOptions> = {}) {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const store = createWalTestStore(createMemoryStore(clock));
  const policy = { kind: "unmetered" } as const;
  const wal = createObjectWal({ store, env, clusterId: "C", ...OWNER, policy, ...overrides });
  for (let i = 0; i < WARM; i++) {
    const { durable } = wal.append(record(1, i));
    await clock.advance(10_000);
    await durable;
  }
  store.hold = true;
  return { clock, env, store, wal, key: slotKey("C", OWNER, WARM) };
}

function hedges(text: string, outcome: string): number {
  return Number(
    [...text.matchAll(/skerry_wal_hedges_total\{outcome="(\w+)"\} (\d+)/g)]
      .find((match) => match[1] === outcome)?.[2] ?? 0,
  );
}

describe("hedged WAL PUTs", () => {
  test("a slow PUT is sent once more, the second answer acknowledges, the first stays for the memory", async () => {
    const { clock, env, store, wal, key } = await warm();
    const { durable } = wal.append(record(1, WARM));
    await clock.advance(WAL_HEDGE_DELAY_MS_MIN - 1);
    assert.equal(store.held.length, 1);
    await clock.advance(1);
    assert.deepEqual(store.held.map((put) => put.key), [key, key]);
    await clock.advance(60_000);
    assert.equal(store.held.length, 2, "one hedge, whatever the time");
    await store.held[1]!.release();
    await durable;
    assert.equal(hedges(env.metrics.render(), "won"), 1);
    assert.equal(
      (await store.held[0]!.land()).created,
      false,
      "the slower one finds the name taken",
    );
    assert.equal(wal.state().fenced, false);
  });

  test("a hedge that meets our own bytes (412) is success", async () => {
    const { clock, env, store, wal } = await warm();
    const { durable } = wal.append(record(1, WARM));
    await clock.advance(WAL_HEDGE_DELAY_MS_MIN);
    // The first one is stored, its answer never comes.
    await store.held[0]!.land();
    await store.held[1]!.release();
    await durable;
    assert.equal(hedges(env.metrics.render(), "won"), 1);
    assert.equal(wal.state().fenced, false);
  });

  test("a foreign object fences, whichever of the two meets it", async () => {
    for (const which of [0, 1]) {
      const { clock, store, wal, key } = await warm();
      const { durable } = wal.append(record(1, WARM));
      const refused = assert.rejects(durable, { code: "fenced" });
      await clock.advance(WAL_HEDGE_DELAY_MS_MIN);
      await store.inner.put(key, encodeSeal(OWNER, WARM, position(9)), { ifAbsent: true });
      await store.held[which]!.release();
      await refused;
      assert.equal(wal.state().fenced, true);
      assert.equal(clock.timers, 0);
    }
  });

  test("a hedge without an answer changes nothing; a refused first one is repeated, not hedged", async () => {
    const { clock, store, wal } = await warm();
    const { durable } = wal.append(record(1, WARM));
    await clock.advance(WAL_HEDGE_DELAY_MS_MIN);
    store.held[1]!.giveUp();
    await clock.settle();
    assert.equal(store.held.length, 2);
    await store.held[0]!.release();
    await durable;
    const next = wal.append(record(1, WARM + 1));
    await clock.settle();
    store.held[2]!.giveUp();
    await clock.advance(10_000);
    assert.equal(store.held.length, 4, "one repeat");
    await store.held[3]!.release();
    await next.durable;
  });

  test("while the slower PUT may still read the body, memory stays and slots are not deleted", async () => {
    const { clock, store, wal } = await warm();
    const inner = store.put.bind(store);
    const stuck: (() => void)[] = [];
    let calls = 0;
    // This one does not heed its signal, as a host that has handed the bytes to the kernel.
    store.put = (key, body, options) => {
      calls += 1;
      if (calls > 1) return inner(key, body, options);
      return new Promise((resolve) => {
        stuck.push(() => void inner(key, body, options).then(resolve));
      });
    };
    store.hold = false;
    await Promise.all([clock.advance(WAL_HEDGE_DELAY_MS_MIN), wal.append(record(1, WARM)).durable]);
    const later = wal.append(record(1, WARM + 1));
    await clock.settle();
    await later.durable;
    wal.trim(WARM + 1);
    await clock.settle();
    const key = slotKey("C", OWNER, WARM);
    assert.notEqual(await store.inner.head(key), null, "still there");
    assert.equal(await store.inner.head(slotKey("C", OWNER, WARM - 1)), null);
    stuck[0]!();
    await clock.settle();
    assert.equal(await store.inner.head(key), null, "deleted once nothing is under way");
  });

  test("never where PUTs cost money, nor when told so", async () => {
    for (
      const overrides of [
        { policy: { kind: "metered", putsPerHour: 14_400 } } as const,
        { hedge: false },
      ]
    ) {
      const { clock, store, wal } = await warm(overrides);
      wal.append(record(1, WARM));
      await clock.advance(60_000);
      assert.equal(store.held.length, 1);
    }
  });
});

describe("pace of hedges", () => {
  test("slow is twice the usual, of small PUTs, once enough are known", () => {
    const pace = new HedgePace();
    for (let i = 0; i < WARM - 1; i++) pace.observe(100, 50);
    assert.equal(pace.delayMs(100), null);
    pace.observe(WAL_HEDGE_BYTES_MAX + 1, 9_999);
    assert.equal(pace.delayMs(100), null);
    pace.observe(100, 50);
    assert.equal(pace.delayMs(100), 100);
    assert.equal(pace.delayMs(WAL_HEDGE_BYTES_MAX + 1), null);
    for (let i = 0; i < WAL_HEDGE_SAMPLES; i++) pace.observe(100, 1);
    assert.equal(pace.delayMs(100), WAL_HEDGE_DELAY_MS_MIN);
  });

  test("a store that is slow for everybody gets a tenth more, not twice as much", () => {
    const pace = new HedgePace();
    let sent = 0;
    for (let i = 0; i < 1_000; i++) {
      if (pace.take()) sent += 1;
      pace.observe(100, 500);
    }
    assert.ok(sent >= 99 && sent <= 105, `${sent} hedges for 1000 PUTs`);
  });
});
