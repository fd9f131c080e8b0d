/** Request bodies to records: JSON (object, array, `{records}`), NDJSON, or one raw record. */
import { concatBytes, toUtf8 } from "../lib/bytes.ts";
import { HTTP_BODY_BYTES_MAX, HTTP_RECORDS_MAX } from "../lib/limits.ts";
import { recordOfEnvelope, recordOfValue } from "./json_record.ts";
import type { RecordHeader, RecordInput } from "./port.ts";
import { badRequest, ProblemError } from "./problem.ts";

const HEADER_PREFIX = "kafka-header-";
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

function tooLarge(detail: string): ProblemError {
  return new ProblemError({ status: 413, title: "Content too large", detail });
}

const endedEarly = (): never => {
  throw badRequest("Cannot read the body: it ended early");
};

/** At once: a host gives no more than what was declared, and its streams cost more than small bodies. */
async function readDeclared(request: Request): Promise<Uint8Array> {
  const body = new Uint8Array(await request.arrayBuffer().catch(endedEarly));
  if (body.length <= HTTP_BODY_BYTES_MAX) return body;
  throw tooLarge(`Cannot read the body: more than ${HTTP_BODY_BYTES_MAX} bytes`);
}

/** Reads the whole body, but never more than the limit. */
export async function readBody(request: Request): Promise<Uint8Array> {
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding !== "identity") {
    throw new ProblemError({
      status: 415,
      title: "Unsupported media type",
      detail: `Cannot read the body: content-encoding ${encoding} is not supported`,
    });
  }
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > HTTP_BODY_BYTES_MAX) {
    throw tooLarge(`Cannot read the body: ${declared} bytes, at most ${HTTP_BODY_BYTES_MAX}`);
  }
  if (declared > 0) return await readDeclared(request);
  if (request.body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = request.body.getReader();
  const readPart = () => reader.read().catch(endedEarly);
  for (let next = await readPart(); !next.done; next = await readPart()) {
    length += next.value.length;
    if (length > HTTP_BODY_BYTES_MAX) {
      await reader.cancel();
      throw tooLarge(`Cannot read the body: more than ${HTTP_BODY_BYTES_MAX} bytes`);
    }
    chunks.push(next.value);
  }
  return concatBytes(chunks);
}

export function textOf(body: Uint8Array, what: string): string {
  try {
    return strictUtf8.decode(body);
  } catch {
    throw badRequest(`Cannot read ${what}: not valid UTF-8`);
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

function elementsOf(json: unknown, bare: boolean): readonly unknown[] {
  if (Array.isArray(json)) return json;
  if (bare || typeof json !== "object" || json === null || !("records" in json)) return [json];
  const { records, ...rest } = json;
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) {
    throw badRequest(`Cannot read the body: ${unknown} beside records is not known`);
  }
  if (!Array.isArray(records)) throw badRequest("Cannot read the body: records is not an array");
  return records;
}

function jsonRecords(body: Uint8Array, bare: boolean): RecordInput[] {
  const json = parseJson(textOf(body, "the body"), "the JSON body");
  return elementsOf(json, bare).map((element, i) =>
    bare ? recordOfValue(element) : recordOfEnvelope(element, `record ${i}`)
  );
}

function ndjsonRecords(body: Uint8Array, bare: boolean): RecordInput[] {
  const records: RecordInput[] = [];
  for (const [i, line] of textOf(body, "the body").split("\n").entries()) {
    if (line.trim() === "") continue;
    const json = parseJson(line, `line ${i + 1}`);
    records.push(bare ? recordOfValue(json) : recordOfEnvelope(json, `line ${i + 1}`));
  }
  return records;
}

/** Digits only, so that `1e3`, ` 1` and `0x1` are refused. */
export function parseCount(text: string, name: string, max = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= max)) {
    throw badRequest(`Cannot use ${name}=${text}: not an integer from 0 to ${max}`);
  }
  return value;
}

function rawHeaders(headers: Headers): RecordHeader[] {
  const found: RecordHeader[] = [];
  headers.forEach((value, name) => {
    if (name.startsWith(HEADER_PREFIX)) {
      found.push({ name: name.slice(HEADER_PREFIX.length), value: toUtf8(value) });
    }
  });
  return found;
}

function rawRecord(request: Request, query: URLSearchParams, body: Uint8Array): RecordInput {
  const key = query.get("key") ?? request.headers.get("kafka-key");
  const partition = query.get("partition");
  const timestamp = request.headers.get("kafka-timestamp");
  return {
    key: key === null ? null : toUtf8(key),
    value: body,
    headers: rawHeaders(request.headers),
    timestampMs: timestamp === null ? null : parseCount(timestamp, "Kafka-Timestamp"),
    partition: partition === null ? null : parseCount(partition, "partition", 2 ** 31 - 1),
  };
}

/** The records of a produce request; at least one. Throws ProblemError. */
export async function recordsOfRequest(
  request: Request,
  query: URLSearchParams,
): Promise<readonly RecordInput[]> {
  const type = (request.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
  const bare = ["1", "true", ""].includes(query.get("bare") ?? "no");
  const body = await readBody(request);
  let records: readonly RecordInput[];
  if (type === "application/json") records = jsonRecords(body, bare);
  else if (type === "application/x-ndjson" || type === "application/jsonl") {
    records = ndjsonRecords(body, bare);
  } else records = [rawRecord(request, query, body)];
  if (records.length === 0) throw badRequest("Cannot produce: the body holds no record");
  if (records.length > HTTP_RECORDS_MAX) {
    throw tooLarge(`Cannot produce: ${records.length} records, at most ${HTTP_RECORDS_MAX}`);
  }
  return records;
}
