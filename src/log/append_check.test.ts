import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { testEnv } from "../../tests/support/test_env.ts";
import { DEFAULT_LOG_CONFIG } from "../../tests/support/partition_harness.ts";
import type { CodecName } from "../env/codecs.ts";
import { toUtf8, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { RECORD_ERRORS_MAX } from "../lib/limits.ts";
import { buildBatch, readBatchHeader, replacePayload } from "../protocol/record_batch.ts";
import { readRecords } from "../protocol/record.ts";
import { recompressBatch } from "../protocol/recompress.ts";
import { checkBatch } from "./append_check.ts";
import type { LogConfig } from "./partition_log.ts";

const { codecs } = testEnv();
const NOW_MS = 1_700_000_000_000;
const CODECS: readonly (CodecName | null)[] = [null, "gzip", "snappy", "lz4", "zstd"];
const RECORDS_AT = 61;

function check(batch: Uint8Array, config: Partial<LogConfig> = {}) {
  const full = { ...DEFAULT_LOG_CONFIG, validate: "full", ...config } as const;
  return checkBatch(batch.slice(), full, { nowMs: NOW_MS, codecs });
}

function outcome(batch: Uint8Array, config: Partial<LogConfig> = {}): string {
  const checked = check(batch, config);
  return checked.ok ? "taken" : checked.error;
}

function plain(values: readonly string[], timestampMs = NOW_MS): Uint8Array {
  return buildBatch({
    records: values.map((value) => ({ key: null, value: toUtf8(value), headers: [], timestampMs })),
    codec: null,
    codecs,
  });
}

/** The changed batch with a right checksum, under each codec. */
function altered(batch: Uint8Array, change: (bytes: Uint8Array, view: DataView) => void) {
  const copy = batch.slice();
  change(copy, viewOf(copy));
  viewOf(copy).setUint32(17, crc32c(copy.subarray(21)));
  return CODECS.map((codec) => recompressBatch(copy, codec, codecs));
}

/** A record of one letter: length, attributes, time delta, offset delta, key, length, letter, headers. */
const LETTER_BYTES = 8;

test("validate=full: what no sound producer writes into a batch is refused, under every codec", () => {
  const sound = plain(["a", "b"]);
  const cases: [string, string, Uint8Array[]][] = [
    ["sound", "taken", altered(sound, () => {})],
    [
      "one more record in the count",
      "INVALID_RECORD",
      altered(plain(["long", "long"]), (_, view) => {
        view.setInt32(23, 2);
        view.setInt32(57, 3);
      }),
    ],
    [
      "one record less in the count",
      "INVALID_RECORD",
      altered(sound, (_, view) => {
        view.setInt32(23, 0);
        view.setInt32(57, 1);
      }),
    ],
    [
      "a record's length",
      "INVALID_RECORD",
      altered(sound, (bytes) => {
        bytes[RECORDS_AT]! += 2;
      }),
    ],
    [
      "a value's length",
      "INVALID_RECORD",
      altered(sound, (bytes) => {
        bytes[RECORDS_AT + 5] = 0x7e;
      }),
    ],
    [
      "an offset delta",
      "INVALID_RECORD",
      altered(sound, (bytes) => {
        bytes[RECORDS_AT + LETTER_BYTES + 3] = 4;
      }),
    ],
    [
      "more headers than bytes",
      "INVALID_RECORD",
      altered(sound, (bytes) => {
        bytes[RECORDS_AT + 7] = 0x7e;
      }),
    ],
  ];
  for (const [name, expected, batches] of cases) {
    for (const [at, batch] of batches.entries()) {
      assert.equal(outcome(batch), expected, `${name}, ${CODECS[at]}`);
      const expectedFromOutside = CODECS[at] === null ? expected : "taken";
      assert.equal(
        outcome(batch, { validate: "header" }),
        expectedFromOutside,
        `${name}, ${CODECS[at]}`,
      );
    }
  }
});

test("validate=full: a record in the wrong place is named", () => {
  const [batch] = altered(plain(["a", "b"]), (bytes) => {
    bytes[RECORDS_AT + LETTER_BYTES + 3] = 0;
  });
  const checked = check(batch!);
  assert.ok(!checked.ok);
  assert.deepEqual(checked.recordErrors?.map(({ index }) => index), [1]);
});

test("validate=full: payloads that cannot be inflated, or to far too much, are CORRUPT_MESSAGE", () => {
  const header = readBatchHeader(plain(["a", "b"]));
  const zeros = new Uint8Array(70_000_000);
  for (const codec of ["gzip", "snappy", "lz4", "zstd"] as const) {
    const garbage = replacePayload(header, codec, Uint8Array.from({ length: 40 }, (_, i) => 7 * i));
    assert.equal(outcome(garbage), "CORRUPT_MESSAGE", codec);
    if (codec === "snappy") continue;
    const bomb = replacePayload(header, codec, codecs.compress(codec, zeros));
    assert.equal(outcome(bomb), "CORRUPT_MESSAGE", `bomb ${codec}`);
  }
});

test("validate=full: times are those of the records, whatever the header says", () => {
  const hour = 3_600_000;
  const lying = (records: number, header: number) =>
    altered(plain(["a"], records), (_, view) => view.setBigInt64(35, BigInt(header)));
  for (const batch of lying(NOW_MS, NOW_MS - 5)) {
    const checked = check(batch);
    assert.ok(checked.ok);
    const stored = readBatchHeader(checked.batch);
    assert.equal(stored.maxTimestamp, NOW_MS);
    assert.equal(stored.crc, crc32c(checked.batch.subarray(21)));
    const kept = check(batch, { validate: "header" });
    assert.ok(kept.ok && readBatchHeader(kept.batch).maxTimestamp === NOW_MS - 5);
    const forced = check(batch, { compression: "lz4" });
    assert.ok(forced.ok && readBatchHeader(forced.batch).maxTimestamp === NOW_MS);
  }
  // The base time is looked at by the header alone: only a delta hides a time.
  const late = buildBatch({
    records: [NOW_MS, NOW_MS + 2 * hour].map((timestampMs) => ({
      key: null,
      value: toUtf8("a"),
      headers: [],
      timestampMs,
    })),
    codec: null,
    codecs,
  });
  for (const batch of altered(late, (_, view) => view.setBigInt64(35, BigInt(NOW_MS)))) {
    assert.equal(outcome(batch, { validate: "header" }), "taken");
    const checked = check(batch);
    assert.ok(!checked.ok);
    assert.equal(checked.error, "INVALID_TIMESTAMP");
    assert.deepEqual(checked.recordErrors?.map(({ index }) => index), [1]);
    assert.equal(outcome(batch, { timestampType: "log-append" }), "taken");
  }
});

test("records at fault are named up to a bound; past it none, so that nobody sends half a batch again", () => {
  const compact = { validate: "header", cleanup: { delete: false, compact: true } } as const;
  const errorsOf = (count: number) => {
    const checked = check(plain(Array.from({ length: count }, () => "a")), compact);
    assert.ok(!checked.ok);
    assert.equal(checked.error, "INVALID_RECORD");
    return checked.recordErrors?.length;
  };
  assert.equal(errorsOf(RECORD_ERRORS_MAX), RECORD_ERRORS_MAX);
  assert.equal(errorsOf(RECORD_ERRORS_MAX + 1), 0);
});

test("property: a batch that full validation takes can be read to the end, and nothing throws", () => {
  const value = fc.string({ maxLength: 8 });
  const batches = fc.array(value, { minLength: 1, maxLength: 6 }).map((values) => plain(values));
  const change = fc.tuple(fc.nat(200), fc.nat(255));
  fc.assert(fc.property(batches, fc.array(change, { maxLength: 3 }), (sound, changes) => {
    const all = altered(sound, (bytes) => {
      for (const [at, byte] of changes) {
        const records = bytes.length - RECORDS_AT;
        bytes[RECORDS_AT + at % records] = byte;
      }
    });
    const outcomes = all.map((batch) => {
      const checked = check(batch);
      if (!checked.ok) return checked.error;
      const offsets = [...readRecords(checked.batch, codecs)].map(({ offset }) => offset);
      assert.deepEqual(offsets, offsets.map((_, at) => at));
      return "taken";
    });
    // The codec does not change the verdict.
    assert.equal(new Set(outcomes).size, 1);
    assert.ok(["taken", "INVALID_RECORD", "INVALID_TIMESTAMP"].includes(outcomes[0]!));
  }));
});

test("a level is that of the codec which the topic forces", () => {
  const text = Array.from({ length: 3000 }, (_, i) => `record ${(i * 7919) % 1000} of ${i}`);
  const bytesAt = (compression: "gzip" | "zstd", compressionLevel: number) => {
    const checked = check(plain(text), { compression, compressionLevel });
    assert.ok(checked.ok);
    assert.equal([...readRecords(checked.batch, codecs)].length, text.length);
    return checked.batch.length;
  };
  assert.ok(bytesAt("gzip", 9) < bytesAt("gzip", 1));
  assert.equal(bytesAt("gzip", -1), bytesAt("gzip", 6));
  assert.ok(bytesAt("zstd", 19) < bytesAt("zstd", 1));
  assert.ok(bytesAt("zstd", 1) < bytesAt("zstd", -50));
});

test("validate=header: records that are not compressed are sound, or INVALID_RECORD", () => {
  const header = { validate: "header" } as const;
  const batch = plain(["a", "b"]);
  assert.equal(outcome(batch, header), "taken");
  for (const byte of [0, 0xff]) {
    const [garbage] = altered(batch, (bytes) => bytes.fill(byte, RECORDS_AT));
    assert.equal(outcome(garbage!, header), "INVALID_RECORD");
    assert.equal(outcome(garbage!, { ...header, compression: "gzip" }), "INVALID_RECORD");
  }
});
