/** Nodes that are broken on purpose, by a store that lies to them. Each must be caught, or the checkers are blind. */
import type { ObjectStore } from "../../src/object/object_store.ts";
import type { SimProcess } from "./process.ts";
import type { SimStore } from "./sim_store.ts";
import type { World } from "./world.ts";

type Sabotage = (
  store: ObjectStore,
  process: SimProcess,
  sim: { readonly world: World; readonly store: SimStore },
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

export const CANARIES: ReadonlyMap<string, Sabotage> = new Map([
  ["acknowledges before durability", acknowledgeEarly],
  ["acknowledges out of order", acknowledgeUnordered],
  ["overwrites WAL slots", overwriteSlots],
  ["deletes objects in use", deleteReferenced],
]);
