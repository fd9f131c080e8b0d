import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "../env/logger.ts";
import { seededRandom } from "../env/random.ts";
import { isFault, messageOf } from "../lib/errors.ts";
import { PROBE_LEFT_AGE_MS_MIN } from "../lib/limits.ts";
import { drive } from "../../tests/faults/world.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { faultyStore } from "../../tests/support/faulty_store.ts";
import { keysOf } from "../../tests/support/keys_of.ts";
import { createMemoryStore } from "./memory.ts";
import { probeKey } from "./object_key.ts";
import type { ObjectStore } from "./object_store.ts";
import { probeStore } from "./probe.ts";

function setUp(change: (store: ObjectStore) => Partial<ObjectStore> = () => ({})) {
  const clock = createFakeClock();
  const inner = createMemoryStore(clock);
  const store = faultyStore({ ...inner, ...change(inner) }, clock);
  const probe = () => probeStore(store, { clock, random: seededRandom(1), log: silentLogger });
  return { clock, inner, store, probe };
}

async function isEmpty(store: ObjectStore): Promise<boolean> {
  for await (const _ of store.list("")) return false;
  return true;
}

test("a good store passes with few requests and is left clean", async () => {
  const { inner, store, probe } = setUp();
  assert.deepEqual(await probe(), { clockSkewMs: 0 });
  assert.ok(store.calls.length <= 16, `${store.calls.length} requests`);
  assert.ok(await isEmpty(inner));
});

test("what a start left that was killed in its probe is deleted, what another one is at is not", async () => {
  const { clock, inner, probe } = setUp();
  await inner.put(probeKey("killed", "first"), new Uint8Array(1));
  await clock.advance(PROBE_LEFT_AGE_MS_MIN);
  await inner.put(probeKey("running", "first"), new Uint8Array(1));
  await probe();
  assert.deepEqual(await keysOf(inner), [probeKey("running", "first")]);
});

test("a store that is away is not judged: it can be probed again", async () => {
  for (const code of ["store-unavailable", "timeout"] as const) {
    const { clock, store, probe } = setUp();
    for (let at = 1; at < 12; at++) {
      const until = store.calls.length + at;
      store.setPlan(({ number, isConditional, op }) =>
        number >= until && !(isConditional && op === "put") ? { kind: "fail", code } : undefined
      );
      await assert.rejects(
        drive(clock, probe()),
        (error) => isFault(error, code) || isFault(error, "timeout"),
      );
      store.setPlan();
      await probe();
    }
  }
});

const BROKEN: readonly (readonly [string, (store: ObjectStore) => Partial<ObjectStore>, RegExp])[] =
  [
    ["ignores the condition", (s) => ({ put: (key, body) => s.put(key, body) }), /If-None-Match/],
    ["ignores ranges", (s) => ({ get: (key) => s.get(key) }), /range/],
    ["loses what it wrote", () => ({ get: () => Promise.resolve(null) }), /cannot be read/],
    ["lists nothing", () => ({ async *list() {} }), /listing/],
    [
      "deletes nothing",
      () => ({ delete: (keys) => Promise.resolve({ gone: [], failed: keys }) }),
      /delete/,
    ],
    [
      "forgets to delete",
      () => ({ delete: (keys) => Promise.resolve({ gone: keys, failed: [] }) }),
      /still there/,
    ],
  ];

for (const [name, change, text] of BROKEN) {
  test(`a store that ${name} is refused by name`, async () => {
    const { probe } = setUp(change);
    await assert.rejects(
      probe(),
      (error) => isFault(error, "config") && text.test(messageOf(error)),
    );
  });
}

test("a condition that holds in sequence but not in a race is found", async () => {
  const { probe, inner } = setUp((s) => ({
    async put(key, body, options) {
      const exists = await s.head(key) !== null;
      await Promise.resolve();
      if (options?.ifAbsent === true && exists) return { created: false, storeNowMs: 0 };
      return s.put(key, body);
    },
  }));
  await assert.rejects(
    probe(),
    (error) => isFault(error, "config") && /not atomic/.test(messageOf(error)),
  );
  assert.ok(await isEmpty(inner), "also a failed probe cleans up");
});

test("a store that refuses us is a configuration error with its text", async () => {
  const { store, probe } = setUp();
  store.setPlan(() => ({ kind: "fail", code: "store-denied" }));
  await assert.rejects(
    probe(),
    (error) => isFault(error, "config") && /Injected/.test(messageOf(error)),
  );
});
