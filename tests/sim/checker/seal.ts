/**
 * A seal ends a WAL for ever (I5, I6): below it every slot from the committed trim on exists, and no answer
 * to a writer's create in a slot at or above it may say "created" unless the object had landed before the seal.
 */
import { decodeEntry } from "../../../src/controller/entry.ts";
import { walKey as walRowKey } from "../../../src/controller/image.ts";
import { equalBytes } from "../../../src/lib/bytes.ts";
import { messageOf } from "../../../src/lib/errors.ts";
import { walKey } from "../../../src/object/object_key.ts";
import { WAL_OBJECT_HEADER_BYTES } from "../../../src/lib/limits.ts";
import { readWalHeader } from "../../../src/storage/wal/wal_object.ts";
import { parseLogKey, parseWalKey } from "./keys.ts";
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

  /** Of what was written into a slot first. */
  const first = new Map<string, Uint8Array>();

  function checkUnchanged(key: string, bytes: Uint8Array): void {
    const before = first.get(key);
    if (before === undefined) first.set(key, bytes);
    else if (!equalBytes(before, bytes)) world.violated(`I5: ${key} is written over`);
  }

  /** The seal that a recovery names is there when the recovery ends. */
  async function checkSealed(entry: Uint8Array): Promise<void> {
    for (const record of decodeEntry(entry).records) {
      if (record.type !== "recovery-finished") continue;
      const { nodeId, epoch, slot } = record;
      const key = walKey(clusterId, { nodeId, nodeEpoch: epoch, slot });
      const got = await store.bucket.get(key);
      const isSeal = got !== null && got.bytes.length === WAL_OBJECT_HEADER_BYTES;
      if (!isSeal) world.violated(`I5: epoch ${epoch} has no seal in slot ${slot}`);
    }
  }

  /** They look at the bucket as it is now, while the run goes on. */
  function begin(check: Promise<void>): void {
    check.catch((error: unknown) =>
      world.violated(`I5: a look at a seal fails: ${messageOf(error)}`)
    );
  }

  store.onLanded(({ op, key, created, bytes }: Landed) => {
    const at = parseWalKey(clusterId, key);
    if (op === "delete") { for (const one of key.split(" ")) first.delete(one); }
    if (at !== null && bytes !== null) checkUnchanged(key, bytes);
    const isEntry = op === "create" && created && parseLogKey(clusterId, key) !== null;
    if (isEntry && bytes !== null) begin(checkSealed(bytes));
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
    begin(checkBelow(at));
  });
}
