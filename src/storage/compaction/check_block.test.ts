import assert from "node:assert/strict";
import { test } from "node:test";
import { record } from "../../../tests/support/records.ts";
import { DecodeError } from "../../lib/bytes.ts";
import { DATA_BLOCK_HEADER_BYTES, writeDataBlock } from "../format/data_block.ts";
import type { IndexEntry } from "../format/index_block.ts";
import { encodedBytes } from "../stream_record.ts";
import { checkBlock } from "./check_block.ts";

const BLOCKS = [[record(3, 10, 2, 5), record(3, 12, 1, 0)], [record(3, 13, 4, 7)]];
const BYTES = (() => {
  const records = BLOCKS.flat().reduce((sum, one) => sum + encodedBytes(one), 0);
  const bytes = new Uint8Array(records + BLOCKS.length * DATA_BLOCK_HEADER_BYTES);
  let at = 0;
  for (const block of BLOCKS) at = writeDataBlock(bytes, at, block);
  return bytes;
})();
const ENTRY: IndexEntry = {
  streamId: BLOCKS[0]![0]!.streamId,
  start: 10,
  end: 17,
  recordCount: 3,
  position: 0,
  size: BYTES.length,
};

test("several blocks behind one entry are sound", () => {
  checkBlock(BYTES, ENTRY);
});

test("an entry that says something else is refused", () => {
  for (const wrong of [{ start: 9 }, { end: 18 }, { recordCount: 4 }, { streamId: 4 as never }]) {
    assert.throws(() => checkBlock(BYTES, { ...ENTRY, ...wrong }), DecodeError);
  }
});

test("every cut, and every damaged byte of a header, is found", () => {
  for (let length = 1; length < BYTES.length; length++) {
    assert.throws(() => checkBlock(BYTES.subarray(0, length), ENTRY), DecodeError);
  }
  // Of the header of the first block and its first record; the epoch is not in the index.
  const epoch = { from: 10 + 9, to: 10 + 17 };
  for (let at = 0; at < 10 + 33; at++) {
    if (at >= epoch.from && at < epoch.to) continue;
    const damaged = BYTES.slice();
    damaged[at]! ^= 0x55;
    assert.throws(() => checkBlock(damaged, ENTRY), DecodeError, `byte ${at}`);
  }
});
