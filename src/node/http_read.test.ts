import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../tests/support/broker_world.ts";
import { createPermits } from "../broker/routes.ts";
import { toUtf8, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import {
  HOT_FETCH_PERMIT_BYTES,
  HTTP_LARGE_READS_BYTES_MAX,
  HTTP_PERMIT_WAIT_MS,
  HTTP_READ_BYTES_MAX,
  HTTP_RECORD_BYTES_MAX,
} from "../lib/limits.ts";
import { buildBatch } from "../protocol/record_batch.ts";
import type { NewRecord } from "../protocol/record_writer.ts";
import type { FakeClock } from "../../tests/support/fake_clock.ts";
import type { ReadQuery } from "../http/port.ts";
import { ProblemError } from "../http/problem.ts";
import { readFrom } from "./http_read.ts";
import { owned } from "./http_records.ts";
import { createReadRooms } from "./read_place.ts";

function record(value: Uint8Array): NewRecord {
  return { key: null, value, headers: [], timestampMs: 1 };
}

async function rig() {
  const { env, log: logOf, createTopic } = await createBrokerWorld({ routes: () => [] });
  await createTopic("t");
  const log = await logOf("t");
  const batch = (codec: "gzip" | null, ...values: Uint8Array[]) =>
    buildBatch({ records: values.map(record), codec, codecs: env.codecs });
  const permits = createPermits();
  const rooms = createReadRooms(permits);
  return {
    batch,
    env,
    permits,
    rooms,
    log,
    /** Right from the outside, no records on the inside. */
    unsound() {
      const bytes = batch(null, toUtf8("abcdef"), toUtf8("ghijkl"));
      bytes.fill(0xff, 61);
      viewOf(bytes).setUint32(17, crc32c(bytes.subarray(21)));
      return bytes;
    },
    append: (bytes: Uint8Array) => assert.ok(log.append(bytes).ok),
    read: (offset: number, over: Partial<ReadQuery> = {}) =>
      readFrom(() => Promise.resolve({ ok: true, log }), {
        offset,
        recordsMax: 100,
        bytesMax: HTTP_READ_BYTES_MAX,
        recordBytesMax: HTTP_RECORD_BYTES_MAX,
        waitMs: 0,
        isolation: "uncommitted",
        signal: new AbortController().signal,
        ...over,
      }, { env, rooms }),
  };
}

test("a batch that holds no records is named, and hides neither those before nor behind it", async () => {
  const { append, batch, unsound, read } = await rig();
  append(batch(null, toUtf8("a"), toUtf8("b")));
  append(unsound());
  append(batch(null, toUtf8("c")));
  const before = await read(0);
  assert.ok(before.ok);
  assert.deepEqual([before.records.length, before.next], [2, 2]);
  const at = await read(before.next);
  assert.ok(!at.ok);
  assert.deepEqual([at.error, at.next], ["INVALID_RECORD", 4]);
  const behind = await read(4);
  assert.ok(behind.ok);
  assert.deepEqual([behind.records.length, behind.next], [1, 5]);
});

test("a batch that is damaged in the store is told, not shown, and those around it go on", async () => {
  const places: readonly (readonly [string, number])[] = [
    ["a value", 70],
    ["the attributes", 22],
    ["the last offset delta", 26],
    ["the record count", 60],
    ["the checksum", 17],
    ["the magic", 16],
    ["the length", 11],
    ["the base offset", 3],
  ];
  for (const [name, at] of places) {
    const { append, batch, read, log, permits } = await rig();
    append(batch(null, toUtf8("a")));
    append(batch(null, toUtf8("b"), toUtf8("SENTINEL")));
    append(batch(null, toUtf8("c")));
    const inMemory = await log.read(1, { bytesMax: 1, isolation: "committed" });
    assert.ok(inMemory?.ok);
    inMemory.batches[0]![at]! ^= 0x20;
    const before = await read(0);
    assert.ok(before.ok, name);
    assert.deepEqual([before.records.length, before.next], [1, 1], name);
    before.release();
    for (const over of [{}, { recordsMax: 1, bytesMax: 1, recordBytesMax: Infinity }]) {
      const at = await read(1, over);
      assert.ok(!at.ok, name);
      assert.equal(at.error, "CORRUPT_MESSAGE", name);
      assert.ok(at.next === undefined || (at.next > 1 && at.next <= 4), `${name}: ${at.next}`);
      if (name === "a value") assert.equal(at.next, 3);
    }
    const behind = await read(3);
    assert.ok(behind.ok, name);
    assert.deepEqual([behind.records.length, behind.next], [1, 4], name);
    behind.release();
    assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES, name);
  }
});

