import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { nodeEpoch, nodeId, position, streamEpoch, streamId } from "../../lib/brand.ts";
import { fromHex, toHex, toUtf8 } from "../../lib/bytes.ts";
import { SLOT_BYTES } from "../../lib/limits.ts";
import type { StreamRecord } from "../stream_record.ts";
import { Bulk } from "./bulk.ts";
import { WalMemory } from "./wal_memory.ts";
import {
  encodeSeal,
  readWalHeader,
  readWalObject,
  trimOffsetOf,
  writeWalHeader,
  writeWalRecord,
} from "./wal_object.ts";

const OWNER = { nodeId: nodeId(7), epoch: nodeEpoch(1_700_000_000_000) };
const HELLO: StreamRecord = {
  streamId: streamId(1),
  epoch: streamEpoch(2),
  baseOffset: 3,
  count: 4,
  payload: toUtf8("hello"),
};

function spaced(text: string): string {
  return toHex(fromHex(text));
}

function objectOf(records: readonly StreamRecord[], slot: number, walTrim = 0): Uint8Array {
  const bulk = new Bulk(OWNER, slot, new WalMemory());
  for (const record of records) bulk.append(record);
  return bulk.finish(trimOffsetOf(walTrim)).body;
}

test("record headers have the sheet's golden bytes at offsets 0, 62 and 64 MiB", () => {
  const golden = [
    [0, "87654321 00000026 0000000000000018 2fc8e9ac 5d52a992"],
    [62, "87654321 00000026 0000000000000056 2fc8e9ac 3a914fba"],
    [SLOT_BYTES, "87654321 00000026 0000000004000018 2fc8e9ac 5918a768"],
  ] as const;
  for (const [address, header] of golden) {
    const bytes = new Uint8Array(62);
    assert.equal(writeWalRecord(bytes, 0, address, HELLO), 62);
    assert.equal(toHex(bytes.subarray(0, 24)), spaced(header));
    assert.equal(
      toHex(bytes.subarray(24)),
      spaced("22 0000000000000001 0000000000000002 0000000000000003 00000004 00000005 68656c6c6f"),
    );
  }
});

test("object headers have the sheet's golden bytes", () => {
  const header = {
    startOffset: 42,
    bodyLength: 84,
    sticky: 126,
    nodeId: nodeId(1),
    epoch: nodeEpoch(2),
    trimOffset: 168,
  };
  const bytes = new Uint8Array(48);
  writeWalHeader(bytes, 0, header);
  assert.equal(
    toHex(bytes),
    spaced(
      "edcba987 000000000000002a 0000000000000054 000000000000007e 00000001 0000000000000002 00000000000000a8",
    ),
  );
  assert.deepEqual(readWalHeader(bytes), header);
});

test("an object of two records in the second slot has the golden header and 172 bytes", () => {
  const bytes = objectOf([HELLO, HELLO], 1);
  assert.equal(bytes.length, 172);
  assert.equal(
    toHex(bytes.subarray(0, 48)),
    spaced(
      "edcba987 0000000004000000 000000000000007c 0000000000000000 00000007 0000018bcfe56800 ffffffffffffffff",
    ),
  );
});

test("a seal is a header alone and carries the recovery's position", () => {
  const seal = encodeSeal(OWNER, 1, position(99));
  assert.equal(
    toHex(seal),
    spaced(
      "edcba987 0000000004000000 0000000000000000 0000000000000063 00000007 0000018bcfe56800 ffffffffffffffff",
    ),
  );
  const read = readWalObject(seal, OWNER, 1);
  assert.equal(read.kind === "seal" && read.recovery, 99);
});

test("the trim field is the last address below the trim point", () => {
  assert.equal(trimOffsetOf(0), -1);
  assert.equal(trimOffsetOf(3), 3 * SLOT_BYTES - 1);
  const read = readWalObject(objectOf([HELLO], 5, 3), OWNER, 5);
  assert.equal(read.header.trimOffset, 3 * SLOT_BYTES - 1);
});

test("every changed byte of an object is detected", () => {
  const good = objectOf([HELLO, { ...HELLO, baseOffset: 7, payload: toUtf8("world!") }], 2);
  for (let at = 0; at < good.length; at++) {
    for (const flip of [0x01, 0x80, 0xff]) {
      const bad = good.slice();
      bad[at]! ^= flip;
      assert.throws(() => readWalObject(bad, OWNER, 2), { name: "DecodeError" }, `byte ${at}`);
    }
  }
});

test("every changed byte of a seal outside its recovery position is detected", () => {
  const good = encodeSeal(OWNER, 2, position(99));
  for (let at = 0; at < good.length; at++) {
    if (at >= 20 && at < 28) continue;
    const bad = good.slice();
    bad[at]! ^= 0x41;
    assert.throws(() => readWalObject(bad, OWNER, 2), { name: "DecodeError" }, `byte ${at}`);
  }
});

test("a cut or extended object, a foreign owner and a foreign slot are refused", () => {
  const good = objectOf([HELLO, HELLO], 2);
  for (let length = 0; length < good.length; length++) {
    assert.throws(() => readWalObject(good.subarray(0, length), OWNER, 2), { name: "DecodeError" });
  }
  const longer = new Uint8Array(good.length + 1);
  longer.set(good);
  assert.throws(() => readWalObject(longer, OWNER, 2), { name: "DecodeError" });
  assert.throws(() => readWalObject(good, { ...OWNER, nodeId: nodeId(8) }, 2), /belongs to node 7/);
  assert.throws(
    () => readWalObject(good, { ...OWNER, epoch: nodeEpoch(1) }, 2),
    /belongs to node 7/,
  );
  assert.throws(() => readWalObject(good, OWNER, 3), /not in slot 3/);
});

const anyRecord: fc.Arbitrary<StreamRecord> = fc.record({
  streamId: fc.maxSafeNat().map(streamId),
  epoch: fc.maxSafeNat().map(streamEpoch),
  baseOffset: fc.maxSafeNat(),
  count: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  payload: fc.uint8Array({ maxLength: 300 }),
}, { noNullPrototype: true });

test("what is written is read back, in arrival order", () => {
  fc.assert(
    fc.property(
      fc.array(anyRecord, { minLength: 1, maxLength: 20 }),
      fc.nat({ max: 1_000_000 }),
      (records, slot) => {
        const read = readWalObject(objectOf(records, slot), OWNER, slot);
        assert.deepEqual(read.kind === "data" && read.records, records);
      },
    ),
    { numRuns: 50 },
  );
});
