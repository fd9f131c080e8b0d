/**
 * Producer snapshots, as values of the meta stream. One snapshot is Kafka's file:
 *
 *   i16 version · u32 CRC-32C of the rest · i32 count · count × entry
 *   entry: i64 producer id · i16 epoch · i32 last sequence · i64 last offset · i32 offset delta ·
 *          i64 timestamp of the last batch or marker · i32 coordinator epoch · i64 first offset of the open transaction (-1)
 *   version 100 adds: i64 append time · i32 n · n × (i32 last sequence · i64 last offset ·
 *          i32 offset delta · i64 timestamp), oldest first, the last batch included
 *
 * PRODUCER_SNAPSHOTS is u8 0x18, then (i64 offset · i32 length · snapshot)*, oldest first. Whatever does
 * not parse counts as missing: an older snapshot or the log alone gives the same state.
 */
import type { Offset } from "../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError, setInt64, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { PRODUCER_BATCHES_MAX } from "../lib/limits.ts";
import type { ProducerBatch, ProducerEntry } from "./producer_state.ts";

const VERSION_KAFKA = 1;
const VERSION = 100;
const CRC_AT = 2;
const BODY_AT = 6;
const LIST_MAGIC = 0x18;
const NO_BATCH: ProducerBatch = {
  lastSequence: -1,
  lastOffset: -1,
  offsetDelta: 0,
  timestampMs: -1,
};

export interface ProducerSnapshot {
  /** The state counts every batch below this offset and none above. */
  readonly offset: Offset;
  readonly bytes: Uint8Array;
}

function writeBatch(writer: ByteWriter, batch: ProducerBatch): void {
  writer.i32(batch.lastSequence);
  writer.i64(batch.lastOffset);
  writer.i32(batch.offsetDelta);
  writer.i64(batch.timestampMs);
}

function readBatch(reader: ByteReader): ProducerBatch {
  return {
    lastSequence: reader.i32(),
    lastOffset: reader.i64(),
    offsetDelta: reader.i32(),
    timestampMs: reader.i64(),
  };
}

export function encodeSnapshot(entries: Iterable<ProducerEntry>): Uint8Array {
  const writer = new ByteWriter();
  writer.i16(VERSION);
  writer.i32(0);
  writer.i32(0);
  let count = 0;
  for (const entry of entries) {
    count++;
    writer.i64(entry.producerId);
    writer.i16(entry.epoch);
    const last = entry.batches.at(-1) ?? NO_BATCH;
    writeBatch(writer, { ...last, timestampMs: entry.lastTimestampMs });
    writer.i32(entry.coordinatorEpoch);
    writer.i64(entry.currentTxnFirstOffset ?? -1);
    writer.i64(entry.appendedMs);
    writer.i32(entry.batches.length);
    for (const batch of entry.batches) writeBatch(writer, batch);
  }
  const bytes = writer.view().slice();
  const view = viewOf(bytes);
  view.setInt32(BODY_AT, count);
  view.setUint32(CRC_AT, crc32c(bytes.subarray(BODY_AT)));
  return bytes;
}

function readBatches(reader: ByteReader, last: ProducerBatch): readonly ProducerBatch[] {
  const count = reader.i32();
  if (count < 0 || count > PRODUCER_BATCHES_MAX) {
    throw new DecodeError(`Cannot read producer snapshot: ${count} batches`);
  }
  const batches = Array.from({ length: count }, () => readBatch(reader));
  if ((batches.at(-1) ?? NO_BATCH).lastSequence !== last.lastSequence) {
    throw new DecodeError("Cannot read producer snapshot: batches disagree");
  }
  return batches;
}

function readEntry(reader: ByteReader, version: number): ProducerEntry {
  const producerId = reader.i64();
  const epoch = reader.i16();
  const last = readBatch(reader);
  const coordinatorEpoch = reader.i32();
  const txnStart = reader.i64();
  const currentTxnFirstOffset = txnStart < 0 ? null : txnStart;
  const common = { producerId, epoch, coordinatorEpoch, currentTxnFirstOffset };
  if (version === VERSION_KAFKA) {
    const batches = last.lastSequence < 0 ? [] : [last];
    return { ...common, batches, lastTimestampMs: last.timestampMs, appendedMs: last.timestampMs };
  }
  const appendedMs = reader.i64();
  const batches = readBatches(reader, last);
  // Earlier versions wrote no time of a marker: it is close to the append.
  const isUntold = batches.length === 0 && last.timestampMs < 0;
  const lastTimestampMs = isUntold ? appendedMs : last.timestampMs;
  return { ...common, batches, lastTimestampMs, appendedMs };
}

function readEntries(bytes: Uint8Array): readonly ProducerEntry[] | null {
  const reader = new ByteReader(bytes);
  const version = reader.i16();
  if (version !== VERSION && version !== VERSION_KAFKA) return null;
  if (reader.u32() !== crc32c(bytes.subarray(BODY_AT))) return null;
  const count = reader.i32();
  const entries = new Map<number, ProducerEntry>();
  for (let i = 0; i < count; i++) {
    const entry = readEntry(reader, version);
    entries.set(entry.producerId, entry);
  }
  return count >= 0 && entries.size === count && reader.remaining === 0
    ? [...entries.values()]
    : null;
}

/** Null for anything but one whole, sound snapshot. */
export function decodeSnapshot(bytes: Uint8Array): readonly ProducerEntry[] | null {
  try {
    return readEntries(bytes);
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

export function encodeSnapshots(snapshots: readonly ProducerSnapshot[]): Uint8Array {
  const size = snapshots.reduce((sum, { bytes }) => sum + 12 + bytes.length, 1);
  const out = new Uint8Array(size);
  const view = viewOf(out);
  out[0] = LIST_MAGIC;
  let at = 1;
  for (const { offset, bytes } of snapshots) {
    setInt64(view, at, offset);
    view.setInt32(at + 8, bytes.length);
    out.set(bytes, at + 12);
    at += 12 + bytes.length;
  }
  return out;
}

/** The snapshots up to the first damage of the list; their own bytes are not looked at. */
export function decodeSnapshots(value: Uint8Array): readonly ProducerSnapshot[] {
  const found: ProducerSnapshot[] = [];
  if (value[0] !== LIST_MAGIC) return found;
  const reader = new ByteReader(value);
  reader.skip(1);
  try {
    while (reader.remaining > 0) {
      const offset = reader.i64();
      found.push({ offset, bytes: reader.take(reader.i32()) });
    }
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
  }
  return found;
}
