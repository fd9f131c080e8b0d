import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { createCodecs } from "../adapters/codecs.ts";
import { concatBytes, DecodeError, fromHex, toHex, toUtf8, utf8, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { isFault } from "../lib/errors.ts";
import { recompressBatch } from "./recompress.ts";
import { readRecords } from "./record.ts";
import {
  assignOffsets,
  buildBatch,
  codecOf,
  isControlBatch,
  isLogAppendTime,
  isTransactionalBatch,
  lastOffset,
  readBatchHeader,
  splitBatches,
  validateBatch,
} from "./record_batch.ts";
import type { NewRecord } from "./record_writer.ts";

const codecs = createCodecs();
const ALL = ([null, "gzip", "snappy", "lz4", "zstd"] as const).filter((codec) =>
  codec === null || codecs.supports(codec)
);

/** Three records with a header each, as kafka-python 3 sends them: none, gzip, snappy, lz4, zstd. */
const PYTHON = [
  `0000000000000000000000e40000000002041cb30b0000000000020000018bcfe568000000018bcfe56fd0ffffffffffffffffff
   ffffffffff00000003740000000a6b65792d304a76616c75652076616c75652076616c75652076616c75652076616c75652076616c
   75652030020a7472616365066162637600d00f020a6b65792d314a76616c75652076616c75652076616c75652076616c7565207661
   6c75652076616c75652031020a7472616365066162637600a01f040a6b65792d324a76616c75652076616c75652076616c75652076
   616c75652076616c75652076616c75652032020a747261636506616263`,
  `00000000000000000000007d000000000251fb5b530001000000020000018bcfe568000000018bcfe56fd0ffffffffffffffffffff
   ffffffff000000031f8b080034060d6b02ff2b616060e0ca4eadd435f02a4bcc294d55c04f1a307195142526a7b225262597315ce0
   6702eb35244aaf218ade05f22c60bd4644e93542d20b0061fa39d8b3000000`,
  `0000000000000000000000920000000002bbcb1d1a0002000000020000018bcfe568000000018bcfe56fd0ffffffffffffffffffff
   ffffffff0000000382534e415050590000000001000000010000004db30140740000000a6b65792d304a76616c7565207606004030
   020a7472616365066162637600d00f02053c0031923c000031323c0008a01f04053c0032923c002c32020a747261636506616263`,
  `00000000000000000000009400000000025c75f02b0003000000020000018bcfe568000000018bcfe56fd0ffffffffffffffffffff
   ffffffff0000000304224d186840b3000000000000003b4c000000ff02740000000a6b65792d304a76616c75652006000bf1023002
   0a7472616365066162637600d00f023c001f313c001219313c0031a01f043c001f323c0012c032020a747261636506616263000000
   00`,
  `0000000000000000000000760000000002f40a36d70004000000020000018bcfe568000000018bcfe56fd0ffffffffffffffffffff
   ffffffff0000000328b52ffd20b3e501009402740000000a6b65792d304a76616c75652030020a7472616365066162637600d00f02
   3131a01f0432320700c010e02fb8061c073cfbd505462c60`,
];
/** As kafkajs 2.2 sends it; see the test for its content. */
const KAFKAJS =
  `00000000000000000000005affffffff02c2866d8d0000000000020000018bcfe568000000018bcfe568050000011f71fb04
  cb0007000000090000000324000000046b3004763004026802610268026212000a02010676c3a90016000504046b32010200
  0278`;
const T0 = 1_700_000_000_000;

const record = (value: string): NewRecord => ({
  key: null,
  value: toUtf8(value),
  headers: [],
  timestampMs: T0,
});

function batchOf(count: number, codec: (typeof ALL)[number] = null): Uint8Array {
  const records = Array.from({ length: count }, (_, i) => record(`value ${i}`));
  return buildBatch({ records, codec, codecs });
}

/** Changes the batch and mends the checksum, so that only the change is wrong. */
function changed(batch: Uint8Array, change: (view: DataView) => void): Uint8Array {
  const copy = batch.slice();
  const view = viewOf(copy);
  change(view);
  view.setUint32(17, crc32c(copy.subarray(21)));
  return copy;
}

function errorOf(bytes: Uint8Array, bytesMax?: number): string {
  const checked = validateBatch(bytes, bytesMax);
  return checked.ok ? "NONE" : checked.error;
}

const bytesOrNull = (maxLength: number) => fc.option(fc.uint8Array({ maxLength }));
const arbitraryHeader = fc.record(
  { key: fc.string({ unit: "binary" }), value: bytesOrNull(20) },
  { noNullPrototype: true },
);
const arbitraryRecord = fc.record({
  key: bytesOrNull(20),
  value: bytesOrNull(200),
  headers: fc.array(arbitraryHeader, { maxLength: 3 }),
  timestampMs: fc.integer({ min: -1, max: 2 ** 45 }),
}, { noNullPrototype: true });

describe("record batch", () => {
  for (const [id, hex] of PYTHON.entries()) {
    const codec = ([null, "gzip", "snappy", "lz4", "zstd"] as const)[id]!;
    const skip = codec !== null && !codecs.supports(codec);
    test(`reads a foreign batch: ${codec ?? "plain"}`, { skip }, () => {
      const checked = validateBatch(fromHex(hex));
      assert.ok(checked.ok);
      assert.equal(codecOf(checked.header), codec);
      const records = [...readRecords(checked.batch, codecs)];
      assert.deepEqual(records.map(({ offset }) => offset), [0, 1, 2]);
      assert.deepEqual(records.map(({ timestamp }) => timestamp - T0), [0, 1000, 2000]);
      assert.deepEqual(records.map(({ key }) => utf8(key!)), ["key-0", "key-1", "key-2"]);
      assert.equal(utf8(records[2]!.value!), "value value value value value value 2");
      assert.deepEqual(records[1]!.headers, [{ key: "trace", value: toUtf8("abc") }]);
    });
  }

  test("reads and writes kafkajs's bytes: nulls, repeated headers, producer fields", () => {
    const bytes = fromHex(KAFKAJS);
    const records = [...readRecords(bytes, codecs)];
    assert.deepEqual(records.map(({ key }) => key && utf8(key)), ["k0", null, "k2"]);
    assert.deepEqual(records.map(({ value }) => value && utf8(value)), ["v0", "vé", null]);
    assert.deepEqual(records[0]!.headers.map(({ key, value }) => [key, utf8(value!)]), [
      ["h", "a"],
      ["h", "b"],
    ]);
    assert.equal(records[2]!.headers[0]!.key, "");
    assert.deepEqual(records.map(({ timestamp }) => timestamp - T0), [0, 5, -3]);
    const built = buildBatch({
      records: records.map((each) => ({ ...each, timestampMs: each.timestamp })),
      codec: null,
      codecs,
      producerId: 1_234_567_890_123,
      producerEpoch: 7,
      baseSequence: 9,
    });
    assert.equal(toHex(built), toHex(bytes));
  });

  test("the header has every field", () => {
    const bytes = fromHex(KAFKAJS);
    const { crc, ...rest } = readBatchHeader(concatBytes([new Uint8Array(5), bytes]), 5);
    assert.equal(crc, crc32c(bytes.subarray(21)));
    assert.deepEqual(rest, {
      baseOffset: 0,
      batchLength: bytes.length - 12,
      partitionLeaderEpoch: -1,
      attributes: 0,
      lastOffsetDelta: 2,
      baseTimestamp: T0,
      maxTimestamp: T0 + 5,
      producerId: 1_234_567_890_123,
      producerEpoch: 7,
      baseSequence: 9,
      recordCount: 3,
    });
    assert.throws(() => readBatchHeader(bytes.subarray(0, 60)), DecodeError);
  });

  test("flags", () => {
    const records = [record("x")];
    const marked = buildBatch({ records, codec: null, codecs, transactional: true, control: true });
    const header = readBatchHeader(marked);
    assert.ok(isControlBatch(header) && isTransactionalBatch(header) && !isLogAppendTime(header));
    const plain = readBatchHeader(batchOf(1));
    assert.ok(!isControlBatch(plain) && !isTransactionalBatch(plain));
  });

  test("offsets and leader epoch are written outside the checksum", () => {
    const batch = batchOf(3);
    const before = batch.slice();
    assignOffsets(batch, 2 ** 40 + 7, 12);
    assert.deepEqual(batch.subarray(16), before.subarray(16));
    const header = readBatchHeader(batch);
    assert.equal(header.baseOffset, 2 ** 40 + 7);
    assert.equal(header.partitionLeaderEpoch, 12);
    assert.equal(lastOffset(header), 2 ** 40 + 9);
    assert.deepEqual([...readRecords(batch, codecs)].map(({ offset }) => offset - 2 ** 40), [
      7,
      8,
      9,
    ]);
  });

  test("append time is stamped under the checksum and wins over the records' times", () => {
    const batch = batchOf(2, "gzip");
    assignOffsets(batch, 5, 0, T0 + 999);
    const header = readBatchHeader(batch);
    assert.ok(isLogAppendTime(header));
    assert.equal(codecOf(header), "gzip");
    assert.equal(header.crc, crc32c(batch.subarray(21)));
    assert.deepEqual([...readRecords(batch, codecs)].map(({ timestamp }) => timestamp - T0), [
      999,
      999,
    ]);
  });

  test("a run of batches is split; a partial one at the end is left out", () => {
    const [a, b] = [batchOf(1), batchOf(9, "lz4")];
    const run = concatBytes([a, b, a.subarray(0, 70)]);
    assert.deepEqual(splitBatches(run), [a, b]);
    assert.deepEqual(splitBatches(run.subarray(0, a.length - 1)), []);
    assert.deepEqual(splitBatches(new Uint8Array(0)), []);
    const short = a.slice();
    viewOf(short).setInt32(8, 48);
    assert.throws(() => splitBatches(short), DecodeError);
    viewOf(short).setInt32(8, -20);
    assert.throws(() => splitBatches(short), DecodeError);
    const old = a.slice();
    old[16] = 1;
    assert.throws(() => splitBatches(old), DecodeError);
  });
});

describe("validateBatch", () => {
  const good = batchOf(3);
  const cases: readonly [string, Uint8Array, string][] = [
    ["sound", good, "NONE"],
    ["partial batch behind it", concatBytes([good, good.subarray(0, 40)]), "NONE"],
    ["nothing", new Uint8Array(0), "INVALID_RECORD"],
    ["cut off before the magic", good.subarray(0, 16), "INVALID_RECORD"],
    ["cut off", good.subarray(0, good.length - 1), "INVALID_RECORD"],
    ["magic 1", changed(good, (v) => v.setInt8(16, 1)), "INVALID_RECORD"],
    ["magic 3", changed(good, (v) => v.setInt8(16, 3)), "CORRUPT_MESSAGE"],
    ["length 48", changed(good, (v) => v.setInt32(8, 48)), "CORRUPT_MESSAGE"],
    ["negative length", changed(good, (v) => v.setInt32(8, -1)), "CORRUPT_MESSAGE"],
    ["two batches", concatBytes([good, good]), "INVALID_RECORD"],
    ["base offset 1", changed(good, (v) => v.setInt32(4, 1)), "INVALID_RECORD"],
    ["no records", changed(good, (v) => v.setInt32(57, 0)), "INVALID_RECORD"],
    ["negative count", changed(good, (v) => v.setInt32(57, -1)), "INVALID_RECORD"],
    ["delta against count", changed(good, (v) => v.setInt32(23, 3)), "INVALID_RECORD"],
    [
      "more records than its bytes can hold",
      changed(good, (v) => {
        v.setInt32(23, 2 ** 31 - 2);
        v.setInt32(57, 2 ** 31 - 1);
      }),
      "INVALID_RECORD",
    ],
    ["control", changed(good, (v) => v.setInt16(21, 0x20)), "INVALID_RECORD"],
    ["delete horizon", changed(good, (v) => v.setInt16(21, 0x40)), "INVALID_RECORD"],
    ["codec 5", changed(good, (v) => v.setInt16(21, 5)), "UNSUPPORTED_COMPRESSION_TYPE"],
    [
      "transactional producer without epoch",
      changed(good, (v) => {
        v.setInt16(21, 0x10);
        v.setBigInt64(43, 7n);
        v.setInt16(51, -1);
      }),
      "INVALID_PRODUCER_EPOCH",
    ],
    ["producer without sequence", changed(good, (v) => v.setBigInt64(43, 7n)), "INVALID_RECORD"],
    ["huge producer id", changed(good, (v) => v.setBigInt64(43, 1n << 60n)), "INVALID_RECORD"],
    ["huge timestamp", changed(good, (v) => v.setBigInt64(35, 1n << 62n)), "INVALID_TIMESTAMP"],
  ];
  for (const [name, bytes, error] of cases) {
    test(name, () => assert.equal(errorOf(bytes), error));
  }

  test("every flipped byte under the checksum is seen", () => {
    for (let at = 17; at < good.length; at++) {
      const broken = good.slice();
      broken[at] = broken[at]! ^ 1;
      assert.equal(errorOf(broken), "CORRUPT_MESSAGE");
    }
  });

  test("size limit", () => {
    assert.equal(errorOf(good, good.length - 1), "MESSAGE_TOO_LARGE");
    assert.equal(errorOf(good, good.length), "NONE");
  });

  test("trims what follows", () => {
    const checked = validateBatch(concatBytes([good, Uint8Array.of(1, 2, 3)]));
    assert.ok(checked.ok);
    assert.deepEqual(checked.batch, good);
  });

  test("any bytes get an answer", () => {
    const noise = fc.uint8Array({ maxLength: 90 }).map((tail) =>
      concatBytes([good.subarray(0, 17), tail])
    );
    fc.assert(fc.property(fc.oneof(noise, fc.uint8Array()), (bytes) => {
      assert.equal(typeof validateBatch(bytes).ok, "boolean");
    }));
  });
});

describe("records", () => {
  test("what is written is read back, with every codec", () => {
    fc.assert(
      fc.property(
        fc.array(arbitraryRecord, { minLength: 1, maxLength: 8 }),
        fc.constantFrom(...ALL),
        (records, codec) => {
          const batch = buildBatch({ records, codec, codecs });
          assert.equal(errorOf(batch), "NONE");
          const back = [...readRecords(batch, codecs)].map(({ offset, timestamp, ...rest }, i) => {
            assert.equal(offset, i);
            return { ...rest, timestampMs: timestamp };
          });
          assert.deepEqual(back, records);
        },
      ),
    );
  });

  test("broken record bytes give DecodeError or a corrupt fault, never more records than counted", () => {
    for (const codec of ALL) {
      const batch = batchOf(4, codec);
      const flips = fc.array(
        fc.tuple(fc.integer({ min: 57, max: batch.length - 1 }), fc.nat(255)),
        {
          minLength: 1,
          maxLength: 4,
        },
      );
      fc.assert(fc.property(flips, (list) => {
        const broken = batch.slice();
        for (const [at, byte] of list) broken[at] = byte;
        try {
          const count = [...readRecords(broken, codecs)].length;
          assert.equal(count, Math.max(0, readBatchHeader(broken).recordCount));
        } catch (error) {
          if (!(error instanceof DecodeError) && !isFault(error, "corrupt")) throw error;
        }
      }));
    }
  });

  test("reads lazily", () => {
    const batch = batchOf(2);
    batch[batch.length - 1] = 0x7f; // breaks the header count of the second record
    const records = readRecords(batch, codecs);
    assert.equal(utf8(records.next().value!.value!), "value 0");
    assert.throws(() => records.next(), DecodeError);
  });

  test("a bomb in a batch is a corrupt fault", () => {
    const plain = batchOf(1);
    const bomb = codecs.compress("lz4", new Uint8Array(68_000_000));
    const batch = concatBytes([plain.subarray(0, 61), bomb]);
    viewOf(batch).setInt32(8, batch.length - 12);
    viewOf(batch).setInt16(21, 3);
    assert.throws(() => [...readRecords(batch, codecs)], (error) => isFault(error, "corrupt"));
  });
});

describe("recompressBatch", () => {
  test("keeps records and header, from any codec to any", () => {
    const original = fromHex(PYTHON[0]!);
    const plain = toHex(original);
    for (const from of ALL) {
      const compressed = recompressBatch(original, from, codecs);
      assert.equal(errorOf(compressed), "NONE");
      assert.equal(codecOf(readBatchHeader(compressed)), from);
      for (const to of ALL) {
        const again = recompressBatch(compressed, to, codecs);
        assert.equal(toHex(recompressBatch(again, null, codecs)), plain);
      }
    }
    assert.equal(recompressBatch(original, null, codecs), original);
  });
});
