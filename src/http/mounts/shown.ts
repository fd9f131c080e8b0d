/** Bytes of records in the JSON of the dialects, and back: base64, text, or JSON that stands as it is. */
import { toUtf8 } from "../../lib/bytes.ts";
import { fromBase64 } from "../json_record.ts";
import { type Sourced, sourceOf } from "../json_source.ts";
import { badRequest } from "../problem.ts";
import { toBase64 } from "../../lib/base64.ts";
import { jsonTextOf, textOfBytes } from "../record_json.ts";
import type { Format } from "./instances/record.ts";

const lossyUtf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** Text as it is for a client that knows no other: what is no UTF-8 has replacement characters. */
export function lossyText(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : lossyUtf8.decode(bytes);
}

/** The JSON of a key or value in a format; null where the bytes cannot be shown in it. */
export function jsonOf(bytes: Uint8Array | null, format: Format): string | null {
  if (bytes === null) return "null";
  if (format === "binary") return `"${toBase64(bytes)}"`;
  if (format === "json") return jsonTextOf(bytes);
  const text = textOfBytes(bytes);
  return text === null ? null : JSON.stringify(text);
}

export function canShow(bytes: Uint8Array | null, format: Format): boolean {
  return format === "binary" || jsonOf(bytes, format) !== null;
}

function refuse(where: string, detail: string): never {
  throw badRequest(`Cannot read ${where}: ${detail}`);
}

export function base64In(json: Sourced, where: string): Uint8Array {
  const bytes = typeof json.value === "string" ? fromBase64(json.value) : null;
  return bytes ?? refuse(where, "not a string of standard base64 with padding");
}

export function textIn(json: Sourced, where: string): Uint8Array {
  const { value } = json;
  if (typeof value !== "string") return refuse(where, "not a string");
  if (!value.isWellFormed()) return refuse(where, "half of a surrogate pair is no text");
  return toUtf8(value);
}

/** A key or value that was sent in a format. Absent and null are none. */
export function bytesIn(
  json: Sourced | undefined,
  format: Format,
  where: string,
): Uint8Array | null {
  if (json === undefined || json.value === null) return null;
  if (format === "binary") return base64In(json, where);
  if (format === "text") return textIn(json, where);
  return toUtf8(sourceOf(json));
}
