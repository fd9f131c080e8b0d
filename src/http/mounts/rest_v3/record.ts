/** A record of a request, and the report of what became of it. */
import * as v from "valibot";
import { uniqueFields } from "../../json_record.ts";
import { type Sourced, sourced } from "../../json_source.ts";
import { parseJson } from "../../json_text.ts";
import type { RecordInput, Written } from "../../port.ts";
import { type Problem, problemOf } from "../../problem.ts";
import { checked, nameText, partition } from "../json_body.ts";
import type { Format } from "../instances/record.ts";
import { base64In, bytesIn } from "../shown.ts";
import { codeOf } from "./shape.ts";

const TYPES = { BINARY: "binary", JSON: "json", STRING: "text" } as const satisfies Record<
  string,
  Format
>;
type Type = keyof typeof TYPES;

const dataSchema = v.strictObject({
  type: v.picklist(
    Object.keys(TYPES) as [Type, ...Type[]],
    "not BINARY, JSON or STRING: there is no schema registry behind this node",
  ),
  data: v.optional(v.unknown()),
});
const fields = {
  partition_id: v.optional(v.nullable(partition), null),
  headers: v.optional(
    v.nullable(
      v.array(v.strictObject({ name: nameText, value: v.optional(v.nullable(v.string()), null) })),
    ),
    null,
  ),
  key: v.optional(v.nullable(dataSchema), null),
  value: v.optional(v.nullable(dataSchema), null),
  timestamp: v.optional(v.nullable(v.pipe(v.string(), v.isoTimestamp())), null),
};
const recordSchema = v.strictObject(fields);
const entrySchema = v.strictObject({ id: v.unknown(), ...fields });

export interface V3Record extends RecordInput {
  readonly keyType: Type | null;
  readonly valueType: Type | null;
}

function bytesOf(json: Sourced | undefined, type: Type | null, where: string): Uint8Array | null {
  if (json === undefined || type === null) return null;
  return bytesIn(uniqueFields(json, where).get("data"), TYPES[type], where);
}

/** `hasId`: as an entry of a batch. */
export function recordIn(json: Sourced, where: string, hasId = false): V3Record {
  const found = checked(hasId ? entrySchema : recordSchema, json.value, where);
  const parts = uniqueFields(json, where);
  const keyType = found.key?.type ?? null;
  const valueType = found.value?.type ?? null;
  return {
    key: bytesOf(parts.get("key"), keyType, `the key of ${where}`),
    value: bytesOf(parts.get("value"), valueType, `the value of ${where}`),
    headers: (found.headers ?? []).map((one) => ({
      name: one.name,
      value: one.value === null
        ? null
        : base64In({ value: one.value, text: "", at: 0 }, `a header of ${where}`),
    })),
    timestampMs: found.timestamp === null ? null : new Date(found.timestamp).getTime(),
    partition: found.partition_id,
    keyType,
    valueType,
  };
}

export function recordOfText(text: string, where: string): V3Record {
  return recordIn(sourced(text, parseJson(text, where)), where);
}

/** Null for times that no calendar has. */
function isoOf(timestampMs: number): string | null {
  const date = new Date(timestampMs);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

export function failureReport(problem: Problem): Record<string, unknown> {
  return { error_code: codeOf(problem), message: problem.detail };
}

export function reportOf(
  written: Written,
  record: V3Record,
  { clusterId, topic }: { readonly clusterId: string; readonly topic: string },
): Record<string, unknown> {
  if (!written.ok) return failureReport(problemOf(written));
  const sized = (type: Type | null, bytes: Uint8Array | null) =>
    type === null ? null : { type, size: bytes?.length ?? 0 };
  return {
    error_code: 200,
    cluster_id: clusterId,
    topic_name: topic,
    partition_id: written.partition,
    offset: written.offset,
    timestamp: isoOf(written.timestampMs),
    key: sized(record.keyType, record.key),
    value: sized(record.valueType, record.value),
  };
}
