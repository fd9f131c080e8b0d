/**
 * Messages as data: a schema names each field with the versions that have it, as Kafka's own
 * descriptions do, and is compiled into closures once per version. The TypeScript types of a
 * message follow from its schema.
 */
import { assert } from "../lib/assert.ts";
import { ByteReader, ByteWriter, DecodeError } from "../lib/bytes.ts";
import type { At, Codec, FieldInfo, NullableType, Type } from "./codec.ts";
import { longLength, sized } from "./primitive.ts";
import { compileStruct } from "./struct.ts";

export interface FieldOptions<T> {
  /** Last version that has the field. */
  readonly until?: number;
  /** First version in which null is legal. */
  readonly nullableSince?: number;
  /** Value of an absent field; also lets writers leave it out. */
  readonly default?: T | null;
  /** Puts the field into the tagged section. */
  readonly tag?: number;
}

/** A field that does not simply stand in all versions. `Optional`: writers may leave it out. */
export interface Field<Out, In, Optional extends boolean> extends FieldInfo {
  readonly optional: Optional;
  compile(at: At): Codec<Out, In>;
}

type Null<O> = O extends { readonly nullableSince: number } ? null : never;
type HasDefault<O> = O extends { readonly default: unknown } | { readonly until: number } ? true
  : false;
type IsOptional<Min extends number, O> = Min extends 0 ? HasDefault<O> : true;

/**
 * A field that exists from version `min` on. Writers may leave it out if it has a default or is not
 * in every version; a value for a version without the field is dropped. Inside a struct that is
 * itself younger, 0 says "as old as the struct".
 */
export function since<Out, In, const Min extends number, const O extends FieldOptions<Out>>(
  min: Min,
  type: O extends { readonly nullableSince: number } ? NullableType<Out, In> : Type<Out, In>,
  options?: O,
): Field<Out | Null<O>, In | Null<O>, IsOptional<Min, O>>;
export function since(
  min: number,
  type: Type | NullableType,
  options: FieldOptions<unknown> = {},
): Field<unknown, unknown, boolean> {
  const { until = Infinity, nullableSince = Infinity, tag = null } = options;
  const hasDefault = options.default !== undefined;
  return {
    type,
    since: min,
    until,
    nullableSince,
    tag,
    zero: hasDefault ? options.default : type.zero,
    optional: min > 0 || hasDefault || options.until !== undefined,
    compile(at) {
      if (at.version < nullableSince) return type.compile(at);
      assert("compileNullable" in type, `${type.kind} cannot be null`);
      return type.compileNullable(at);
    },
  };
}

type AnyField = Type | Field<unknown, unknown, boolean>;
type Fields = Readonly<Record<string, AnyField>>;
type OutOf<F> = F extends { compile(at: At): Codec<infer Out, infer _> } ? Out : never;
type InOf<F> = F extends { compile(at: At): Codec<infer _, infer In> } ? In : never;
type OptionalKeys<F> = {
  [K in keyof F]: F[K] extends { readonly optional: true } ? K : never;
}[keyof F];
type Flatten<T> = { [K in keyof T]: T[K] };

export type StructOut<F extends Fields> = { readonly [K in keyof F]: OutOf<F[K]> };
export type StructIn<F extends Fields> = Flatten<
  & { readonly [K in Exclude<keyof F, OptionalKeys<F>>]: InOf<F[K]> }
  & { readonly [K in OptionalKeys<F>]?: InOf<F[K]> | undefined }
>;

/** A struct; a bare type as a field stands in every version and is required. */
export function struct<const F extends Fields>(fields: F): Type<StructOut<F>, StructIn<F>>;
export function struct(fields: Fields): Type {
  const all: Record<string, Field<unknown, unknown, boolean>> = {};
  const zero: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(fields)) {
    const full = "optional" in field ? field : since(0, field);
    all[name] = full;
    zero[name] = full.zero;
  }
  return { kind: "struct", zero, fields: all, compile: (at) => compileStruct(all, at) };
}

const ABSENT = -1;
const ABSENT_IN_TAG = 0;
const PRESENT = 1;

/** A struct behind a byte that says whether it is there. */
export function nullableStruct<const F extends Fields>(
  fields: F,
): NullableType<StructOut<F>, StructIn<F>> {
  return markedStruct(fields, ABSENT);
}

