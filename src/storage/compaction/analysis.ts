/**
 * What becomes of the blocks of several stream set objects: which streams get an object of their own,
 * what goes into the next stream set object. Pure.
 */
import type { ObjectId, StreamId } from "../../lib/brand.ts";
import { bytesOf, sorted, type SourceBlock } from "./blocks.ts";

export interface SourceObject {
  readonly objectId: ObjectId;
  /** Live ones. */
  readonly blocks: readonly SourceBlock[];
}

export interface AnalysisLimits {
  /** More bytes than this of one stream get an object of their own. */
  readonly splitBytes: number;
  /** Streams of one stream set object. */
  readonly streamsMax: number;
  /** Stream objects of one run: they must fit one metadata entry. */
  readonly streamObjectsMax: number;
}

/** Neighbouring blocks of one stream. */
export interface Group {
  readonly kind: "split" | "keep";
  readonly blocks: readonly SourceBlock[];
}

export type Analysis =
  | {
    readonly kind: "groups";
    readonly groups: readonly Group[];
    readonly used: ReadonlySet<ObjectId>;
  }
  | { readonly kind: "nothing" }
  /** Two objects claim one offset: metadata forbids it, so nothing is touched. */
  | { readonly kind: "overlap"; readonly stream: StreamId };

/** Objects are left out at most this often; a run that still has too much waits for other neighbours. */
const EXCLUSIONS_MAX = 100;

/**
 * A stream's piece is split off when it is large, or when a gap follows: what lies in the gap has an
 * object of its own already, so the piece can only grow by a neighbour of that kind.
 */
function group(blocks: readonly SourceBlock[], splitBytes: number): Group[] | StreamId {
  const groups: Group[] = [];
  let open: SourceBlock[] = [];
  const close = (isGap: boolean): void => {
    if (open.length === 0) return;
    const kind = isGap || bytesOf(open) > splitBytes ? "split" : "keep";
    groups.push({ kind, blocks: open });
    open = [];
  };
  for (const block of blocks) {
    const last = open.at(-1);
    if (last?.streamId === block.streamId) {
      if (block.start < last.end) return block.streamId;
      if (block.start > last.end) close(true);
    } else close(false);
    open.push(block);
  }
  close(false);
  return groups;
}

/** How many objects would be written from each source. */
function fanOut(groups: readonly Group[]): Map<ObjectId, number> {
  const outputs = new Map<ObjectId, Set<number>>();
  for (const [i, { kind, blocks }] of groups.entries()) {
    for (const { objectId } of blocks) {
      const set = outputs.get(objectId) ?? new Set();
      outputs.set(objectId, set.add(kind === "keep" ? -1 : i));
    }
  }
  return new Map([...outputs].map(([id, set]) => [id, set.size]));
}

/** Sources of the split group that is made of the fewest blocks, and feed the fewest others. */
function behindSmallestSplit(groups: readonly Group[]): Set<ObjectId> {
  const fan = fanOut(groups);
  const sourcesOf = ({ blocks }: Group) => new Set(blocks.map(({ objectId }) => objectId));
  const fed = (one: Group) => [...sourcesOf(one)].reduce((sum, id) => sum + fan.get(id)!, 0);
  const smallest = groups.filter(({ kind }) => kind === "split").reduce((a, b) => {
    const order = a.blocks.length - b.blocks.length || fed(a) - fed(b);
    return order <= 0 ? a : b;
  });
  return sourcesOf(smallest);
}

/** Sources of the kept stream that the fewest objects hold. */
function behindRarestStream(groups: readonly Group[]): Set<ObjectId> {
  const holders = new Map<StreamId, Set<ObjectId>>();
  for (const { kind, blocks } of groups) {
    if (kind !== "keep") continue;
    for (const { streamId, objectId } of blocks) {
      holders.set(streamId, (holders.get(streamId) ?? new Set()).add(objectId));
    }
  }
  return [...holders.values()].reduce((a, b) => b.size < a.size ? b : a);
}

function keptStreams(groups: readonly Group[]): number {
  const kept = groups.filter(({ kind }) => kind === "keep");
  return new Set(kept.map(({ blocks }) => blocks[0]!.streamId)).size;
}

/** `sources` without a live block are of no interest here: they are dropped whatever the outcome. */
export function analyze(
  sources: readonly SourceObject[],
  { splitBytes, streamsMax, streamObjectsMax }: AnalysisLimits,
): Analysis {
  let used = sources.filter(({ blocks }) => blocks.length > 0);
  for (let i = 0; used.length >= 2 && i < EXCLUSIONS_MAX; i++) {
    const groups = group(sorted(used.flatMap(({ blocks }) => blocks)), splitBytes);
    if (typeof groups === "number") return { kind: "overlap", stream: groups };
    const splits = groups.filter(({ kind }) => kind === "split").length;
    const excluded = splits > streamObjectsMax
      ? behindSmallestSplit(groups)
      : keptStreams(groups) > streamsMax
      ? behindRarestStream(groups)
      : null;
    if (excluded === null) {
      return { kind: "groups", groups, used: new Set(used.map(({ objectId }) => objectId)) };
    }
    used = used.filter(({ objectId }) => !excluded.has(objectId));
  }
  return { kind: "nothing" };
}

/**
 * Every stream gets an object of its own: of as many sources, oldest first, as one run can write. Where one
 * is too many, the largest streams, and the rest waits for the next turn.
 */
export function analyzeSplit(sources: readonly SourceObject[], streamObjectsMax: number): Analysis {
  const live = sources.filter(({ blocks }) => blocks.length > 0);
  for (let count = live.length; count > 0; count = Math.floor(count / 2)) {
    const used = live.slice(0, count);
    const groups = group(sorted(used.flatMap(({ blocks }) => blocks)), 0);
    if (typeof groups === "number") return { kind: "overlap", stream: groups };
    if (groups.length > streamObjectsMax && count > 1) continue;
    return splitOf(used, groups, streamObjectsMax);
  }
  return { kind: "nothing" };
}

function splitOf(
  sources: readonly SourceObject[],
  groups: readonly Group[],
  streamObjectsMax: number,
): Analysis {
  const largest = groups.toSorted((a, b) => bytesOf(b.blocks) - bytesOf(a.blocks));
  const split = new Set(largest.slice(0, streamObjectsMax));
  return {
    kind: "groups",
    groups: groups.map((one) => split.has(one) ? one : { ...one, kind: "keep" }),
    used: new Set(sources.map(({ objectId }) => objectId)),
  };
}

/** One object again, without its dead blocks. */
export function analyzeTidy(source: SourceObject): Analysis {
  if (source.blocks.length === 0) return { kind: "nothing" };
  const groups = group(sorted(source.blocks), Infinity);
  if (typeof groups === "number") return { kind: "overlap", stream: groups };
  return { kind: "groups", groups, used: new Set([source.objectId]) };
}