test("large pages that nobody takes do not stall small reads, and large ones come in turn", async () => {
  const { append, batch, read, rooms, permits, env } = await rig();
  const clock = env.clock as FakeClock;
  for (let i = 0; i < 16; i++) append(batch(null, new Uint8Array(1_000_000)));
  const small = { bytesMax: 1, recordsMax: 1 };
  append(batch(null, toUtf8("small")));
  const pages = Array.from({ length: 20 }, () => read(0));
  await clock.settle();
  assert.ok(rooms.hot.share.waiting > 10, `${rooms.hot.share.waiting}`);
  assert.equal(permits.hotFetch.waiting, 0);
  const quick = await read(16, small);
  assert.ok(quick.ok);
  assert.equal(quick.records.length, 1);
  quick.release();
  for (const page of pages) {
    const taken = await page;
    assert.ok(taken.ok);
    taken.release();
  }
  assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES);
  assert.equal(rooms.hot.share.free, HTTP_LARGE_READS_BYTES_MAX);
});

test("what inflates to a large page counts as one", async () => {
  const { append, batch, read, rooms, permits } = await rig();
  append(batch("gzip", new Uint8Array(HTTP_READ_BYTES_MAX / 2)));
  const page = await read(0, { bytesMax: 1 });
  assert.ok(page.ok);
  assert.ok(rooms.hot.share.free <= HTTP_LARGE_READS_BYTES_MAX - HTTP_READ_BYTES_MAX / 2);
  page.release();
  await rooms.hot.share.acquire(HTTP_LARGE_READS_BYTES_MAX);
  const gone = new AbortController();
  const waiting = assert.rejects(read(0, { bytesMax: 1, signal: gone.signal }));
  while (rooms.hot.share.waiting === 0) await Promise.resolve();
  assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES);
  gone.abort();
  await waiting;
  assert.equal(rooms.hot.share.waiting, 0);
});

test("records that inflate to much more than was asked for are read in several turns", async () => {
  const { append, batch, read, permits } = await rig();
  const large = new Uint8Array(HTTP_READ_BYTES_MAX / 2);
  append(batch("gzip", large, large, large));
  const seen: number[] = [];
  for (let offset = 0; offset < 3;) {
    const page = await read(offset);
    assert.ok(page.ok);
    assert.ok(page.records.length === 1, `${page.records.length} records`);
    seen.push(page.records[0]!.offset);
    offset = page.next;
    page.release();
  }
  assert.deepEqual(seen, [0, 1, 2]);
  assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES);
});

test("what a page holds is counted until it is released, once, and not more than it holds", async () => {
  const { append, batch, read, permits } = await rig();
  append(batch(null, new Uint8Array(100_000), new Uint8Array(100_000)));
  const page = await read(0, { recordsMax: 1 });
  assert.ok(page.ok);
  const held = HOT_FETCH_PERMIT_BYTES - permits.hotFetch.free;
  assert.ok(held >= 100_000 && held < 150_000, `${held} bytes`);
  page.release();
  page.release();
  assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES);
});

test("a page that is empty, refused or waited for holds nothing", async () => {
  const { append, unsound, read, permits, env } = await rig();
  const clock = env.clock as FakeClock;
  const waiting = read(0, { waitMs: 1000 });
  await clock.settle();
  assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES);
  await clock.advance(1000);
  const empty = await waiting;
  assert.ok(empty.ok);
  assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES);
  append(unsound());
  assert.ok(!(await read(0)).ok);
  assert.ok(!(await read(9)).ok);
  assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES);
});

