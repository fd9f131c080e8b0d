/**
 * Records to JSON, in pieces, so that a large one is never a whole text in memory. How bytes show is the
 * reader's choice; without one, valid UTF-8 is a string and all else `{"$base64": "..."}`.
 */
import { toBase64 } from "../lib/base64.ts";
import { HTTP_CHUNK_BYTES, HTTP_JSON_VALUE_BYTES_MAX } from "../lib/limits.ts";
import { isTooDeep } from "./json_depth.ts";
import type { RecordOutput } from "./port.ts";

/**
 * `auto`: text where it is UTF-8, else marked base64. `text`: always text, with replacement characters.
 * `base64`: always base64, unmarked. `json`: values as the JSON that they are, else marked base64; the rest as auto.
 */
export const ENCODINGS = ["auto", "text", "base64", "json"] as const;
export type Encoding = (typeof ENCODINGS)[number];

export interface Shown {
  readonly encoding: Encoding;
  /** In formats of lines a JSON value has none: its line breaks, which only stand between tokens, become spaces. */
  readonly isInLine: boolean;
}

const AUTO: Shown = { encoding: "auto", isInLine: false };

const lossyUtf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Divides by three, so that pieces of base64 join without padding. */
const BASE64_PIECE_BYTES = 3 * 8192;
/** Braces, names, numbers and commas of one record, and of one header. */
const ENVELOPE_BYTES_MAX = 200;
const HEADER_BYTES_MAX = 8;
const ESCAPED_BYTES_MAX = 6;

/** Null when the bytes are no UTF-8. */
export function textOfBytes(bytes: Uint8Array): string | null {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return null;
  }
}

/** Decodes slice by slice; throws when the bytes are no UTF-8, unless lossy. */
export function* textPieces(bytes: Uint8Array, isLossy = false): Generator<string, void> {
  const decoder = new TextDecoder("utf-8", { fatal: !isLossy, ignoreBOM: true });
  for (let at = 0; at < bytes.length; at += HTTP_CHUNK_BYTES) {
    yield decoder.decode(bytes.subarray(at, at + HTTP_CHUNK_BYTES), { stream: true });
  }
  yield decoder.decode();
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    for (const _ of textPieces(bytes));
    return true;
  } catch {
    return false;
  }
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

export function* base64Pieces(bytes: Uint8Array): Generator<string, void> {
  for (let at = 0; at < bytes.length; at += BASE64_PIECE_BYTES) {
    yield toBase64(bytes.subarray(at, at + BASE64_PIECE_BYTES));
  }
}

function* largeBytes(bytes: Uint8Array, encoding: Encoding): Generator<string, void> {
  if (encoding === "base64") {
    yield '"';
    yield* base64Pieces(bytes);
    return yield '"';
  }
  if (encoding === "text" || isUtf8(bytes)) {
    yield '"';
    for (const piece of textPieces(bytes, encoding === "text")) yield escaped(piece);
    return yield '"';
  }
  yield '{"$base64":"';
  yield* base64Pieces(bytes);
  yield '"}';
}

function smallBytes(bytes: Uint8Array | null, encoding: Encoding): string {
  if (bytes === null) return "null";
  if (encoding === "base64") return `"${toBase64(bytes)}"`;
  if (encoding === "text") return JSON.stringify(lossyUtf8.decode(bytes));
  const text = textOfBytes(bytes);
  return text === null ? `{"$base64":"${toBase64(bytes)}"}` : JSON.stringify(text);
}

function* bytesJson(bytes: Uint8Array | null, encoding: Encoding): Generator<string, void> {
  if (bytes !== null && bytes.length > HTTP_CHUNK_BYTES) yield* largeBytes(bytes, encoding);
  else yield smallBytes(bytes, encoding);
}

/** The text of a value that is JSON, as it was stored. */
export function jsonTextOf(bytes: Uint8Array): string | null {
  if (bytes.length > HTTP_JSON_VALUE_BYTES_MAX || isTooDeep(bytes)) return null;
  const text = textOfBytes(bytes);
  try {
    if (text !== null) JSON.parse(text);
  } catch {
    return null;
  }
  return text;
}

