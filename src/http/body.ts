/** Bodies of produce requests to records: JSON (object, array, `{records}`), NDJSON, or one raw record. */
import { toUtf8 } from "../lib/bytes.ts";
import { HTTP_JSON_BYTES_RATIO, HTTP_RECORDS_MAX } from "../lib/limits.ts";
import { fieldBeside, recordOfEnvelope, recordOfValue, uniqueFields } from "./json_record.ts";
import { bytesOfHeader } from "./header_text.ts";
import { jsonText, parseJson } from "./json_text.ts";
import { mediaType } from "./media_type.ts";
import { binaryEvent, isBinaryEvent, isJsonEvent, jsonEvents } from "./produce/cloud_events.ts";
import { elementsOf, type Sourced, sourced } from "./json_source.ts";
import type { RecordHeader, RecordInput } from "./port.ts";
import { badRequest, type ProblemError } from "./problem.ts";
import { parseCount } from "./query.ts";
import { tooLarge } from "./read_body.ts";

const HEADER_PREFIX = "kafka-header-";

function tooMany(): ProblemError {
  return tooLarge(`Cannot produce: more than ${HTTP_RECORDS_MAX} records`);
}

function elementsIn(json: Sourced): Sourced[] {
  if ((json.value as readonly unknown[]).length > HTTP_RECORDS_MAX) throw tooMany();
  return [...elementsOf(json)];
}

function recordsIn(json: Sourced, bare: boolean): readonly Sourced[] {
  const { value } = json;
  if (Array.isArray(value)) return elementsIn(json);
  if (bare || typeof value !== "object" || value === null || !Object.hasOwn(value, "records")) {
    return [json];
  }
  const unknown = fieldBeside(value, "records");
  if (unknown !== null) {
    throw badRequest(`Cannot read the body: ${unknown} beside records is not known`);
  }
  const records = uniqueFields(json, "the body").get("records")!;
  if (Array.isArray(records.value)) return elementsIn(records);
  throw badRequest("Cannot read the body: records is not an array");
}

/** JSON of one record; `where` names it in errors. */
export interface Element {
  readonly json: Sourced;
  readonly where: string;
}

function jsonElements(body: Uint8Array, bare: boolean): Element[] {
  const text = jsonText(body);
  const elements = recordsIn(sourced(text, parseJson(text, "the JSON body")), bare);
  return elements.map((json, i) => ({ json, where: `record ${i}` }));
}

/** One by one: a body of line feeds alone would be millions of lines. */
function* linesOf(text: string): Generator<string, void> {
  for (let at = 0; at <= text.length;) {
    const end = text.indexOf("\n", at);
    const stop = end < 0 ? text.length : end;
    yield text.slice(at, stop);
    at = stop + 1;
  }
}

function ndjsonElements(body: Uint8Array): Element[] {
  const elements: Element[] = [];
  let number = 0;
  for (const line of linesOf(jsonText(body))) {
    number += 1;
    if (line.trim() === "") continue;
    if (elements.length === HTTP_RECORDS_MAX) throw tooMany();
    elements.push(lineElement(line, `line ${number}`));
  }
  return elements;
}

export function lineElement(line: string, where: string): Element {
  return { json: sourced(line, parseJson(line, where)), where };
}

/** Without its envelope where it is bare. */
export function recordOfElement({ json, where }: Element, bare: boolean): RecordInput {
  return bare ? recordOfValue(json, where) : recordOfEnvelope(json, where);
}

/** The JSON of each record of a body; null when it is no JSON. Throws ProblemError. */
export function elementsOfBody(
  request: Request,
  body: Uint8Array,
  bare: boolean,
): readonly Element[] | null {
  const shape = shapeOf(request);
  if (shape === "json") return jsonElements(body, bare);
  return shape === "lines" ? ndjsonElements(body) : null;
}

function rawHeaders(headers: Headers): RecordHeader[] {
  const found: RecordHeader[] = [];
  headers.forEach((value, name) => {
    if (name.startsWith(HEADER_PREFIX) && name.length > HEADER_PREFIX.length) {
      found.push({ name: name.slice(HEADER_PREFIX.length), value: bytesOfHeader(value) });
    }
  });
  return found;
}

/** What a query says about the records of a body; a key and a partition are those of a raw one. */
export interface BodyQuery {
  readonly bare?: boolean | undefined;
  readonly key?: string | undefined;
  readonly partition?: number | undefined;
}

function rawRecord(
  request: Request,
  { key, partition }: BodyQuery,
  body: Uint8Array,
): RecordInput {
  const keyHeader = request.headers.get("kafka-key");
  const timestamp = request.headers.get("kafka-timestamp");
  return {
    key: key !== undefined ? toUtf8(key) : keyHeader !== null ? bytesOfHeader(keyHeader) : null,
    value: body,
    headers: rawHeaders(request.headers),
    timestampMs: timestamp === null ? null : parseCount(timestamp, "Kafka-Timestamp"),
    partition: partition ?? null,
  };
}

type Shape = "json" | "lines" | "event" | "raw";

function shapeOf(request: Request): Shape {
  const type = mediaType(request);
  if (isJsonEvent(type)) return "event";
  // Its data may be JSON, but is no envelope.
  if (isBinaryEvent(request)) return "raw";
  if (type === "application/json") return "json";
  return type === "application/x-ndjson" || type === "application/jsonl" ? "lines" : "raw";
}

/** What the records of a body take in memory, at most. */
export function producedBytes(request: Request, bodyBytes: number): number {
  return bodyBytes * (shapeOf(request) === "raw" ? 1 : HTTP_JSON_BYTES_RATIO);
}

/** The records of a produce request; at least one. Throws ProblemError. */
export function recordsOfBody(
  request: Request,
  query: BodyQuery,
  body: Uint8Array,
): readonly RecordInput[] {
  const { bare = false, partition = null } = query;
  const records = shapeOf(request) === "event"
    ? jsonEvents(request, body, partition)
    : elementsOfBody(request, body, bare)?.map((element) => recordOfElement(element, bare)) ??
      [
        isBinaryEvent(request)
          ? binaryEvent(request, body, partition)
          : rawRecord(request, query, body),
      ];
  if (records.length === 0) throw badRequest("Cannot produce: the body holds no record");
  return records;
}
