/** In which order stream set objects are searched whose ranges are not known. Pure. */
import type { Offset, StreamId } from "../../lib/brand.ts";
import { INDEX_LOADS_IN_FLIGHT_MAX } from "../../lib/limits.ts";
import type { StreamSetRef } from "../ports.ts";
import type { SparseIndex } from "./sparse_index.ts";

export interface SearchSteps {
  /** The objects of a step are read together. All objects come up in the end, for a hint may be wrong. */
  readonly steps: readonly (readonly StreamSetRef[])[];
  /** Whether a hint names the very object. */
  readonly isHinted: boolean;
}

/**
 * First the object that the sparse index names; then those which it does not know, for they are younger;
 * then those behind the last range that it knows before the offset.
 */
export function searchSteps(
  unknown: readonly StreamSetRef[],
  sparse: Pick<SparseIndex, "floor" | "has"> | null,
  stream: StreamId,
  offset: Offset,
): SearchSteps {
  const hint = sparse?.floor(stream, offset) ?? null;
  const at = hint === null ? -1 : unknown.findIndex(({ objectId }) => objectId === hint.objectId);
  const named = hint !== null && offset < hint.end ? unknown[at] : undefined;
  const others = [...unknown.slice(Math.max(0, at)), ...unknown.slice(0, Math.max(0, at))]
    .filter((object) => object !== named);
  const isKnown = ({ objectId }: StreamSetRef) => sparse?.has(objectId) === true;
  const inOrder = [...others.filter((object) => !isKnown(object)), ...others.filter(isKnown)];
  const steps: StreamSetRef[][] = named === undefined ? [] : [[named]];
  for (let i = 0; i < inOrder.length; i += INDEX_LOADS_IN_FLIGHT_MAX) {
    steps.push(inOrder.slice(i, i + INDEX_LOADS_IN_FLIGHT_MAX));
  }
  return { steps, isHinted: named !== undefined };
}
