/**
 * CloudEvents 1.0 to records, by the bindings for HTTP and for Kafka. Binary: attributes are headers, `ce-x` here
 * and `ce_x` there, and the body is the data. Structured: the JSON event as it was sent is the value, also each
 * one of a batch. The extension `partitionkey` is the record's key and stays in the event.
 */
import { toUtf8, utf8 } from "../../lib/bytes.ts";
import { HTTP_RECORDS_MAX } from "../../lib/limits.ts";
import { bytesOfHeader } from "../header_text.ts";
import { jsonText, parseJson } from "../json_text.ts";
import { uniqueFields } from "../json_record.ts";
import { elementsOf, type Sourced, sourced, sourceOf } from "../json_source.ts";
import { mediaType } from "../media_type.ts";
import type { RecordHeader, RecordInput } from "../port.ts";
import { badRequest } from "../problem.ts";
import { tooLarge } from "../read_body.ts";

const PREFIX = "ce-";
const STRUCTURED = "application/cloudevents+json";
const BATCH = "application/cloudevents-batch+json";
const NAME = /^[a-z0-9]+$/;
const REQUIRED = ["id", "source", "type"] as const;
/** Of distributed tracing: as they are. */
const TRACING = ["traceparent", "tracestate"] as const;

export function isJsonEvent(type: string): boolean {
  return type === STRUCTURED || type === BATCH;
}

export function isBinaryEvent({ headers }: Request): boolean {
  return headers.has(`${PREFIX}specversion`);
}

export function isEvent(request: Request): boolean {
  return isJsonEvent(mediaType(request)) || isBinaryEvent(request);
}

function refuse(where: string, detail: string): never {
  throw badRequest(`Cannot read ${where}: ${detail}`);
}

/** `field` gives an attribute as it should be: a string. */
function checkAttributes(field: (name: string) => unknown, where: string): void {
  if (field("specversion") !== "1.0") refuse(where, "specversion is not 1.0");
  for (const name of REQUIRED) {
    const value = field(name);
    if (typeof value !== "string" || value === "") refuse(where, `${name} is not there`);
  }
}

/** Quotes and percent-encoding are of HTTP, not of the attribute. */
function attributeText(name: string, text: string): string {
  const unquoted = /^".*"$/.test(text) ? text.slice(1, -1).replace(/\\(.)/g, "$1") : text;
  const plain = utf8(bytesOfHeader(unquoted));
  try {
    return decodeURIComponent(plain.replace(/%(?![0-9A-Fa-f]{2})/g, "%25"));
  } catch {
    return refuse("the event", `${PREFIX}${name} is no percent-encoded UTF-8`);
  }
}

function attributesOf(headers: Headers): Map<string, string> {
  const attributes = new Map<string, string>();
  headers.forEach((value, header) => {
    if (!header.startsWith(PREFIX)) return;
    const name = header.slice(PREFIX.length);
    if (!NAME.test(name)) refuse("the event", `${header.slice(0, 100)} names no attribute`);
    if (name === "datacontenttype") refuse("the event", "its content type is Content-Type");
    attributes.set(name, attributeText(name, value));
  });
  return attributes;
}

/** Without data it is a tombstone. */
export function binaryEvent(
  request: Request,
  body: Uint8Array,
  partition: number | null,
): RecordInput {
  const attributes = attributesOf(request.headers);
  checkAttributes((name) => attributes.get(name), "the event");
  const headers: RecordHeader[] = [];
  for (const [name, text] of attributes) headers.push({ name: `ce_${name}`, value: toUtf8(text) });
  for (const name of ["content-type", ...TRACING]) {
    const text = request.headers.get(name);
    if (text !== null) headers.push({ name, value: bytesOfHeader(text) });
  }
  const key = attributes.get("partitionkey");
  return {
    key: key === undefined ? null : toUtf8(key),
    value: body.length === 0 ? null : body,
    headers,
    timestampMs: null,
    partition,
  };
}

function jsonEvent(json: Sourced, where: string, partition: number | null): RecordInput {
  const { value } = json;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    refuse(where, "not a JSON object");
  }
  const fields = uniqueFields(json, where);
  checkAttributes((name) => fields.get(name)?.value, where);
  const key = fields.get("partitionkey")?.value ?? null;
  if (key !== null && (typeof key !== "string" || !key.isWellFormed())) {
    refuse(where, "partitionkey is not a text");
  }
  return {
    key: key === null ? null : toUtf8(key),
    value: toUtf8(sourceOf(json)),
    headers: [{ name: "content-type", value: toUtf8(STRUCTURED) }],
    timestampMs: null,
    partition,
  };
}

/** Structured, one or a batch of them. */
export function jsonEvents(
  request: Request,
  body: Uint8Array,
  partition: number | null,
): readonly RecordInput[] {
  const text = jsonText(body);
  const json = sourced(text, parseJson(text, "the event"));
  if (mediaType(request) === STRUCTURED) return [jsonEvent(json, "the event", partition)];
  if (!Array.isArray(json.value)) return refuse("the events", "not an array");
  if (json.value.length > HTTP_RECORDS_MAX) {
    throw tooLarge(`Cannot produce: more than ${HTTP_RECORDS_MAX} records`);
  }
  return [...elementsOf(json)].map((event, i) => jsonEvent(event, `event ${i}`, partition));
}
