/**
 * Data blocks as compaction moves them: byte for byte, never decoded into records. What an object of
 * them looks like is computed before the first one is read.
 */
import { assert } from "../../lib/assert.ts";
import type { ObjectId, Offset, StreamId } from "../../lib/brand.ts";
import { COMPACTED_ENTRY_BYTES_MAX } from "../../lib/limits.ts";
import { encodeFooter, FOOTER_BYTES } from "../format/footer.ts";
import {
  encodeIndex,
  ENTRY_OFFSETS_MAX,
  IndexBlock,
  type IndexEntry,
} from "../format/index_block.ts";
import type { StreamRange } from "../ports.ts";

/** What one index entry covers, in the object where it lies. */
export interface SourceBlock extends IndexEntry {
  readonly objectId: ObjectId;
}

/** First live offset of a stream; null when it is deleted. */
export type StartOf = (stream: StreamId) => Offset | null;

/** Record counts are stored in 31 bits. */
const ENTRY_RECORDS_MAX = 2 ** 31 - 1;

export function blocksOf(objectId: ObjectId, index: IndexBlock): SourceBlock[] {
  return Array.from({ length: index.count }, (_, i) => ({ objectId, ...index.entry(i) }));
}

/** Blocks that hold at least one live record; a block is never cut. */
export function liveBlocks(blocks: readonly SourceBlock[], startOf: StartOf): SourceBlock[] {
  return blocks.filter(({ streamId, end }) => end > (startOf(streamId) ?? Infinity));
}

export function bytesOf(blocks: readonly Pick<IndexEntry, "size">[]): number {
  return blocks.reduce((sum, { size }) => sum + size, 0);
}

/** Of the bytes of an object. */
export function deadShare(blocks: readonly SourceBlock[], startOf: StartOf): number {
  return 1 - bytesOf(liveBlocks(blocks, startOf)) / bytesOf(blocks);
}

/** By stream and offset: the order inside an object. */
export function sorted(blocks: readonly SourceBlock[]): SourceBlock[] {
  return blocks.toSorted((a, b) => a.streamId - b.streamId || a.start - b.start);
}

function continues(last: StreamRange | undefined, next: StreamRange): last is StreamRange {
  return last?.streamId === next.streamId && last.end === next.start;
}

/** Ranges of sorted blocks, touching ones merged. */
export function rangesOf(blocks: readonly StreamRange[]): StreamRange[] {
  const ranges: StreamRange[] = [];
  for (const { streamId, start, end } of blocks) {
    const last = ranges.at(-1);
    if (continues(last, { streamId, start, end })) ranges[ranges.length - 1] = { ...last, end };
    else ranges.push({ streamId, start, end });
  }
  return ranges;
}

/** Index entries of an object of these blocks; neighbours share an entry up to a size. */
export function regroup(
  blocks: readonly IndexEntry[],
  entryBytesMax = COMPACTED_ENTRY_BYTES_MAX,
): IndexEntry[] {
  const entries: IndexEntry[] = [];
  let position = 0;
  for (const block of blocks) {
    const last = entries.at(-1);
    const joins = continues(last, block) && last.size + block.size <= entryBytesMax &&
      last.recordCount + block.recordCount <= ENTRY_RECORDS_MAX &&
      block.end - last.start <= ENTRY_OFFSETS_MAX;
    if (joins) {
      entries[entries.length - 1] = {
        ...last,
        end: block.end,
        recordCount: last.recordCount + block.recordCount,
        size: last.size + block.size,
      };
    } else {
      const { streamId, start, end, recordCount, size } = block;
      entries.push({ streamId, start, end, recordCount, position, size });
    }
    position += block.size;
  }
  return entries;
}

export interface BlockLayout {
  readonly size: number;
  readonly ranges: readonly StreamRange[];
  readonly index: Uint8Array;
  /** The same as readers have it. */
  readonly indexBlock: IndexBlock;
  /** Index and footer: what follows the last block. */
  readonly tail: readonly Uint8Array[];
}

export function layOutBlocks(blocks: readonly SourceBlock[]): BlockLayout {
  assert(blocks.length > 0, "An object of no blocks");
  const index = encodeIndex(regroup(blocks));
  const dataBytes = bytesOf(blocks);
  const footer = encodeFooter("data", { indexPosition: dataBytes, indexLength: index.length });
  return {
    size: dataBytes + index.length + FOOTER_BYTES,
    ranges: rangesOf(blocks),
    index,
    indexBlock: new IndexBlock(index, dataBytes),
    tail: [index, footer],
  };
}
