import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toUtf8 } from "../lib/bytes.ts";
import { HTTP_CHUNK_BYTES } from "../lib/limits.ts";
import { fromBase64 } from "./json_record.ts";
import type { RecordOutput } from "./port.ts";
import { toBase64 } from "../lib/base64.ts";
import { rawBytes, recordJson, renderedBytes, renderedBytesMax } from "./record_json.ts";

function text(record: RecordOutput): string {
  return [...recordJson(record, 3)].join("");
}

/** The same in one piece. */
function expected({ offset, timestampMs, key, value, headers }: RecordOutput): unknown {
  const show = (bytes: Uint8Array | null) => {
    if (bytes === null) return null;
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      return { $base64: toBase64(bytes) };
    }
  };
  return {
    partition: 3,
    offset,
    timestamp: timestampMs,
    key: show(key),
    value: show(value),
    headers: headers.map((header) => [header.name, show(header.value)]),
  };
}

const small = fc.oneof(
  fc.uint8Array({ maxLength: 50 }),
  fc.string({ unit: "binary", maxLength: 20 }).map(toUtf8),
);
const bytes = fc.oneof(
  fc.constant(null),
  small,
  // Some that are cut into pieces, with whole characters across the cuts.
  fc.tuple(small, fc.constantFrom(1, 7, 8191, 65_535)).map(([unit, shift]) => {
    const all = new Uint8Array(shift + 3 * HTTP_CHUNK_BYTES).fill(0x20);
    for (let at = shift; at + unit.length <= all.length && unit.length > 0; at += unit.length) {
      all.set(unit, at);
    }
    return all;
  }),
);
const record: fc.Arbitrary<RecordOutput> = fc.record({
  offset: fc.nat(),
  timestampMs: fc.nat(),
  key: bytes,
  value: bytes,
  headers: fc.array(fc.record({ name: fc.string({ unit: "binary" }), value: bytes }), {
    maxLength: 2,
  }),
});

test("pieces of a record are the JSON of the whole, and its estimates are never too small", () => {
  fc.assert(
    fc.property(record, (one) => {
      const json = text(one);
      assert.deepEqual(JSON.parse(json), expected(one));
      const length = toUtf8(json).length;
      assert.ok(length <= renderedBytes(one), `${length} > ${renderedBytes(one)}`);
      assert.ok(renderedBytes(one) <= renderedBytesMax(one));
      assert.ok(rawBytes(one) > 0);
    }),
    { numRuns: 50 },
  );
});

test("no piece is much larger than a chunk, however large the record and its header names are", () => {
  for (const value of [new Uint8Array(1_000_000).fill(1), new Uint8Array(1_000_000).fill(0xff)]) {
    const name = "\u{1f600}".repeat(100_000);
    const one = { offset: 0, timestampMs: 0, key: value, value, headers: [{ name, value }] };
    for (const piece of recordJson(one, 0)) {
      assert.ok(piece.length <= 6 * HTTP_CHUNK_BYTES + 2, String(piece.length));
    }
    assert.deepEqual(JSON.parse(text(one)), expected(one));
  }
});

test("base64 is standard, padded, and as it was", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (some) => {
      assert.deepEqual(fromBase64(toBase64(some)), some);
    }),
  );
  for (const bad of ["A", "AA", "AAA", "AA==\n", "AA= =", "A===", "=AAA", "AA-_", "AAAA===="]) {
    assert.equal(fromBase64(bad), null, bad);
  }
  assert.equal(fromBase64("AAAA".repeat(1_000_000))!.length, 3_000_000);
});
