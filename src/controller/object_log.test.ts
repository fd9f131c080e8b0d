/** The age rule: a position is not believed on old proof, whichever clock is the one that tells. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { METADATA_EVIDENCE_AGE_MS_MAX } from "../lib/limits.ts";
import { position } from "../lib/brand.ts";
import { createMemoryStore } from "../object/memory.ts";
import { logKey, snapshotKey } from "../object/object_key.ts";
import { ObjectLog } from "./object_log.ts";

const CLUSTER = "age";
const SLEPT_MS = METADATA_EVIDENCE_AGE_MS_MAX + 1;

/** Three clocks that can be moved one by one, and a log that has just seen its end. */
async function setUp() {
  const fake = createFakeClock();
  const sleptMs = { monotonic: 0, wall: 0, store: 0 };
  const clock = {
    ...fake,
    nowMs: () => fake.nowMs() + sleptMs.wall,
    monotonicMs: () => fake.monotonicMs() + sleptMs.monotonic,
  };
  const store = createMemoryStore({ ...fake, nowMs: () => fake.nowMs() + sleptMs.store });
  const log = new ObjectLog({
    store,
    env: testEnv({ clock }),
    clusterId: CLUSTER,
    signal: new AbortController().signal,
  });
  assert.equal((await log.append(position(1), new Uint8Array([1]))).kind, "committed");
  const end = await log.read(position(1));
  assert.ok(end.kind === "entries" && end.atEnd);
  return { log, store, fake, sleptMs };
}

/** A poll each ten seconds of an hour, of a log that nobody writes to; listings are counted. */
async function quietHour() {
  const { log, store, fake, sleptMs } = await setUp();
  const counted = { ...store, lists: 0 };
  const list = store.list.bind(store);
  store.list = (prefix, options) => {
    counted.lists++;
    return list(prefix, options);
  };
  const polls = async () => {
    for (let i = 0; i < 360; i++) {
      await fake.advance(10_000);
      await log.read(position(1));
    }
    counted.lists = 0;
  };
  return { log, store: counted, polls, sleptMs };
}

for (const clock of ["monotonic", "wall", "store"] as const) {
  test(`a freed position is found out by the ${clock} clock alone`, async () => {
    const { log, store, sleptMs } = await setUp();
    sleptMs[clock] = SLEPT_MS;
    // Others went on, wrote a snapshot and trimmed: the name of entry 2 is free again.
    await store.put(snapshotKey(CLUSTER, position(9)), new Uint8Array([9]));
    const outcome = await log.append(position(2), new Uint8Array([2]));
    assert.equal(outcome.kind, "behind");
  });
}

test("on fresh proof an entry is committed without another look", async () => {
  const { log, store } = await setUp();
  assert.equal((await log.append(position(2), new Uint8Array([2]))).kind, "committed");
  assert.notEqual(await store.head(logKey(CLUSTER, position(2))), null);
});

test("polls keep the proof young for the store's clock too: an entry after a quiet hour needs no listing", async () => {
  const { log, store, polls } = await quietHour();
  await polls();
  assert.equal((await log.append(position(2), new Uint8Array([2]))).kind, "committed");
  assert.equal(store.lists, 0);
});

test("but not over a time in which our clocks stood still, wherever it lies between polls", async () => {
  for (const when of ["before the polls", "after the polls"] as const) {
    const { log, store, polls, sleptMs } = await quietHour();
    if (when === "after the polls") await polls();
    sleptMs.store = SLEPT_MS;
    if (when === "before the polls") await polls();
    await store.put(snapshotKey(CLUSTER, position(9)), new Uint8Array([9]));
    assert.equal((await log.append(position(2), new Uint8Array([2]))).kind, "behind", when);
  }
});
