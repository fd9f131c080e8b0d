/**
 * The stream record, the unit inside WAL objects and data blocks (AutoMQ's StreamRecordBatch).
 *
 *   u8 magic 0x22 · i64 stream id · i64 epoch · i64 base offset · i32 count · i32 payload length · payload
 *
 * There is no checksum here: the WAL record header and the Kafka batch inside carry their own.
 */
import { DecodeError, getInt64, setInt64, viewOf } from "../lib/bytes.ts";
import {
  type Offset,
  type StreamEpoch,
  streamEpoch,
  type StreamId,
  streamId,
} from "../lib/brand.ts";
import { STREAM_RECORD_HEADER_BYTES } from "../lib/limits.ts";

export const STREAM_RECORD_MAGIC = 0x22;

export interface StreamRecord {
  readonly streamId: StreamId;
  readonly epoch: StreamEpoch;
  readonly baseOffset: Offset;
  /** Offsets that this record covers: [baseOffset, baseOffset + count). */
  readonly count: number;
  readonly payload: Uint8Array;
}

export function endOffset(record: StreamRecord): Offset {
  return record.baseOffset + record.count;
}

export function encodedBytes(record: StreamRecord): number {
  return STREAM_RECORD_HEADER_BYTES + record.payload.length;
}

/** Writes the record at a position of `target`; returns the position behind it. */
export function writeStreamRecord(
  target: Uint8Array,
  at: number,
  record: StreamRecord,
  view = viewOf(target),
): number {
  view.setUint8(at, STREAM_RECORD_MAGIC);
  setInt64(view, at + 1, record.streamId);
  setInt64(view, at + 9, record.epoch);
  setInt64(view, at + 17, record.baseOffset);
  view.setInt32(at + 25, record.count);
  view.setInt32(at + 29, record.payload.length);
  target.set(record.payload, at + STREAM_RECORD_HEADER_BYTES);
  return at + encodedBytes(record);
}

/** Reads the record at a position; the payload is a view of `source`. */
export function readStreamRecord(
  source: Uint8Array,
  at: number,
  view = viewOf(source),
): StreamRecord {
  if (at + STREAM_RECORD_HEADER_BYTES > source.length) {
    throw new DecodeError(
      `Cannot read stream record: header at ${at} passes the end ${source.length}`,
    );
  }
  const magic = view.getUint8(at);
  if (magic !== STREAM_RECORD_MAGIC) {
    throw new DecodeError(`Cannot read stream record: invalid magic ${magic}`);
  }
  const length = view.getInt32(at + 29);
  const start = at + STREAM_RECORD_HEADER_BYTES;
  if (length < 0 || start + length > source.length) {
    throw new DecodeError(`Cannot read stream record: payload of ${length} bytes passes the end`);
  }
  return {
    streamId: streamId(getInt64(view, at + 1)),
    epoch: streamEpoch(getInt64(view, at + 9)),
    baseOffset: getInt64(view, at + 17),
    count: view.getInt32(at + 25),
    payload: source.subarray(start, start + length),
  };
}
