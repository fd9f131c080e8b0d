/**
 * What a stream holds by its content type: messages of JSON, or bytes that follow each other. A record is a message,
 * or the body of one append; records without a value (a closing, a deletion by Kafka's clients) are passed over.
 */
import {
  HTTP_CHUNK_BYTES,
  HTTP_JSON_VALUE_BYTES_MAX,
  HTTP_RECORDS_MAX,
} from "../../../lib/limits.ts";
import { toUtf8 } from "../../../lib/bytes.ts";
import { elementsOf, sourced, sourceOf } from "../../json_source.ts";
import { jsonText, parseJson } from "../../json_text.ts";
import type { RecordOutput } from "../../port.ts";
import { badRequest } from "../../problem.ts";
import { tooLarge } from "../../read_body.ts";
import { valueJson } from "../../record_json.ts";

/** As `text/plain`, in lower case and without parameters. */
export function mediaTypeOf(contentType: string): string {
  return contentType.split(";")[0]!.trim().toLowerCase();
}

export type ContentKind = "json" | "text" | "binary";

export function kindOf(contentType: string): ContentKind {
  const type = mediaTypeOf(contentType);
  if (type === "application/json") return "json";
  return type.startsWith("text/") ? "text" : "binary";
}

export const SHOWN = { encoding: "json", isInLine: true } as const;

function jsonValues(body: Uint8Array): readonly Uint8Array[] {
  const text = jsonText(body);
  const json = sourced(text, parseJson(text, "the JSON body"));
  const { value } = json;
  if (Array.isArray(value) && value.length > HTTP_RECORDS_MAX) {
    throw tooLarge(`Cannot append: more than ${HTTP_RECORDS_MAX} messages`);
  }
  const messages = Array.isArray(value) ? elementsOf(json) : [json];
  return Array.from(messages, (message) => {
    const bytes = toUtf8(sourceOf(message));
    if (bytes.length <= HTTP_JSON_VALUE_BYTES_MAX) return bytes;
    throw tooLarge(`Cannot append: a message of more than ${HTTP_JSON_VALUE_BYTES_MAX} bytes`);
  });
}

/** The messages of a body: an array of JSON stands for its elements, and those alone are not taken apart. */
export function valuesOf(body: Uint8Array, kind: ContentKind): readonly Uint8Array[] {
  if (body.length === 0) return [];
  return kind === "json" ? jsonValues(body) : [body];
}

export function expectValues(values: readonly Uint8Array[]): void {
  if (values.length === 0) throw badRequest("Cannot append: the body holds no message");
}

/** Copies: the host may still look at a chunk when the log's memory is used again. */
function* joinedBytes(records: readonly RecordOutput[]): Generator<Uint8Array, void> {
  let chunk = new Uint8Array(HTTP_CHUNK_BYTES);
  let length = 0;
  for (const { value } of records) {
    for (let at = 0; value !== null && at < value.length;) {
      const part = value.subarray(at, at + chunk.length - length);
      chunk.set(part, length);
      length += part.length;
      at += part.length;
      if (length < chunk.length) continue;
      yield chunk;
      chunk = new Uint8Array(HTTP_CHUNK_BYTES);
      length = 0;
    }
  }
  if (length > 0) yield chunk.subarray(0, length);
}

function* joinedJson(records: readonly RecordOutput[]): Generator<Uint8Array, void> {
  let text = "[";
  let isFirst = true;
  for (const { value } of records) {
    if (value === null) continue;
    if (!isFirst) text += ",";
    isFirst = false;
    for (const piece of valueJson(value, SHOWN)) {
      text += piece;
      if (text.length < HTTP_CHUNK_BYTES) continue;
      yield toUtf8(text);
      text = "";
    }
  }
  yield toUtf8(`${text}]`);
}

/** The body of a page. */
export function chunksOfContent(
  records: readonly RecordOutput[],
  kind: ContentKind,
): Generator<Uint8Array, void> {
  return kind === "json" ? joinedJson(records) : joinedBytes(records);
}

export function hasContent(records: readonly RecordOutput[]): boolean {
  return records.some(({ value }) => value !== null);
}