/** The same as a tagged field, where another byte says that it is not there. */
export function nullableTaggedStruct<const F extends Fields>(
  fields: F,
): NullableType<StructOut<F>, StructIn<F>> {
  return markedStruct(fields, ABSENT_IN_TAG);
}

function markedStruct<const F extends Fields>(
  fields: F,
  absent: number,
): NullableType<StructOut<F>, StructIn<F>> {
  const inner = struct(fields);
  return {
    ...inner,
    compileNullable(at) {
      const codec = inner.compile(at);
      return {
        bytesMin: 1,
        read: (reader) => reader.i8() === absent ? null : codec.read(reader),
        write(writer, value) {
          writer.i8(value === null ? absent : PRESENT);
          if (value !== null) codec.write(writer, value);
        },
      };
    },
  };
}

export function array<Out, In>(
  element: Type<Out, In>,
): NullableType<readonly Out[], readonly In[]> {
  return sized<readonly Out[], readonly In[]>({
    kind: "array",
    zero: Object.freeze([]),
    element,
    length: longLength,
    content(at) {
      const codec = element.compile(at);
      return {
        read(reader, length) {
          if (length * codec.bytesMin > reader.remaining) {
            throw new DecodeError(`Cannot read ${length} elements: ${reader.remaining} bytes left`);
          }
          reader.countElements(length);
          const out: Out[] = [];
          for (let i = 0; i < length; i++) out.push(codec.read(reader));
          return out;
        },
        write(writer, length, value) {
          length.write(writer, value.length);
          for (const item of value) codec.write(writer, item);
        },
      };
    },
  });
}

export interface Versions {
  readonly min: number;
  readonly max: number;
  /** First version with compact lengths and tagged fields; null if none has them. */
  readonly flexibleFrom: number | null;
}

export interface Schema<Out = unknown, In = Out> extends Versions {
  /** As in Kafka: `ProduceRequest`. */
  readonly name: string;
  readonly body: Type<Out, In>;
  /** Compiled at first use. The version must be in range. */
  codec(version: number): Codec<Out, In>;
}

/** What reading a message of this schema gives: every field. */
export type Infer<S> = S extends { codec(version: number): Codec<infer Out, infer _> } ? Out
  : never;
/** What writing one takes: fields with a default, or not in every version, may be left out. */
export type InferInput<S> = S extends { codec(version: number): Codec<infer _, infer In> } ? In
  : never;

export function isFlexible(of: Versions, version: number): boolean {
  return of.flexibleFrom !== null && version >= of.flexibleFrom;
}

export function message<const F extends Fields>(
  name: string,
  versions: Versions,
  fields: F,
): Schema<StructOut<F>, StructIn<F>> {
  const body = struct(fields);
  const codecs = new Map<number, Codec<StructOut<F>, StructIn<F>>>();
  function codec(version: number): Codec<StructOut<F>, StructIn<F>> {
    const known = codecs.get(version);
    if (known !== undefined) return known;
    assert(
      Number.isInteger(version) && version >= versions.min && version <= versions.max,
      `${name} has no version ${version}`,
    );
    const made = body.compile({ version, flexible: isFlexible(versions, version) });
    codecs.set(version, made);
    return made;
  }
  return { ...versions, name, body, codec };
}

/** Reads a message and leaves what follows it in the reader. Byte fields are views of the input. */
export function decodePrefix<Out, In>(
  schema: Schema<Out, In>,
  version: number,
  reader: ByteReader,
): Out {
  const codec = schema.codec(version);
  try {
    return codec.read(reader);
  } catch (cause) {
    if (!(cause instanceof DecodeError)) throw cause;
    throw new DecodeError(`Cannot decode ${schema.name} v${version}: ${cause.message}`, { cause });
  }
}

/** Reads a whole message; bytes left over do not decode. Byte fields are views of `input`. */
export function decode<Out, In>(
  schema: Schema<Out, In>,
  version: number,
  input: Uint8Array | ByteReader,
): Out {
  const reader = input instanceof Uint8Array ? new ByteReader(input) : input;
  const value = decodePrefix(schema, version, reader);
  if (reader.remaining === 0) return value;
  throw new DecodeError(
    `Cannot decode ${schema.name} v${version}: ${reader.remaining} bytes left over`,
  );
}

export function encode<Out, In>(schema: Schema<Out, In>, version: number, value: In): Uint8Array {
  const writer = new ByteWriter();
  schema.codec(version).write(writer, value);
  return writer.view();
}
