import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { gzipSync } from "node:zlib";
import * as fc from "fast-check";
import type { CodecName } from "../env/codecs.ts";
import { concatBytes, fromHex, toHex, toUtf8, utf8 } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import { createCodecs } from "./codecs.ts";

const codecs = createCodecs();
const names = (["gzip", "snappy", "lz4", "zstd"] as const).filter((name) => codecs.supports(name));
const corruption = (error: unknown) => isFault(error, "corrupt");
const TEXT = `{"id":1,"name":"skerry"}\n{"id":2,"name":"skerry"}\n`;
/** Written by the snappy and zstd reference libraries. */
const RAW_SNAPPY = "32607b226964223a312c226e616d65223a22736b65727279227d0a09190032461900";
const ZSTD =
  "28b52ffd2032150100d07b226964223a312c226e616d65223a22736b65727279227d0a320200c08b789863";

describe("codecs", () => {
  for (const name of names) {
    test(`${name}: what is compressed is inflated, at exactly the cap`, () => {
      const samples = [new Uint8Array(0), toUtf8("x"), toUtf8(TEXT.repeat(5_000))];
      for (const bytes of samples) {
        const small = codecs.compress(name, bytes);
        assert.deepEqual(codecs.decompress(name, small, bytes.length), bytes);
        if (bytes.length > 0) {
          assert.throws(() => codecs.decompress(name, small, bytes.length - 1), corruption);
        }
      }
    });

    test(`${name}: a bomb is stopped`, () => {
      const bomb = codecs.compress(name, new Uint8Array(20_000_000));
      assert.ok(bomb.length < 1_500_000);
      assert.throws(() => codecs.decompress(name, bomb, 100_000), corruption);
    });

    test(`${name}: cut-off input is a fault, never a short success`, () => {
      const small = codecs.compress(name, toUtf8(TEXT.repeat(20)));
      for (let length = 0; length < small.length; length++) {
        // A xerial stream has no end mark: cut after its header it is a legal empty one.
        if (name === "snappy" && length === 16) continue;
        assert.throws(() => codecs.decompress(name, small.subarray(0, length), 10_000), corruption);
      }
    });

    test(`${name}: noise and bit flips give a fault or an output within the cap`, () => {
      const good = codecs.compress(name, toUtf8(TEXT.repeat(20)));
      const flips = fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 5 });
      const flipped = flips.map((list) => {
        const bytes = new Uint8Array(good);
        for (const [at, byte] of list) bytes[at] = byte;
        return bytes;
      });
      fc.assert(
        fc.property(fc.oneof(flipped, fc.uint8Array({ maxLength: 80 })), (bytes) => {
          try {
            assert.ok(codecs.decompress(name, bytes, 5_000).length <= 5_000);
          } catch (error) {
            if (!corruption(error)) throw error;
          }
        }),
        { numRuns: 500 },
      );
      assert.equal(utf8(codecs.decompress(name, good, 10_000)), TEXT.repeat(20));
    });
  }

  test("gzip: several members in a row", () => {
    const two = concatBytes([gzipSync("ab"), gzipSync("cd")]);
    assert.equal(utf8(codecs.decompress("gzip", two, 4)), "abcd");
    assert.throws(() => codecs.decompress("gzip", two, 3), corruption);
  });

  test("snappy: reads a raw block", () => {
    assert.equal(utf8(codecs.decompress("snappy", fromHex(RAW_SNAPPY), 1_000)), TEXT);
  });

  test("snappy: reads and writes Java's xerial stream", () => {
    const block = fromHex(RAW_SNAPPY);
    const head = fromHex("82534e4150505900 00000001 00000001");
    const length = Uint8Array.of(0, 0, 0, block.length);
    const stream = concatBytes([head, length, block, length, block]);
    assert.equal(utf8(codecs.decompress("snappy", stream, 1_000)), TEXT + TEXT);
    assert.throws(() => codecs.decompress("snappy", stream, 2 * TEXT.length - 1), corruption);
    const written = codecs.compress("snappy", new Uint8Array(40_000));
    assert.equal(toHex(written.subarray(0, 16)), toHex(head));
    assert.equal(toHex(written.subarray(20, 23)), "808002", "the first block holds 32 KiB");
  });

  test("snappy: a declared length that no block can hold is refused before allocation", () => {
    const liar = fromHex("ffffffff0f 0041");
    assert.throws(() => codecs.decompress("snappy", liar, 2 ** 31), corruption);
  });

  test("zstd: several frames, skippable frames, lies about sizes", {
    skip: !codecs.supports("zstd"),
  }, () => {
    const frame = fromHex(ZSTD);
    const skip = fromHex("502a4d18 02000000 0102");
    assert.equal(utf8(codecs.decompress("zstd", frame, 50)), TEXT);
    const all = concatBytes([skip, frame, skip, frame]);
    assert.equal(utf8(codecs.decompress("zstd", all, 100)), TEXT + TEXT);
    assert.throws(() => codecs.decompress("zstd", all, 99), corruption);
    assert.throws(
      () => codecs.decompress("zstd", concatBytes([frame, Uint8Array.of(1)]), 50),
      corruption,
    );
    const declared = fromHex("28b52ffd e0 ffffffff3f000000 010000");
    assert.throws(() => codecs.decompress("zstd", declared, 1_000), corruption);
    const window = fromHex("28b52ffd 00 a0 010000");
    assert.throws(() => codecs.decompress("zstd", window, 1_000), corruption);
  });

  test("every codec of Kafka is known", () => {
    const all: readonly CodecName[] = ["gzip", "snappy", "lz4"];
    for (const name of all) assert.ok(codecs.supports(name));
  });
});
