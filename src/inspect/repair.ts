/**
 * What may be changed in a store at rest. Orphans: objects that no node will ever look at. With accepted loss:
 * a WAL that recovery refuses is cut before its first bad slot, so that the next start can seal it there.
 * Metadata is never written: the node's own recovery does that, with all of its checks. Metadata that is damaged,
 * or that the store is ahead of, cannot say what may go: then there is no `StoreAtRest` to repair.
 */
import { position, type StreamId } from "../lib/brand.ts";
import {
  FSCK_ORPHANS_MAX,
  STORE_DELETE_BATCH_KEYS_MAX,
  WAL_OBJECT_HEADER_BYTES,
} from "../lib/limits.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { endOffset } from "../storage/stream_record.ts";
import { slotKey } from "../storage/wal/wal_slots.ts";
import { readWalHeader, readWalRecord } from "../storage/wal/wal_object.ts";
import { damageOf } from "./blocks.ts";
import type { Finding } from "./finding.ts";
import type { BrokenWal } from "./fsck_wal.ts";
import { hasMovedOn, type StoreAtRest } from "./load_metadata.ts";

/** Collects the keys that a repair may delete. */
export class Orphans {
  readonly keys: string[] = [];

  take(finding: Finding): void {
    if (finding.kind === "orphan" && this.keys.length < FSCK_ORPHANS_MAX) {
      this.keys.push(finding.key);
    }
  }
}

export interface Deleted {
  readonly gone: readonly string[];
  readonly failed: readonly string[];
}

async function deleteKeys(store: ObjectStore, keys: readonly string[]): Promise<Deleted> {
  const gone: string[] = [];
  const failed: string[] = [];
  for (let at = 0; at < keys.length; at += STORE_DELETE_BATCH_KEYS_MAX) {
    const answer = await store.delete(keys.slice(at, at + STORE_DELETE_BATCH_KEYS_MAX));
    gone.push(...answer.gone);
    failed.push(...answer.failed);
  }
  return { gone, failed };
}

/** Null, and nothing is done, when somebody wrote metadata since the check. */
export async function deleteOrphans(
  rest: StoreAtRest,
  checkedTo: number,
  orphans: Orphans,
): Promise<Deleted | null> {
  if (await hasMovedOn(rest, position(checkedTo))) return null;
  return await deleteKeys(rest.store, orphans.keys);
}

/** Offsets of a stream in the slots that were cut off. */
export interface LostRange {
  readonly streamId: StreamId;
  readonly start: number;
  readonly end: number;
}

export interface CutWal extends Deleted {
  /** As far as the slots could still be read; a damaged one held more. */
  readonly lost: readonly LostRange[];
}

/**
 * Deletes the first bad slot and everything above it, from the top: a repair that dies in its middle can be
 * repeated. Null, and nothing is done, when somebody wrote metadata since the check.
 */
export async function cutWal(
  rest: StoreAtRest,
  checkedTo: number,
  { row, firstBad, highest }: BrokenWal,
): Promise<CutWal | null> {
  if (await hasMovedOn(rest, position(checkedTo))) return null;
  const lost = new Map<StreamId, LostRange>();
  const keys: string[] = [];
  for (let slot = highest; slot >= firstBad; slot--) {
    const key = slotKey(rest.clusterId, row, slot);
    const got = await rest.store.get(key);
    if (got === null) continue;
    keys.push(key);
    noteLost(got.bytes, lost);
  }
  const deleted = await deleteKeys(rest.store, keys);
  return { ...deleted, lost: [...lost.values()].toSorted((a, b) => a.streamId - b.streamId) };
}

function noteLost(bytes: Uint8Array, lost: Map<StreamId, LostRange>): void {
  try {
    const { startOffset } = readWalHeader(bytes);
    for (let at = WAL_OBJECT_HEADER_BYTES; at < bytes.length;) {
      const { record, end } = readWalRecord(bytes, at, startOffset + at - WAL_OBJECT_HEADER_BYTES);
      const { streamId, baseOffset } = record;
      const known = lost.get(streamId) ?? { streamId, start: baseOffset, end: baseOffset };
      const start = Math.min(known.start, baseOffset);
      lost.set(streamId, { streamId, start, end: Math.max(known.end, endOffset(record)) });
      at = end;
    }
  } catch (error) {
    damageOf(error);
  }
}
