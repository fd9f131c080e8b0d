/**
 * The metadata of a store at rest: newest readable snapshot, then the log, by the controller's own replica.
 * It reads and never writes; a node would write a snapshot after a long tail.
 */
import { ObjectLog } from "../controller/object_log.ts";
import { Replica } from "../controller/replica.ts";
import { SnapshotKeeper } from "../controller/snapshot_keeper.ts";
import type { State } from "../controller/state.ts";
import type { Env } from "../env/env.ts";
import { silentLogger } from "../env/logger.ts";
import { type Position, position } from "../lib/brand.ts";
import { isFault } from "../lib/errors.ts";
import { METADATA_READS_IN_FLIGHT } from "../lib/limits.ts";
import { logKey, snapshotPrefix } from "../object/object_key.ts";
import type { ObjectStore } from "../object/object_store.ts";

export interface StoreAtRest {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly clusterId: string;
}

export type LoadedMetadata =
  | {
    readonly ok: true;
    readonly state: State;
    /** Of the last entry: what the next one has to name. */
    readonly lastHash: Uint8Array;
  }
  /** The key that cannot be read or is missing, and why. */
  | {
    readonly ok: false;
    readonly key: string;
    readonly detail: string;
    /** Only because somebody writes meanwhile: another look may succeed. */
    readonly isPassing?: true;
  };

/** Throws what the store throws, and FaultError `config` on what a newer build wrote. */
export async function loadMetadata(
  { store, env, clusterId }: StoreAtRest,
): Promise<LoadedMetadata> {
  const { signal } = new AbortController();
  const quiet = { ...env, log: silentLogger };
  const log = new ObjectLog({ store, env: quiet, clusterId, signal });
  const keeper = new SnapshotKeeper({ store, env: quiet, clusterId, signal, log });
  const replica = new Replica(clusterId);
  let mustReach: Position;
  try {
    const { snapshot, mustReach: least } = await keeper.load();
    mustReach = least;
    if (snapshot !== null) replica.adopt(snapshot);
  } catch (error) {
    if (!isFault(error, "corrupt")) throw error;
    return { ok: false, key: snapshotPrefix(clusterId), detail: error.message };
  }
  for (;;) {
    const read = await log.read(replica.state.at, METADATA_READS_IN_FLIGHT);
    const key = logKey(clusterId, position(replica.state.at + 1));
    if (read.kind === "behind") {
      return { ok: false, key, detail: "the log was trimmed while it was read", isPassing: true };
    }
    const problem = takeAll(replica, read.entries, clusterId);
    if (problem !== null) return problem;
    if (!read.atEnd) continue;
    if (replica.state.at >= mustReach) {
      return { ok: true, state: replica.state, lastHash: replica.lastHash };
    }
    return { ok: false, key, detail: `the log ends here, a snapshot says ${mustReach}` };
  }
}

function takeAll(
  replica: Replica,
  entries: readonly Uint8Array[],
  clusterId: string,
): Extract<LoadedMetadata, { ok: false }> | null {
  for (const bytes of entries) {
    try {
      replica.take(bytes);
    } catch (error) {
      if (!isFault(error, "corrupt")) throw error;
      const key = logKey(clusterId, position(replica.state.at + 1));
      return { ok: false, key, detail: error.message };
    }
  }
  return null;
}

/** Whether somebody has written metadata since. */
export async function hasMovedOn(
  { store, clusterId }: StoreAtRest,
  at: Position,
): Promise<boolean> {
  return await store.head(logKey(clusterId, position(at + 1))) !== null;
}
