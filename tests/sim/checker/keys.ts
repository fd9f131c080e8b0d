/** The parsers of keys, remembering: every checker asks about every key, and a WAL's prefix is a hash. */
import {
  parseDataKey as dataOf,
  parseLogKey as logOf,
  parseSnapshotKey as snapshotOf,
  parseWalKey as walOf,
} from "../../../src/object/object_key.ts";

const REMEMBERED_MAX = 20_000;

type Parse<T> = (clusterId: string, key: string) => T;

function remembering<T>(parse: Parse<T | null>): Parse<T | null> {
  const known = new Map<string, T | null>();
  let of = "";
  return (clusterId, key) => {
    if (clusterId !== of || known.size >= REMEMBERED_MAX) known.clear();
    of = clusterId;
    let found = known.get(key);
    if (found === undefined) {
      found = parse(clusterId, key);
      known.set(key, found);
    }
    return found;
  };
}

export const parseDataKey = remembering(dataOf);
export const parseLogKey = remembering(logOf);
export const parseSnapshotKey = remembering(snapshotOf);
export const parseWalKey = remembering(walOf);