export function* valueJson(value: Uint8Array | null, shown: Shown): Generator<string, void> {
  const { encoding, isInLine } = shown;
  if (encoding !== "json" || value === null) return yield* bytesJson(value, encoding);
  const text = jsonTextOf(value);
  if (text !== null) return yield isInLine ? text.replaceAll(/[\r\n]/g, " ") : text;
  yield '{"$base64":"';
  yield* base64Pieces(value);
  yield '"}';
}

/** What keys and headers are shown as: they are short texts, and JSON only by chance. */
function besides({ encoding }: Shown): Encoding {
  return encoding === "json" ? "auto" : encoding;
}

/** A pair of surrogates that is cut in two comes out escaped, and reads as the same text. */
function* nameJson(name: string): Generator<string, void> {
  yield '"';
  for (let at = 0; at < name.length; at += HTTP_CHUNK_BYTES) {
    yield escaped(name.slice(at, at + HTTP_CHUNK_BYTES));
  }
  yield '"';
}

function positionJson({ offset, timestampMs }: RecordOutput, partition: number): string {
  return `{"partition":${partition},"offset":${offset},"timestamp":${timestampMs},"key":`;
}

/** In one piece: most records are small, and there are many of them. */
function smallJson(record: RecordOutput, partition: number, shown: Shown): string {
  const { key, value, headers } = record;
  const other = besides(shown);
  const pairs = headers.map(({ name, value: bytes }) =>
    `["${escaped(name)}",${smallBytes(bytes, other)}]`
  );
  const valueText = shown.encoding === "json"
    ? [...valueJson(value, shown)].join("")
    : smallBytes(value, other);
  return `${positionJson(record, partition)}${smallBytes(key, other)},"value":${valueText},` +
    `"headers":[${pairs.join(",")}]}`;
}

export function* recordJson(
  record: RecordOutput,
  partition: number,
  shown: Shown = AUTO,
): Generator<string, void> {
  if (rawBytes(record) <= HTTP_CHUNK_BYTES) return yield smallJson(record, partition, shown);
  const { key, value, headers } = record;
  const other = besides(shown);
  yield positionJson(record, partition);
  yield* bytesJson(key, other);
  yield ',"value":';
  yield* valueJson(value, shown);
  yield ',"headers":[';
  for (const [i, header] of headers.entries()) {
    yield i === 0 ? "[" : ",[";
    yield* nameJson(header.name);
    yield ",";
    yield* bytesJson(header.value, other);
    yield "]";
  }
  yield "]}";
}

/** What is held of a record: its bytes as they are. */
export function rawBytes({ key, value, headers }: RecordOutput): number {
  let bytes = ENVELOPE_BYTES_MAX + (key?.length ?? 0) + (value?.length ?? 0);
  for (const { name, value: bytesOfHeader } of headers) {
    bytes += HEADER_BYTES_MAX + name.length + (bytesOfHeader?.length ?? 0);
  }
  return bytes;
}

/** Whichever is larger, as text or as base64; finding out which it is costs more. */
function shownBytes(bytes: Uint8Array | null, isLossy: boolean): number {
  if (bytes === null) return 4;
  let asText = bytes.length + 2;
  for (const byte of bytes) {
    if (byte < 0x20) asText += ESCAPED_BYTES_MAX - 1;
    else if (byte === 0x22 || byte === 0x5c) asText += 1;
    // A byte that is no UTF-8 becomes a replacement character of three.
    else if (isLossy && byte >= 0x80) asText += 2;
  }
  return Math.max(asText, Math.ceil(bytes.length / 3) * 4 + 14);
}

/** What the JSON of a record takes, never too little. */
export function renderedBytes(
  { key, value, headers }: RecordOutput,
  { encoding }: Shown = AUTO,
): number {
  const isLossy = encoding === "text";
  let bytes = ENVELOPE_BYTES_MAX + shownBytes(key, isLossy) + shownBytes(value, isLossy);
  for (const header of headers) {
    bytes += HEADER_BYTES_MAX + header.name.length * ESCAPED_BYTES_MAX +
      shownBytes(header.value, isLossy);
  }
  return bytes;
}

/** The same without a look at the bytes. */
export function renderedBytesMax(record: RecordOutput): number {
  return rawBytes(record) * ESCAPED_BYTES_MAX;
}
