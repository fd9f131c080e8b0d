/** Which stream set objects of a node to put together. Pure. */
import type { StreamSetRef } from "../ports.ts";
import type { CompactionOptions } from "./options.ts";
import { chooseWindow } from "./window.ts";

type PlanOptions = Pick<
  CompactionOptions,
  "objectsMin" | "waitObjectsMax" | "setObjectsMax" | "setBytesMax"
>;

/** A window of this share of the largest one is worth it: nothing larger would come of waiting. */
export const SET_BYTES_ENOUGH_SHARE = 0.5;
/**
 * Windows grow nearly as many times as they have objects, so that a byte is written once or twice before its
 * stream has enough for an object of its own. The slack is for objects that differ in size.
 */
const GROWTH_SLACK = 2;

/**
 * Neighbours in order of commit: a stream's pieces in them follow each other. Of fewer than `bytesWanted`
 * so little would leave that they wait, but not past so many objects.
 */
export function planSets(
  objects: readonly StreamSetRef[],
  { objectsMin, waitObjectsMax, setObjectsMax, setBytesMax }: PlanOptions,
  bytesWanted = 0,
): readonly StreamSetRef[] | null {
  const growth = Math.max(2, objectsMin - GROWTH_SLACK);
  const window = chooseWindow(objects, {
    countMin: objectsMin,
    bytesEnough: setBytesMax * SET_BYTES_ENOUGH_SHARE,
    growth,
    countMax: setObjectsMax,
    bytesMax: setBytesMax,
  });
  if (window === null) return null;
  const chosen = objects.slice(window.from, window.to);
  if (bytesWanted === 0) return chosen;
  const mayWait = chosen.length < waitObjectsMax &&
    bytesWanted <= reachableBytes(chosen, { waitObjectsMax, setBytesMax });
  return enoughOf(chosen, objectsMin, growth, bytesWanted) ?? (mayWait ? null : chosen);
}

/** What so many objects like these would have. Objects of an earlier join are few and large: the middle one counts. */
export function reachableBytes(
  objects: readonly { readonly size: number }[],
  { waitObjectsMax, setBytesMax }: Pick<PlanOptions, "waitObjectsMax" | "setBytesMax">,
): number {
  const sizes = objects.map(({ size }) => size).toSorted((a, b) => a - b);
  const middle = sizes[Math.floor(sizes.length / 2)] ?? 0;
  return Math.min(middle * waitObjectsMax, setBytesMax * SET_BYTES_ENOUGH_SHARE);
}

/** The oldest ones: more sources than needed would only be read in smaller pieces. */
function enoughOf(
  chosen: readonly StreamSetRef[],
  countMin: number,
  growth: number,
  bytesWanted: number,
): readonly StreamSetRef[] | null {
  let [bytes, largest] = [0, 0];
  for (const [i, { size }] of chosen.entries()) {
    bytes += size;
    largest = Math.max(largest, size);
    const isEnough = i + 1 >= countMin && bytes >= bytesWanted && bytes >= growth * largest;
    if (isEnough) return chosen.slice(0, i + 1);
  }
  return null;
}
