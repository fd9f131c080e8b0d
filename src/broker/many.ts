/** What handlers do with the many elements of one request: find repeats, and work on them side by side. */
import { REQUEST_PARTS_AT_ONCE } from "../lib/limits.ts";
import { type Clock, sleep } from "../env/clock.ts";

/** The keys that stand in a request more than once. */
export function repeatedIn<K>(keys: Iterable<K>): ReadonlySet<K> {
  const seen = new Set<K>();
  const repeated = new Set<K>();
  for (const key of keys) {
    if (seen.has(key)) repeated.add(key);
    else seen.add(key);
  }
  return repeated;
}

/** Of what stands in a request more than once, as Kafka's maps keep it: the last one, in the place of the first. */
export function lastOfEach<T>(items: readonly T[], keyOf: (item: T) => string): readonly T[] {
  if (items.length < 2) return items;
  const byKey = new Map(items.map((item) => [keyOf(item), item]));
  return byKey.size === items.length ? items : [...byKey.values()];
}

/**
 * Works on a bounded number of items at once, and lets other connections have their turn in between.
 * Results stand in the order of the items.
 */
export async function inGroups<T, R>(
  clock: Clock,
  items: readonly T[],
  work: (item: T) => R | Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += REQUEST_PARTS_AT_ONCE) {
    if (at > 0) await sleep(clock, 0);
    const group = items.slice(at, at + REQUEST_PARTS_AT_ONCE).map(work);
    for (const result of await Promise.all(group)) results.push(result);
  }
  return results;
}
