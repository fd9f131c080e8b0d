/**
 * The objects of one incarnation's WAL as they lie in the store: what is there, and what may go once its
 * recovery is committed. The seal outlives its slots: it stops a writer that slept through everything.
 */
import { parseWalKey, walEpochPrefix, walKey } from "../../object/object_key.ts";
import type { ObjectInfo, ObjectStore } from "../../object/object_store.ts";
import { WAL_DELETE_KEYS_MAX, WAL_SEAL_AGE_MS_MIN } from "../../lib/limits.ts";
import type { SlotOwner } from "./wal_object.ts";

export interface WalSlot extends ObjectInfo {
  readonly slot: number;
}

export function slotKey(clusterId: string, { nodeId, epoch }: SlotOwner, slot: number): string {
  return walKey(clusterId, { nodeId, nodeEpoch: epoch, slot });
}

/** Every slot that holds an object, in the order of the listing (not of the slots). Foreign keys are skipped. */
export async function* listWalSlots(
  store: ObjectStore,
  clusterId: string,
  owner: SlotOwner,
): AsyncIterable<WalSlot> {
  for await (const info of store.list(walEpochPrefix(clusterId, owner.nodeId, owner.epoch))) {
    const key = parseWalKey(clusterId, info.key);
    if (key !== null) yield { ...info, slot: key.slot };
  }
}

export interface SealedWal extends SlotOwner {
  readonly sealedSlot: number;
}

export interface CollectedWal {
  readonly deleted: number;
  /** True when nothing is left, not even the seal: the WAL's metadata row may go. */
  readonly empty: boolean;
}

/** By the store's clock alone, so that a node that restarts often still collects. */
async function isSealOld(store: ObjectStore, key: string): Promise<boolean> {
  const seal = await store.get(key);
  return seal !== null && seal.storeNowMs - seal.lastModifiedMs >= WAL_SEAL_AGE_MS_MIN;
}

/**
 * Deletes what a sealed WAL left behind: replayed slots, unacknowledged slots above the seal and, once it
 * is older than T_SEAL, the seal itself. Call only after FinishRecovery is committed. Repeating it is harmless.
 */
export async function collectSealedWal(
  store: ObjectStore,
  clusterId: string,
  wal: SealedWal,
): Promise<CollectedWal> {
  let deleted = 0;
  let left = 0;
  let batch: string[] = [];
  const flush = async () => {
    if (batch.length === 0) return;
    const answer = await store.delete(batch);
    deleted += answer.gone.length;
    left += batch.length - answer.gone.length;
    batch = [];
  };
  let sealKey: string | null = null;
  for await (const { slot, key } of listWalSlots(store, clusterId, wal)) {
    if (slot === wal.sealedSlot) sealKey = key;
    else batch.push(key);
    if (batch.length === WAL_DELETE_KEYS_MAX) await flush();
  }
  await flush();
  if (sealKey !== null) {
    // The seal goes last: a slot that could not be deleted must not outlive it.
    if (left === 0 && (await isSealOld(store, sealKey))) batch.push(sealKey);
    else left += 1;
  }
  await flush();
  return { deleted, empty: left === 0 };
}
