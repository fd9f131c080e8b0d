/** What to do with the objects of one stream: merge small ones, link large ones, forget dead links. Pure. */
import type { Offset } from "../../lib/brand.ts";
import type { StreamObjectRef } from "../ports.ts";
import type { CompactionOptions } from "./options.ts";
import { chooseWindow, runsOf } from "./window.ts";

export type StreamJobKind = "merge" | "link" | "cleanup";

export interface StreamJob {
  readonly kind: StreamJobKind;
  /** Neighbours in offset order. */
  readonly objects: readonly StreamObjectRef[];
}

export interface StreamPlanInput {
  readonly start: Offset;
  readonly objects: readonly StreamObjectRef[];
  /** While the stream starts below, no link of its first object is dead as a whole. */
  readonly cleanFrom: Offset;
  /** The cluster has so many objects that small gains count. */
  readonly isPressing: boolean;
}

type PlanOptions = Pick<
  CompactionOptions,
  | "objectsMin"
  | "mergeBytesMax"
  | "linkBytesMin"
  | "linkBytesMax"
  | "linksMax"
  | "deadBytesMin"
  | "deadBytesMax"
>;

/** Objects that are worth a rewrite when the cluster has too many. */
const OBJECTS_MIN_PRESSING = 2;
/** Two objects of this share of the largest merge can still become one. */
const MERGE_SHARE = 0.5;
/** A merge of this share of the largest one is final: it is worth it whatever the number of objects. */
const ENOUGH_SHARE = 0.75;

function isComposite({ links }: StreamObjectRef): boolean {
  return links !== undefined;
}

function touches(before: StreamObjectRef, next: StreamObjectRef): boolean {
  return before.end === next.start;
}

/** One job at most: the next plan is made of what this one leaves. */
export function planStream(input: StreamPlanInput, options: PlanOptions): StreamJob | null {
  return planCleanup(input, options) ?? planMerge(input, options) ?? planLink(input, options);
}

/** Bytes of an object below the stream's start, as far as offsets tell. */
export function deadBytes({ start, end, size }: StreamObjectRef, streamStart: Offset): number {
  const share = (streamStart - start) / (end - start);
  return Math.max(0, Math.min(1, share)) * size;
}

/** Only the first one: a trim reaches no further. */
function planCleanup(
  { start, objects, cleanFrom }: StreamPlanInput,
  options: PlanOptions,
): StreamJob | null {
  const first = objects[0];
  if (first === undefined || !isComposite(first) || start < cleanFrom) return null;
  const dead = deadBytes(first, start);
  const isWorth = dead > options.deadBytesMax ||
    (dead >= options.deadBytesMin && dead * 2 >= first.size);
  return isWorth ? { kind: "cleanup", objects: [first] } : null;
}

function planMerge(
  { objects, isPressing }: StreamPlanInput,
  { objectsMin, mergeBytesMax, linksMax }: PlanOptions,
): StreamJob | null {
  const isSmall = (one: StreamObjectRef) =>
    !isComposite(one) && one.size <= mergeBytesMax * MERGE_SHARE;
  const runs = runsOf(objects, (a, b) => touches(a, b) && isSmall(a) && isSmall(b));
  for (const run of runs) {
    const window = chooseWindow(run, {
      countMin: isPressing ? OBJECTS_MIN_PRESSING : objectsMin,
      bytesEnough: mergeBytesMax * ENOUGH_SHARE,
      countMax: linksMax,
      bytesMax: mergeBytesMax,
    });
    if (window !== null) return { kind: "merge", objects: run.slice(window.from, window.to) };
  }
  return null;
}

/**
 * Small objects at the end of a run may still be merged; between larger ones they have no other
 * neighbours and are linked like these, or they would part them for ever.
 */
function linkable(run: readonly StreamObjectRef[], bytesMin: number): StreamObjectRef[] {
  const last = run.findLastIndex((one) => isComposite(one) || one.size >= bytesMin);
  return run.slice(0, last + 1);
}

function planLink(
  { objects, isPressing }: StreamPlanInput,
  { objectsMin, linkBytesMin, linkBytesMax, linksMax }: PlanOptions,
): StreamJob | null {
  for (const run of runsOf(objects, touches)) {
    const candidates = isPressing ? run : linkable(run, linkBytesMin);
    const weighed = candidates.map((one) => ({ size: one.size, weight: one.links ?? 1 }));
    const window = chooseWindow(weighed, {
      countMin: isPressing ? OBJECTS_MIN_PRESSING : objectsMin,
      bytesEnough: Infinity,
      countMax: linksMax,
      bytesMax: linkBytesMax,
    });
    if (window !== null) return { kind: "link", objects: candidates.slice(window.from, window.to) };
  }
  return null;
}
