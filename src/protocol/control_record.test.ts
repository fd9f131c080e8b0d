import assert from "node:assert/strict";
import { test } from "node:test";
import { testEnv } from "../../tests/support/test_env.ts";
import { buildMarker, readMarker } from "./control_record.ts";
import {
  buildBatch,
  isControlBatch,
  isTransactionalBatch,
  readBatchHeader,
} from "./record_batch.ts";

const { codecs } = testEnv();
const MARKER = {
  producerId: 4001,
  producerEpoch: 3,
  coordinatorEpoch: 7,
  commit: true,
  timestampMs: 1_700_000_000_000,
};

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

test("a marker is one uncompressed record in a transactional control batch without sequence", () => {
  const batch = buildMarker(MARKER, codecs);
  const header = readBatchHeader(batch);
  assert.ok(isControlBatch(header) && isTransactionalBatch(header));
  assert.equal(header.attributes, 0x30);
  assert.deepEqual(
    [header.producerId, header.producerEpoch, header.baseSequence, header.recordCount],
    [4001, 3, -1, 1],
  );
  assert.equal(header.maxTimestamp, MARKER.timestampMs);
});

test("the record's bytes are Kafka's: key version 0 and type, value version 0 and coordinator epoch", () => {
  // length 16 · attributes · timestamp delta · offset delta · key of 4 · value of 6 · no headers
  assert.equal(
    hex(buildMarker(MARKER, codecs).subarray(61)),
    "20000000" + "0800000001" + "0c000000000007" + "00",
  );
  const abort = buildMarker({ ...MARKER, commit: false }, codecs);
  assert.equal(hex(abort.subarray(61)), "20000000" + "0800000000" + "0c000000000007" + "00");
});

test("what was written is read; other types and broken ones are nobody's end", () => {
  assert.deepEqual(readMarker(buildMarker(MARKER, codecs)), { commit: true, coordinatorEpoch: 7 });
  const control = (key: readonly number[], value: readonly number[]) =>
    buildBatch({
      records: [{
        key: Uint8Array.from(key),
        value: Uint8Array.from(value),
        headers: [],
        timestampMs: 1,
      }],
      codec: null,
      codecs,
      producerId: 1,
      producerEpoch: 0,
      control: true,
    });
  assert.equal(readMarker(control([0, 0, 0, 2], [0, 0, 0, 0, 0, 7])), null, "leader change");
  assert.equal(readMarker(control([0, 0], [0, 0, 0, 0, 0, 7])), null, "short key");
  assert.equal(readMarker(control([0, 0, 0, 1], [0, 0])), null, "short value");
});
