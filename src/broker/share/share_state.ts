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

/** The parts of a batch that none of the changes covers; changes are in order. */
function* uncovered(batch: StateBatch, changes: readonly StateBatch[]): Generator<StateBatch> {
  let first = batch.first;
  for (const change of changes) {
    if (change.last < first) continue;
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
  const kept = sorted.length === 0
    ? known
    : [...known.flatMap((batch) => [...uncovered(batch, sorted)]), ...sorted].toSorted(byFirst);
  return tidy(kept, startOffset);
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
