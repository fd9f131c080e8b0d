import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { toUtf8, utf8 } from "../../lib/bytes.ts";
import type { NewRecord } from "../../protocol/record_writer.ts";
import { type Batch, Lane } from "./lane.ts";

function recordOf(text: string): NewRecord {
  return { key: null, value: toUtf8(text), headers: [], timestampMs: 0 };
}

/** A lane whose deliveries wait until the test answers them; each record counts one byte. */
function harness({ lingerMs = 0, batchBytes = 3 } = {}) {
  const clock = createFakeClock();
  const batches: { values: string; sequence: number }[] = [];
  const answers: ((offset: number | null) => void)[] = [];
  const refusals: ((error: Error) => void)[] = [];
  let released = 0;
  const lane = new Lane({
    partition: 7,
    clock,
    lingerMs,
    batchBytes,
    deliver({ records, sequence }: Batch) {
      batches.push({ values: records.map(({ value }) => utf8(value!)).join(""), sequence });
      return new Promise((resolve, reject) => {
        answers.push(resolve);
        refusals.push(reject);
      });
    },
    release: (bytes) => void (released += bytes),
  });
  const run = lane.run();
  return {
    clock,
    lane,
    run,
    batches,
    add: (text: string) => text.split("").forEach((one) => lane.add(recordOf(one), 1)),
    async answer(offset: number | null) {
      answers.shift()!(offset);
      refusals.shift();
      await clock.advance(0);
    },
    async refuse(error: Error) {
      refusals.shift()!(error);
      answers.shift();
      await clock.advance(0);
    },
    released: () => released,
  };
}

test("one batch is under way; what arrives meanwhile is the next", async () => {
  const { clock, lane, run, batches, add, answer, released } = harness();
  add("a");
  await clock.advance(0);
  add("bcde");
  await clock.advance(0);
  assert.deepEqual(batches, [{ values: "a", sequence: 0 }]);
  await answer(10);
  assert.deepEqual(batches.slice(1), [{ values: "bcd", sequence: 1 }]);
  assert.equal(released(), 1);
  lane.end();
  await answer(20);
  await answer(23);
  await run;
  assert.deepEqual(batches.at(-1), { values: "e", sequence: 4 });
  assert.deepEqual(lane.acknowledged, {
    partition: 7,
    records: 5,
    firstOffset: 10,
    lastOffset: 23,
  });
  assert.equal(released(), 5);
});

test("a small batch waits for more, a full one or the end does not", async () => {
  const { clock, lane, batches, add, answer } = harness({ lingerMs: 100 });
  add("a");
  await clock.advance(60);
  add("b");
  await clock.advance(39);
  assert.equal(batches.length, 0);
  await clock.advance(1);
  assert.deepEqual(batches, [{ values: "ab", sequence: 0 }]);
  await answer(0);
  add("cde");
  await clock.advance(0);
  assert.deepEqual(batches.at(-1), { values: "cde", sequence: 2 });
  await answer(2);
  add("f");
  lane.end();
  await clock.advance(0);
  assert.deepEqual(batches.at(-1), { values: "f", sequence: 5 });
});

test("a batch that is too large goes again in halves, with the same sequences", async () => {
  const { clock, lane, run, batches, add, answer } = harness({ batchBytes: 4, lingerMs: 50 });
  add("abcd");
  await clock.advance(0);
  await answer(null);
  await answer(0);
  lane.end();
  await answer(2);
  await run;
  assert.deepEqual(batches, [
    { values: "abcd", sequence: 0 },
    { values: "ab", sequence: 0 },
    { values: "cd", sequence: 2 },
  ]);
  assert.equal(lane.acknowledged.records, 4);
});

test("a failure ends the lane with it; an abandoned one sends nothing more", async () => {
  const failed = harness();
  failed.add("a");
  await failed.clock.advance(0);
  const rejection = assert.rejects(failed.run, /refused/);
  await failed.refuse(new Error("refused"));
  await rejection;
  const other = harness();
  other.add("ab");
  await other.clock.advance(0);
  other.add("cd");
  other.lane.abandon();
  await other.answer(0);
  await other.run;
  assert.deepEqual(other.batches, [{ values: "ab", sequence: 0 }]);
});
