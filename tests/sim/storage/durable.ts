/** Which payloads have reached the store in a WAL object: an acknowledgement of any other breaks I6. */
import { WAL_OBJECT_HEADER_BYTES } from "../../../src/lib/limits.ts";
import { walRecords } from "../../../src/storage/wal/wal_object.ts";
import { parseWalKey } from "../checker/keys.ts";
import type { SimStore } from "../sim_store.ts";
import { keyOf } from "./payload.ts";

export function watchDurable(store: SimStore, clusterId: string): (key: string) => boolean {
  const durable = new Set<string>();
  store.onLanded(({ key, bytes }) => {
    const isBulk = bytes !== null && bytes.length > WAL_OBJECT_HEADER_BYTES &&
      parseWalKey(clusterId, key) !== null;
    if (!isBulk) return;
    for (const { payload } of walRecords(bytes)) durable.add(keyOf(payload));
  });
  return (key) => durable.has(key);
}
