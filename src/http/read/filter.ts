/** Which records a reader wants: by key, by header. Looked at while a batch is decoded, before anything is copied. */
import { equalBytes, toUtf8 } from "../../lib/bytes.ts";
import { HTTP_FILTER_HEADERS_MAX, HTTP_FILTER_KEYS_MAX } from "../../lib/limits.ts";
import { partitionOfKey } from "../../protocol/partitioner.ts";
import type { RecordOutput } from "../port.ts";
import { badRequest } from "../problem.ts";
import type { TopicFields } from "./parameters.ts";

export interface Filter {
  /** Null: all. */
  readonly matches: ((record: RecordOutput) => boolean) | null;
  /** The partitions that hold such keys, if the reader knows that they were written by Kafka's default. */
  readonly partitionsOf: ((count: number) => readonly number[]) | null;
}

type Match = (record: RecordOutput) => boolean;

const MARKER = "base64:";

/** As keys and headers stand in the headers of a raw record. */
function bytesOf(text: string, name: string): Uint8Array {
  if (!text.startsWith(MARKER)) return toUtf8(text);
  try {
    return Uint8Array.from(atob(text.slice(MARKER.length)), (char) => char.charCodeAt(0));
  } catch {
    throw badRequest(`Cannot use ${name}: what follows base64: is no base64`);
  }
}

function few(texts: readonly string[], name: string, max: number): readonly string[] {
  if (texts.length <= max) return texts;
  throw badRequest(`Cannot use ${name}: given ${texts.length} times, at most ${max} are allowed`);
}

/** Bytes as a key of a set: one character each. */
function setKey(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return text;
}

/** A key of another length is none of them: most are passed over without a look at their bytes. */
function keyMatch(keys: readonly Uint8Array[]): Match {
  const lengths = new Set(keys.map(({ length }) => length));
  const wanted = new Set(keys.map(setKey));
  return ({ key }) => key !== null && lengths.has(key.length) && wanted.has(setKey(key));
}

function headerMatch(text: string): Match {
  const at = text.indexOf(":");
  if (at <= 0) throw badRequest("Cannot use header: it is not name:value");
  const name = text.slice(0, at);
  const value = bytesOf(text.slice(at + 1), "header");
  return ({ headers }) =>
    headers.some((header) =>
      header.name === name && header.value !== null && equalBytes(header.value, value)
    );
}

/** One of the keys, and all of the headers. */
export function filterOf(query: Pick<TopicFields, "keys" | "header" | "partitioned">): Filter {
  const keys = few(query.keys, "keys", HTTP_FILTER_KEYS_MAX).map((text) => bytesOf(text, "keys"));
  const headers = few(query.header, "header", HTTP_FILTER_HEADERS_MAX).map(headerMatch);
  const isByKey = query.partitioned === "key";
  if (isByKey && keys.length === 0) throw badRequest("Cannot use partitioned=key without keys");
  const all = [...headers, ...(keys.length === 0 ? [] : [keyMatch(keys)])];
  return {
    matches: all.length === 0 ? null : (record) => all.every((match) => match(record)),
    partitionsOf: isByKey
      ? (count) => [...new Set(keys.map((key) => partitionOfKey(key, count)))]
      : null,
  };
}
