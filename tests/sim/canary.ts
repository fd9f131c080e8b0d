/** Nodes that are broken on purpose, by a store that lies to them. Each must be caught, or the checkers are blind. */
import { createCodecs } from "../../src/adapters/codecs.ts";
import { decodeSnapshot, encodeSnapshot } from "../../src/controller/snapshot.ts";
import { sleep } from "../../src/env/clock.ts";
import { METADATA_EVIDENCE_AGE_MS_MAX } from "../../src/lib/limits.ts";
import { parseLogKey, parseSnapshotKey, snapshotPrefix } from "../../src/object/object_key.ts";
import type { GotObject, ObjectStore } from "../../src/object/object_store.ts";
import type { SimProcess } from "./process.ts";
import type { SimStore } from "./sim_store.ts";
import type { World } from "./world.ts";

export type Sabotage = (
  store: ObjectStore,
  process: SimProcess,
  sim: { readonly world: World; readonly store: SimStore; readonly clusterId: string },
) => ObjectStore;

function isSlot(key: string): boolean {
  return key.includes("/wal/");
}

/** Says that a WAL object is stored as soon as the request has left (acknowledges before durability). */
const acknowledgeEarly: Sabotage = (store, process) => ({
  ...store,
  put(key, body, options) {
    if (!isSlot(key)) return store.put(key, body, options);
    store.put(key, body.slice(), { ifAbsent: true }).catch(() => {});
    return Promise.resolve({ created: true, storeNowMs: process.env.clock.nowMs() });
  },
});

/** Says so only of every other slot: acknowledgements overtake each other, as without the window's order. */
const acknowledgeUnordered: Sabotage = (store, process, sim) => {
  const early = acknowledgeEarly(store, process, sim);
  return {
    ...store,
    put(key, body, options) {
      const slot = Number(key.split("/").at(-1)?.split("-")[0]) / (64 * 1024 * 1024);
      return (slot % 2 === 1 ? early : store).put(key, body, options);
    },
  };
};

/** WAL objects overwrite each other: model W7. */
const overwriteSlots: Sabotage = (store) => ({
  ...store,
  put: (key, body, options) => store.put(key, body, isSlot(key) ? {} : options),
});

/** A collector that deletes what is in use. */
const deleteReferenced: Sabotage = (store, process) => ({
  ...store,
  async put(key, body, options) {
    const answer = await store.put(key, body, options);
    const isData = !isSlot(key) && !key.startsWith("meta/");
    if (isData) process.env.clock.after(2_000, () => void store.delete([key]).catch(() => {}));
    return answer;
  },
});

/** A collector that purges ids whose objects are still there. */
const deleteNothing: Sabotage = (store) => ({
  ...store,
  delete: (keys) =>
    keys.some((key) => isSlot(key) || key.startsWith("meta/"))
      ? store.delete(keys)
      : Promise.resolve({ gone: keys, failed: [] }),
});

/** Its log entries take longer than its proof is good for, and it does not look again. */
const believeOldProof: Sabotage = (store, process, { clusterId }) => {
  const own = new Map<string, GotObject>();
  let puts = 0;
  return {
    ...store,
    async put(key, body, options) {
      const isEntry = parseLogKey(clusterId, key) !== null;
      if (!isEntry || ++puts % 8 > 0) return await store.put(key, body, options);
      const bytes = body.slice();
      await sleep(process.env.clock, METADATA_EVIDENCE_AGE_MS_MAX + 1_000);
      const answer = await store.put(key, bytes, options);
      const { storeNowMs } = answer;
      const found = { key, bytes, size: bytes.length, lastModifiedMs: storeNowMs, storeNowMs };
      if (answer.created) own.set(key, found);
      return answer;
    },
    get: (key, options) => {
      const found = own.get(key);
      return found === undefined ? store.get(key, options) : Promise.resolve(found);
    },
    async *list(prefix, options) {
      if (prefix !== snapshotPrefix(clusterId)) yield* store.list(prefix, options);
    },
  };
};

const codecs = createCodecs();

/** Writes snapshots that are not what the entries make. */
export const snapshotOtherState: Sabotage = (store, _process, { clusterId }) => ({
  ...store,
  put(key, body, options) {
    const at = parseSnapshotKey(clusterId, key);
    if (at === null) return store.put(key, body, options);
    const snapshot = decodeSnapshot(body, at, codecs);
    snapshot.state.nextProducerId += 1;
    return store.put(key, encodeSnapshot(snapshot, codecs), options);
  },
});

/** Takes the log for read to its end without asking the store. */
export const readLogOfMemory: Sabotage = (store, _process, { clusterId }) => {
  const own = new Set<string>();
  return {
    ...store,
    put(key, body, options) {
      own.add(key);
      return store.put(key, body, options);
    },
    get: (key, options) => {
      const isUnseen = parseLogKey(clusterId, key) !== null && !own.has(key);
      return isUnseen ? Promise.resolve(null) : store.get(key, options);
    },
  };
};

/** Takes an entry for committed that is still on its way, and goes on to the next position. */
export const skipUnresolved: Sabotage = (store, _process, { clusterId }) => {
  let entries = 0;
  return {
    ...store,
    async put(key, body, options) {
      if (parseLogKey(clusterId, key) === null || ++entries % 8 > 0) {
        return await store.put(key, body, options);
      }
      const { storeNowMs } = await store.put("meta/other", new Uint8Array(1));
      store.put(key, body.slice(), options).catch(() => {});
      return { created: true, storeNowMs };
    },
  };
};

export interface Canary {
  readonly lie: Sabotage;
  /** The checker that has to notice, where only one can. */
  readonly caughtBy: RegExp;
  /** An early seed that it sings in; later ones would do too. */
  readonly from: number;
}

/** By what they do. */
export const CANARIES: ReadonlyMap<string, Canary> = new Map([
  ["acknowledges before durability", { lie: acknowledgeEarly, caughtBy: /./, from: 1 }],
  ["acknowledges out of order", { lie: acknowledgeUnordered, caughtBy: /./, from: 6 }],
  ["overwrites WAL slots", { lie: overwriteSlots, caughtBy: /./, from: 1 }],
  ["deletes objects in use", { lie: deleteReferenced, caughtBy: /./, from: 1 }],
  ["purges what it has not deleted", { lie: deleteNothing, caughtBy: /^I11/, from: 6 }],
  ["goes on past an entry without an answer", {
    lie: skipUnresolved,
    caughtBy: /^I17/,
    from: 1,
  }],
  ["believes an entry on old proof", { lie: believeOldProof, caughtBy: /^I16/, from: 1 }],
]);
