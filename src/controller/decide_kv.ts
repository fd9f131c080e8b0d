/** Small values under a version, blocks of producer ids, and the feature level. */
import { KV_KEY_CHARS_MAX, KV_VALUE_CHARS_MAX, PRODUCER_IDS_MAX } from "../lib/limits.ts";
import type { CommandOf } from "./metadata_store.ts";
import type { StateImage } from "./state.ts";
import { approve, checkRequester, countProblem, refuse, type Verdict } from "./verdict.ts";

/** Version 0 stands for "absent". */
export function decidePutKv(
  image: StateImage,
  { key, value, expectedVersion }: CommandOf<"put-kv">,
): Verdict<"put-kv"> {
  if (key.length > KV_KEY_CHARS_MAX || value.length > KV_VALUE_CHARS_MAX) {
    return refuse("invalid", `Key or value is too long: ${key.length}, ${value.length} characters`);
  }
  const version = image.kv.get(key)?.version ?? 0;
  return version === expectedVersion
    ? approve({ type: "kv-put", key, value })
    : refuse("conflict", `Key ${key} has version ${version}, not ${expectedVersion}`);
}

export function decideDeleteKv(
  image: StateImage,
  { key, expectedVersion }: CommandOf<"delete-kv">,
): Verdict<"delete-kv"> {
  const row = image.kv.get(key);
  if (row === undefined) return refuse("not-found", `Key ${key} does not exist`);
  return row.version === expectedVersion
    ? approve({ type: "kv-deleted", key })
    : refuse("conflict", `Key ${key} has version ${row.version}, not ${expectedVersion}`);
}

export function decideProducerIds(
  image: StateImage,
  { by, count }: CommandOf<"alloc-producer-ids">,
): Verdict<"alloc-producer-ids"> {
  const refused = checkRequester(image, by) ?? countProblem(count, PRODUCER_IDS_MAX);
  if (refused !== null) return refused;
  const first = image.nextProducerId;
  const record = { type: "producer-ids", next: first + count } as const;
  return { ok: true, records: [record], result: { first } };
}

export function decideRaiseLevel(
  image: StateImage,
  { by, level }: CommandOf<"raise-feature-level">,
): Verdict<"raise-feature-level"> {
  const refused = checkRequester(image, by);
  if (refused !== null) return refused;
  if (level === image.featureLevel) return approve();
  return level > image.featureLevel
    ? approve({ type: "feature-level", level })
    : refuse("invalid", `The cluster is at feature level ${image.featureLevel}: it never falls`);
}
