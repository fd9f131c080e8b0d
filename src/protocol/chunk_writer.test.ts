/** Answers as chunks: what is copied and what is passed on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, viewOf } from "../lib/bytes.ts";
import { responseFrame } from "./api.ts";
import { ChunkWriter } from "./chunk_writer.ts";
import { fetchApi, type FetchResponse } from "./message/01_fetch.ts";
import { encode } from "./schema.ts";

test("large pieces pass through in order, small ones are copied", () => {
  const writer = new ChunkWriter();
  const [large, larger] = [new Uint8Array(4096).fill(1), new Uint8Array(9000).fill(2)];
  writer.bytes(large);
  writer.i32(5);
  writer.bytes(Uint8Array.of(6, 7));
  writer.bytes(larger);
  writer.bytes(large);
  writer.u8(8);
  assert.equal(writer.total, 4096 + 6 + 9000 + 4096 + 1);
  const chunks = writer.chunks();
  assert.deepEqual(chunks.map((chunk) => chunk.length), [4096, 6, 9000, 4096, 1]);
  assert.equal(chunks[2], larger);
  assert.deepEqual(chunks[1], Uint8Array.of(0, 0, 0, 5, 6, 7));
  assert.deepEqual(new ChunkWriter().chunks(), []);
});

test("a fetch answer carries the batches uncopied, whatever the version", () => {
  const batches = [new Uint8Array(70_000).fill(3), new Uint8Array(10).fill(4)];
  const response: FetchResponse = {
    throttleTimeMs: 0,
    responses: [{
      topic: "orders",
      topicId: "12".repeat(16),
      partitions: [
        {
          partitionIndex: 0,
          errorCode: 0,
          highWatermark: 9,
          abortedTransactions: [],
          records: batches,
        },
        {
          partitionIndex: 1,
          errorCode: 3,
          highWatermark: -1,
          abortedTransactions: null,
          records: null,
        },
      ],
    }],
  };
  for (let version = fetchApi.min; version <= fetchApi.max; version++) {
    const chunks = responseFrame(fetchApi, version, 77, response);
    assert.equal(chunks[1], batches[0]);
    const frame = concatBytes(chunks);
    assert.equal(viewOf(frame).getInt32(0), frame.length - 4);
    assert.equal(viewOf(frame).getInt32(4), 77);
    const body = frame.subarray(version >= 12 ? 9 : 8);
    assert.deepEqual(body, encode(fetchApi.response, version, response));
  }
});
