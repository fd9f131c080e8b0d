import assert from "node:assert/strict";
import { test } from "node:test";
import { createCodecs } from "../../adapters/codecs.ts";
import { concatBytes, toUtf8, utf8 } from "../../lib/bytes.ts";
import { buildMarker } from "../../protocol/control_record.ts";
import { assignOffsets, buildBatch } from "../../protocol/record_batch.ts";
import { type AbortedTransaction, fetchedBatches } from "./fetched.ts";

const codecs = createCodecs();

function placed(batch: Uint8Array, offset: number): Uint8Array {
  assignOffsets(batch, offset, 0);
  return batch;
}

function data(offset: number, values: string, producerId = -1): Uint8Array {
  const records = values.split("").map((one) => (
    { key: null, value: toUtf8(one), headers: [], timestampMs: 0 }
  ));
  const transaction = producerId < 0
    ? {}
    : { producerId, producerEpoch: 0, baseSequence: 0, transactional: true };
  return placed(buildBatch({ records, codec: null, codecs, ...transaction }), offset);
}

function marker(offset: number, producerId: number, commit: boolean): Uint8Array {
  const input = { producerId, producerEpoch: 0, commit, coordinatorEpoch: 0, timestampMs: 0 };
  return placed(buildMarker(input, codecs), offset);
}

function read(batches: readonly Uint8Array[], aborted: readonly AbortedTransaction[] = []) {
  const out: string[] = [];
  let next = -1;
  for (const { records, nextOffset } of fetchedBatches(concatBytes(batches), aborted, codecs)) {
    for (const { offset, value } of records) out.push(`${offset}${utf8(value!)}`);
    next = nextOffset;
  }
  return { out: out.join(" "), next };
}

test("markers are no records, and reading goes on behind them", () => {
  const got = read([data(5, "ab"), data(7, "x", 9), marker(8, 9, true)]);
  assert.deepEqual(got, { out: "5a 6b 7x", next: 9 });
});

test("an aborted transaction is left out, from its first offset to its marker", () => {
  const batches = [
    data(0, "a", 9),
    marker(1, 9, true),
    data(2, "b", 9),
    data(3, "c"),
    data(4, "d", 8),
    marker(5, 9, false),
    data(6, "e", 9),
    marker(7, 9, true),
  ];
  const got = read(batches, [{ producerId: 9, firstOffset: 2 }]);
  assert.deepEqual(got, { out: "0a 3c 4d 6e", next: 8 });
});

test("two aborted transactions of one producer, and one that began before these bytes", () => {
  const batches = [
    data(10, "a", 9),
    marker(11, 9, false),
    data(12, "b", 9),
    marker(13, 9, false),
    data(14, "c", 9),
  ];
  const aborted = [{ producerId: 9, firstOffset: 12 }, { producerId: 9, firstOffset: 3 }];
  assert.deepEqual(read(batches, aborted), { out: "14c", next: 15 });
});

test("a batch cut off at the end waits for the next fetch; a damaged one is told", () => {
  const whole = data(0, "ab");
  const cut = data(2, "cd").subarray(0, 70);
  assert.deepEqual(read([whole, cut]), { out: "0a 1b", next: 2 });
  const bad = data(0, "ab");
  bad[bad.length - 1]! ^= 1;
  assert.throws(() => read([bad]), /offset 0: its checksum is wrong/);
});
