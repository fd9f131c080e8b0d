/** Bodies of produce requests to records: JSON (object, array, `{records}`), NDJSON, or one raw record. */
import { toUtf8 } from "../lib/bytes.ts";
import { HTTP_JSON_BYTES_RATIO, HTTP_JSON_DEPTH_MAX, HTTP_RECORDS_MAX } from "../lib/limits.ts";
import { fieldBeside, recordOfEnvelope, recordOfValue, uniqueFields } from "./json_record.ts";
import { elementsOf, type Sourced, sourced } from "./json_source.ts";
import type { RecordHeader, RecordInput } from "./port.ts";
import { badRequest, type ProblemError } from "./problem.ts";
import { parameter, parseCount, parseFlag } from "./query.ts";
import { tooLarge } from "./read_body.ts";

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
const HEADER_PREFIX = "kafka-header-";
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** Looked for in the bytes: a parser that is asked first has done the harm already. */
function isTooDeep(json: Uint8Array): boolean {
  let depth = 0;
  let isInText = false;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i];
    if (byte === QUOTE) isInText = !isInText;
    else if (isInText) i += byte === BACKSLASH ? 1 : 0;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth += 1;
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1;
    if (depth > HTTP_JSON_DEPTH_MAX) return true;
  }
  return false;
}

/** The text of JSON, one or a line each, that is sane enough to be parsed. */
export function jsonText(body: Uint8Array): string {
  if (isTooDeep(body)) {
    throw badRequest(`Cannot read the body: nested more than ${HTTP_JSON_DEPTH_MAX} deep`);
  }
  try {
    return strictUtf8.decode(body);
  } catch {
    throw badRequest("Cannot read the body: not valid UTF-8");
  }
}

export function parseJson(text: string, what: string): unknown {
  if (text.trim() === "") throw badRequest(`Cannot read ${what}: it is empty`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`Cannot read ${what}: ${error instanceof Error ? error.message : "not JSON"}`);
  }
}

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

function jsonRecords(body: Uint8Array, bare: boolean): RecordInput[] {
  const text = jsonText(body);
  const elements = recordsIn(sourced(text, parseJson(text, "the JSON body")), bare);
  return elements.map((element, i) =>
    bare ? recordOfValue(element, `record ${i}`) : recordOfEnvelope(element, `record ${i}`)
  );
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

function ndjsonRecords(body: Uint8Array, bare: boolean): RecordInput[] {
  const records: RecordInput[] = [];
  let number = 0;
  for (const line of linesOf(jsonText(body))) {
    number += 1;
    if (line.trim() === "") continue;
    if (records.length === HTTP_RECORDS_MAX) throw tooMany();
    const where = `line ${number}`;
    const json = sourced(line, parseJson(line, where));
    records.push(bare ? recordOfValue(json, where) : recordOfEnvelope(json, where));
  }
  return records;
}

/**
 * The bytes that a client sent in a header. Hosts give them as Latin-1: what is UTF-8 on the wire comes
 * apart, and is put together here; what is not was Latin-1 for the client too.
 */
function bytesOfHeader(text: string): Uint8Array {
  const isWire = /[\x80-\xff]/.test(text) && !/[\u0100-\uffff]/.test(text);
  if (!isWire) return toUtf8(text);
  const bytes = Uint8Array.from(text, (char) => char.charCodeAt(0));
  try {
    strictUtf8.decode(bytes);
    return bytes;
  } catch {
    return toUtf8(text);
  }
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

function rawRecord(request: Request, query: URLSearchParams, body: Uint8Array): RecordInput {
  const key = parameter(query, "key");
  const keyHeader = request.headers.get("kafka-key");
  const partition = parameter(query, "partition");
  const timestamp = request.headers.get("kafka-timestamp");
  return {
    key: key !== null ? toUtf8(key) : keyHeader !== null ? bytesOfHeader(keyHeader) : null,
    value: body,
    headers: rawHeaders(request.headers),
    timestampMs: timestamp === null ? null : parseCount(timestamp, "Kafka-Timestamp"),
    partition: partition === null ? null : parseCount(partition, "partition", 2 ** 31 - 1),
  };
}

type Shape = "json" | "lines" | "raw";

function shapeOf(request: Request): Shape {
  const type = (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
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
  query: URLSearchParams,
  body: Uint8Array,
): readonly RecordInput[] {
  const shape = shapeOf(request);
  const bare = parseFlag(query, "bare");
  const records = shape === "json"
    ? jsonRecords(body, bare)
    : shape === "lines"
    ? ndjsonRecords(body, bare)
    : [rawRecord(request, query, body)];
  if (records.length === 0) throw badRequest("Cannot produce: the body holds no record");
  return records;
}
