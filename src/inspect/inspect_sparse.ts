/** The sparse index of a node: its streams, each range with the object that holds it. */
import { SPARSE_INDEX_OBJECT_BYTES_MAX } from "../lib/limits.ts";
import { decodeSparseIndex, type SparseStream } from "../storage/format/sparse_index.ts";
import { damageOf } from "./blocks.ts";
import type { ByteSource } from "./byte_source.ts";
import { type Item, item } from "./item.ts";

function streamsOf(bytes: Uint8Array): readonly SparseStream[] | string {
  try {
    return decodeSparseIndex(bytes);
  } catch (error) {
    return damageOf(error);
  }
}

/** Returns the damage. */
export async function* inspectSparse(source: ByteSource): AsyncGenerator<Item, string | null> {
  if (source.size > SPARSE_INDEX_OBJECT_BYTES_MAX) return `a sparse index of ${source.size} bytes`;
  const streams = streamsOf(await source.read(0, source.size));
  if (typeof streams === "string") return streams;
  for (const { streamId, ranges } of streams) {
    yield item("stream", null, { stream: streamId, ranges: ranges.length });
    for (const { start, end, objectId } of ranges) {
      yield item("range", null, { stream: streamId, start, end, object: objectId });
    }
  }
  return null;
}
