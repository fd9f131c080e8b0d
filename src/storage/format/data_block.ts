/**
 * The data block: consecutive records of one stream inside a data object.
 *
 *   u8 magic 0x5a · u8 flag 0x02 · i32 record count · i32 data length · stream records
 */
import { DecodeError, viewOf } from "../../lib/bytes.ts";
import { listOf, type RecordList } from "../record_list.ts";
import { encodedBytes, readStreamRecord, type StreamRecord } from "../stream_record.ts";

export const DATA_BLOCK_HEADER_BYTES = 10;
const MAGIC = 0x5a;
const FLAG = 0x02;

/** Writes records `from` to `to` of a list as one block at a position of `target`; returns the position behind it. */
export function writeListBlock(
  target: Uint8Array,
  at: number,
  { list, from, to }: { readonly list: RecordList; readonly from: number; readonly to: number },
): number {
  const view = viewOf(target);
  view.setUint8(at, MAGIC);
  view.setUint8(at + 1, FLAG);
  view.setInt32(at + 2, to - from);
  let end = at + DATA_BLOCK_HEADER_BYTES;
  for (let i = from; i < to; i++) end = list.write(i, target, end);
  view.setInt32(at + 6, end - at - DATA_BLOCK_HEADER_BYTES);
  return end;
}

/** The same for records that are objects. */
export function writeDataBlock(
  target: Uint8Array,
  at: number,
  records: readonly StreamRecord[],
): number {
  return writeListBlock(target, at, { list: listOf(records), from: 0, to: records.length });
}

export interface DataBlockHeader {
  readonly records: number;
  /** Bytes behind the header. */
  readonly length: number;
}

/** Throws DecodeError. */
export function readDataBlockHeader(bytes: Uint8Array, at = 0): DataBlockHeader {
  if (at + DATA_BLOCK_HEADER_BYTES > bytes.length) {
    throw new DecodeError(`Data block header at ${at} passes the end ${bytes.length}`);
  }
  const view = viewOf(bytes);
  if (view.getUint8(at) !== MAGIC || view.getUint8(at + 1) !== FLAG) {
    throw new DecodeError(
      `Not a data block: magic ${view.getUint8(at)}, flag ${view.getUint8(at + 1)}`,
    );
  }
  const records = view.getInt32(at + 2);
  const length = view.getInt32(at + 6);
  if (records <= 0 || length < 0) {
    throw new DecodeError(`Data block of ${records} records, ${length} bytes`);
  }
  return { records, length };
}

/** Reads one block at a position into `into`; returns the position behind it. */
function readDataBlock(bytes: Uint8Array, at: number, into: StreamRecord[]): number {
  const header = readDataBlockHeader(bytes, at);
  let next = at + DATA_BLOCK_HEADER_BYTES;
  const end = next + header.length;
  if (end > bytes.length) {
    throw new DecodeError(`Data block of ${header.length} bytes passes the end`);
  }
  for (let i = 0; i < header.records; i++) {
    const record = readStreamRecord(bytes, next);
    next += encodedBytes(record);
    into.push(record);
  }
  if (next !== end) throw new DecodeError(`Data block ends at ${end}, its records at ${next}`);
  return end;
}

/** Reads the records of what one index entry covers: one or several adjacent blocks. */
export function decodeDataBlocks(bytes: Uint8Array): StreamRecord[] {
  const records: StreamRecord[] = [];
  for (let at = 0; at < bytes.length;) at = readDataBlock(bytes, at, records);
  return records;
}
