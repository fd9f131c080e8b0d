/**
 * How old the proof is that this incarnation still owns its WAL. A seal is deleted T_SEAL after its
 * recovery; a writer that slept through that could fill the freed slot. So nothing is acknowledged on proof
 * older than T_ACK_WAL, which is far shorter. Pure.
 *
 * What proves ownership at a moment: a fresh read of the metadata log, or an own bulk that was created
 * after that moment while all lower slots held own bulks (a seal would have been in its way).
 */
import { WAL_EVIDENCE_AGE_MS_MAX } from "../../lib/limits.ts";

/** One moment on the clocks that we have. `storeMs` may be earlier than the moment, never later. */
export interface Moment {
  /** May stand still while the machine sleeps. */
  readonly monotonicMs: number;
  /** May jump. */
  readonly wallMs: number;
  /** The store's clock; null before its first answer. */
  readonly storeMs: number | null;
}

/** The largest age that any clock shows: each of them alone can be wrong in the dangerous direction. */
export function ageMs(proof: Moment, now: Moment): number {
  const byStore = proof.storeMs === null || now.storeMs === null ? 0 : now.storeMs - proof.storeMs;
  return Math.max(now.monotonicMs - proof.monotonicMs, now.wallMs - proof.wallMs, byStore);
}

export function isTooOld(proof: Moment, now: Moment): boolean {
  return ageMs(proof, now) > WAL_EVIDENCE_AGE_MS_MAX;
}

/** The second one where the clock stood still between them: the other clocks may have jumped meanwhile. */
export function newer(a: Moment, b: Moment): Moment {
  return b.monotonicMs >= a.monotonicMs ? b : a;
}
