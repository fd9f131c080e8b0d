/**
 * What a recoverer does with each slot of a dead incarnation's WAL, as a table. Pure.
 * `recovery` is the position of our BeginRecovery entry; a larger one in a seal means that another
 * recoverer came after us.
 */
import type { Position } from "../../lib/brand.ts";
import { WAL_BULKS_IN_FLIGHT_MAX } from "../../lib/limits.ts";

/** What lies in a slot. */
export type SlotState =
  | { readonly kind: "empty" }
  | { readonly kind: "data" }
  | { readonly kind: "seal"; readonly recovery: Position }
  | { readonly kind: "damaged"; readonly detail: string };

export type RecoveryStep =
  /** Acknowledged or not, the record is part of the log: go to the next slot. */
  | { readonly step: "continue" }
  /** The end: put our seal here, unless somebody fills the slot first. */
  | { readonly step: "seal" }
  /** The end, found earlier by a recoverer that died, or by us before an answer got lost. */
  | { readonly step: "adopt" }
  | { readonly step: "superseded"; readonly by: Position }
  | { readonly step: "data-loss"; readonly detail: string };

export interface SlotView {
  readonly slot: number;
  readonly state: SlotState;
  /** Our token. */
  readonly recovery: Position;
  /** The largest slot that a listing showed, −1 for none. */
  readonly highestSlot: number;
}

export function planSlot({ slot, state, recovery, highestSlot }: SlotView): RecoveryStep {
  switch (state.kind) {
    case "data":
      return { step: "continue" };
    case "damaged":
      return { step: "data-loss", detail: state.detail };
    case "seal":
      return state.recovery > recovery
        ? { step: "superseded", by: state.recovery }
        : { step: "adopt" };
    case "empty":
      // The writer's window reaches this far only when the lower slots are acknowledged: the slot was lost.
      return highestSlot - slot >= WAL_BULKS_IN_FLIGHT_MAX
        ? { step: "data-loss", detail: `empty although slot ${highestSlot} exists` }
        : { step: "seal" };
  }
}
