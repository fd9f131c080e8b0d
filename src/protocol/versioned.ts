/** Messages that lie inside something else, a record or a member: an int16 version first. */
import { ByteReader, ByteWriter, DecodeError } from "../lib/bytes.ts";
import { REQUEST_ELEMENTS_MAX } from "../lib/limits.ts";
import { decode, type Schema } from "./schema.ts";

export function encodeVersioned<Out, In>(
  schema: Schema<Out, In>,
  version: number,
  value: In,
): Uint8Array {
  const writer = new ByteWriter();
  writer.i16(version);
  schema.codec(version).write(writer, value);
  return writer.view();
}

/** Refuses a version that the schema does not have. */
export function decodeVersioned<Out, In>(schema: Schema<Out, In>, bytes: Uint8Array): Out {
  const reader = new ByteReader(bytes);
  const version = reader.i16();
  if (version < schema.min || version > schema.max) {
    throw new DecodeError(`Cannot decode ${schema.name}: unknown version ${version}`);
  }
  return decode(schema, version, reader);
}

/** For formats that only ever grow at the end: a newer version reads as the newest known one. */
export function decodeGrowing<Out, In>(schema: Schema<Out, In>, bytes: Uint8Array): Out {
  const reader = new ByteReader(bytes);
  reader.limitElements(REQUEST_ELEMENTS_MAX);
  const version = reader.i16();
  if (version < schema.min) {
    throw new DecodeError(`Cannot decode ${schema.name}: unknown version ${version}`);
  }
  return schema.codec(Math.min(version, schema.max)).read(reader);
}
