/**
 * REQUESTS, a value of the meta stream: requests with an Idempotency-Key that a partition has stored lately.
 *
 *   u8 version 1 · u32 CRC-32C of the rest · i64 offset · i32 count · count × entry, oldest first
 *   entry: 16 bytes id · 16 bytes fingerprint · i32 partitions · i64 append time · i32 n ·
 *          n × (i64 base offset · i32 count · i64 time · u8 1 for append time)
 *
 * It counts every batch below the offset and is written before a LOG that counts as much. Never written means that
 * there was no such request. What does not parse counts as missing: then only the replay knows of any.
 */
import type { Offset } from "../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError, fromHex, toHex, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { REQUESTS_PER_PARTITION_MAX } from "../lib/limits.ts";
import type { RequestEntry, RequestRun } from "./request_table.ts";

const VERSION = 1;
const CRC_AT = 1;
const BODY_AT = 5;
const COUNT_AT = 13;
const ID_BYTES = 16;
const RUN_BYTES = 21;

export interface RequestSnapshot {
  readonly offset: Offset;
  readonly entries: readonly RequestEntry[];
}

function writeEntry(writer: ByteWriter, entry: RequestEntry): void {
  writer.bytes(fromHex(entry.id));
  writer.bytes(fromHex(entry.fingerprint));
  writer.i32(entry.partitions);
  writer.i64(entry.appendedMs);
  writer.i32(entry.runs.length);
  for (const { baseOffset, count, timeMs, isAppendTime } of entry.runs) {
    writer.i64(baseOffset);
    writer.i32(count);
    writer.i64(timeMs);
    writer.u8(isAppendTime ? 1 : 0);
  }
}

export function encodeRequests(offset: Offset, entries: Iterable<RequestEntry>): Uint8Array {
  const writer = new ByteWriter();
  writer.u8(VERSION);
  writer.u32(0);
  writer.i64(offset);
  writer.i32(0);
  let count = 0;
  for (const entry of entries) {
    count++;
    writeEntry(writer, entry);
  }
  const bytes = writer.view().slice();
  const view = viewOf(bytes);
  view.setInt32(COUNT_AT, count);
  view.setUint32(CRC_AT, crc32c(bytes.subarray(BODY_AT)));
  return bytes;
}

function readRun(reader: ByteReader): RequestRun {
  return {
    baseOffset: reader.i64(),
    count: reader.i32(),
    timeMs: reader.i64(),
    isAppendTime: reader.u8() === 1,
  };
}

function readEntry(reader: ByteReader): RequestEntry {
  const id = toHex(reader.take(ID_BYTES));
  const fingerprint = toHex(reader.take(ID_BYTES));
  const partitions = reader.i32();
  const appendedMs = reader.i64();
  const count = reader.i32();
  if (count < 0 || count * RUN_BYTES > reader.remaining) {
    throw new DecodeError(`Cannot read requests: ${count} runs`);
  }
  const runs = Array.from({ length: count }, () => readRun(reader));
  return { id, fingerprint, partitions, runs, appendedMs };
}

function readAll(bytes: Uint8Array): RequestSnapshot | null {
  const reader = new ByteReader(bytes);
  if (reader.u8() !== VERSION) return null;
  if (reader.u32() !== crc32c(bytes.subarray(BODY_AT))) return null;
  const offset = reader.i64();
  const count = reader.i32();
  if (count < 0 || count > REQUESTS_PER_PARTITION_MAX) return null;
  const entries = Array.from({ length: count }, () => readEntry(reader));
  return reader.remaining === 0 ? { offset, entries } : null;
}

/** Null for anything but one whole, sound value. */
export function decodeRequests(bytes: Uint8Array): RequestSnapshot | null {
  try {
    return readAll(bytes);
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}
