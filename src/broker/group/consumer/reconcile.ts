/**
 * One step of a member towards its target: first it lets go, then it gets what nobody else has any more.
 * So no partition is ever given to two members, whatever gets lost on the way. Pure.
 */
import type { Uuid } from "../../../lib/uuid.ts";
import {
  type Assignment,
  difference,
  intersection,
  isSame,
  meet,
  NOTHING,
  partOf,
  sizeOf,
  union,
} from "./assignment.ts";
import { isReconciled, type Place } from "./group.ts";

export interface Step {
  readonly target: Assignment;
  readonly targetEpoch: number;
  /** What the member says it holds; null when it says nothing. */
  readonly owned: Assignment | null;
  /** Whether another member has a partition, or has not confirmed yet that it let go. */
  readonly isTaken: (topicId: Uuid, partition: number) => boolean;
}

/** The very same place when nothing changes. */
export function reconcile(place: Place, step: Step): Place {
  if (isReconciled(place, step.targetEpoch)) return place;
  const next = stepFrom(place, step);
  return isSamePlace(next, place) ? place : next;
}

function stepFrom(place: Place, step: Step): Place {
  if (place.state !== "unrevoked") return advance(place, place.epoch, step);
  if (step.owned === null || meet(step.owned, place.revoking)) return place;
  // It has let go, which ends the epoch that it was in.
  return advance(place, Math.min(place.epoch + 1, step.targetEpoch), step);
}

function advance(place: Place, epoch: number, step: Step): Place {
  const { target, targetEpoch, owned } = step;
  const kept = intersection(place.assigned, target);
  const revoking = difference(place.assigned, target);
  const previousEpoch = place.epoch;
  if (sizeOf(revoking) > 0 && (owned === null || meet(owned, revoking))) {
    return { epoch, previousEpoch, state: "unrevoked", assigned: kept, revoking };
  }
  const wanted = difference(target, kept);
  const free = partOf(wanted, (topicId, partition) => !step.isTaken(topicId, partition));
  return {
    epoch: targetEpoch,
    previousEpoch,
    state: sizeOf(free) < sizeOf(wanted) ? "unreleased" : "stable",
    assigned: sizeOf(free) === 0 ? kept : union(kept, free),
    revoking: NOTHING,
  };
}

function isSamePlace(a: Place, b: Place): boolean {
  return a.epoch === b.epoch && a.state === b.state && isSame(a.assigned, b.assigned) &&
    isSame(a.revoking, b.revoking) &&
    // In one and the same epoch the earlier one says nothing new.
    (a.previousEpoch === b.previousEpoch || a.previousEpoch === a.epoch);
}
