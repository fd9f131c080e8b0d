import assert from "node:assert/strict";
import { test } from "node:test";
import { bases, record } from "../../tests/support/records.ts";
import { streamEpoch, streamId } from "../lib/brand.ts";
import { DecodeError, fromHex, toHex, toUtf8 } from "../lib/bytes.ts";
import { LAYOUT_STEP_RECORDS } from "../lib/limits.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { LogCacheBlock } from "./cache/log_cache_block.ts";
import { ObjectWriter } from "./format/object_writer.ts";
import { listOf, OwnMemory, type RecordList, RecordMemory } from "./record_list.ts";
import { readStreamRecord, type StreamRecord, writeStreamRecord } from "./stream_record.ts";
import { layOut } from "./upload/object_upload.ts";

const GOLDEN = "22 0000000000000001 0000000000000002 0000000000000003 00000004 00000005 68656c6c6f";
const HELLO: StreamRecord = {
  streamId: streamId(1),
  epoch: streamEpoch(2),
  baseOffset: 3,
  count: 4,
  payload: toUtf8("hello"),
};

test("StreamRecordBatchTest: of(1,2,3,4,hello) in both directions, byte for byte", () => {
  const bytes = new Uint8Array(38);
  assert.equal(writeStreamRecord(bytes, 0, HELLO), 38);
  assert.equal(toHex(bytes), toHex(fromHex(GOLDEN)));
  assert.deepEqual(readStreamRecord(fromHex(GOLDEN), 0), HELLO);
  const memory = new RecordMemory(fromHex(GOLDEN));
  const read = [memory.streamAt(0), memory.startAt(0), memory.endAt(0), memory.payloadBytesAt(0)];
  assert.deepEqual(read, [1, 3, 7, 5]);
});

test("a link record of AutoMQ's zero-zone is read with its negative count, and never stored again", () => {
  const golden = "22 0000000000000005 0000000000000001 000000000000000a fffffffd 00000001 00";
  const link = readStreamRecord(fromHex(golden), 0);
  assert.deepEqual([link.streamId, link.baseOffset, link.count], [5, 10, -3]);
  assert.throws(() => new ObjectWriter().add(link), /covers no offset/);
});

test("10 records base 3..12 with payload hello0..9 in one buffer: each is 3 + i, all bytes are used", () => {
  const records = Array.from({ length: 10 }, (_, i) => record(1, 3 + i, 1, toUtf8(`hello${i}`)));
  const bytes = new Uint8Array(10 * 39);
  let at = 0;
  for (const one of records) at = writeStreamRecord(bytes, at, one);
  assert.equal(at, bytes.length);
  for (let i = 0; i < 10; i++) {
    const read = readStreamRecord(bytes, 39 * i);
    assert.equal(read.baseOffset, 3 + i);
    assert.equal(new TextDecoder().decode(read.payload), `hello${i}`);
    assert.equal(read.payload.buffer, bytes.buffer, "a view");
  }
  assert.throws(() => readStreamRecord(bytes.subarray(0, 38), 0), DecodeError);
});

test("copies of encoded records equal the encoding, whatever their size", () => {
  const own = new OwnMemory();
  for (const bytes of [0, 1, 62, 63, 64, 5_000, 9_000_000]) {
    const one = record(7, 1, 2, bytes);
    const { memory, at } = own.copy(one);
    const [copied, encoded] = [new Uint8Array(33 + bytes), new Uint8Array(33 + bytes)];
    assert.equal(memory.copy(at, copied, 0), copied.length);
    writeStreamRecord(encoded, 0, one);
    assert.equal(toHex(copied.subarray(0, 100)), toHex(encoded.subarray(0, 100)));
    assert.deepEqual(memory.recordAt(at), one);
  }
});

/** Fails when a record is made an object. */
function objectless(list: RecordList): RecordList {
  return {
    length: list.length,
    at: () => assert.fail("a record became an object"),
    startAt: (i) => list.startAt(i),
    endAt: (i) => list.endAt(i),
    payloadBytesAt: (i) => list.payloadBytesAt(i),
    write: (i, target, at) => list.write(i, target, at),
  };
}

test("an object of tiny records is laid out and encoded without one object per record", () => {
  const records = Array.from({ length: 5_000 }, (_, i) => record(1, i, 1, 1));
  const block = new LogCacheBlock(0);
  for (const one of records) block.put(one, 0);
  const [compact, plain] = [new ObjectWriter(1_000), new ObjectWriter(1_000)];
  compact.addList(streamId(1), objectless(block.run(streamId(1))!));
  for (const one of records) plain.add(one);
  const [layout, expected] = [compact.finish(), plain.finish()];
  assert.equal(toHex(layout.encode()), toHex(expected.encode()));
  assert.equal(layout.index.length, 5 * 36, "one index entry per block, not per record");
});

test("a large layout lets others have their turn", async () => {
  const clock = createFakeClock();
  const block = new LogCacheBlock(0);
  for (let i = 0; i < LAYOUT_STEP_RECORDS + 1; i++) block.put(record(1, i, 1, 0), 0);
  const work = layOut({ clock }, block.runs());
  assert.equal(clock.timers, 1);
  await clock.advance(1);
  assert.deepEqual((await work).ranges, [
    { streamId: streamId(1), start: 0, end: LAYOUT_STEP_RECORDS + 1 },
  ]);
});

test("a list of an array grows with it", () => {
  const records = [record(1, 0)];
  const list = listOf(records);
  records.push(record(1, 1, 3));
  assert.deepEqual([list.length, list.startAt(1), list.endAt(1)], [2, 1, 4]);
  assert.deepEqual(bases([list.at(0), list.at(1)]), [0, 1]);
});
