/** A record of a meta stream: u8 magic 0 · i32 key length · key in UTF-8 · value to the end. */
import { ByteReader, ByteWriter, DecodeError, toUtf8, utf8 } from "../lib/bytes.ts";

const MAGIC = 0;

export interface MetaKeyValue {
  readonly key: string;
  readonly value: Uint8Array;
}

export function encodeMetaKeyValue(key: string, value: Uint8Array): Uint8Array {
  const name = toUtf8(key);
  const writer = new ByteWriter(5 + name.length + value.length);
  writer.u8(MAGIC);
  writer.i32(name.length);
  writer.bytes(name);
  writer.bytes(value);
  return writer.view();
}

/** The value is a view. Throws DecodeError. */
export function decodeMetaKeyValue(bytes: Uint8Array): MetaKeyValue {
  const reader = new ByteReader(bytes);
  const magic = reader.u8();
  if (magic !== MAGIC) throw new DecodeError(`Cannot read meta record: magic ${magic}`);
  const key = utf8(reader.take(reader.i32()));
  return { key, value: reader.take(reader.remaining) };
}
