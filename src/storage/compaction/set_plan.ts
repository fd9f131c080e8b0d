/** Which stream set objects of a node to put together. Pure. */
import type { StreamSetRef } from "../ports.ts";
import type { CompactionOptions } from "./options.ts";
import { chooseWindow } from "./window.ts";

type PlanOptions = Pick<CompactionOptions, "objectsMin" | "setObjectsMax" | "setBytesMax">;

/** Neighbours in order of commit: a stream's pieces in them follow each other. */
export function planSets(
  objects: readonly StreamSetRef[],
  { objectsMin, setObjectsMax, setBytesMax }: PlanOptions,
): readonly StreamSetRef[] | null {
  const window = chooseWindow(objects, {
    countMin: objectsMin,
    bytesEnough: Infinity,
    countMax: setObjectsMax,
    bytesMax: setBytesMax,
  });
  return window === null ? null : objects.slice(window.from, window.to);
}
