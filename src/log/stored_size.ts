/** How large a log is that nobody has open: what its last owner has counted, without taking it over. */
import type { Offset, StreamId } from "../lib/brand.ts";
import type { StreamClient } from "../stream/stream.ts";
import { LOG_STREAM } from "./checkpoint.ts";
import { decodeLogMeta, decodePartitionMeta } from "./log_meta.ts";
import { storedValues } from "./meta_stream.ts";
import { bytesFrom } from "./segment.ts";

export interface StoredSizeOptions {
  readonly streams: Pick<StreamClient, "read">;
  readonly metaStream: StreamId;
  /** What a closed stream holds; null for one that is not closed. */
  readonly rangeOf: (id: StreamId) => { readonly start: Offset; readonly end: Offset } | null;
}

/**
 * Null when only opening the log would tell: somebody has it, or its owner crashed before it had counted all. Throws
 * FaultError.
 */
export async function storedSize(options: StoredSizeOptions): Promise<number | null> {
  const { streams, metaStream: streamId, rangeOf } = options;
  const range = rangeOf(streamId);
  if (range === null) return null;
  const values = await storedValues({
    streamId,
    startOffset: range.start,
    confirmOffset: range.end,
    fetch: (start, end, read) => streams.read(streamId, start, end, read),
  });
  const [log, partition] = [values.get("LOG"), values.get("PARTITION")];
  if (log === undefined || partition === undefined) return null;
  const { streams: names, segments, countedTo } = decodeLogMeta(log);
  const logStream = names.get(LOG_STREAM);
  if (logStream === undefined || rangeOf(logStream)?.end !== countedTo) return null;
  const { logStartOffset } = decodePartitionMeta(partition);
  return bytesFrom(
    logStartOffset,
    segments.map(({ baseOffset, bytes }, at) => ({
      baseOffset,
      endOffset: segments[at + 1]?.baseOffset ?? countedTo,
      bytes,
    })),
  );
}
