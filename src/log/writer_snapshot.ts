/**
 * WRITERS, a value of the meta stream: what named writers have left in a partition.
 *
 *   u8 version 1 · u32 CRC-32C of the rest · i64 offset · u8 what follows (1 a closing, 2 the writer that closed,
 *   4 an order) · closing: i64 end · writer · order: u16 n · n bytes · i32 count · count × (writer · i64 end), oldest first
 *   writer: u16 n · n bytes name · i64 epoch · i64 sequence
 *
 * It counts every batch below the offset and is written before a LOG that counts as much. Never written means that
 * there was no such batch. One that does not parse keeps the partition shut: else a closed log would open again.
 */
import type { Offset } from "../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { WRITERS_PER_PARTITION_MAX } from "../lib/limits.ts";
import { readText, readWriter, writeText, writeWriter } from "./writer_step.ts";
import type { Closing, WriterEntry, WriterTable } from "./writer_table.ts";

const VERSION = 1;
const CRC_AT = 1;
const BODY_AT = 5;
const [HAS_CLOSING, HAS_CLOSER, HAS_ORDER] = [1, 2, 4];

export interface WriterSnapshot {
  readonly offset: Offset;
  readonly closing: Closing | null;
  readonly order: string | null;
  readonly entries: readonly WriterEntry[];
}

function flagsOf({ closing, order }: Pick<WriterSnapshot, "closing" | "order">): number {
  const closed = closing === null
    ? 0
    : closing.by === null
    ? HAS_CLOSING
    : HAS_CLOSING | HAS_CLOSER;
  return closed | (order === null ? 0 : HAS_ORDER);
}

export function encodeWriters(
  offset: Offset,
  table: Pick<WriterTable, "closing" | "order" | "entries">,
): Uint8Array {
  const { closing, order } = table;
  const entries = [...table.entries()];
  const writer = new ByteWriter();
  writer.u8(VERSION);
  writer.u32(0);
  writer.i64(offset);
  writer.u8(flagsOf(table));
  if (closing !== null) writer.i64(closing.end);
  if (closing?.by != null) writeWriter(writer, closing.by);
  if (order !== null) writeText(writer, order);
  writer.i32(entries.length);
  for (const entry of entries) {
    writeWriter(writer, entry);
    writer.i64(entry.end);
  }
  const bytes = writer.view().slice();
  viewOf(bytes).setUint32(CRC_AT, crc32c(bytes.subarray(BODY_AT)));
  return bytes;
}

function readClosing(reader: ByteReader, flags: number): Closing | null {
  if ((flags & HAS_CLOSING) === 0) return null;
  const end = reader.i64();
  return { end, by: (flags & HAS_CLOSER) === 0 ? null : readWriter(reader) };
}

function readAll(bytes: Uint8Array): WriterSnapshot | null {
  const reader = new ByteReader(bytes);
  if (reader.u8() !== VERSION) return null;
  if (reader.u32() !== crc32c(bytes.subarray(BODY_AT))) return null;
  const offset = reader.i64();
  const flags = reader.u8();
  const closing = readClosing(reader, flags);
  const order = (flags & HAS_ORDER) === 0 ? null : readText(reader);
  const count = reader.i32();
  if (count < 0 || count > WRITERS_PER_PARTITION_MAX) return null;
  const entries = Array.from(
    { length: count },
    () => ({ ...readWriter(reader), end: reader.i64() }),
  );
  return reader.remaining === 0 ? { offset, closing, order, entries } : null;
}

/** Null for anything but one whole, sound value. */
export function decodeWriters(bytes: Uint8Array): WriterSnapshot | null {
  try {
    return readAll(bytes);
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}
