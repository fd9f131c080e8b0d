/**
 * Kafka's primitive types. Big-endian; lengths are fixed-width in classic versions and
 * unsigned varints of length + 1 in flexible ones, where 0 stands for null.
 */
import { assert } from "../lib/assert.ts";
import { type ByteReader, type ByteWriter, DecodeError, toUtf8, utf8 } from "../lib/bytes.ts";
import { type Uuid, uuidBytes, uuidOf, ZERO_UUID } from "../lib/uuid.ts";
import type { At, Codec, NullableType, Type } from "./codec.ts";

/** The wire allows 16-bit lengths only; Kafka keeps that bound for compact strings too. */
const STRING_BYTES_MAX = 0x7fff;
const TWO_32 = 2 ** 32;
const EMPTY = new Uint8Array(0);
const SHORT_TEXT_BYTES = 32;

function fixed<T>(kind: string, zero: T, codec: Codec<T>): Type<T> {
  return { kind, zero, compile: () => codec };
}

function integer(kind: string, bits: 8 | 16 | 32, codec: Codec<number>): Type<number> {
  const shift = 32 - bits;
  return fixed(kind, 0, {
    ...codec,
    write(writer, value) {
      assert((value << shift) >> shift === value, `${value} is not an ${kind}`);
      codec.write(writer, value);
    },
  });
}

export const int8 = integer("int8", 8, {
  bytesMin: 1,
  read: (reader) => reader.i8(),
  write: (writer, value) => writer.i8(value),
});

export const int16 = integer("int16", 16, {
  bytesMin: 2,
  read: (reader) => reader.i16(),
  write: (writer, value) => writer.i16(value),
});

export const int32 = integer("int32", 32, {
  bytesMin: 4,
  read: (reader) => reader.i32(),
  write: (writer, value) => writer.i32(value),
});

/** A safe integer; a larger value from outside does not decode. For answers and records of our own. */
export const int64 = fixed("int64", 0, {
  bytesMin: 8,
  read: (reader) => reader.i64(),
  write: (writer, value) => writer.i64(value),
});

function readClamped(reader: ByteReader): number {
  const high = reader.i32();
  const value = high * TWO_32 + reader.u32();
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, value));
}

/**
 * An int64 of a request: what is out of the safe range reads as the largest or the smallest safe integer,
 * so that the API can say what is wrong with it instead of hanging up. Clients set Long.MAX to say "past
 * everything". What is stored must ask `isClamped` first.
 */
export const int64Clamped = fixed("int64", 0, {
  bytesMin: 8,
  read: readClamped,
  write: (writer, value) => writer.i64(value),
});

/** Whether a value may stand for one out of range. */
export function isClamped(value: number): boolean {
  return value >= Number.MAX_SAFE_INTEGER || value <= Number.MIN_SAFE_INTEGER;
}

export const float64 = fixed("float64", 0, {
  bytesMin: 8,
  read: (reader) => reader.f64(),
  write: (writer, value) => writer.f64(value),
});

export const bool = fixed("bool", false, {
  bytesMin: 1,
  read: (reader) => reader.u8() !== 0,
  write: (writer, value) => writer.u8(value ? 1 : 0),
});

export const uuid: Type<Uuid> = fixed("uuid", ZERO_UUID, {
  bytesMin: 16,
  read: (reader) => uuidOf(reader.take(16)),
  write(writer, value) {
    assert(value.length === 32, `${value} is not 32 hex digits`);
    writer.bytes(uuidBytes(value));
  },
});

/** How a length goes over the wire; null is -1. */
export interface Length {
  readonly bytes: number;
  read(reader: ByteReader): number;
  write(writer: ByteWriter, length: number): void;
}

const INT16_LENGTH: Length = {
  bytes: 2,
  read: (reader) => reader.i16(),
  write: (writer, length) => writer.i16(length),
};
const INT32_LENGTH: Length = {
  bytes: 4,
  read: (reader) => reader.i32(),
  write: (writer, length) => writer.i32(length),
};
const COMPACT_LENGTH: Length = {
  bytes: 1,
  read: (reader) => reader.uvarint() - 1,
  write: (writer, length) => writer.uvarint(length + 1),
};

