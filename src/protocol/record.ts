/**
 * Single records inside a stored batch v2, read lazily, inflated where needed. For HTTP, timestamps,
 * compaction and groups: the path of produce and fetch never looks inside.
 */
import type { Codecs } from "../env/codecs.ts";
import type { Offset } from "../lib/brand.ts";
import { ByteReader, DecodeError } from "../lib/bytes.ts";
import { inflateRecords } from "./compression.ts";
import {
  BATCH_HEADER_BYTES,
  BATCH_PREFIX_BYTES,
  type BatchHeader,
  isLogAppendTime,
  readBatchHeader,
} from "./record_batch.ts";
import type { RecordHeader } from "./record_writer.ts";

export interface BatchRecord {
  readonly offset: Offset;
  /** Milliseconds; the batch's append time where the topic stamps on arrival. */
  readonly timestamp: number;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly headers: readonly RecordHeader[];
}

/** Foreign keys that are no UTF-8 show replacement characters, as in Kafka's own client. */
const headerKeys = new TextDecoder("utf-8", { ignoreBOM: true });
/** A header takes at least one byte for each of its two lengths. */
const HEADER_BYTES_MIN = 2;

function readNullable(reader: ByteReader): Uint8Array | null {
  const length = reader.varint();
  if (length < -1) throw new DecodeError(`Cannot read record: length ${length}`);
  return length === -1 ? null : reader.take(length);
}

function readHeaders(reader: ByteReader): RecordHeader[] {
  const count = reader.varint();
  if (count < 0 || count > reader.remaining / HEADER_BYTES_MIN) {
    throw new DecodeError(`Cannot read record: ${count} headers`);
  }
  const headers: RecordHeader[] = [];
  for (let i = 0; i < count; i++) {
    const key = readNullable(reader);
    if (key === null) throw new DecodeError("Cannot read record: a header's key is null");
    headers.push({ key: headerKeys.decode(key), value: readNullable(reader) });
  }
  return headers;
}

function readRecord(reader: ByteReader, header: BatchHeader): BatchRecord {
  const length = reader.varint();
  const end = reader.position + length;
  if (length < 0 || length > reader.remaining) {
    throw new DecodeError(`Cannot read record: length ${length}`);
  }
  reader.skip(1); // record attributes: none are defined
  const timestampDelta = reader.varlong();
  const offsetDelta = reader.varint();
  if (offsetDelta < 0 || offsetDelta > header.lastOffsetDelta) {
    throw new DecodeError(`Cannot read record: offset delta ${offsetDelta}`);
  }
  const key = readNullable(reader);
  const value = readNullable(reader);
  const headers = readHeaders(reader);
  if (reader.position !== end) throw new DecodeError("Cannot read record: its length disagrees");
  const timestamp = isLogAppendTime(header)
    ? header.maxTimestamp
    : header.baseTimestamp + timestampDelta;
  return { offset: header.baseOffset + offsetDelta, timestamp, key, value, headers };
}

/**
 * The records of one batch, in order; keys and values are views of the batch or of its inflated copy.
 * Throws DecodeError or FaultError("corrupt"), also when count or bytes do not come out even.
 */
export function* readRecords(batch: Uint8Array, codecs: Codecs): Generator<BatchRecord, void> {
  const header = readBatchHeader(batch);
  const payload = batch.subarray(BATCH_HEADER_BYTES, BATCH_PREFIX_BYTES + header.batchLength);
  const reader = new ByteReader(inflateRecords(header.attributes, payload, codecs));
  for (let i = 0; i < header.recordCount; i++) yield readRecord(reader, header);
  if (reader.remaining > 0) {
    throw new DecodeError(`Cannot read records: ${reader.remaining} bytes left`);
  }
}
