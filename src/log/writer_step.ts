/**
 * What a batch of a named writer tells of itself, over HTTP: its base sequence is -3, it has no producer id, and its
 * first record ends with the header `skerry-writer`:
 *
 *   u8 version 1 · u8 what follows (1 closes the log, 2 an order, 4 a writer) · order: u16 n · n bytes ·
 *   writer: u16 n · n bytes name · i64 epoch · i64 sequence
 *
 * A batch is one step, whatever its records: the sequence counts requests. An order is text of the client's own that
 * rises with each batch that has one. A batch that only closes has one record without key and value.
 */
import type { Codecs } from "../env/codecs.ts";
import { ByteReader, ByteWriter, DecodeError, toUtf8, utf8 } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import { readRecords } from "../protocol/record.ts";
import type { BatchHeader } from "../protocol/record_batch.ts";
import type { NewRecord, RecordHeader } from "../protocol/record_writer.ts";

/** No client writes it: without a producer id Kafka's clients say -1 or 0. */
export const STEP_SEQUENCE = -3;
export const STEP_HEADER = "skerry-writer";
const VERSION = 1;
const [CLOSES, HAS_ORDER, HAS_WRITER] = [1, 2, 4];
const KNOWN = CLOSES | HAS_ORDER | HAS_WRITER;

export interface NamedWriter {
  readonly name: string;
  readonly epoch: number;
  readonly sequence: number;
}

export interface WriterStep {
  /** Nothing is appended behind it. */
  readonly closes: boolean;
  readonly order: string | null;
  readonly writer: NamedWriter | null;
}

export function isStepBatch(
  { producerId, baseSequence }: Pick<BatchHeader, "producerId" | "baseSequence">,
): boolean {
  return producerId < 0 && baseSequence === STEP_SEQUENCE;
}

export function writeText(writer: ByteWriter, text: string): void {
  const bytes = toUtf8(text);
  writer.u16(bytes.length);
  writer.bytes(bytes);
}

export function readText(reader: ByteReader): string {
  return utf8(reader.take(reader.u16()));
}

export function writeWriter(writer: ByteWriter, { name, epoch, sequence }: NamedWriter): void {
  writeText(writer, name);
  writer.i64(epoch);
  writer.i64(sequence);
}

export function readWriter(reader: ByteReader): NamedWriter {
  return { name: readText(reader), epoch: reader.i64(), sequence: reader.i64() };
}

export function encodeStep({ closes, order, writer: named }: WriterStep): Uint8Array {
  const writer = new ByteWriter();
  writer.u8(VERSION);
  writer.u8((closes ? CLOSES : 0) | (order === null ? 0 : HAS_ORDER) | (named ? HAS_WRITER : 0));
  if (order !== null) writeText(writer, order);
  if (named !== null) writeWriter(writer, named);
  return writer.view().slice();
}

/** Null for another version, or what is none. */
export function decodeStep(value: Uint8Array): WriterStep | null {
  try {
    const reader = new ByteReader(value);
    const version = reader.u8();
    const flags = reader.u8();
    if (version !== VERSION || (flags & ~KNOWN) !== 0) return null;
    const order = (flags & HAS_ORDER) === 0 ? null : readText(reader);
    const writer = (flags & HAS_WRITER) === 0 ? null : readWriter(reader);
    return reader.remaining === 0 ? { closes: (flags & CLOSES) !== 0, order, writer } : null;
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

/** The record with the header behind its own. */
export function withStep(record: NewRecord, step: WriterStep): NewRecord {
  const header: RecordHeader = { key: STEP_HEADER, value: encodeStep(step) };
  return { ...record, headers: [...record.headers, header] };
}

/** Of a batch with the sequence above; null when it does not say what it should. */
export function readStep(batch: Uint8Array, codecs: Codecs): WriterStep | null {
  try {
    for (const { headers } of readRecords(batch, codecs)) {
      const header = headers.findLast(({ key }) => key === STEP_HEADER);
      return header?.value == null ? null : decodeStep(header.value);
    }
    return null;
  } catch (error) {
    if (error instanceof DecodeError || isFault(error, "corrupt")) return null;
    throw error;
  }
}
