import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { fromHex, toUtf8 } from "./bytes.ts";
import { crc32 } from "./crc32.ts";
import { crc32c } from "./crc32c.ts";

/** The definition, bit by bit. */
function slowCrc(bytes: Uint8Array, polynomial: number): number {
  let rest = 0xffffffff;
  for (const byte of bytes) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ polynomial : rest >>> 1;
  }
  return (rest ^ 0xffffffff) >>> 0;
}

describe("crc", () => {
  test("check values of the catalogue", () => {
    assert.equal(crc32c(toUtf8("123456789")), 0xe3069283);
    assert.equal(crc32(toUtf8("123456789")), 0xcbf43926);
    assert.equal(crc32c(new Uint8Array(0)), 0);
    assert.equal(crc32(new Uint8Array(0)), 0);
  });

  test("vectors of RFC 3720, B.4", () => {
    assert.equal(crc32c(new Uint8Array(32)), 0x8a9136aa);
    assert.equal(crc32c(new Uint8Array(32).fill(0xff)), 0x62a8ab43);
    assert.equal(crc32c(Uint8Array.from({ length: 32 }, (_, i) => i)), 0x46dd794e);
    const command = `01c00000 00000000 00000000 00000000 14000000 00000400
      00000014 00000018 28000000 00000000 02000000 00000000`;
    assert.equal(crc32c(fromHex(command)), 0xd9963a56);
  });

  test("equals the definition for any bytes", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.equal(crc32c(bytes), slowCrc(bytes, 0x82f63b78));
      assert.equal(crc32(bytes), slowCrc(bytes, 0xedb88320));
    }));
  });

  test("continues over parts, across the window's edge", () => {
    const bytes = Uint8Array.from({ length: 200_003 }, (_, i) => (i * 31) >> 3);
    const whole = slowCrc(bytes, 0x82f63b78);
    assert.equal(crc32c(bytes), whole);
    for (const cut of [1, 15, 65_535, 65_536, 65_537, 131_072]) {
      assert.equal(crc32c(bytes.subarray(cut), crc32c(bytes.subarray(0, cut))), whole);
    }
  });
});
