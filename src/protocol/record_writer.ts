/** Writes single records of a batch v2 (section "Record" of Kafka's message format). */
import { ByteWriter, toUtf8 } from "../lib/bytes.ts";

export interface RecordHeader {
  /** Not null, may be empty, may repeat. */
  readonly key: string;
  readonly value: Uint8Array | null;
}

/** A record on its way into a batch. */
export interface NewRecord {
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly headers: readonly RecordHeader[];
  readonly timestampMs: number;
}

/** Length, attributes, two deltas, and the lengths of key, value and headers: a byte each. */
export const RECORD_BYTES_MIN = 7;

/** Null has the length -1. */
function writeNullable(writer: ByteWriter, bytes: Uint8Array | null): void {
  writer.varint(bytes === null ? -1 : bytes.length);
  if (bytes !== null) writer.bytes(bytes);
}

function writeBody(
  body: ByteWriter,
  record: NewRecord,
  baseTimestamp: number,
  delta: number,
): void {
  body.i8(0); // record attributes: none are defined
  body.varlong(record.timestampMs - baseTimestamp);
  body.varint(delta);
  writeNullable(body, record.key);
  writeNullable(body, record.value);
  body.varint(record.headers.length);
  for (const { key, value } of record.headers) {
    writeNullable(body, toUtf8(key));
    writeNullable(body, value);
  }
}

/** Writes the records one after another, with offset deltas 0, 1, 2, … */
export function writeRecords(records: readonly NewRecord[], baseTimestamp: number): Uint8Array {
  const writer = new ByteWriter(64 * records.length);
  for (const [delta, record] of records.entries()) {
    const body = new ByteWriter();
    writeBody(body, record, baseTimestamp, delta);
    writer.varint(body.length);
    writer.bytes(body.view());
  }
  return writer.view();
}
