import assert from "node:assert/strict";
import { test } from "node:test";
import { FaultError } from "../lib/errors.ts";
import type { Cleanable, Cleaned } from "../log/partition_log.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { createMemoryLog, type MemoryLog } from "../../tests/support/memory_log.ts";
import { DEFAULT_LOG_CONFIG } from "../../tests/support/partition_harness.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { LogCleaner } from "./log_cleaner.ts";
import type { NamedLog } from "./partition_metrics.ts";

const DONE: Cleaned = { bytesRead: 10, bytesWritten: 5, unreadable: 0, cleanedTo: 1 };

function logWith(cleanable: Cleanable | null, clean: MemoryLog["clean"]): MemoryLog {
  return Object.assign(createMemoryLog(DEFAULT_LOG_CONFIG), { cleanable: () => cleanable, clean });
}

function named(topic: string, log: MemoryLog): NamedLog {
  return { topic, partition: 0, log };
}

function due(dirtyRatio: number, isDue = true): Cleanable {
  return { dirtyRatio, dirtyBytes: 100, isDue };
}

function world() {
  const clock = createFakeClock();
  const settings = { isEnabled: true, mapBytesMax: 1 << 20, bytesPerSecond: Infinity };
  const env = testEnv({ clock });
  return { clock, env, settings, cleaner: new LogCleaner({ env, settings: () => settings }) };
}

test("one pass at a time, the dirtiest first, nothing that is not due", async () => {
  const { cleaner, clock, env } = world();
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const log = (name: string, cleanable: Cleanable | null) =>
    named(
      name,
      logWith(cleanable, () => {
        begun.push(name);
        return new Promise((resolve) => ends.push(() => resolve(DONE)));
      }),
    );
  const logs = [
    log("a", due(0.6)),
    log("b", due(0.9)),
    log("c", due(0.95, false)),
    log("d", null),
    log("__consumer_offsets", due(1)),
    log("__transaction_state", due(1)),
  ];
  cleaner.look(logs);
  cleaner.look(logs);
  assert.deepEqual(begun, ["b"]);
  ends[0]!();
  await clock.settle();
  cleaner.look(logs.slice(0, 1));
  assert.deepEqual(begun, ["b", "a"]);
  const page = env.metrics.render();
  assert.match(page, /skerry_log_cleaner_runs_total\{outcome="done"\} 1/);
  assert.match(page, /skerry_log_cleaner_read_bytes_total 10/);
});

test("a pass that failed is tried again after a pause; others go on; off is off", async () => {
  const { cleaner, clock, env, settings } = world();
  let tries = 0;
  let others = 0;
  const fault = new FaultError("store-unavailable", "no answer", { retriable: true });
  const bad = named("a", logWith(due(1), () => (tries++, Promise.reject(fault))));
  const good = named("b", logWith(due(0.6), () => (others++, Promise.resolve(DONE))));
  cleaner.look([bad, good]);
  await clock.settle();
  cleaner.look([bad, good]);
  await clock.settle();
  assert.deepEqual([tries, others], [1, 1]);
  await clock.advance(60_000);
  cleaner.look([bad, good]);
  await clock.settle();
  assert.equal(tries, 2);
  assert.match(env.metrics.render(), /runs_total\{outcome="failed"\} 2/);
  settings.isEnabled = false;
  await clock.advance(600_000);
  cleaner.look([bad, good]);
  await clock.settle();
  assert.deepEqual([tries, others], [2, 1]);
});

test("a pass that always fails at its end takes a small part of the time, and ever less after damage", async () => {
  const { cleaner, clock } = world();
  const PASS_MS = 60_000;
  for (const isPassing of [true, false]) {
    const kind = isPassing ? "store-unavailable" : "data-loss";
    const fault = new FaultError(kind, "gone", { retriable: isPassing });
    let tries = 0;
    const bad = named(
      kind,
      logWith(due(1), () => {
        tries++;
        return new Promise((_, reject) => clock.after(PASS_MS, () => reject(fault)));
      }),
    );
    for (let minute = 0; minute < 24 * 60; minute++) {
      cleaner.look([bad]);
      await clock.advance(PASS_MS);
    }
    assert.ok(tries >= 5 && tries <= (isPassing ? 132 : 10), `${kind}: ${tries} tries in a day`);
  }
});

test("a pass that something overtakes each time takes a small part of the time", async () => {
  const { cleaner, clock, env } = world();
  const PASS_MS = 60_000;
  let tries = 0;
  const busy = named(
    "busy",
    logWith(due(1), () => {
      tries++;
      return new Promise((resolve) => clock.after(PASS_MS, () => resolve(null)));
    }),
  );
  for (let minute = 0; minute < 24 * 60; minute++) {
    cleaner.look([busy]);
    await clock.advance(PASS_MS);
  }
  assert.ok(tries >= 5 && tries <= 132, `${tries} tries in a day`);
  assert.match(env.metrics.render(), new RegExp(`outcome="overtaken"} ${tries}`));
});
