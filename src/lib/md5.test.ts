import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { toHex, toUtf8 } from "./bytes.ts";
import { md5 } from "./md5.ts";

const md5Hex = (text: string) => toHex(md5(toUtf8(text)));

test("md5 of the vectors of RFC 1321", () => {
  assert.equal(md5Hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  assert.equal(md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  assert.equal(md5Hex("1234567890".repeat(8)), "57edf4a22be3c955ac49da2e2107b67a");
});

test("md5 equals the platform's for any bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
    assert.equal(toHex(md5(bytes)), createHash("md5").update(bytes).digest("hex"));
  }));
});
