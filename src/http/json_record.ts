/**
 * JSON to records. A string is UTF-8, `{"$base64": "..."}` is bytes, null is no value, any other JSON is
 * its own text. Nothing is guessed: what looks like bytes and is not is refused.
 */
import * as v from "valibot";
import { toUtf8 } from "../lib/bytes.ts";
import type { RecordHeader, RecordInput } from "./port.ts";
import { badRequest } from "./problem.ts";

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const envelope = v.strictObject({
  key: v.optional(v.unknown(), null),
  value: v.unknown(),
  headers: v.optional(v.array(v.tuple([v.pipe(v.string(), v.minLength(1)), v.unknown()])), []),
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

/** One JSON value to bytes; `where` and `pointer` name it in the error. */
export function bytesOfJson(value: unknown, where: string, pointer: string): Uint8Array | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return toUtf8(value);
  if (typeof value !== "object" || !Object.hasOwn(value, BASE64)) {
    return toUtf8(JSON.stringify(value));
  }
  const { [BASE64]: text, ...rest } = value as Record<string, unknown>;
  const beside = Object.keys(rest)[0];
  if (beside !== undefined) {
    return refuse(
      where,
      pointer,
      `${beside.slice(0, 100)} beside $base64: bytes have no other field`,
    );
  }
  const bytes = typeof text === "string" ? fromBase64(text) : null;
  const at = pointer === "" ? BASE64 : `${pointer}.${BASE64}`;
  return bytes ?? refuse(where, at, "not a string of standard base64 with padding");
}

/** An envelope to a record; `where` names it in the error. */
export function recordOfEnvelope(json: unknown, where: string): RecordInput {
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw badRequest(
      `Cannot read ${where}: not an object {key, value, headers, timestamp, partition}; bare values need ?bare=1`,
    );
  }
  const result = v.safeParse(envelope, json);
  if (!result.success) {
    const errors = result.issues.map((issue) => ({
      pointer: (v.getDotPath(issue) ?? "").slice(0, 100),
      detail: issue.message.slice(0, 200),
    }));
    throw badRequest(`Cannot read ${where}: ${errors[0]!.pointer}: ${errors[0]!.detail}`, {
      errors,
    });
  }
  const { key, value, headers, timestamp, partition } = result.output;
  return {
    key: bytesOfJson(key, where, "key"),
    value: bytesOfJson(value, where, "value"),
    headers: headers.map(([name, header], i): RecordHeader => ({
      name,
      value: bytesOfJson(header, where, `headers.${i}.1`),
    })),
    timestampMs: timestamp,
    partition,
  };
}

/** A bare value to a record without key or headers. */
export function recordOfValue(json: unknown, where: string): RecordInput {
  const value = bytesOfJson(json, where, "");
  return { key: null, value, headers: [], timestampMs: null, partition: null };
}
