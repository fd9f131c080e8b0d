import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { concatBytes, fromHex, toHex, toUtf8, utf8 } from "./bytes.ts";
import { isFault } from "./errors.ts";
import { decodeLz4Frames, encodeLz4Frame } from "./lz4_frame.ts";
import { xxhash32 } from "./xxhash32.ts";

const MAX = 1 << 20;
const corruption = (error: unknown) => isFault(error, "corrupt");

function lines(count: number): string {
  return Array.from({ length: count }, (_, i) => `{"id":${i},"name":"skerry","ok":true}\n`).join(
    "",
  );
}

/** Frames written by the reference library (lz4 1.10), of forty `lines`. */
const BLOCKS = `f2147b226964223a302c226e616d65223a22736b65727279222c226f6b223a747275657d0a23001f31
  23000f1f3223000f1f3323000f1f3423000f1f3523000f1f3623000f1f3723000f1f3823000f1f3923000f1f315f01110f60
  01101f316101101f316201101f316301101f316401101f316501101f316601101f316701101f316801101f326801101f3268
  01101f326801101f326801101f326801101f326801101f326801101f326801101f326801101f326801101f336801101f3368
  01101f336801101f336801101f336801101f336801101f336801101f336801101f336801101f33680105507275657d0a`;
const PLAIN = `04224d18604082ef000000${BLOCKS}00000000`;
const CHECKED = `04224d187c40960500000000000045ef000000${BLOCKS}f6c0e0f8 00000000 ec8bf907`;
/** Two blocks, the second of which repeats the first: its match reaches into the block before. */
const LINKED =
  `04224d1844405e240000806162636465666768696a6b6c6d6e6f707172737475767778797a30313233343536
  3738390a0000000f24000d5036373839210000000061d4f150`;
const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

describe("xxhash32", () => {
  test("known values", () => {
    assert.equal(xxhash32(new Uint8Array(0)), 0x02cc5d05);
    assert.equal(xxhash32(toUtf8("abc"), 7), 0x57cfd434);
    assert.equal(xxhash32(Uint8Array.from({ length: 100 }, (_, i) => i)), 0x7f89ba44);
    assert.equal(xxhash32(toUtf8("Nobody inspects the spammish repetition")), 0xe2293b2f);
  });
});

describe("lz4 frames", () => {
  test("reads the reference library's frames", () => {
    assert.equal(utf8(decodeLz4Frames(fromHex(PLAIN), MAX)), lines(40));
    assert.equal(utf8(decodeLz4Frames(fromHex(CHECKED), MAX)), lines(40));
    assert.equal(utf8(decodeLz4Frames(fromHex(LINKED), MAX)), `${ALPHABET}${ALPHABET}!`);
  });

  test("refuses a match before the block when blocks are independent", () => {
    const bytes = fromHex(LINKED);
    bytes[4] = 0x64;
    bytes[6] = (xxhash32(bytes.subarray(4, 6)) >>> 8) & 255;
    assert.throws(() => decodeLz4Frames(bytes, MAX), corruption);
  });

  test("several frames and skippable ones follow each other", () => {
    const skip = fromHex("5e2a4d18 03000000 aabbcc");
    const all = concatBytes([skip, fromHex(LINKED), skip, encodeLz4Frame(toUtf8("end"))]);
    assert.equal(utf8(decodeLz4Frames(all, MAX)), `${ALPHABET}${ALPHABET}!end`);
  });

  test("writes the header that Kafka's Java client wants", () => {
    assert.equal(toHex(encodeLz4Frame(new Uint8Array(0))), "04224d1860408200000000");
    const zeros = encodeLz4Frame(new Uint8Array(200_000));
    assert.equal(toHex(zeros.subarray(0, 7)), "04224d18604082");
    assert.ok(zeros.length < 1_000);
  });

  test("every byte of the checksums counts", () => {
    const bytes = fromHex(CHECKED);
    for (let at = 0; at < bytes.length; at++) {
      const broken = bytes.slice();
      broken[at] = broken[at]! ^ 0x10;
      assert.throws(() => decodeLz4Frames(broken, MAX), corruption, `byte ${at}`);
    }
    for (let length = 0; length < bytes.length; length++) {
      assert.throws(() => decodeLz4Frames(bytes.subarray(0, length), MAX), corruption);
    }
  });

  test("stops at the cap, whatever the frame declares", () => {
    const bomb = encodeLz4Frame(new Uint8Array(1_000_000));
    assert.throws(() => decodeLz4Frames(bomb, 999_999), corruption);
    assert.equal(decodeLz4Frames(bomb, 1_000_000).length, 1_000_000);
    assert.throws(() => decodeLz4Frames(fromHex(CHECKED), 100), corruption);
  });

  test("what is written is read back", () => {
    const chunk = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.tuple(fc.nat(255), fc.nat(90_000)).map(([byte, n]) => new Uint8Array(n).fill(byte)),
      fc.nat(4_000).map((n) => toUtf8(lines(n % 2_500))),
    );
    const parts = fc.array(chunk, { maxLength: 5 }).map(concatBytes);
    fc.assert(
      fc.property(parts, (bytes) => {
        assert.deepEqual(decodeLz4Frames(encodeLz4Frame(bytes), bytes.length), bytes);
      }),
      { numRuns: 60 },
    );
  });

  test("noise and bit flips give a fault or an output within the cap", () => {
    const good = encodeLz4Frame(toUtf8(lines(60)));
    const flips = fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 6 });
    const flipped = flips.map((list) => {
      const bytes = good.slice();
      for (const [at, byte] of list) bytes[at] = byte;
      return bytes;
    });
    const noise = fc.uint8Array({ maxLength: 100 }).map((tail) =>
      concatBytes([good.subarray(0, 11), tail])
    );
    fc.assert(
      fc.property(fc.oneof(flipped, noise, fc.uint8Array()), (bytes) => {
        try {
          assert.ok(decodeLz4Frames(bytes, 10_000).length <= 10_000);
        } catch (error) {
          if (!corruption(error)) throw error;
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
