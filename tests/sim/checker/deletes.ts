/**
 * Nothing is deleted that anybody may still need: a data object only when metadata calls it destroyed or its
 * id dead, a WAL slot only below the committed trim or after its recovery is committed (I6, I9, I14).
 */
import { walKey as walRowKey } from "../../../src/controller/image.ts";
import { parseDataKey, parseWalKey } from "../../../src/object/object_key.ts";
import { WAL_SEAL_AGE_MS_MIN } from "../../../src/lib/limits.ts";
import type { Landed, SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";
import type { MetadataChecker } from "./metadata.ts";

export function watchDeletes(
  world: World,
  store: SimStore,
  clusterId: string,
  metadata: MetadataChecker,
): void {
  const sealedMs = new Map<string, number>();

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
      const age = world.nowMs - (sealedMs.get(key) ?? 0);
      if (age < WAL_SEAL_AGE_MS_MIN) world.violated(`I5: the seal in ${where} is deleted`);
    }
  }

  store.onLanded(({ op, key, created }: Landed) => {
    if (op === "create" && created) sealedMs.set(key, world.nowMs);
    if (op !== "delete") return;
    for (const one of key.split(" ")) {
      onDataObject(one);
      onSlot(one);
    }
  });
}
