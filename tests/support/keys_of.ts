/** All keys of a store, as its listing gives them. */
import type { ObjectStore } from "../../src/object/object_store.ts";

export async function keysOf(
  store: Pick<ObjectStore, "list">,
  prefix = "",
  startAfter?: string,
): Promise<string[]> {
  const keys: string[] = [];
  const options = startAfter === undefined ? {} : { startAfter };
  for await (const { key } of store.list(prefix, options)) keys.push(key);
  return keys;
}
