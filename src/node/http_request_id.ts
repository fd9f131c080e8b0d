/** What a request with an Idempotency-Key is recognised by: whose key it is, and what it carries. */
import { ByteWriter, toHex, toUtf8 } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import { sha256 } from "../lib/sha256.ts";
import { xxhash32 } from "../lib/xxhash32.ts";
import type { RecordInput } from "../http/port.ts";

const ID_BYTES = 16;
/** Larger fields stand as two checksums: a fingerprint finds mistakes, it keeps nobody out. */
const PLAIN_BYTES_MAX = 32;

export interface RequestScope {
  readonly principal: string;
  readonly topicId: string;
  readonly key: string;
}

function writeField(writer: ByteWriter, bytes: Uint8Array | null): void {
  writer.i32(bytes === null ? -1 : bytes.length);
  if (bytes === null) return;
  if (bytes.length <= PLAIN_BYTES_MAX) return writer.bytes(bytes);
  writer.u32(crc32c(bytes));
  writer.u32(xxhash32(bytes));
}

function digest(bytes: Uint8Array): string {
  return toHex(sha256(bytes).subarray(0, ID_BYTES));
}

/** Each part with its length, so that no two scopes look alike; nobody can make one for another's. */
export function requestId({ principal, topicId, key }: RequestScope): string {
  const writer = new ByteWriter();
  for (const part of [principal, topicId, key]) {
    const bytes = toUtf8(part);
    writer.i32(bytes.length);
    writer.bytes(bytes);
  }
  return digest(writer.view());
}

export function fingerprintOf(records: readonly RecordInput[]): string {
  const writer = new ByteWriter();
  for (const { key, value, headers, timestampMs, partition } of records) {
    writer.i32(partition ?? -1);
    writer.i64(timestampMs ?? -1);
    writeField(writer, key);
    writeField(writer, value);
    writer.i32(headers.length);
    for (const header of headers) {
      writeField(writer, toUtf8(header.name));
      writeField(writer, header.value);
    }
  }
  return digest(writer.view());
}
