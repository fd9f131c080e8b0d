/** Cuts a rewrite into steps whose blocks fit into memory, and each step into range reads. Pure. */
import type { ObjectId } from "../../lib/brand.ts";
import { COMPACTION_HOLE_BYTES_MAX, COMPACTION_READ_BYTES_MAX } from "../../lib/limits.ts";
import type { Group } from "./analysis.ts";
import type { SourceBlock } from "./blocks.ts";

/** A new object, as blocks in their order. */
export interface Output {
  readonly kind: "stream-set" | "stream";
  readonly blocks: readonly SourceBlock[];
}

/** All kept groups share the one stream set object; it goes first, as its id does. */
export function outputsOf(groups: readonly Group[]): Output[] {
  const kept = groups.filter(({ kind }) => kind === "keep").flatMap(({ blocks }) => blocks);
  const split = groups.filter(({ kind }) => kind === "split");
  return [
    ...(kept.length === 0 ? [] : [{ kind: "stream-set", blocks: kept } as const]),
    ...split.map(({ blocks }) => ({ kind: "stream", blocks }) as const),
  ];
}

/** A block on its way. */
export interface Piece {
  /** Index of the output that it goes to. */
  readonly output: number;
  readonly block: SourceBlock;
}

/** By stream and offset over all outputs: then every source is read from front to back. */
export function piecesOf(outputs: readonly Output[]): Piece[] {
  return outputs.flatMap(({ blocks }, output) => blocks.map((block) => ({ output, block })))
    .toSorted((a, b) => a.block.streamId - b.block.streamId || a.block.start - b.block.start);
}

/**
 * Steps of at most `bytesMax`, or of a single block. What lies dead between two blocks is read with them, and held
 * as long as they are.
 */
export function stepsOf(
  pieces: readonly Piece[],
  bytesMax: number,
  holeBytesMax = COMPACTION_HOLE_BYTES_MAX,
): Piece[][] {
  const steps: Piece[][] = [];
  const ends = new Map<ObjectId, number>();
  let bytes = 0;
  for (const piece of pieces) {
    const { objectId, position, size } = piece.block;
    const hole = position - (ends.get(objectId) ?? position);
    const isRead = hole > 0 && hole <= holeBytesMax;
    const step = steps.at(-1);
    if (step !== undefined && bytes + size + (isRead ? hole : 0) <= bytesMax) {
      step.push(piece);
      bytes += size + (isRead ? hole : 0);
    } else {
      steps.push([piece]);
      ends.clear();
      bytes = size;
    }
    ends.set(objectId, position + size);
  }
  return steps;
}

/** One request: bytes of one object that hold some of its blocks. */
export interface RangeRead {
  readonly objectId: ObjectId;
  readonly start: number;
  readonly end: number;
  readonly blocks: readonly SourceBlock[];
}

export interface ReadLimits {
  readonly readBytesMax: number;
  readonly holeBytesMax: number;
}

const DEFAULT_READ_LIMITS: ReadLimits = {
  readBytesMax: COMPACTION_READ_BYTES_MAX,
  holeBytesMax: COMPACTION_HOLE_BYTES_MAX,
};

/** Blocks of one object that lie close to each other are read together. */
export function readsOf(
  blocks: readonly SourceBlock[],
  { readBytesMax, holeBytesMax } = DEFAULT_READ_LIMITS,
): RangeRead[] {
  const byPlace = blocks.toSorted((a, b) => a.objectId - b.objectId || a.position - b.position);
  const reads: { objectId: ObjectId; start: number; end: number; blocks: SourceBlock[] }[] = [];
  for (const block of byPlace) {
    const end = block.position + block.size;
    const last = reads.at(-1);
    const isNear = last?.objectId === block.objectId &&
      block.position - last.end <= holeBytesMax &&
      end - last.start <= readBytesMax;
    if (last !== undefined && isNear) {
      last.end = end;
      last.blocks.push(block);
    } else {
      reads.push({ objectId: block.objectId, start: block.position, end, blocks: [block] });
    }
  }
  return reads;
}
