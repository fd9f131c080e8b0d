import assert from "node:assert/strict";
import { test } from "node:test";
import { capturingLogger } from "../env/logger.ts";
import { seededRandom } from "../env/random.ts";
import { isFault } from "../lib/errors.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { faultOnCall, faultyStore } from "../../tests/support/faulty_store.ts";
import type { FaultPlan } from "../../tests/support/faulty_store.ts";
import { createExactly } from "./create.ts";
import type { CreateOptions } from "./create.ts";
import { createMemoryStore } from "./memory.ts";

const MINE = Uint8Array.of(1, 2, 3);
const THEIRS = Uint8Array.of(1, 2, 4);

function setUp(plan?: FaultPlan) {
  const clock = createFakeClock();
  const inner = createMemoryStore(clock);
  const store = faultyStore(inner, clock, plan);
  const log = capturingLogger();
  const create = (options: Partial<CreateOptions> = {}) =>
    createExactly(store, "k", MINE, { clock, random: seededRandom(1), log, ...options });
  return { clock, inner, store, log, create };
}

test("creates, and says when the attempt began", async () => {
  const { clock, store, create } = setUp();
  await clock.advance(500);
  const outcome = await create();
  assert.deepEqual(outcome, { created: true, startedMs: 500, storeNowMs: clock.nowMs() });
  assert.equal(store.calls.length, 1);
});

test("a name taken by others gives their bytes", async () => {
  const { inner, create } = setUp();
  await inner.put("k", THEIRS);
  const outcome = await create();
  assert.ok(!outcome.created);
  assert.deepEqual(outcome.found, THEIRS);
});

test("a lost answer is found to be our own write", async () => {
  const { clock, store, log, create } = setUp(faultOnCall(1, { kind: "lose-answer" }));
  const outcome = create();
  await clock.advance(5_000);
  const { created, startedMs } = await outcome;
  assert.ok(created);
  assert.ok(startedMs > 0, "the evidence is the second attempt");
  assert.deepEqual(store.calls.map(({ op }) => op), ["put", "put", "get"]);
  assert.deepEqual(log.lines.map(({ event }) => event), ["store-create-retry"]);
});

test("a put that lands late is ours too, and a conflict is never invented", async () => {
  const { clock, inner, create } = setUp(faultOnCall(1, { kind: "late", delayMs: 10_000 }));
  const outcome = create();
  await clock.advance(60_000);
  assert.ok((await outcome).created);
  assert.deepEqual((await inner.get("k"))?.bytes, MINE);
});

test("an object that is gone when read is put again", async () => {
  const { clock, inner, store, create } = setUp();
  await inner.put("k", THEIRS);
  store.setPlan(({ op }) => {
    if (op === "get") inner.delete(["k"]);
    return op === "get" ? { kind: "delay", delayMs: 0 } : undefined;
  });
  const outcome = create();
  await clock.advance(10_000);
  assert.ok((await outcome).created);
  assert.equal(store.count("put"), 2);
});

test("without a deadline an outage of an hour is survived, with a bounded log", async () => {
  const { clock, store, log, create } = setUp(() => ({ kind: "fail" }));
  const outcome = create();
  await clock.advance(600_000);
  store.setPlan();
  await clock.advance(5_000);
  assert.ok((await outcome).created);
  assert.ok(log.lines.length < 15, `${log.lines.length} lines`);
  assert.ok(store.count("put") > 100, "the pause is capped");
});

test("past the deadline it is a timeout, also when the store hangs", async () => {
  for (const kind of ["fail", "hang"] as const) {
    const { clock, create } = setUp(() => kind === "fail" ? { kind } : { kind, happens: false });
    const outcome = assert.rejects(create({ deadlineMs: 3_000 }), (e) => isFault(e, "timeout"));
    await clock.advance(10_000);
    await outcome;
    assert.equal(clock.timers, 0);
  }
});

test("the caller's signal ends it", async () => {
  const { clock, create } = setUp(() => ({ kind: "hang", happens: true }));
  const stop = new AbortController();
  const outcome = assert.rejects(create({ signal: stop.signal }), (e) => isFault(e, "aborted"));
  await clock.advance(100);
  stop.abort();
  await outcome;
  assert.equal(clock.timers, 0);
});

test("a fault that is not retriable goes straight to the caller", async () => {
  const { store, create } = setUp();
  const { FaultError } = await import("../lib/errors.ts");
  store.put = () => Promise.reject(new FaultError("config", "bad key", { retriable: false }));
  await assert.rejects(create(), (e) => isFault(e, "config"));
});

test("whatever single call fails, in whatever way, the outcome is definite and true", async () => {
  for (const taken of [false, true]) {
    for (const kind of ["fail", "lose-answer"] as const) {
      for (let nth = 1; nth <= 4; nth++) {
        const { clock, inner, create } = setUp(faultOnCall(nth, { kind }));
        if (taken) await inner.put("k", THEIRS);
        const outcome = create();
        await clock.advance(10_000);
        assert.equal((await outcome).created, !taken);
        assert.deepEqual((await inner.get("k"))?.bytes, taken ? THEIRS : MINE);
      }
    }
  }
});
