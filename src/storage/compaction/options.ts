/** The numbers of compaction that may differ per node. */
import {
  COMPACTION_BYTES_PER_S,
  COMPACTION_CLUSTER_OBJECTS_MAX,
  COMPACTION_DEAD_BYTES_MAX,
  COMPACTION_DEAD_BYTES_MIN,
  COMPACTION_FORCE_SPLIT_MS,
  COMPACTION_HOLE_BYTES_MAX,
  COMPACTION_INTERVAL_MS,
  COMPACTION_LINK_BYTES_MAX,
  COMPACTION_LINK_BYTES_MIN,
  COMPACTION_LINKS_MAX,
  COMPACTION_MEMORY_BYTES,
  COMPACTION_MERGE_BYTES_MAX,
  COMPACTION_OBJECTS_MIN,
  COMPACTION_READ_BYTES_MAX,
  COMPACTION_SET_BYTES_MAX,
  COMPACTION_SET_OBJECTS_MAX,
  COMPACTION_SET_STREAMS_MAX,
  COMPACTION_SPLIT_BYTES,
  COMPACTION_STREAM_OBJECTS_MAX,
  COMPACTION_WAIT_OBJECTS_MAX,
  COMPACTION_WHOLE_BYTES_MAX,
  PRICED_COMPACTION_READ_BYTES_MIN,
} from "../../lib/limits.ts";
import { DEFAULT_PUT_SIZES, PRICED_COMPACTION_PUT_SIZES, type PutSizes } from "../put_sizes.ts";

export interface CompactionOptions {
  /** How often to look whether metadata changed; without a change nothing happens. */
  readonly intervalMs: number;
  /** Blocks in memory at once. */
  readonly memoryBytes: number;
  /** Bytes read per second in any case; more while uploads are fast. */
  readonly bytesPerSecond: number;
  /** Objects from which on a rewrite is worth its requests. */
  readonly objectsMin: number;
  /** Bytes of one stream in stream set objects past which it gets an object of its own. */
  readonly splitBytes: number;
  /** Age at which every stream of a stream set object gets one. */
  readonly forceSplitMs: number;
  /** Stream set objects that may wait until their streams have enough to leave. */
  readonly waitObjectsMax: number;
  readonly setObjectsMax: number;
  readonly setBytesMax: number;
  readonly streamsMax: number;
  readonly streamObjectsMax: number;
  /** Largest object that merging makes; larger ones are only linked. */
  readonly mergeBytesMax: number;
  /** Smaller objects wait to be merged before they are linked. */
  readonly linkBytesMin: number;
  readonly linkBytesMax: number;
  readonly linksMax: number;
  /** Dead bytes of a composite that are worth a new one when they are half of it. */
  readonly deadBytesMin: number;
  /** Dead bytes that are worth it in any case. */
  readonly deadBytesMax: number;
  /** Objects of the cluster past which any two neighbours are put together. */
  readonly clusterObjectsMax: number;
  readonly puts: PutSizes;
  /** One range read, and dead bytes in it that are cheaper than another request. */
  readonly readBytesMax: number;
  readonly holeBytesMax: number;
  /** Smaller objects are read with one request. */
  readonly wholeBytesMax: number;
}

/** Where requests have prices: larger ones, and no more objects at once than can be read in large pieces. */
export function pricedCompaction(
  memoryBytes: number,
): Pick<CompactionOptions, "puts" | "waitObjectsMax"> {
  const pieces = Math.floor(memoryBytes / PRICED_COMPACTION_READ_BYTES_MIN);
  return {
    puts: PRICED_COMPACTION_PUT_SIZES,
    waitObjectsMax: Math.min(COMPACTION_WAIT_OBJECTS_MAX, pieces),
  };
}

export const DEFAULT_COMPACTION_OPTIONS: CompactionOptions = {
  intervalMs: COMPACTION_INTERVAL_MS,
  memoryBytes: COMPACTION_MEMORY_BYTES,
  bytesPerSecond: COMPACTION_BYTES_PER_S,
  objectsMin: COMPACTION_OBJECTS_MIN,
  splitBytes: COMPACTION_SPLIT_BYTES,
  forceSplitMs: COMPACTION_FORCE_SPLIT_MS,
  waitObjectsMax: COMPACTION_WAIT_OBJECTS_MAX,
  setObjectsMax: COMPACTION_SET_OBJECTS_MAX,
  setBytesMax: COMPACTION_SET_BYTES_MAX,
  streamsMax: COMPACTION_SET_STREAMS_MAX,
  streamObjectsMax: COMPACTION_STREAM_OBJECTS_MAX,
  mergeBytesMax: COMPACTION_MERGE_BYTES_MAX,
  linkBytesMin: COMPACTION_LINK_BYTES_MIN,
  linkBytesMax: COMPACTION_LINK_BYTES_MAX,
  linksMax: COMPACTION_LINKS_MAX,
  deadBytesMin: COMPACTION_DEAD_BYTES_MIN,
  deadBytesMax: COMPACTION_DEAD_BYTES_MAX,
  clusterObjectsMax: COMPACTION_CLUSTER_OBJECTS_MAX,
  puts: DEFAULT_PUT_SIZES,
  readBytesMax: COMPACTION_READ_BYTES_MAX,
  holeBytesMax: COMPACTION_HOLE_BYTES_MAX,
  wholeBytesMax: COMPACTION_WHOLE_BYTES_MAX,
};
