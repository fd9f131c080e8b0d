/**
 * Whether stream set objects are joined yet. Streams that have enough leave a join as objects of their own,
 * which are never copied again; what stays behind is copied once more. So a join waits until most of its
 * bytes would leave, as long as that takes neither too many objects nor too many bytes. Pure.
 */
import type { StreamId } from "../../lib/brand.ts";
import type { SourceObject } from "./analysis.ts";
import { bytesOf } from "./blocks.ts";
import type { CompactionOptions } from "./options.ts";
import { reachableBytes } from "./set_plan.ts";

type WaitOptions = Pick<CompactionOptions, "splitBytes" | "waitObjectsMax" | "setBytesMax">;

/** With the size of the whole object, by which joins are planned. */
export interface SizedSource extends SourceObject {
  readonly size: number;
}

/** Of its bytes, so many leave a join that is worth waiting for. */
const SHARE = 0.75;
/** Uploads differ: with a little more than enough most streams have enough. */
const MARGIN = 1.05;
/** Less than this is no reason to wait: each wait has read the indexes once for nothing. */
const WORTH = 1.25;

function bytesByStream(sources: readonly SourceObject[]): number[] {
  const bytes = new Map<StreamId, number>();
  for (const { blocks } of sources) {
    for (const { streamId, size } of blocks) bytes.set(streamId, (bytes.get(streamId) ?? 0) + size);
  }
  return [...bytes.values()];
}

function sizeOf(sources: readonly SizedSource[]): number {
  return sources.reduce((sum, { size }) => sum + size, 0);
}

/**
 * Bytes of a join of which most leave: in streams with more than `splitBytes`, if they go on like this.
 * Zero when that would take too much.
 */
export function bytesWanted(sources: readonly SizedSource[], options: WaitOptions): number {
  const total = sources.reduce((sum, { blocks }) => sum + bytesOf(blocks), 0);
  const streams = bytesByStream(sources).toSorted((a, b) => b - a);
  let sum = 0;
  const smallest = streams.find((bytes) => (sum += bytes) >= total * SHARE);
  if (smallest === undefined) return 0;
  const wanted = sizeOf(sources) * MARGIN * options.splitBytes / smallest;
  return wanted <= reachableBytes(sources, options) ? wanted : 0;
}

export function isWorthWaiting(sources: readonly SizedSource[], wanted: number): boolean {
  return wanted > sizeOf(sources) * WORTH;
}
