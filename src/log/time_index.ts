/**
 * The time index: a stream of 12-byte entries (i64 timestamp · i32 offset relative to the segment's base),
 * addressed by bytes. An entry says: up to this offset no record is younger than this timestamp.
 * It only shortens a search; a missing entry costs reads, never a wrong answer.
 */
import type { Offset } from "../lib/brand.ts";
import { ByteReader, ByteWriter } from "../lib/bytes.ts";
import { LOG_SCAN_BYTES } from "../lib/limits.ts";
import { partitionPoint } from "../lib/partition_point.ts";
import type { Stream } from "../stream/stream.ts";
import { scan, type Slice } from "./slice.ts";

export interface TimeEntry {
  readonly timestampMs: number;
  /** Absolute: the last offset of the batch that reached this timestamp first. */
  readonly offset: Offset;
}

export const TIME_ENTRY_BYTES = 12;

export function encodeTimeEntries(entries: readonly TimeEntry[], baseOffset: Offset): Uint8Array {
  const writer = new ByteWriter(entries.length * TIME_ENTRY_BYTES);
  for (const { timestampMs, offset } of entries) {
    writer.i64(timestampMs);
    writer.i32(offset - baseOffset);
  }
  return writer.view();
}

export function decodeTimeEntries(bytes: Uint8Array, baseOffset: Offset): readonly TimeEntry[] {
  const reader = new ByteReader(bytes);
  const entries: TimeEntry[] = [];
  while (reader.remaining >= TIME_ENTRY_BYTES) {
    entries.push({ timestampMs: reader.i64(), offset: baseOffset + reader.i32() });
  }
  return entries;
}

/** The entries of one segment's slice; a record of the stream may reach beyond it. */
export async function readTimeEntries(
  stream: Stream,
  slice: Slice,
  baseOffset: Offset,
  signal?: AbortSignal,
): Promise<readonly TimeEntry[]> {
  const entries: TimeEntry[] = [];
  for await (const record of scan(stream, slice.start, slice.end, LOG_SCAN_BYTES, signal)) {
    const from = Math.max(0, slice.start - record.baseOffset);
    const to = Math.min(record.payload.length, slice.end - record.baseOffset);
    entries.push(...decodeTimeEntries(record.payload.subarray(from, to), baseOffset));
  }
  return entries;
}

/**
 * The last entry at or before a timestamp; before the first one, (-1, base). `entries` rise in time.
 */
export function lookupTime(
  entries: readonly TimeEntry[],
  timestampMs: number,
  baseOffset: Offset,
): TimeEntry {
  const after = partitionPoint(entries.length, (i) => entries[i]!.timestampMs <= timestampMs);
  return entries[after - 1] ?? { timestampMs: -1, offset: baseOffset };
}
