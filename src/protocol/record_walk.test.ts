import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { createCodecs } from "../adapters/codecs.ts";
import { toUtf8 } from "../lib/bytes.ts";
import { readRecords } from "./record.ts";
import { buildBatch, readBatchHeader } from "./record_batch.ts";
import { unsoundRecord } from "./record_walk.ts";

const codecs = createCodecs();

function batchOf(values: readonly (string | null)[], headers: readonly string[] = []): Uint8Array {
  return buildBatch({
    records: values.map((value, i) => ({
      key: i % 2 === 0 ? null : toUtf8(`key-${i}`),
      value: value === null ? null : toUtf8(value),
      headers: headers.map((key) => ({ key, value: toUtf8("h") })),
      timestampMs: 1_700_000_000_000 + i * 100_000,
    })),
    codec: null,
    codecs,
  });
}

const walk = (batch: Uint8Array) => unsoundRecord(batch, readBatchHeader(batch));

test("sound batches: keys, nulls, headers, many records", () => {
  assert.equal(walk(batchOf(["a"])), null);
  assert.equal(walk(batchOf([null, "", "abc"], ["x", "y"])), null);
  assert.equal(walk(batchOf(Array.from({ length: 300 }, (_, i) => "v".repeat(i)))), null);
});

test("garbage, a cut record, bytes left over and a wrong place are found with their index", () => {
  const batch = batchOf(["aaaa", "bbbb", "cccc"]);
  assert.equal(walk(batch.slice().fill(0xff, 61)), 0);
  assert.equal(walk(batch.slice().fill(0, 61)), 0);
  assert.equal(walk(batch.subarray(0, -1)), 2);
  const longer = new Uint8Array(batch.length + 1);
  longer.set(batch);
  assert.equal(walk(longer), 3);
  const displaced = batch.slice();
  const second = 61 + 1 + displaced[61]! / 2;
  // length, attributes, three bytes of time, then the offset delta 1 as zig-zag
  const delta = displaced.subarray(second).indexOf(2, 2) + second;
  displaced[delta] = 4;
  assert.equal(walk(displaced), 1);
});

function readsWell(batch: Uint8Array): boolean {
  try {
    let index = 0;
    for (const { offset } of readRecords(batch, codecs)) if (offset !== index++) return false;
    return true;
  } catch {
    return false;
  }
}

test("property: it finds what the reader of records finds, apart from times out of range", () => {
  const change = fc.record({ at: fc.nat(200), byte: fc.nat(255) });
  fc.assert(
    fc.property(
      fc.array(fc.option(fc.string({ maxLength: 8 })), { minLength: 1, maxLength: 5 }),
      fc.array(fc.string({ maxLength: 3 }), { maxLength: 2 }),
      fc.array(change, { maxLength: 3 }),
      (values, headers, changes) => {
        const batch = batchOf(values, headers);
        for (const { at, byte } of changes) {
          if (61 + at < batch.length) batch[61 + at] = byte;
        }
        if (readsWell(batch)) assert.equal(walk(batch), null);
        else if (walk(batch) === null) {
          assert.throws(() => [...readRecords(batch, codecs)], /varlong/);
        }
      },
    ),
    { numRuns: 300 },
  );
});
