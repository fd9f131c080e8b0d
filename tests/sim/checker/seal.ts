/**
 * A seal ends a WAL for ever (I5, I6): below it every slot from the committed trim on exists, and no answer
 * to a writer's create in a slot at or above it may say "created" unless the object had landed before the seal.
 */
import { walKey as walRowKey } from "../../../src/controller/image.ts";
import { parseWalKey, walKey } from "../../../src/object/object_key.ts";
import { WAL_OBJECT_HEADER_BYTES } from "../../../src/lib/limits.ts";
import { readWalHeader } from "../../../src/storage/wal/wal_object.ts";
import type { Landed, SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";
import type { MetadataChecker } from "./metadata.ts";

export function watchSeals(
  world: World,
  store: SimStore,
  clusterId: string,
  metadata: MetadataChecker,
): void {
  const sealed = new Map<string, number>();

  async function checkBelow(at: NonNullable<ReturnType<typeof parseWalKey>>): Promise<void> {
    const trim = metadata.state.wals.get(walRowKey(at.nodeId, at.nodeEpoch))?.walTrim ?? 0;
    for (let slot = trim; slot < at.slot; slot++) {
      const key = walKey(clusterId, { ...at, slot });
      if (await store.bucket.head(key) === null) {
        world.violated(
          `I6: epoch ${at.nodeEpoch} is sealed at ${at.slot}, slot ${slot} is missing`,
        );
      }
    }
  }

  store.onLanded(({ op, key, created, bytes }: Landed) => {
    const at = parseWalKey(clusterId, key);
    if (op !== "create" || !created || at === null || bytes === null) return;
    const epoch = walRowKey(at.nodeId, at.nodeEpoch);
    const isSeal = bytes.length === WAL_OBJECT_HEADER_BYTES &&
      readWalHeader(bytes).bodyLength === 0;
    if (!isSeal) return;
    // A late duplicate in a slot that is trimmed or recovered by now: only space.
    const row = metadata.state.wals.get(epoch);
    if (row === undefined || row.state.kind === "sealed" || at.slot < row.walTrim) return;
    const before = sealed.get(epoch);
    if (before !== undefined && before !== at.slot) {
      world.violated(`I5: epoch ${at.nodeEpoch} is sealed at ${before} and at ${at.slot}`);
    }
    sealed.set(epoch, at.slot);
    void checkBelow(at);
  });
}
