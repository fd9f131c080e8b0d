/**
 * JSON to records. A string is UTF-8, `{"$base64": "..."}` is bytes, null is no value, any other JSON is
 * its own text, as it was sent. Nothing is guessed: what looks like bytes and is not is refused.
 */
import * as v from "valibot";
import { toUtf8 } from "../lib/bytes.ts";
import { elementsOf, fieldsOf, type Sourced, sourceOf } from "./json_source.ts";
import type { RecordHeader, RecordInput } from "./port.ts";
import { badRequest } from "./problem.ts";

/** A pair: of something shorter or longer nobody knows what is meant. */
const header = v.pipe(
  v.array(v.unknown()),
  v.length(2, "not [name, value]"),
  v.tuple([v.pipe(v.string(), v.minLength(1)), v.unknown()]),
);
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

export const envelope = v.strictObject({
  key: v.optional(v.unknown(), null),
  value: v.unknown(),
  headers: v.optional(
    v.array(header),
    [],
  ),
  timestamp: v.optional(v.nullable(count), null),
  partition: v.optional(v.nullable(v.pipe(count, v.maxValue(2 ** 31 - 1))), null),
});

const BASE64 = "$base64";
/** Checked apart from the length, because a pattern that counts to millions overflows some engines. */
const BASE64_CHARS = /^[A-Za-z0-9+/]*={0,2}$/;

/** Standard base64 with its padding; null when it is anything else. */
export function fromBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0 || !BASE64_CHARS.test(text)) return null;
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    return null;
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

function refuse(where: string, pointer: string, detail: string): never {
  const place = pointer === "" ? where : `${where}: ${pointer}`;
  throw badRequest(`Cannot read ${place}: ${detail}`, { errors: [{ pointer, detail }] });
}

/** Half a surrogate pair has no UTF-8: it would be stored as something else. */
function checkText(text: string, where: string, pointer: string): void {
  if (text.isWellFormed()) return;
  refuse(where, pointer, "half of a surrogate pair is no text; bytes are sent as $base64");
}

/** A field beside the only one that may be there. */
export function fieldBeside(value: object, name: string): string | null {
  return Object.keys(value).find((other) => other !== name)?.slice(0, 100) ?? null;
}

/** The fields of an object, each of them once: which of two would count is nobody's guess. */
export function uniqueFields(
  json: Sourced,
  where: string,
  pointer = "",
): ReadonlyMap<string, Sourced> {
  const fields = fieldsOf(json);
  if (typeof fields !== "string") return fields;
  return refuse(where, pointer, `${fields.slice(0, 100)} stands in it twice`);
}

function bytesOfBase64(json: Sourced, where: string, pointer: string): Uint8Array {
  const beside = fieldBeside(json.value as object, BASE64);
  if (beside !== null) {
    return refuse(where, pointer, `${beside} beside $base64: bytes have no other field`);
  }
  const text = uniqueFields(json, where, pointer).get(BASE64)!.value;
  const bytes = typeof text === "string" ? fromBase64(text) : null;
  const at = pointer === "" ? BASE64 : `${pointer}.${BASE64}`;
  return bytes ?? refuse(where, at, "not a string of standard base64 with padding");
}

/** One JSON value to bytes; `where` and `pointer` name it in the error. */
function bytesOfJson(
  json: Sourced | undefined,
  where: string,
  pointer: string,
): Uint8Array | null {
  if (json === undefined || json.value === null) return null;
  const { value } = json;
  if (typeof value === "string") {
    checkText(value, where, pointer);
    return toUtf8(value);
  }
  const isBytes = typeof value === "object" && Object.hasOwn(value, BASE64);
  return isBytes ? bytesOfBase64(json, where, pointer) : toUtf8(sourceOf(json));
}

function headersOf(json: Sourced | undefined, where: string): RecordHeader[] {
  if (json === undefined) return [];
  const headers: RecordHeader[] = [];
  for (const pair of elementsOf(json)) {
    const [first, second] = elementsOf(pair);
    const name = first!.value as string;
    const pointer = `headers.${headers.length}`;
    checkText(name, where, `${pointer}.0`);
    headers.push({ name, value: bytesOfJson(second, where, `${pointer}.1`) });
  }
  return headers;
}

export const topicEnvelope = v.strictObject({
  ...envelope.entries,
  topic: v.pipe(v.string(), v.minLength(1)),
});

function check<T>(schema: v.GenericSchema<unknown, T>, value: object, where: string): T {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const errors = result.issues.map((issue) => ({
    pointer: (v.getDotPath(issue) ?? "").slice(0, 100),
    detail: issue.message.slice(0, 200),
  }));
  throw badRequest(`Cannot read ${where}: ${errors[0]!.pointer}: ${errors[0]!.detail}`, {
    errors,
  });
}

/** An envelope to a record; `where` names it in the error. */
export function recordOfEnvelope(json: Sourced, where: string): RecordInput {
  return recordOf(json, where, check(envelope, objectIn(json, where), where));
}

/** One that names its topic, too. */
export function recordForTopic(
  json: Sourced,
  where: string,
): { readonly topic: string; readonly record: RecordInput } {
  const checked = check(topicEnvelope, objectIn(json, where), where);
  return { topic: checked.topic, record: recordOf(json, where, checked) };
}

function objectIn({ value }: Sourced, where: string): object {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw badRequest(
    `Cannot read ${where}: not an object {key, value, headers, timestamp, partition}; bare values need ?bare=1`,
  );
}

function recordOf(
  json: Sourced,
  where: string,
  { timestamp, partition }: Pick<v.InferOutput<typeof envelope>, "timestamp" | "partition">,
): RecordInput {
  const fields = uniqueFields(json, where);
  return {
    key: bytesOfJson(fields.get("key"), where, "key"),
    value: bytesOfJson(fields.get("value"), where, "value"),
    headers: headersOf(fields.get("headers"), where),
    timestampMs: timestamp,
    partition,
  };
}

/** A bare value to a record without key or headers. */
export function recordOfValue(json: Sourced, where: string): RecordInput {
  const value = bytesOfJson(json, where, "");
  return { key: null, value, headers: [], timestampMs: null, partition: null };
}
