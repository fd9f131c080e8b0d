/** The durable state of a share partition, and how a change of it is laid over what was known. Pure. */
import type { Offset } from "../../lib/brand.ts";
import type { StateBatch } from "./window.ts";

export interface ShareState {
  /** Grows with each snapshot; updates name the snapshot that they change. */
  readonly snapshotEpoch: number;
  /** Grows when the state is begun anew; what was begun before is then void. */
  readonly stateEpoch: number;
  /** Of the partition's leader that wrote last; an older one is refused. */
  readonly leaderEpoch: number;
  /** -1 while the first reader has not chosen one. */
  readonly startOffset: Offset;
  /** Final records at or above the start offset; -1 for unknown. */
  readonly finalCount: number;
  readonly createdAtMs: number;
  readonly writtenAtMs: number;
  /** In order, at or above the start offset. */
  readonly batches: readonly StateBatch[];
}

/** What one write changes. */
export interface ShareStateChange {
  readonly leaderEpoch: number;
  /** -1 leaves it. */
  readonly startOffset: Offset;
  readonly finalCount: number;
  readonly batches: readonly StateBatch[];
}

/** The parts of a batch that none of the changes covers; changes are in order, and looked at from `at` on. */
function* uncovered(
  batch: StateBatch,
  changes: readonly StateBatch[],
  at: number,
): Generator<StateBatch> {
  let first = batch.first;
  for (let next = at; next < changes.length; next++) {
    const change = changes[next]!;
    if (change.first > batch.last) break;
    if (change.first > first) yield { ...batch, first, last: change.first - 1 };
    first = change.last + 1;
  }
  if (first <= batch.last) yield { ...batch, first };
}

function byFirst(a: StateBatch, b: StateBatch): number {
  return a.first - b.first;
}

/** In order, joined where neighbours are the same, without what is below the start offset. */
function tidy(batches: readonly StateBatch[], startOffset: Offset): StateBatch[] {
  const tidied: StateBatch[] = [];
  for (const batch of batches) {
    if (batch.last < startOffset) continue;
    const before = tidied.at(-1);
    const first = Math.max(batch.first, startOffset);
    const isSame = before !== undefined && before.last + 1 === first &&
      before.state === batch.state && before.count === batch.count;
    if (isSame) tidied[tidied.length - 1] = { ...before, last: batch.last };
    else tidied.push({ ...batch, first });
  }
  return tidied;
}

/** Of a record that was changed twice the later change counts: the leader's order is the log's. */
export function overlay(
  known: readonly StateBatch[],
  changes: readonly StateBatch[],
  startOffset: Offset,
): StateBatch[] {
  const sorted = changes.toSorted(byFirst);
  const laid: StateBatch[] = [];
  let at = 0;
  // Both are long when each record has a fate of its own: side by side, not each against all.
  for (const batch of known) {
    while (at < sorted.length && sorted[at]!.last < batch.first) at += 1;
    const change = sorted[at];
    if (change === undefined || change.first > batch.last) laid.push(batch);
    else laid.push(...uncovered(batch, sorted, at));
  }
  laid.push(...sorted);
  return tidy(laid.toSorted(byFirst), startOffset);
}

export function changed(state: ShareState, change: ShareStateChange): ShareState {
  const startOffset = change.startOffset < 0 ? state.startOffset : change.startOffset;
  return {
    ...state,
    leaderEpoch: change.leaderEpoch < 0 ? state.leaderEpoch : change.leaderEpoch,
    startOffset,
    finalCount: change.finalCount,
    batches: overlay(state.batches, change.batches, startOffset),
  };
}
