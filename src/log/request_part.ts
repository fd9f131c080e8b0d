/**
 * What an HTTP request with an Idempotency-Key leaves in the log: each of its batches has the base sequence -2
 * and no producer id, and its first record ends with the header `skerry-idempotency`:
 *
 *   u8 version 1 · 16 bytes id · 16 bytes fingerprint · i32 partitions · i32 first · i64 given time
 *
 * The id is the start of SHA-256 of principal, topic and key; the fingerprint stands for all records of the
 * request. `partitions` is how many the topic had, `first` the place of the batch's first record among those
 * that the request has for this partition, the given time is that of records without one of their own.
 */
import type { Codecs } from "../env/codecs.ts";
import { ByteReader, ByteWriter, DecodeError, fromHex, toHex } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import { readRecords } from "../protocol/record.ts";
import type { BatchHeader } from "../protocol/record_batch.ts";
import type { NewRecord, RecordHeader } from "../protocol/record_writer.ts";

/** No client writes it: without a producer id Kafka's clients say -1 or 0. */
export const REQUEST_SEQUENCE = -2;
export const REQUEST_HEADER = "skerry-idempotency";
const VERSION = 1;
const ID_BYTES = 16;
const PART_BYTES = 1 + 2 * ID_BYTES + 4 + 4 + 8;

export interface RequestPart {
  /** 32 hexadecimal digits, as the fingerprint. */
  readonly id: string;
  readonly fingerprint: string;
  readonly partitions: number;
  readonly first: number;
  readonly givenMs: number;
}

export function isRequestBatch(
  { producerId, baseSequence }: Pick<BatchHeader, "producerId" | "baseSequence">,
): boolean {
  return producerId < 0 && baseSequence === REQUEST_SEQUENCE;
}

export function encodePart(part: RequestPart): Uint8Array {
  const writer = new ByteWriter(PART_BYTES);
  writer.u8(VERSION);
  writer.bytes(fromHex(part.id));
  writer.bytes(fromHex(part.fingerprint));
  writer.i32(part.partitions);
  writer.i32(part.first);
  writer.i64(part.givenMs);
  return writer.view();
}

/** The record with the header behind its own. */
export function withPart(record: NewRecord, part: RequestPart): NewRecord {
  const header: RecordHeader = { key: REQUEST_HEADER, value: encodePart(part) };
  return { ...record, headers: [...record.headers, header] };
}

/** Null for another version. */
export function decodePart(value: Uint8Array): RequestPart | null {
  if (value.length !== PART_BYTES || value[0] !== VERSION) return null;
  const reader = new ByteReader(value);
  reader.skip(1);
  const id = toHex(reader.take(ID_BYTES));
  const fingerprint = toHex(reader.take(ID_BYTES));
  return {
    id,
    fingerprint,
    partitions: reader.i32(),
    first: reader.i32(),
    givenMs: reader.i64(),
  };
}

/** Of a batch with the sequence above; null when it does not say what it should. */
export function readPart(batch: Uint8Array, codecs: Codecs): RequestPart | null {
  try {
    for (const { headers } of readRecords(batch, codecs)) {
      const header = headers.findLast(({ key }) => key === REQUEST_HEADER);
      return header?.value == null ? null : decodePart(header.value);
    }
    return null;
  } catch (error) {
    if (error instanceof DecodeError || isFault(error, "corrupt")) return null;
    throw error;
  }
}
