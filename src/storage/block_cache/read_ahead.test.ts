/** Expected values from the reference's StreamReaderTest and its table of read-ahead rules. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { streamId } from "../../lib/brand.ts";
import { ReadAhead, type Window } from "./read_ahead.ts";
import { StreamReaders } from "./stream_readers.ts";

const UNIT = 512 * 1024;
const MIB = 1024 * 1024;
const MUCH = 1024 * MIB;

/** [0,1) of 1 byte; [1,4) of 19, 10, 10; from 4 on one block of 256 KiB per offset. */
const BLOCKS = [1, 19, 10, 10, ...Array.from({ length: 30 }, () => 256 * 1024)];

function endOf({ from, bytes }: Window): number {
  let at = from;
  for (let left = bytes; left > 0 && at < BLOCKS.length; at++) left -= BLOCKS[at]!;
  return at;
}

/** Reads up to `to`, and reads ahead if that is due. */
function read(ahead: ReadAhead, to: number, missed: boolean): Window | null {
  if (missed) ahead.missed();
  const window = ahead.begin(to, 0, MUCH);
  if (window !== null) ahead.end(endOf(window));
  return window;
}

describe("read-ahead", () => {
  test("StreamReaderTest: sizes, ends and marks, when it grows by misses alone", () => {
    const ahead = new ReadAhead(UNIT);
    const state = () => [ahead.bytes / UNIT, ahead.next, ahead.mark];
    read(ahead, 3, true);
    assert.deepEqual(state(), [2, 8, 3]);
    read(ahead, 4, false);
    assert.deepEqual(state(), [2, 12, 8]);
    assert.equal(read(ahead, 5, false), null, "it has enough before it");
    assert.deepEqual(state(), [2, 12, 8]);
    read(ahead, 14, true);
    assert.deepEqual(state(), [3, 20, 14]);
  });

  test("the window doubles up to one range read, and grows by misses beyond", () => {
    const ahead = new ReadAhead();
    const sizes: number[] = [];
    let at = 0;
    for (let i = 0; i < 6; i++) {
      const window = ahead.begin(at, 0, MUCH)!;
      sizes.push(window.bytes);
      at = window.from + 1;
      ahead.end(window.from + 2);
    }
    assert.deepEqual(sizes, [UNIT, MIB, 2 * MIB, 4 * MIB, 4 * MIB, 4 * MIB]);
    for (let i = 0; i < 100; i++) ahead.missed();
    assert.equal(ahead.begin(at, 0, MUCH)?.bytes, 32 * MIB);
  });

  test("one at a time; misses meanwhile count", () => {
    const ahead = new ReadAhead(UNIT);
    assert.deepEqual(ahead.begin(0, 0, MUCH), { from: 0, bytes: UNIT });
    ahead.missed();
    assert.equal(ahead.begin(5, 0, MUCH), null);
    ahead.end(3);
    assert.deepEqual(ahead.begin(5, 0, MUCH), { from: 5, bytes: 2 * UNIT });
  });

  test("after a reset it pauses for 60 s and begins small, where the reader is", () => {
    const ahead = new ReadAhead();
    for (let i = 0; i < 3; i++) read(ahead, 4 * i, true);
    assert.ok(ahead.bytes > UNIT);
    ahead.reset(1_000);
    assert.equal(ahead.begin(12, 60_999, MUCH), null);
    assert.deepEqual(ahead.begin(12, 61_000, MUCH), { from: 12, bytes: UNIT });
  });

  test("no room, no window; less room, a smaller one", () => {
    const ahead = new ReadAhead();
    ahead.missed();
    assert.equal(ahead.begin(0, 0, UNIT - 1), null);
    assert.deepEqual(ahead.begin(0, 0, UNIT), { from: 0, bytes: UNIT });
  });

  test("a window that failed is tried again from its begin", () => {
    const ahead = new ReadAhead();
    const window = ahead.begin(7, 0, MUCH)!;
    ahead.end(window.from);
    assert.deepEqual(ahead.begin(8, 0, MUCH), { from: 8, bytes: UNIT });
  });
});

describe("StreamReadersTest", () => {
  const at = (stream: number, offset: number) => [streamId(stream), offset] as const;

  test("who goes on is the same reader; another stream or place is another one", () => {
    const readers = new StreamReaders(createFakeClock());
    const first = readers.take(...at(1, 0));
    assert.equal(first.isSequential, false);
    readers.give(first, 10);
    assert.equal(readers.size, 1);
    const second = readers.take(...at(1, 10));
    assert.deepEqual([second.isSequential, second.ahead === first.ahead], [true, true]);
    assert.equal(readers.take(...at(1, 10)).isSequential, false, "it reads, so nobody finds it");
    readers.give(second, 20);
    readers.give(readers.take(...at(2, 0)), 5);
    assert.equal(readers.size, 2);
    assert.equal(readers.take(...at(2, 20)).isSequential, false);
  });

  test("idle ones are kept for a minute", async () => {
    const clock = createFakeClock();
    const readers = new StreamReaders(clock);
    readers.give(readers.take(...at(1, 0)), 10);
    await clock.advance(60_000);
    const kept = readers.take(...at(1, 10));
    assert.equal(kept.isSequential, true);
    readers.give(kept, 20);
    await clock.advance(120_000);
    assert.equal(readers.take(...at(1, 20)).isSequential, false);
    assert.equal(readers.size, 0);
  });

  test("their number is bounded", () => {
    const readers = new StreamReaders(createFakeClock());
    for (let i = 0; i < 5_000; i++) readers.give(readers.take(...at(i, 0)), 1);
    assert.equal(readers.size, 4_096);
    assert.equal(readers.take(...at(4_999, 1)).isSequential, true);
  });
});
