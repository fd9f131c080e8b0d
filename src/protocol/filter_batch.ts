/**
 * Rewrites a stored batch with some of its records, as Kafka's log compaction does: offsets, sequences, codec and
 * flags stay, records keep every byte but their timestamp deltas. A batch with tombstones gets a delete horizon
 * once: attribute bit 6, with the time from which they may go as its base timestamp.
 */
import type { Codecs } from "../env/codecs.ts";
import type { Offset } from "../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError } from "../lib/bytes.ts";
import { inflateRecords, withCodec } from "./compression.ts";
import {
  assemble,
  BATCH_HEADER_BYTES,
  type BatchHeader,
  codecOf,
  deleteHorizonOf,
  isLogAppendTime,
  markHorizon,
} from "./record_batch.ts";

/** Attributes and the two deltas of a record. */
const HEAD_BYTES_MAX = 16;

export interface FilteredRecord {
  readonly offset: Offset;
  readonly key: Uint8Array | null;
  /** Without a value. */
  readonly isTombstone: boolean;
}

export interface BatchFilter {
  readonly keeps: (record: FilteredRecord) => boolean;
  /** Set when it has none yet and tombstones are left. */
  readonly horizonMs: number;
  /** The horizon is set without tombstones too: for a marker. */
  readonly isHorizonDue: boolean;
  readonly codecs: Codecs;
}

interface Piece {
  readonly record: FilteredRecord;
  readonly timestampMs: number;
  readonly attributes: number;
  readonly offsetDelta: number;
  /** From the length of the key to the end. */
  readonly tail: Uint8Array;
}

function bad(what: string): DecodeError {
  return new DecodeError(`Cannot filter records: ${what}`);
}

function readPiece(plain: Uint8Array, reader: ByteReader, header: BatchHeader): Piece {
  const length = reader.varint();
  const end = reader.position + length;
  if (length < 0 || length > reader.remaining) throw bad(`length ${length}`);
  const attributes = reader.i8();
  const timestampDelta = reader.varlong();
  const offsetDelta = reader.varint();
  if (offsetDelta < 0 || offsetDelta > header.lastOffsetDelta) throw bad(`delta ${offsetDelta}`);
  const tailAt = reader.position;
  const keyLength = reader.varint();
  const key = keyLength < 0 ? null : reader.take(keyLength);
  const isTombstone = reader.varint() < 0;
  if (reader.position > end) throw bad("a length disagrees");
  reader.skip(end - reader.position);
  return {
    record: { offset: header.baseOffset + offsetDelta, key, isTombstone },
    timestampMs: isLogAppendTime(header)
      ? header.maxTimestamp
      : header.baseTimestamp + timestampDelta,
    attributes,
    offsetDelta,
    tail: plain.subarray(tailAt, end),
  };
}

function readPieces(batch: Uint8Array, header: BatchHeader, codecs: Codecs): readonly Piece[] {
  const payload = batch.subarray(BATCH_HEADER_BYTES);
  const plain = inflateRecords(header.attributes, payload, codecs);
  const reader = new ByteReader(plain);
  const pieces: Piece[] = [];
  for (let i = 0; i < header.recordCount; i++) pieces.push(readPiece(plain, reader, header));
  if (reader.remaining > 0) throw bad(`${reader.remaining} bytes left`);
  return pieces;
}

function writePieces(pieces: readonly Piece[], baseTimestamp: number): Uint8Array {
  const writer = new ByteWriter();
  for (const { timestampMs, attributes, offsetDelta, tail } of pieces) {
    const head = new ByteWriter(HEAD_BYTES_MAX);
    head.i8(attributes);
    head.varlong(timestampMs - baseTimestamp);
    head.varint(offsetDelta);
    writer.varint(head.length + tail.length);
    writer.bytes(head.view());
    writer.bytes(tail);
  }
  return writer.view();
}

function rebuild(
  header: BatchHeader,
  pieces: readonly Piece[],
  horizonMs: number | null,
  codecs: Codecs,
): Uint8Array {
  const baseTimestamp = horizonMs ?? pieces[0]!.timestampMs;
  const plain = writePieces(pieces, baseTimestamp);
  const codec = codecOf(header) ?? null;
  const maxTimestamp = isLogAppendTime(header)
    ? header.maxTimestamp
    : pieces.reduce((most, { timestampMs }) => Math.max(most, timestampMs), -1);
  return assemble({
    ...header,
    attributes: markHorizon(header.attributes, horizonMs !== null),
    baseTimestamp,
    maxTimestamp,
    recordCount: pieces.length,
  }, codec === null ? plain : codecs.compress(codec, plain));
}

/**
 * The batch with the records that are kept: the same bytes when nothing changes, null when none is left.
 * Throws DecodeError or FaultError("corrupt") for a batch that cannot be read.
 */
export function filterBatch(
  batch: Uint8Array,
  header: BatchHeader,
  filter: BatchFilter,
): Uint8Array | null {
  if (header.recordCount === 0) return null;
  const pieces = readPieces(batch, header, filter.codecs);
  const kept = pieces.filter(({ record }) => filter.keeps(record));
  if (kept.length === 0) return null;
  const horizonMs = deleteHorizonOf(header);
  const isDue = horizonMs === null &&
    (filter.isHorizonDue || kept.some(({ record }) => record.isTombstone));
  if (!isDue && kept.length === pieces.length) return batch;
  return rebuild(header, kept, isDue ? filter.horizonMs : horizonMs, filter.codecs);
}

/** Only the header, which still says where offsets and sequences end: what a batch without records leaves. */
export function emptiedBatch(header: BatchHeader): Uint8Array {
  return assemble({
    ...header,
    attributes: markHorizon(withCodec(header.attributes, null), false),
    baseTimestamp: -1,
    recordCount: 0,
  }, new Uint8Array(0));
}
