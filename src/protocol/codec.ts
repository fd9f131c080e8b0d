/**
 * What every part of the message layer shares: a codec reads and writes one value of one version,
 * a type makes the codec for a version. Types are values, so that schemas are data.
 */
import type { ByteReader, ByteWriter } from "../lib/bytes.ts";

/** `Out` is what reading gives; `In` is what writing takes, which may leave fields out. */
export interface Codec<Out, In = Out> {
  /** Fewest bytes that a value takes; bounds array lengths before anything is allocated. */
  readonly bytesMin: number;
  read(reader: ByteReader): Out;
  write(writer: ByteWriter, value: In): void;
}

/** Where a codec is used: flexible versions have compact lengths and tagged fields (KIP-482). */
export interface At {
  readonly version: number;
  readonly flexible: boolean;
}

export interface Type<Out = unknown, In = Out> {
  /** Kafka's name of the type, `array` or `struct`. */
  readonly kind: string;
  /** What Kafka takes for a field that is absent and declares no default. */
  readonly zero: Out;
  /** Of an array: the type of its elements. */
  readonly element?: Type;
  /** Of a struct: its fields in wire order. */
  readonly fields?: Readonly<Record<string, FieldInfo>>;
  compile(at: At): Codec<Out, In>;
}

/** A type that has an encoding for null. */
export interface NullableType<Out = unknown, In = Out> extends Type<Out, In> {
  compileNullable(at: At): Codec<Out | null, In | null>;
}

/** What a field says about itself, without its codec. */
export interface FieldInfo {
  readonly type: Type;
  /** First and last version that has the field. */
  readonly since: number;
  readonly until: number;
  /** First version in which null is legal; Infinity if never. */
  readonly nullableSince: number;
  /** Number in the tagged section; null for a field with a place in the sequence. */
  readonly tag: number | null;
  /** Its value when absent. */
  readonly zero: unknown;
}
