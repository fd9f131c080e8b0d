/** Reads over HTTP beside transactions: what a page holds in each isolation, and how it waits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  accepted,
  appendInTransaction,
  appendMarker,
  createHarness,
  put,
} from "../../tests/support/partition_harness.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { createPermits } from "../broker/routes.ts";
import { readBatchHeader } from "../protocol/record_batch.ts";
import { HTTP_READ_BYTES_MAX } from "../lib/limits.ts";
import type { ReadQuery } from "../http/port.ts";
import { readBatchesFrom } from "./http_batches.ts";
import { readFrom } from "./http_read.ts";
import { createReadRooms } from "./read_place.ts";

type Isolation = ReadQuery["isolation"];

/** 0 plain · 1 aborted · 2 committed · 3 abort · 4 commit · 5 open · 6 plain. */
async function rig() {
  const h = await createHarness();
  const clock = createFakeClock();
  const env = { ...h.env, clock };
  const rooms = createReadRooms(createPermits());
  await put(h.log, h.batch(["0"]));
  accepted(appendInTransaction(h, 0, 0, { producerId: 1 }));
  accepted(appendInTransaction(h, 0, 0, { producerId: 2 }));
  accepted(appendMarker(h, { producerId: 1 }));
  accepted(appendMarker(h, { producerId: 2, commit: true }));
  accepted(appendInTransaction(h, 1, 1, { producerId: 1 }));
  await put(h.log, h.batch(["6"]));
  const read = (offset: ReadQuery["offset"], isolation: Isolation, over: Partial<ReadQuery> = {}) =>
    readFrom(() => Promise.resolve({ ok: true, log: h.log }), {
      offset,
      isolation,
      recordsMax: 100,
      bytesMax: HTTP_READ_BYTES_MAX,
      recordBytesMax: HTTP_READ_BYTES_MAX,
      waitMs: 0,
      signal: new AbortController().signal,
      ...over,
    }, { env, rooms });
  /** Offsets and where to go on. */
  const page = async (...asked: Parameters<typeof read>) => {
    const answer = await read(...asked);
    assert.ok(answer.ok);
    answer.release();
    return [answer.records.map(({ offset }) => offset), answer.next];
  };
  /** Offsets of whole batches and where to go on. */
  const batches = async (offset: number, isolation: Isolation) => {
    const answer = await readBatchesFrom(() => Promise.resolve({ ok: true, log: h.log }), {
      offset,
      isolation,
      bytesMax: HTTP_READ_BYTES_MAX,
      waitMs: 0,
      signal: new AbortController().signal,
    }, { env, rooms });
    assert.ok(answer.ok);
    answer.release();
    return [answer.found.map((batch) => readBatchHeader(batch).baseOffset), answer.next];
  };
  return { h, clock, page, batches };
}

test("raw batches hold markers and what was aborted, unless only committed ones are asked for", async () => {
  const { batches } = await rig();
  assert.deepEqual(await batches(0, "uncommitted"), [[0, 1, 2, 3, 4, 5, 6], 7]);
  assert.deepEqual(await batches(0, "committed"), [[0, 2], 5]);
});

test("read_committed leaves out what was aborted and ends before what is open", async () => {
  const { page } = await rig();
  assert.deepEqual(await page(0, "uncommitted"), [[0, 1, 2, 5, 6], 7]);
  assert.deepEqual(await page(0, "committed"), [[0, 2], 5]);
  assert.deepEqual(await page(1, "committed"), [[2], 5], "from within the aborted one");
  assert.deepEqual(await page(0, "committed", { recordsMax: 1 }), [[0], 2]);
  assert.deepEqual(await page(6, "committed"), [[], 6]);
});

test("latest is the end of each isolation", async () => {
  const { page } = await rig();
  assert.deepEqual(await page("latest", "uncommitted"), [[], 7]);
  assert.deepEqual(await page("latest", "committed"), [[], 5]);
});

test("a long poll of read_committed waits for the end of the transaction", async () => {
  const { h, clock, page } = await rig();
  const state = { isDone: false };
  const waiting = page(5, "committed", { waitMs: 1_000 }).finally(() => (state.isDone = true));
  await clock.settle();
  await put(h.log, h.batch(["7"]));
  await clock.settle();
  assert.equal(state.isDone, false);
  accepted(appendMarker(h, { producerId: 1 }));
  assert.deepEqual(await waiting, [[6, 7], 9]);
});
