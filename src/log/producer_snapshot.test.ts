import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fromHex, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import {
  decodeSnapshot,
  decodeSnapshots,
  encodeSnapshot,
  encodeSnapshots,
} from "./producer_snapshot.ts";
import type { ProducerEntry } from "./producer_state.ts";

const PLAIN = { noNullPrototype: true };
const batch = fc.record({
  lastSequence: fc.nat(),
  lastOffset: fc.maxSafeNat(),
  offsetDelta: fc.nat(),
  timestampMs: fc.maxSafeNat(),
}, PLAIN);
const entry = fc.record({
  producerId: fc.maxSafeNat(),
  epoch: fc.nat(32767),
  batches: fc.array(batch, { maxLength: 5 }),
  lastTimestampMs: fc.maxSafeNat(),
  appendedMs: fc.maxSafeNat(),
  coordinatorEpoch: fc.integer({ min: -1, max: 1000 }),
  currentTxnFirstOffset: fc.option(fc.maxSafeNat()),
}, PLAIN);
const entries = fc.uniqueArray(entry, { selector: ({ producerId }) => producerId, maxLength: 6 });

const ONE: ProducerEntry = {
  producerId: 7,
  epoch: 3,
  batches: [{ lastSequence: 1, lastOffset: 13, offsetDelta: 3, timestampMs: 1000 }],
  lastTimestampMs: 1000,
  appendedMs: 2000,
  coordinatorEpoch: -1,
  currentTxnFirstOffset: null,
};

function withCrc(bytes: Uint8Array): Uint8Array {
  viewOf(bytes).setUint32(2, crc32c(bytes.subarray(6)));
  return bytes;
}

test("what is written is read back", () => {
  fc.assert(fc.property(entries, (list) => {
    assert.deepEqual(decodeSnapshot(encodeSnapshot(list)), list);
  }));
});

test("a marker has its own time; where an earlier version wrote none, it is that of the append", () => {
  const marked: ProducerEntry = { ...ONE, batches: [], lastTimestampMs: 1500 };
  assert.deepEqual(decodeSnapshot(encodeSnapshot([marked])), [marked]);
  const untold = encodeSnapshot([{ ...marked, lastTimestampMs: -1 }]);
  assert.deepEqual(decodeSnapshot(untold), [{ ...marked, lastTimestampMs: marked.appendedMs }]);
});

test("version 100 lies in these bytes", () => {
  const body = fromHex(`
    00000001 0000000000000007 0003 00000001 000000000000000d 00000003 00000000000003e8
    ffffffff ffffffffffffffff 00000000000007d0 00000001
    00000001 000000000000000d 00000003 00000000000003e8`);
  const bytes = encodeSnapshot([ONE]);
  assert.deepEqual(bytes.subarray(0, 2), fromHex("0064"));
  assert.equal(viewOf(bytes).getUint32(2), crc32c(body));
  assert.deepEqual(bytes.subarray(6), body);
});

test("Kafka's version 1 is read; its only batch is the last one", () => {
  const bytes = withCrc(fromHex(`0001 00000000
    00000001 0000000000000007 0003 00000001 000000000000000d 00000003 00000000000003e8
    00000002 0000000000000005`));
  assert.deepEqual(decodeSnapshot(bytes), [{
    ...ONE,
    appendedMs: 1000,
    coordinatorEpoch: 2,
    currentTxnFirstOffset: 5,
  }]);
});

test("scenarios 36 and 37: every cut and every flipped bit is noticed", () => {
  const bytes = encodeSnapshot([ONE, { ...ONE, producerId: 8 }]);
  for (let length = 0; length < bytes.length; length++) {
    assert.equal(decodeSnapshot(bytes.subarray(0, length)), null);
  }
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const flipped = bytes.slice();
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    assert.equal(decodeSnapshot(flipped), null, `bit ${bit}`);
  }
});

test("scenario 40: an unknown version counts as missing", () => {
  const bytes = encodeSnapshot([ONE]);
  viewOf(bytes).setInt16(0, 101);
  assert.equal(decodeSnapshot(bytes), null);
});

test("scenario 41: wrong counts and a producer id that comes twice are corrupt", () => {
  const twice = encodeSnapshot([ONE, ONE]);
  assert.equal(decodeSnapshot(twice), null);
  for (const count of [0, 2, 1_000_000, -1]) {
    const bytes = encodeSnapshot([ONE]);
    viewOf(bytes).setInt32(6, count);
    assert.equal(decodeSnapshot(withCrc(bytes)), null, `count ${count}`);
  }
});

test("the list of snapshots has AutoMQ's frame; a cut leaves the earlier ones", () => {
  const list = [{ offset: 5, bytes: Uint8Array.of(1, 2) }, { offset: 9, bytes: Uint8Array.of(3) }];
  const value = encodeSnapshots(list);
  assert.deepEqual(
    value,
    fromHex("18 0000000000000005 00000002 0102 0000000000000009 00000001 03"),
  );
  assert.deepEqual(decodeSnapshots(value), list);
  assert.deepEqual(decodeSnapshots(value.subarray(0, value.length - 1)), list.slice(0, 1));
  assert.deepEqual(decodeSnapshots(Uint8Array.of()), []);
  assert.deepEqual(decodeSnapshots(Uint8Array.of(0x17, ...value.subarray(1))), []);
});
