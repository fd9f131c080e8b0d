/**
 * A consumer instance of an HTTP client as it lies in the bucket: what it was told. Where it reads is not part of
 * it, but for jumps that no commit has overtaken: the rest is in the group's committed offsets.
 */
import * as v from "valibot";
import {
  HTTP_INSTANCE_IDLE_MS,
  HTTP_INSTANCE_NAME_CHARS_MAX,
  HTTP_WAIT_MS_MAX,
  KV_KEY_CHARS_MAX,
  KV_VALUE_CHARS_MAX,
} from "../../../lib/limits.ts";

export const FORMATS = ["binary", "json", "text"] as const;
export type Format = (typeof FORMATS)[number];
export const RESETS = ["earliest", "latest", "none"] as const;
/** Whose details an instance follows where servers of the same API differ. */
export const DIALECTS = ["confluent", "strimzi", "pandaproxy"] as const;

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const place = { topic: v.string(), partition: count };

const record = v.object({
  /** The node that serves it: others leave it alone while that one lives. */
  node: v.number(),
  format: v.picklist(FORMATS),
  dialect: v.picklist(DIALECTS),
  reset: v.picklist(RESETS),
  autoCommit: v.boolean(),
  commitIntervalMs: count,
  idleMs: count,
  /** How long a request for records waits that does not say. */
  waitMs: count,
  minBytes: count,
  committedOnly: v.boolean(),
  subscription: v.nullable(v.union([
    v.object({ topics: v.array(v.string()) }),
    v.object({ pattern: v.string() }),
    v.object({ partitions: v.array(v.object(place)) }),
  ])),
  seeks: v.array(v.object({ ...place, offset: count })),
});

export type InstanceRecord = v.InferOutput<typeof record>;
export type Seek = InstanceRecord["seeks"][number];

export const NEW_INSTANCE: Omit<InstanceRecord, "node"> = {
  format: "binary",
  dialect: "confluent",
  reset: "latest",
  autoCommit: true,
  commitIntervalMs: 5_000,
  idleMs: HTTP_INSTANCE_IDLE_MS,
  waitMs: 1_000,
  minBytes: 1,
  committedOnly: false,
  subscription: null,
  seeks: [],
};

/** Null for what an older or newer node wrote otherwise: such an instance is as good as gone. */
export function readRecord(text: string): InstanceRecord | null {
  try {
    const result = v.safeParse(record, JSON.parse(text));
    return result.success ? result.output : null;
  } catch {
    return null;
  }
}

/** Null when it has no room. */
export function writeRecord(value: InstanceRecord): string | null {
  const text = JSON.stringify(value);
  return text.length > KV_VALUE_CHARS_MAX ? null : text;
}

/** Of the prefix that the store puts before it. */
const PREFIX_CHARS = 32;

/** Null for names that cannot be. */
export function keyOf(group: string, name: string): string | null {
  if (!isName(group) || !isName(name)) return null;
  const key = `${encodeURIComponent(group)}/${encodeURIComponent(name)}`;
  return key.length > KV_KEY_CHARS_MAX - PREFIX_CHARS ? null : key;
}

function isName(text: string): boolean {
  return text.trim() !== "" && text.length <= HTTP_INSTANCE_NAME_CHARS_MAX && text.isWellFormed();
}

export function namesOf(key: string): { readonly group: string; readonly name: string } {
  const at = key.indexOf("/");
  return {
    group: decodeURIComponent(key.slice(0, at)),
    name: decodeURIComponent(key.slice(at + 1)),
  };
}

export function boundedWait(ms: number): number {
  return Math.min(ms, HTTP_WAIT_MS_MAX);
}
