/** The schema language: versions, null, tags, defaults, hostile lengths, number ranges. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AssertionError } from "../lib/assert.ts";
import { ByteWriter, DecodeError, fromHex, toHex } from "../lib/bytes.ts";
import { bool, bytes, int16, int32, int64, int64Clamped, int8, string, uuid } from "./primitive.ts";
import {
  array,
  decode,
  encode,
  type Infer,
  type InferInput,
  message,
  since,
  struct,
} from "./schema.ts";

const VERSIONS = { min: 0, max: 3, flexibleFrom: 2 };

const point = struct({ x: int8, y: since(1, int8, { default: -1 }) });
const sample = message("Sample", VERSIONS, {
  name: since(0, string, { nullableSince: 1 }),
  points: since(0, array(point), { until: 2 }),
  id: since(2, int32, { tag: 0, default: 7 }),
  corner: since(3, point, { tag: 2 }),
});

// Compile-time checks: reading gives every field, writing may omit what has a default.
const asRead: Infer<typeof sample> = {
  name: null,
  points: [{ x: 1, y: 2 }],
  id: 7,
  corner: { x: 0, y: -1 },
};
const asWritten: InferInput<typeof sample> = { name: "é" };
// @ts-expect-error A field that stands in every version and has no default is required.
const incomplete: InferInput<typeof sample> = { id: 1 };

test("fields that a version lacks read as their default and are not written", () => {
  assert.deepEqual(decode(sample, 0, fromHex("0001 61 00000001 05")), {
    name: "a",
    points: [{ x: 5, y: -1 }],
    id: 7,
    corner: { x: 0, y: -1 },
  });
  assert.equal(toHex(encode(sample, 0, { ...asRead, name: "a" })), "0001610000000101");
  assert.equal(toHex(encode(sample, 3, asWritten)), "03c3a900");
});

test("flexible versions: compact lengths, tagged fields ascending and only when not default", () => {
  const value = { ...asRead, name: "a", id: 1, corner: { x: 9, y: -1 } };
  assert.equal(
    toHex(encode(sample, 3, value)),
    "0261 02 000400000001 02 0309ff00".replaceAll(" ", ""),
  );
  assert.equal(toHex(encode(sample, 2, { ...value, id: 7 })), "02610201020000");
});

test("unknown tags are skipped, in any place", () => {
  const wire = fromHex("00 03  63 03 aabbcc  00 04 00000009  7f 00");
  assert.deepEqual(decode(sample, 3, wire), { ...asRead, points: [], id: 9 });
});

test("a tagged field must fill its size exactly", () => {
  for (const hex of ["00 01 00 03 00000009", "00 01 00 05 0000000900", "00 01 00 7f 00000009"]) {
    assert.throws(() => decode(sample, 3, fromHex(hex)), DecodeError);
  }
});

test("null is refused where the version does not allow it", () => {
  assert.throws(() => decode(sample, 0, fromHex("ffff 00000000")), DecodeError);
  assert.equal(decode(sample, 1, fromHex("ffff 00000000")).name, null);
  assert.throws(() => encode(sample, 0, { name: null }), AssertionError);
  assert.equal(toHex(encode(sample, 0, incomplete)), "000000000000");
  assert.throws(() => decode(sample, 1, fromHex("ffff ffffffff")), DecodeError);
});

test("lengths below the null mark and past the end are refused before anything is allocated", () => {
  for (const hex of ["fffe 00000000", "0000 fffffffe", "0000 7fffffff", "7fff 00"]) {
    assert.throws(() => decode(sample, 1, fromHex(hex)), DecodeError);
  }
  for (const hex of ["01 ffffffff0f", "ffffffff0f", "01 808080808000", "01 01 ffffffff0f"]) {
    assert.throws(() => decode(sample, 2, fromHex(hex)), DecodeError);
  }
});

test("bytes left over are refused, and the error names message and version", () => {
  assert.throws(
    () => decode(sample, 1, fromHex("0000 00000000 00")),
    /Cannot decode Sample v1: 1 bytes left over/,
  );
});

test("an unknown version is a bug of the caller", () => {
  assert.throws(() => sample.codec(4), AssertionError);
  assert.throws(() => sample.codec(-1), AssertionError);
  assert.equal(sample.codec(3), sample.codec(3));
});

const AT = { version: 0, flexible: false };
const scalars = message("Scalars", { min: 0, max: 0, flexibleFrom: null }, {
  flag: bool,
  id: uuid,
  blob: bytes,
});

test("primitives", () => {
  const id = "00112233445566778899aabbccddeeff";
  const wire = fromHex(`02 ${id} 00000002 beef`);
  const value = decode(scalars, 0, wire);
  assert.deepEqual(value, { flag: true, id, blob: fromHex("beef") });
  assert.equal(value.blob.buffer, wire.buffer, "bytes are a view");
  assert.equal(toHex(encode(scalars, 0, value)), `01${id}00000002beef`);
});

const wide = message("Wide", { min: 0, max: 0, flexibleFrom: null }, { a: int64, b: int64Clamped });

test("int64: safe integers only, positions clamped", () => {
  const safe = "001fffffffffffff";
  const value = { a: -1, b: Number.MAX_SAFE_INTEGER };
  assert.deepEqual(decode(wide, 0, fromHex("ffffffffffffffff 7fffffffffffffff")), value);
  assert.equal(toHex(encode(wide, 0, value)), "ffffffffffffffff" + safe);
  assert.equal(
    decode(wide, 0, fromHex(`${safe} 8000000000000000`)).b,
    Number.MIN_SAFE_INTEGER,
  );
  for (const hex of ["0020000000000000", "7fffffffffffffff", "8000000000000000"]) {
    assert.throws(() => decode(wide, 0, fromHex(hex + safe)), DecodeError);
  }
});

test("integers out of range and long strings are bugs, not silent wraps", () => {
  for (
    const [type, value] of [[int8, 128], [int16, -32769], [int32, 2 ** 31], [int32, 1.5]] as const
  ) {
    assert.throws(() => type.compile(AT).write(new ByteWriter(), value), AssertionError);
  }
  assert.throws(() => encode(sample, 0, { name: "x".repeat(32_768) }), AssertionError);
  const long = "x".repeat(32_767);
  assert.equal(decode(sample, 2, encode(sample, 2, { name: long })).name, long);
  const wire = fromHex(`81 80 02 ${"78".repeat(32_768)} 01 00`);
  assert.throws(() => decode(sample, 2, wire), /too long/);
});

test("text must be UTF-8", () => {
  assert.throws(() => decode(sample, 0, fromHex("0002 c328 00000000")), DecodeError);
  const text = "ключ-鍵-🔑".repeat(5);
  assert.equal(decode(sample, 3, encode(sample, 3, { name: text })).name, text);
});
