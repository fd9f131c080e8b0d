import assert from "node:assert/strict";
import { test } from "node:test";
import { streamEpoch, streamId } from "../lib/brand.ts";
import { encodeAborted } from "../log/aborted_transactions.ts";
import { encodeTimeEntries } from "../log/time_index.ts";
import { createCodecs } from "../adapters/codecs.ts";
import { assignOffsets, buildBatch } from "../protocol/record_batch.ts";
import { payloadProblem, recordFields } from "./payload.ts";

/** Both kinds of entries fill 204 bytes. */
const TIMES = Array.from({ length: 17 }, (_, i) => ({
  timestampMs: 1_700_000_000_000 + i,
  offset: i,
}));
const ABORTED = Array.from({ length: 6 }, (_, i) => ({
  producerId: 7,
  firstOffset: i * 3,
  lastOffset: i * 3 + 2,
  lastStableOffset: i * 3 + 3,
}));

function indexRecord(payload: Uint8Array) {
  return {
    streamId: streamId(1),
    epoch: streamEpoch(1),
    baseOffset: 0,
    count: payload.length,
    payload,
  };
}

test("entries of the two indexes are told apart by what they say, not by their length", () => {
  const times = indexRecord(encodeTimeEntries(TIMES, 0));
  const aborted = indexRecord(encodeAborted(ABORTED));
  assert.equal(times.payload.length, aborted.payload.length);
  assert.deepEqual(recordFields(aborted)["index"], { aborted: ABORTED });
  const shown = TIMES.map(({ timestampMs, offset }) => ({ timestampMs, relativeOffset: offset }));
  assert.deepEqual(recordFields(times)["index"], { times: shown });
  assert.deepEqual([payloadProblem(times, false), payloadProblem(aborted, false)], [null, null]);
});

function batchAt(offset: number) {
  const value = new Uint8Array(1);
  const batch = buildBatch({
    records: [{ key: value, value, headers: [], timestampMs: 5 }],
    codec: null,
    codecs: createCodecs(),
  });
  assignOffsets(batch, offset, 1);
  return batch;
}

test("batches of a compacted log lie lower by the same number, all of them", () => {
  const record = (baseOffset: number, count: number, offset: number) => ({
    streamId: streamId(1),
    epoch: streamEpoch(1),
    baseOffset,
    count,
    payload: batchAt(offset),
  });
  const shifts = new Map();
  // 100 and 104, with a hole between them.
  assert.equal(payloadProblem(record(0, 1, 100), false, shifts), null);
  assert.equal(payloadProblem(record(1, 4, 104), false, shifts), null);
  const problem = payloadProblem(record(5, 1, 106), false, shifts);
  assert.equal(problem, "batch says offsets 106 to 106, its record 105 to 105");
  assert.notEqual(payloadProblem(record(5, 1, 4), false, new Map()), null);
  assert.equal((recordFields(record(1, 4, 104))["batch"] as { crc: string }).crc, "ok");
});
