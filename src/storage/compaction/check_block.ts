/** Whether copied bytes are what the index says: damage must not get a fresh checksum. */
import type { Offset } from "../../lib/brand.ts";
import { DecodeError, getInt64, viewOf } from "../../lib/bytes.ts";
import { STREAM_RECORD_HEADER_BYTES } from "../../lib/limits.ts";
import { DATA_BLOCK_HEADER_BYTES, readDataBlockHeader } from "../format/data_block.ts";
import type { IndexEntry } from "../format/index_block.ts";
import { STREAM_RECORD_MAGIC } from "../stream_record.ts";

/** Walks over headers only: a million tiny records make no garbage. Throws DecodeError. */
export function checkBlock(bytes: Uint8Array, entry: IndexEntry): void {
  let records = 0;
  let next = entry.start;
  for (let at = 0; at < bytes.length;) {
    const header = readDataBlockHeader(bytes, at);
    const from = at + DATA_BLOCK_HEADER_BYTES;
    at = from + header.length;
    if (at > bytes.length) throw new DecodeError(`Data block at ${from} passes the end`);
    next = checkRecords(bytes.subarray(from, at), header.records, entry, next);
    records += header.records;
  }
  if (next !== entry.end || records !== entry.recordCount) {
    throw new DecodeError(
      `Block at ${entry.position} has ${records} records up to offset ${next}, its index says ${entry.recordCount} up to ${entry.end}`,
    );
  }
}

/** Returns the offset behind the last record. */
function checkRecords(
  bytes: Uint8Array,
  count: number,
  { streamId, position }: IndexEntry,
  start: Offset,
): Offset {
  const view = viewOf(bytes);
  let next = start;
  let at = 0;
  for (let i = 0; i < count; i++) {
    if (at + STREAM_RECORD_HEADER_BYTES > bytes.length) {
      throw new DecodeError(`Record ${i} of the block at ${position} passes its end`);
    }
    const length = view.getInt32(at + 29);
    const isExpected = view.getUint8(at) === STREAM_RECORD_MAGIC &&
      getInt64(view, at + 1) === streamId && getInt64(view, at + 17) === next && length >= 0;
    if (!isExpected) {
      throw new DecodeError(`Record ${i} of the block at ${position} is not expected`);
    }
    next += view.getInt32(at + 25);
    at += STREAM_RECORD_HEADER_BYTES + length;
  }
  if (at !== bytes.length) throw new DecodeError(`The block at ${position} ends at ${at}`);
  return next;
}