test("a record of few bytes that inflate to many is held for what it became", async () => {
  const { append, batch, read, permits } = await rig();
  append(batch("gzip", new Uint8Array(40_000_000)));
  const raw = { bytesMax: 1, recordsMax: 1, recordBytesMax: Infinity };
  const page = await read(0, raw);
  assert.ok(page.ok);
  assert.equal(page.records[0]!.value!.length, 40_000_000);
  const held = HOT_FETCH_PERMIT_BYTES - permits.hotFetch.free;
  assert.ok(held >= 40_000_000 && held < 41_000_000, `${held} bytes`);
  page.release();
});

test("a record that finds no room for what it inflates to waits for it, holding nothing", async () => {
  const { append, batch, read, permits, env } = await rig();
  const clock = env.clock as FakeClock;
  append(batch("gzip", new Uint8Array(40_000_000)));
  const { timers } = clock;
  await permits.hotFetch.acquire(HOT_FETCH_PERMIT_BYTES - 1000);
  const raw = { bytesMax: 1, recordsMax: 1, recordBytesMax: Infinity };
  const refused = assert.rejects(
    read(0, raw),
    (error) => error instanceof ProblemError && error.problem.status === 503,
  );
  await clock.settle();
  assert.deepEqual([permits.hotFetch.free, permits.hotFetch.waiting], [1000, 1]);
  await clock.advance(HTTP_PERMIT_WAIT_MS);
  await refused;
  assert.deepEqual([permits.hotFetch.free, permits.hotFetch.waiting], [1000, 0]);
  const gone = new AbortController();
  const aborted = assert.rejects(read(0, { ...raw, signal: gone.signal }));
  await clock.settle();
  gone.abort();
  await aborted;
  assert.equal(permits.hotFetch.waiting, 0);
  const patient = read(0, raw);
  await clock.settle();
  permits.hotFetch.release(HOT_FETCH_PERMIT_BYTES - 1000);
  const page = await patient;
  assert.ok(page.ok);
  page.release();
  assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES);
  assert.equal(clock.timers, timers);
});

test("a page ends before a record above its limit, and says so when that is its first", async () => {
  const { append, batch, read, permits } = await rig();
  append(batch(null, toUtf8("a")));
  append(batch("gzip", new Uint8Array(HTTP_RECORD_BYTES_MAX + 1)));
  append(batch(null, toUtf8("b")));
  const before = await read(0);
  assert.ok(before.ok);
  assert.deepEqual([before.records.length, before.next], [1, 1]);
  before.release();
  const at = await read(1, { waitMs: 1000 });
  assert.ok(at.ok);
  assert.deepEqual([at.records.length, at.next, at.oversized?.offset], [0, 1, 1]);
  at.release();
  const behind = await read(2);
  assert.ok(behind.ok);
  assert.deepEqual([behind.records.length, behind.next], [1, 3]);
  behind.release();
  assert.equal(permits.hotFetch.free, HOT_FETCH_PERMIT_BYTES);
});

test("records are copied out of a buffer that is mostly something else, and only then", () => {
  const buffer = Uint8Array.from({ length: 1000 }, (_, i) => i);
  const recordOf = (from: number, to: number) => ({
    offset: 0,
    timestampMs: 1,
    key: buffer.subarray(from, from + 1),
    value: buffer.subarray(from, to),
    headers: [{ name: "h", value: null }, { name: "i", value: buffer.subarray(from, from + 2) }],
  });
  const few = owned([recordOf(100, 200)], buffer);
  assert.deepEqual(few.records, [recordOf(100, 200)]);
  assert.deepEqual([few.heldBytes, few.viewsLog], [103, false]);
  assert.notEqual(few.records[0]!.value!.buffer, buffer.buffer);
  const most = owned([recordOf(0, 900)], buffer);
  assert.deepEqual([most.heldBytes, most.viewsLog], [1000, true]);
  assert.equal(most.records[0]!.value!.buffer, buffer.buffer);
  assert.equal(owned([recordOf(0, 900)], new Uint8Array(5)).viewsLog, false);
  assert.deepEqual(owned([], buffer), { records: [], heldBytes: 0, viewsLog: false });
});
