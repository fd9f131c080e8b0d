/** Records as `consume` prints them. Pure. */
import type { BatchRecord } from "../../protocol/record.ts";
import { toBase64 } from "../../lib/base64.ts";
import { toUtf8 } from "../../lib/bytes.ts";

export const FORMATS = ["value", "key-value", "json"] as const;
export type Format = typeof FORMATS[number];

export interface FormatOptions {
  readonly format: Format;
  readonly topic: string;
  /** Between key and value. */
  readonly separator: string;
}

/** Appends the bytes of a record to `out`. */
export type RecordFormat = (
  partition: number,
  record: BatchRecord,
  out: (bytes: Uint8Array) => void,
) => void;

const NEWLINE = toUtf8("\n");
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** As over HTTP: UTF-8 is a string, other bytes are `{"$base64": ...}`, null is null. */
export function jsonOf(bytes: Uint8Array | null): unknown {
  if (bytes === null) return null;
  try {
    return strict.decode(bytes);
  } catch {
    return { "$base64": toBase64(bytes) };
  }
}

function jsonFormat(topic: string): RecordFormat {
  return (partition, { offset, timestamp, key, value, headers }, out) => {
    const row = {
      topic,
      partition,
      offset,
      timestamp,
      key: jsonOf(key),
      value: jsonOf(value),
      headers: headers.map((header) => [header.key, jsonOf(header.value)]),
    };
    out(toUtf8(`${JSON.stringify(row)}\n`));
  };
}

/** A key or value of null prints as nothing. */
export function recordFormat({ format, topic, separator }: FormatOptions): RecordFormat {
  if (format === "json") return jsonFormat(topic);
  const between = toUtf8(separator);
  return (_, { key, value }, out) => {
    if (format === "key-value") {
      if (key !== null) out(key);
      out(between);
    }
    if (value !== null) out(value);
    out(NEWLINE);
  };
}
