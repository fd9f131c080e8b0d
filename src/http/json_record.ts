/**
 * Records as JSON, both ways. A string is UTF-8, `{"$base64": "..."}` is bytes, null is no value, any
 * other JSON is its own text. Read back, bytes that are valid UTF-8 show as a string.
 */
import * as v from "valibot";
import { toUtf8 } from "../lib/bytes.ts";
import type { RecordHeader, RecordInput, RecordOutput } from "./port.ts";
import { badRequest } from "./problem.ts";

const base64 = v.strictObject({ $base64: v.pipe(v.string(), v.base64()) });
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

const envelope = v.strictObject({
  key: v.optional(v.unknown(), null),
  value: v.unknown(),
  headers: v.optional(v.array(v.tuple([v.pipe(v.string(), v.minLength(1)), v.unknown()])), []),
  timestamp: v.optional(v.nullable(count), null),
  partition: v.optional(v.nullable(v.pipe(count, v.maxValue(2 ** 31 - 1))), null),
});

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

const CHUNK = 8192;

export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  }
  return btoa(binary);
}

/** One JSON value to bytes. */
export function bytesOfJson(value: unknown): Uint8Array | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return toUtf8(value);
  const encoded = v.safeParse(base64, value);
  return encoded.success ? fromBase64(encoded.output.$base64) : toUtf8(JSON.stringify(value));
}

/** Bytes to one JSON value. */
export function jsonOfBytes(
  bytes: Uint8Array | null,
): string | { readonly $base64: string } | null {
  if (bytes === null) return null;
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return { $base64: toBase64(bytes) };
  }
}

function header([name, value]: readonly [string, unknown]): RecordHeader {
  return { name, value: bytesOfJson(value) };
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
      pointer: v.getDotPath(issue) ?? "",
      detail: issue.message,
    }));
    throw badRequest(`Cannot read ${where}: ${errors[0]!.pointer}: ${errors[0]!.detail}`, {
      errors,
    });
  }
  const { key, value, headers, timestamp, partition } = result.output;
  return {
    key: bytesOfJson(key),
    value: bytesOfJson(value),
    headers: headers.map(header),
    timestampMs: timestamp,
    partition,
  };
}

/** A bare value to a record without key or headers. */
export function recordOfValue(json: unknown): RecordInput {
  return { key: null, value: bytesOfJson(json), headers: [], timestampMs: null, partition: null };
}

export function envelopeOfRecord(record: RecordOutput, partition: number): Record<string, unknown> {
  return {
    partition,
    offset: record.offset,
    timestamp: record.timestampMs,
    key: jsonOfBytes(record.key),
    value: jsonOfBytes(record.value),
    headers: record.headers.map(({ name, value }) => [name, jsonOfBytes(value)]),
  };
}
