/** Random values of any message schema in a given version, for property tests. */
import * as fc from "fast-check";
import type { FieldInfo, Type } from "../../src/protocol/codec.ts";

const INT64 = fc.oneof(
  fc.constantFrom(-1, 0, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER),
  fc.maxSafeInteger(),
);
const BYTES = fc.uint8Array({ maxLength: 20 });

const SCALARS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  bool: fc.boolean(),
  int8: fc.integer({ min: -128, max: 127 }),
  int16: fc.integer({ min: -32768, max: 32767 }),
  int32: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  int64: INT64,
  float64: fc.double({ noNaN: true }),
  uuid: fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) =>
    Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
  ),
  string: fc.oneof(fc.string({ maxLength: 40 }), fc.string({ unit: "binary", maxLength: 10 })),
  bytes: BYTES,
  records: BYTES,
};

/** Every field is present; those that the version lacks have their default. */
export function valueOf(type: Type, version: number): fc.Arbitrary<unknown> {
  const scalar = SCALARS[type.kind];
  if (scalar !== undefined) return scalar;
  if (type.element !== undefined) return fc.array(valueOf(type.element, version), { maxLength: 3 });
  const fields = Object.entries(type.fields ?? {});
  return fc.record(
    Object.fromEntries(fields.map(([name, field]) => [name, fieldOf(field, version)])),
    { noNullPrototype: true },
  );
}

function fieldOf(field: FieldInfo, version: number): fc.Arbitrary<unknown> {
  if (version < field.since || version > field.until) return fc.constant(field.zero);
  const value = valueOf(field.type, version);
  const usual = version >= field.nullableSince ? fc.option(value, { nil: null }) : value;
  return field.tag === null ? usual : fc.oneof(fc.constant(field.zero), usual);
}
