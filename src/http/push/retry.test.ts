import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PUSH_RETRY_AFTER_MS_MAX } from "../../lib/limits.ts";
import { isAlone, judge, pauseMs, retryAfterMs } from "./retry.ts";

const NOW_MS = Date.parse("2026-11-30T12:00:00Z");

function answered(status: number, retryAfter: string | null = null) {
  return judge({ ok: true, status, retryAfter }, NOW_MS);
}

test("pauses double up to the longest, with jitter below it, and never undercut Retry-After", () => {
  const chance = fc.double({ min: 0, max: 0.999, noNaN: true });
  const after = fc.option(fc.nat(3_600_000));
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2_000 }), chance, after, (attempts, drawn, afterMs) => {
      const ms = pauseMs(attempts, { minMs: 1_000, maxMs: 60_000 }, drawn, afterMs);
      const full = attempts > 6 ? 60_000 : 1_000 * 2 ** (attempts - 1);
      assert.ok(ms >= Math.max(full / 2, afterMs ?? 0));
      assert.ok(ms <= Math.max(full, afterMs ?? 0));
    }),
  );
  assert.equal(pauseMs(1, { minMs: 1_000, maxMs: 60_000 }, 0), 500);
  assert.equal(pauseMs(4, { minMs: 1_000, maxMs: 60_000 }, 0.5), 6_000);
});

test("Retry-After is seconds or a date, bounded", () => {
  const cases: readonly (readonly [string | null, number | null])[] = [
    [null, null],
    ["0", 0],
    [" 120 ", 120_000],
    ["Mon, 30 Nov 2026 12:00:30 GMT", 30_000],
    ["Mon, 30 Nov 2026 11:00:00 GMT", 0],
    ["999999999", PUSH_RETRY_AFTER_MS_MAX],
    ["soon", null],
    ["", null],
  ];
  for (const [text, ms] of cases) assert.equal(retryAfterMs(text, NOW_MS), ms, String(text));
});

test("only 2xx takes records; redirects are refusals", () => {
  for (const status of [200, 202, 204, 299]) assert.deepEqual(answered(status), { isTaken: true });
  for (const status of [301, 302, 307, 308, 400, 404, 410, 500, 503]) {
    assert.equal(answered(status).isTaken, false, String(status));
  }
});

test("a handler that is away or busy stops all; one that refuses what it got stops that", () => {
  const facts = (status: number, retryAfter?: string) => {
    const judged = answered(status, retryAfter);
    return judged.isTaken ? null : [judged.isAboutHandler, judged.isAboutRecords];
  };
  assert.deepEqual(facts(429), [true, false]);
  assert.deepEqual(facts(503), [true, false]);
  assert.deepEqual(facts(500), [false, false]);
  assert.deepEqual(facts(500, "3"), [true, false]);
  assert.deepEqual(facts(422), [false, true]);
  const silent = judge({ ok: false, kind: "failed", reason: "could not be reached" }, NOW_MS);
  assert.equal(!silent.isTaken && silent.isAboutHandler, true);
});

test("the second half of the attempts is of single records", () => {
  assert.deepEqual([1, 2, 3, 4].map((n) => isAlone(n, { attempts: 6 })), [
    false,
    false,
    true,
    true,
  ]);
});
