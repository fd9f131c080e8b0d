import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { ZERO_UUID } from "../lib/uuid.ts";
import { seededRandom } from "../env/random.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import {
  createFetchSessions,
  type FetchNews,
  type FetchOpening,
  type FetchTarget,
} from "./fetch_session.ts";

function target(partition: number, fetchOffset = 0): FetchTarget {
  return {
    topic: "t",
    topicId: ZERO_UUID,
    partition,
    currentLeaderEpoch: -1,
    fetchOffset,
    lastFetchedEpoch: -1,
    partitionMaxBytes: 1000,
  };
}

function opening(sessionId: number, epoch: number, ...partitions: number[]): FetchOpening {
  const targets = partitions.map((one) => target(one));
  return { sessionId, epoch, usesIds: false, targets, forgotten: [] };
}

function news(one: FetchTarget, over: Partial<FetchNews> = {}): FetchNews {
  const rest = { error: "NONE", highWatermark: 0, logStartOffset: 0, bytes: 0 } as const;
  return { target: one, ...rest, diverging: false, ...over };
}

function sessions(slotsMax = 10) {
  const clock = createFakeClock();
  return { clock, table: createFetchSessions({ clock, random: seededRandom(1), slotsMax }) };
}

function start(table: ReturnType<typeof createFetchSessions>, ...partitions: number[]) {
  const scope = table.open(opening(0, 0, ...partitions));
  assert.ok(scope.ok);
  scope.select(scope.targets.map((one) => news(one)));
  return scope.sessionId;
}

test("ids and epochs, as in KIP-227", () => {
  const { table } = sessions();
  const plain = table.open(opening(0, -1, 0));
  assert.ok(plain.ok && plain.sessionId === 0);
  const id = start(table, 0, 1);
  assert.ok(id > 0);
  assert.equal(table.size, 1);
  assert.deepEqual(table.open(opening(id, 2)), { ok: false, error: "INVALID_FETCH_SESSION_EPOCH" });
  assert.ok(table.open(opening(id, 1)).ok);
  assert.ok(table.open(opening(id, 2)).ok);
  const replaced = table.open(opening(id, 0, 5));
  assert.ok(replaced.ok && replaced.sessionId !== id);
  assert.equal(table.size, 1, "a full request drops the session it names");
  assert.ok(table.open(opening(replaced.sessionId, -1, 0)).ok);
  assert.equal(table.size, 0, "the final epoch closes it");
  assert.deepEqual(table.open(opening(id, 1)), { ok: false, error: "FETCH_SESSION_ID_NOT_FOUND" });
});

test("a full table gives no session until one is idle for two minutes", async () => {
  const { table, clock } = sessions(2);
  const first = start(table, 0);
  const second = start(table, 0);
  assert.equal(start(table, 0), 0);
  await clock.advance(60_000);
  assert.ok(table.open(opening(first, 1)).ok);
  await clock.advance(60_000);
  assert.ok(start(table, 0) > 0, "the least recently used one made room");
  assert.equal(table.open(opening(second, 1)).ok, false);
  assert.ok(table.open(opening(first, 2)).ok);
});

test("an idle session ends when any request comes, also while there is room", async () => {
  const { table, clock } = sessions(10);
  const idle = start(table, 0, 1);
  await clock.advance(119_999);
  start(table, 2);
  assert.deepEqual([table.size, table.partitions], [2, 3]);
  await clock.advance(1);
  table.open(opening(0, -1, 9));
  assert.deepEqual([table.size, table.partitions], [1, 1]);
  assert.equal(table.open(opening(idle, 1)).ok, false);
});

test("a long poll is use until it is answered", async () => {
  const { table, clock } = sessions();
  const id = start(table, 0);
  const scope = table.open(opening(id, 1));
  assert.ok(scope.ok);
  await clock.advance(110_000);
  scope.select([]);
  await clock.advance(110_000);
  assert.ok(table.open(opening(id, 2)).ok);
});

