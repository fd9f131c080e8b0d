/** Compiles a struct for one version: fields in order, in flexible versions a tagged section. */
import { assert } from "../lib/assert.ts";
import { type ByteReader, ByteWriter, DecodeError } from "../lib/bytes.ts";
import type { At, Codec, FieldInfo, Type } from "./codec.ts";

type Row = Record<string, unknown>;
type StructFields = Readonly<Record<string, FieldInfo & { compile(at: At): Codec<unknown> }>>;

interface Member {
  readonly name: string;
  readonly codec: Codec<unknown>;
  readonly zero: unknown;
}
interface Tagged extends Member {
  readonly tag: number;
  readonly type: Type;
}

/** Skips a tagged section, whatever it holds. */
export function skipTags(reader: ByteReader): void {
  readTags(reader, [], {});
}

function readTags(reader: ByteReader, tags: readonly Tagged[], out: Row): void {
  const count = reader.uvarint();
  // Unknown fields cost time only, but there may be as many as bytes.
  reader.countElements(Math.max(0, count - tags.length));
  for (let i = 0; i < count; i++) {
    const tag = reader.uvarint();
    const size = reader.uvarint();
    const end = reader.position + size;
    const member = tags.find((one) => one.tag === tag);
    if (member === undefined || size > reader.remaining) {
      reader.skip(size);
      continue;
    }
    out[member.name] = member.codec.read(reader);
    if (reader.position !== end) {
      throw new DecodeError(`Cannot read tagged field ${tag}: its size is not ${size}`);
    }
  }
}

function isDefault(type: Type, value: unknown, zero: unknown): boolean {
  if (value === undefined || value === zero) return true;
  if (value === null || zero === null) return false;
  if (type.fields !== undefined) {
    const row = value as Row;
    return Object.entries(type.fields)
      .every(([name, field]) => isDefault(field.type, row[name], field.zero));
  }
  return (Array.isArray(value) || value instanceof Uint8Array) && value.length === 0;
}

/** Tagged fields go out in ascending order and only when they differ from their default. */
function writeTags(writer: ByteWriter, tags: readonly Tagged[], row: Row): void {
  let count = 0;
  for (const { type, name, zero } of tags) if (!isDefault(type, row[name], zero)) count++;
  writer.uvarint(count);
  if (count === 0) return;
  for (const { type, tag, name, codec, zero } of tags) {
    if (isDefault(type, row[name], zero)) continue;
    const payload = new ByteWriter();
    codec.write(payload, row[name]);
    writer.uvarint(tag);
    writer.uvarint(payload.length);
    writer.bytes(payload.view());
  }
}

interface Members {
  readonly plain: readonly Member[];
  readonly tags: readonly Tagged[];
  /** All fields with their defaults: every struct read is a copy of it, so all have one shape. */
  readonly blank: Row;
}

function membersAt(fields: StructFields, at: At): Members {
  const plain: Member[] = [];
  const tags: Tagged[] = [];
  const blank: Row = {};
  for (const [name, field] of Object.entries(fields)) {
    const { zero, type, tag } = field;
    blank[name] = zero;
    if (at.version < field.since || at.version > field.until) continue;
    const member = { name, zero, codec: field.compile(at) };
    if (tag === null) plain.push(member);
    else tags.push({ ...member, type, tag });
  }
  assert(tags.length === 0 || at.flexible, "tagged fields need a flexible version");
  tags.sort((a, b) => a.tag - b.tag);
  return { plain, tags, blank };
}

export function compileStruct(fields: StructFields, at: At): Codec<unknown> {
  const { plain, tags, blank } = membersAt(fields, at);
  const { flexible } = at;
  let bytesMin = flexible ? 1 : 0;
  for (const member of plain) bytesMin += member.codec.bytesMin;
  return {
    bytesMin,
    read(reader) {
      const out = { ...blank };
      for (const { name, codec } of plain) out[name] = codec.read(reader);
      if (flexible) readTags(reader, tags, out);
      return out;
    },
    write(writer, value) {
      const row = value as Row;
      for (const { name, codec, zero } of plain) {
        const given = row[name];
        codec.write(writer, given === undefined ? zero : given);
      }
      if (flexible) writeTags(writer, tags, row);
    },
  };
}
