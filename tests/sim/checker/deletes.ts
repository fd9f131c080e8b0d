/**
 * Nothing is deleted that anybody may still need: a data object only when metadata calls it destroyed or its
 * id dead, a WAL slot only below the committed trim or after its recovery is committed, a log entry only when a
 * snapshot behind it has stood for long (I6, I9, I14).
 */
import { walKey as walRowKey } from "../../../src/controller/image.ts";
import { METADATA_TRIM_AGE_MS_MIN, WAL_SEAL_AGE_MS_MIN } from "../../../src/lib/limits.ts";
import { parseDataKey, parseLogKey, parseSnapshotKey, parseWalKey } from "./keys.ts";
import type { Landed, SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";
import type { MetadataChecker } from "./metadata.ts";

/** How far the store's clock may jump back between a decision and the delete that follows from it. */
const CLOCK_JUMPS_MS = 3_600_000;

export function watchDeletes(
  world: World,
  store: SimStore,
  clusterId: string,
  metadata: MetadataChecker,
): void {
  /** Snapshots that are there, and since when by the store's clock. */
  const snapshots = new Map<number, number>();
  /** By the store's clock, which is the one that counts. */
  const sealedMs = new Map<string, number>();
  const storeMs = () => world.wallMs + store.skewMs;

  function onDataObject(key: string): void {
    const id = parseDataKey(clusterId, key);
    const row = id === null ? undefined : metadata.state.objects.get(id);
    if (row?.state === "committed") world.violated(`I9: referenced object ${id} is deleted`);
  }

  function onSlot(key: string): void {
    const slot = parseWalKey(clusterId, key);
    if (slot === null) return;
    const row = metadata.state.wals.get(walRowKey(slot.nodeId, slot.nodeEpoch));
    if (row === undefined) return;
    const where = `slot ${slot.slot} of epoch ${slot.nodeEpoch}`;
    if (row.state.kind !== "sealed") {
      if (slot.slot >= row.walTrim) world.violated(`I6: ${where} is deleted, trim ${row.walTrim}`);
    } else if (row.state.slot === slot.slot) {
      const age = storeMs() - (sealedMs.get(key) ?? 0);
      if (age < WAL_SEAL_AGE_MS_MIN) world.violated(`I5: the seal in ${where} is deleted`);
    }
  }

  function onEntry(key: string): void {
    const at = parseLogKey(clusterId, key);
    if (at === null) return;
    const isBehindOld = [...snapshots].some(([end, sinceMs]) =>
      end >= at && storeMs() - sinceMs >= METADATA_TRIM_AGE_MS_MIN - CLOCK_JUMPS_MS
    );
    if (!isBehindOld) world.violated(`I14: entry ${at} is deleted, no old snapshot holds it`);
  }

  store.onLanded(({ op, key, created }: Landed) => {
    const snapshot = parseSnapshotKey(clusterId, key);
    if (op === "create" && created) {
      sealedMs.set(key, storeMs());
      if (snapshot !== null) snapshots.set(snapshot, storeMs());
    }
    if (op !== "delete") return;
    for (const one of key.split(" ")) {
      onDataObject(one);
      onSlot(one);
      onEntry(one);
      const gone = parseSnapshotKey(clusterId, one);
      if (gone !== null) snapshots.delete(gone);
    }
  });
}
