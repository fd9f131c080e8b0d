/**
 * The sparse index of a node: which of its stream set objects hold which ranges of a stream. A hint for
 * searching: it may lack ranges, be old or be lost. The one object that is written anew under its name.
 *
 *   i16 version (0) · i32 streams · per stream: i64 stream id · i32 count ·
 *   count x (i64 start offset · i64 end offset · i64 object id)
 *
 * Streams ascend, and so do the ranges of one, which do not overlap.
 */
import { type ObjectId, objectId, type Offset, type StreamId, streamId } from "../../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError } from "../../lib/bytes.ts";

const VERSION = 0;

export interface SparseRange {
  readonly start: Offset;
  readonly end: Offset;
  readonly objectId: ObjectId;
}

export interface SparseStream {
  readonly streamId: StreamId;
  readonly ranges: readonly SparseRange[];
}

/** Streams ascending, ranges of a stream ascending. */
export function encodeSparseIndex(streams: readonly SparseStream[]): Uint8Array {
  const writer = new ByteWriter();
  writer.i16(VERSION);
  writer.i32(streams.length);
  for (const { streamId: id, ranges } of streams) {
    writer.i64(id);
    writer.i32(ranges.length);
    for (const { start, end, objectId: object } of ranges) {
      writer.i64(start);
      writer.i64(end);
      writer.i64(object);
    }
  }
  return writer.view().slice();
}

/** Throws DecodeError or AssertionError for what is not an index. */
export function decodeSparseIndex(bytes: Uint8Array): SparseStream[] {
  const reader = new ByteReader(bytes);
  const version = reader.i16();
  if (version !== VERSION) throw new DecodeError(`Sparse index of version ${version}`);
  const count = reader.i32();
  const streams: SparseStream[] = [];
  let before = -1;
  for (let i = 0; i < count; i++) {
    const stream = decodeStream(reader);
    if (stream.streamId <= before) throw new DecodeError("Sparse index: streams out of order");
    before = stream.streamId;
    streams.push(stream);
  }
  if (reader.remaining > 0) throw new DecodeError("Sparse index: bytes behind its streams");
  return streams;
}

function decodeStream(reader: ByteReader): SparseStream {
  const id = streamId(reader.i64());
  const count = reader.i32();
  const ranges: SparseRange[] = [];
  let next = 0;
  for (let i = 0; i < count; i++) {
    const [start, end, object] = [reader.i64(), reader.i64(), reader.i64()];
    if (start < next || end <= start) {
      throw new DecodeError(
        `Sparse index: range [${start}, ${end}) of stream ${id} behind ${next}`,
      );
    }
    ranges.push({ start, end, objectId: objectId(object) });
    next = end;
  }
  return { streamId: id, ranges };
}
