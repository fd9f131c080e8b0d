/** Puts everything below a prefix of another store, so that clusters can share a bucket. */
import type { ObjectInfo, ObjectStore } from "./object_store.ts";

/** Slashes around the prefix are ignored; an empty prefix gives the store itself. */
export function prefixedStore(store: ObjectStore, prefix: string): ObjectStore {
  const name = prefix.replace(/^\/+|\/+$/g, "");
  if (name === "") return store;
  const head = `${name}/`;
  const outer = (key: string): string => head + key;
  const inner = (key: string): string => key.slice(head.length);

  function innerInfo<T extends ObjectInfo>(info: T): T {
    return { ...info, key: inner(info.key) };
  }

  return {
    put: (key, body, options) => store.put(outer(key), body, options),
    putParts: (key, parts) => store.putParts(outer(key), parts),
    async get(key, options) {
      const got = await store.get(outer(key), options);
      return got === null ? null : innerInfo(got);
    },
    async head(key) {
      const info = await store.head(outer(key));
      return info === null ? null : innerInfo(info);
    },
    async *list(under, { startAfter, ...rest } = {}) {
      const options = startAfter === undefined ? rest : { ...rest, startAfter: outer(startAfter) };
      for await (const info of store.list(outer(under), options)) yield innerInfo(info);
    },
    async delete(keys) {
      const { gone, failed } = await store.delete(keys.map(outer));
      return { gone: gone.map(inner), failed: failed.map(inner) };
    },
    close: () => store.close(),
  };
}
