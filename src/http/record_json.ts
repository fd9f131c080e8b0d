/**
 * Records to JSON, in pieces, so that a large one is never a whole text in memory. Bytes that are valid
 * UTF-8 show as a string, others as `{"$base64": "..."}`.
 */
import { HTTP_CHUNK_BYTES } from "../lib/limits.ts";
import type { RecordOutput } from "./port.ts";

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Divides by three, so that pieces of base64 join without padding. */
const BASE64_PIECE_BYTES = 3 * 8192;
const CHARS_AT_ONCE = 8192;
/** Braces, names, numbers and commas of one record, and of one header. */
const ENVELOPE_BYTES_MAX = 200;
const HEADER_BYTES_MAX = 8;
const ESCAPED_BYTES_MAX = 6;

export function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHARS_AT_ONCE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHARS_AT_ONCE));
  }
  return btoa(binary);
}

/** Null when the bytes are no UTF-8. */
export function textOfBytes(bytes: Uint8Array): string | null {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return null;
  }
}

/** Decodes slice by slice; throws when the bytes are no UTF-8. */
function* textPieces(bytes: Uint8Array): Generator<string, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
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

function* largeBytes(bytes: Uint8Array): Generator<string, void> {
  if (isUtf8(bytes)) {
    yield '"';
    for (const piece of textPieces(bytes)) yield escaped(piece);
    return yield '"';
  }
  yield '{"$base64":"';
  for (let at = 0; at < bytes.length; at += BASE64_PIECE_BYTES) {
    yield toBase64(bytes.subarray(at, at + BASE64_PIECE_BYTES));
  }
  yield '"}';
}

function smallBytes(bytes: Uint8Array | null): string {
  if (bytes === null) return "null";
  const text = textOfBytes(bytes);
  return text === null ? `{"$base64":"${toBase64(bytes)}"}` : JSON.stringify(text);
}

function* bytesJson(bytes: Uint8Array | null): Generator<string, void> {
  if (bytes !== null && bytes.length > HTTP_CHUNK_BYTES) yield* largeBytes(bytes);
  else yield smallBytes(bytes);
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
function smallJson(record: RecordOutput, partition: number): string {
  const { key, value, headers } = record;
  const shown = headers.map((header) => `["${escaped(header.name)}",${smallBytes(header.value)}]`);
  return `${positionJson(record, partition)}${smallBytes(key)},"value":${smallBytes(value)},` +
    `"headers":[${shown.join(",")}]}`;
}

export function* recordJson(record: RecordOutput, partition: number): Generator<string, void> {
  if (rawBytes(record) <= HTTP_CHUNK_BYTES) return yield smallJson(record, partition);
  const { key, value, headers } = record;
  yield positionJson(record, partition);
  yield* bytesJson(key);
  yield ',"value":';
  yield* bytesJson(value);
  yield ',"headers":[';
  for (const [i, header] of headers.entries()) {
    yield i === 0 ? "[" : ",[";
    yield* nameJson(header.name);
    yield ",";
    yield* bytesJson(header.value);
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
function shownBytes(bytes: Uint8Array | null): number {
  if (bytes === null) return 4;
  let asText = bytes.length + 2;
  for (const byte of bytes) {
    if (byte < 0x20) asText += ESCAPED_BYTES_MAX - 1;
    else if (byte === 0x22 || byte === 0x5c) asText += 1;
  }
  return Math.max(asText, Math.ceil(bytes.length / 3) * 4 + 14);
}

/** What the JSON of a record takes, never too little. */
export function renderedBytes({ key, value, headers }: RecordOutput): number {
  let bytes = ENVELOPE_BYTES_MAX + shownBytes(key) + shownBytes(value);
  for (const header of headers) {
    bytes += HEADER_BYTES_MAX + header.name.length * ESCAPED_BYTES_MAX + shownBytes(header.value);
  }
  return bytes;
}

/** The same without a look at the bytes. */
export function renderedBytesMax(record: RecordOutput): number {
  return rawBytes(record) * ESCAPED_BYTES_MAX;
}