test("all sessions together remember a bounded number of partitions; others work without", () => {
  const { table } = sessions(1000);
  const many = Array.from({ length: 10_000 }, (_, i) => i);
  for (let i = 0; i < 20; i++) assert.ok(start(table, ...many) > 0);
  assert.equal(table.partitions, 200_000);
  const more = table.open(opening(0, 0, 1, 2));
  assert.ok(more.ok);
  assert.equal(more.sessionId, 0);
  assert.deepEqual(more.targets.map(({ partition }) => partition), [1, 2]);
  assert.equal(table.size, 20);
});

test("a session that outgrows its bound ends, so that no partition is forgotten silently", () => {
  const { table } = sessions();
  const id = start(table, ...Array.from({ length: 9_999 }, (_, i) => i));
  const forgotten = [target(0)];
  assert.ok(table.open({ ...opening(id, 1, 20_000, 20_001), forgotten }).ok);
  assert.equal(table.partitions, 10_000);
  const refused = table.open(opening(id, 2, 30_000));
  assert.deepEqual(refused, { ok: false, error: "FETCH_SESSION_ID_NOT_FOUND" });
  assert.deepEqual([table.size, table.partitions], [0, 0]);
});

test("a name that no topic can have is not remembered", () => {
  const { table } = sessions();
  const long = { ...target(0), topic: "x".repeat(250) };
  const scope = table.open({ ...opening(0, 0), targets: [long] });
  assert.ok(scope.ok && scope.sessionId === 0 && scope.targets.length === 1);
  assert.equal(table.partitions, 0);
});

test("news are data, errors, moved offsets and divergence", () => {
  const { table } = sessions();
  const id = start(table, 0);
  const cases: [boolean, Partial<FetchNews>][] = [
    [false, {}],
    [true, { bytes: 1 }],
    [true, { highWatermark: 1 }],
    [false, { highWatermark: 1 }],
    [true, { highWatermark: 1, logStartOffset: 1 }],
    [true, { highWatermark: 1, logStartOffset: 1, diverging: true }],
    [true, { highWatermark: 1, logStartOffset: 1, error: "NOT_LEADER_OR_FOLLOWER" }],
    [true, { highWatermark: 1, logStartOffset: 1 }],
    [false, { highWatermark: 1, logStartOffset: 1 }],
  ];
  for (const [i, [expected, over]] of cases.entries()) {
    const scope = table.open(opening(id, i + 1));
    assert.ok(scope.ok);
    assert.equal(scope.select([news(target(0), over)]).length, expected ? 1 : 0, `case ${i}`);
  }
});

test("partitions with data go to the back", () => {
  const { table } = sessions();
  const id = start(table, 0, 1, 2);
  const scope = table.open(opening(id, 1));
  assert.ok(scope.ok);
  scope.select([news(target(0), { bytes: 5 }), news(target(1)), news(target(2))]);
  const next = table.open(opening(id, 2));
  assert.ok(next.ok);
  assert.deepEqual(next.targets.map(({ partition }) => partition), [1, 2, 0]);
});

test("property: the session's partitions are those of a plain set", () => {
  const step = fc.record({
    add: fc.array(fc.nat(5), { maxLength: 3 }),
    drop: fc.array(fc.nat(5), { maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const { table } = sessions();
      const id = start(table, 0);
      const model = new Set([0]);
      for (const [i, { add, drop }] of steps.entries()) {
        const forgotten = drop.map((partition) => target(partition));
        const scope = table.open({ ...opening(id, i + 1, ...add), forgotten });
        for (const one of drop) model.delete(one);
        for (const one of add) model.add(one);
        assert.ok(scope.ok);
        assert.deepEqual(
          scope.targets.map(({ partition }) => partition).toSorted(),
          [...model].toSorted(),
        );
        assert.equal(table.partitions, model.size);
      }
    }),
    { numRuns: 50 },
  );
});
