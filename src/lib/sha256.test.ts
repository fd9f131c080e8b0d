import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { toHex, toUtf8 } from "./bytes.ts";
import { sha256 } from "./sha256.ts";

test("the examples of FIPS 180-4", () => {
  const cases = [
    ["", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
    ["abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
    [
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ],
  ] as const;
  for (const [text, expected] of cases) assert.equal(toHex(sha256(toUtf8(text))), expected);
});

test("every length around the ends of blocks, as the platform has it", () => {
  for (let length = 0; length < 200; length++) {
    const bytes = Uint8Array.from({ length }, (_, i) => i * 7 + length);
    const expected = createHash("sha256").update(bytes).digest("hex");
    assert.equal(toHex(sha256(bytes)), expected, String(length));
  }
});