/** The length in front of bytes, records and arrays. */
export function longLength(at: At): Length {
  return at.flexible ? COMPACT_LENGTH : INT32_LENGTH;
}

/** A value behind its length. */
export interface Sized<Out, In> {
  readonly kind: string;
  readonly zero: Out;
  readonly element?: Type;
  length(at: At): Length;
  /** Reads the content; `length` is not negative but otherwise unchecked. */
  content(at: At): {
    read(reader: ByteReader, length: number): Out;
    write(writer: ByteWriter, length: Length, value: In): void;
  };
}

export function sized<Out, In>(of: Sized<Out, In>): NullableType<Out, In> {
  function compileNullable(at: At): Codec<Out | null, In | null> {
    const length = of.length(at);
    const content = of.content(at);
    return {
      bytesMin: length.bytes,
      read(reader) {
        const count = length.read(reader);
        if (count >= 0) return content.read(reader, count);
        if (count === -1) return null;
        throw new DecodeError(`Cannot read ${of.kind}: its length is ${count}`);
      },
      write(writer, value) {
        if (value === null) length.write(writer, -1);
        else content.write(writer, length, value);
      },
    };
  }
  function compile(at: At): Codec<Out, In> {
    const length = of.length(at);
    const content = of.content(at);
    return {
      bytesMin: length.bytes,
      read(reader) {
        const count = length.read(reader);
        if (count >= 0) return content.read(reader, count);
        throw new DecodeError(`Cannot read ${of.kind}: its length is ${count}`);
      },
      write(writer, value) {
        assert(value !== null, `null ${of.kind} in a version that does not allow it`);
        content.write(writer, length, value);
      },
    };
  }
  const { kind, zero } = of;
  return { kind, zero, compile, compileNullable, ...(of.element && { element: of.element }) };
}

/** Names are short and ASCII: for them a loop is several times faster than TextDecoder. */
function text(bytes: Uint8Array): string {
  if (bytes.length > SHORT_TEXT_BYTES) return utf8(bytes);
  let out = "";
  for (const byte of bytes) {
    if (byte > 0x7f) return utf8(bytes);
    out += String.fromCharCode(byte);
  }
  return out;
}

export const string = sized<string, string>({
  kind: "string",
  zero: "",
  length: (at) => at.flexible ? COMPACT_LENGTH : INT16_LENGTH,
  content: () => ({
    read(reader, length) {
      if (length > STRING_BYTES_MAX) {
        throw new DecodeError(`Cannot read string: ${length} bytes is too long`);
      }
      return text(reader.take(length));
    },
    write(writer, length, value) {
      const bytes = toUtf8(value);
      assert(bytes.length <= STRING_BYTES_MAX, `string of ${bytes.length} bytes is too long`);
      length.write(writer, bytes.length);
      writer.bytes(bytes);
    },
  }),
});

/** Read as a view of the message, not as a copy. */
export const bytes = sized<Uint8Array, Uint8Array>({
  kind: "bytes",
  zero: EMPTY,
  length: longLength,
  content: () => ({
    read: (reader, length) => reader.take(length),
    write(writer, length, value) {
      length.write(writer, value.length);
      writer.bytes(value);
    },
  }),
});

/** Record batches: read as one view, written from pieces that a ChunkWriter passes on uncopied. */
export const records = sized<Uint8Array, Uint8Array | readonly Uint8Array[]>({
  kind: "records",
  zero: EMPTY,
  length: longLength,
  content: () => ({
    read: (reader, length) => reader.take(length),
    write(writer, length, value) {
      const pieces = value instanceof Uint8Array ? [value] : value;
      let total = 0;
      for (const piece of pieces) total += piece.length;
      length.write(writer, total);
      for (const piece of pieces) writer.bytes(piece);
    },
  }),
});
