/** GET records: one partition from an offset (JSON or NDJSON, long poll), or one record as it is. */
import { HTTP_READ_BYTES_MAX, HTTP_READ_RECORDS_MAX, HTTP_WAIT_MS_MAX } from "../lib/limits.ts";
import { parseCount } from "./body.ts";
import { envelopeOfRecord, jsonOfBytes, toBase64 } from "./json_record.ts";
import type { Gateway, ReadAnswer, ReadQuery, RecordOutput } from "./port.ts";
import { badRequest, ProblemError, problemOf, problemResponse } from "./problem.ts";

const LIMIT_DEFAULT = 500;
const BYTES_DEFAULT = 1_048_576;

type Found = Extract<ReadAnswer, { ok: true }>;

function numberOf(
  query: URLSearchParams,
  name: string,
  fallback: number,
  min: number,
  max: number,
): number {
  const text = query.get(name);
  if (text === null) return fallback;
  const value = parseCount(text, name, max);
  if (value < min) throw badRequest(`Cannot use ${name}=${text}: at least ${min}`);
  return value;
}

function offsetOf(query: URLSearchParams): ReadQuery["offset"] {
  const text = query.get("offset") ?? "earliest";
  return text === "earliest" || text === "latest" ? text : parseCount(text, "offset");
}

function queryOf(request: Request): ReadQuery {
  const query = new URL(request.url).searchParams;
  return {
    offset: offsetOf(query),
    recordsMax: numberOf(query, "limit", LIMIT_DEFAULT, 1, HTTP_READ_RECORDS_MAX),
    bytesMax: numberOf(query, "maxBytes", BYTES_DEFAULT, 1, HTTP_READ_BYTES_MAX),
    waitMs: numberOf(query, "wait", 0, 0, HTTP_WAIT_MS_MAX),
    signal: request.signal,
  };
}

function readProblem(answer: Exclude<ReadAnswer, Found>): Response {
  const range = answer.error === "OFFSET_OUT_OF_RANGE" && answer.logStart !== undefined
    ? { earliest: answer.logStart, latest: answer.highWatermark }
    : {};
  const next = answer.next === undefined ? {} : { next: answer.next };
  return problemResponse(problemOf(answer, { ...range, ...next }));
}

function positionHeaders(answer: Found): Record<string, string> {
  return {
    "kafka-next-offset": String(answer.next),
    "kafka-high-watermark": String(answer.highWatermark),
    "kafka-log-start": String(answer.logStart),
    "cache-control": "no-store",
  };
}

function wantsLines(request: Request): boolean {
  const accept = request.headers.get("accept") ?? "";
  return /application\/(x-ndjson|jsonl)/i.test(accept);
}

function answerRead(answer: Found, partition: number, lines: boolean): Response {
  const records = answer.records.map((record) => envelopeOfRecord(record, partition));
  const headers = positionHeaders(answer);
  if (lines) {
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join("");
    return new Response(text, { headers: { ...headers, "content-type": "application/x-ndjson" } });
  }
  const { next, highWatermark, logStart } = answer;
  return Response.json({ records, next, highWatermark, logStart }, { headers });
}

export async function consume(
  gateway: Gateway,
  request: Request,
  topic: string,
  partition: number,
): Promise<Response> {
  const answer = await gateway.read(topic, partition, queryOf(request));
  return answer.ok ? answerRead(answer, partition, wantsLines(request)) : readProblem(answer);
}

/** Visible ASCII goes as it is; anything else as base64 behind a marker, since HTTP headers cannot hold it. */
function headerText(value: Uint8Array | null): string {
  const text = jsonOfBytes(value);
  if (text === null) return "";
  return typeof text === "string" && /^[\x20-\x7e]*$/.test(text)
    ? text
    : `base64:${toBase64(value!)}`;
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

function rawResponse(record: RecordOutput, partition: number): Response {
  const headers = new Headers({
    "content-type": "application/octet-stream",
    "kafka-partition": String(partition),
    "kafka-offset": String(record.offset),
    "kafka-timestamp": String(record.timestampMs),
    "x-content-type-options": "nosniff",
  });
  if (record.key !== null) headers.set("kafka-key", headerText(record.key));
  for (const { name, value } of record.headers) {
    if (TOKEN.test(name)) headers.append(`kafka-header-${name}`, headerText(value));
  }
  if (record.value !== null) {
    return new Response(record.value as Uint8Array<ArrayBuffer>, { headers });
  }
  headers.delete("content-type");
  return new Response(null, { status: 204, headers });
}

/** One record: its value as the body, 204 for a tombstone, 404 when compaction has removed it. */
export async function consumeOne(
  gateway: Gateway,
  request: Request,
  topic: string,
  partition: number,
  offset: number,
): Promise<Response> {
  const answer = await gateway.read(topic, partition, {
    offset,
    recordsMax: 1,
    bytesMax: 1,
    waitMs: 0,
    signal: request.signal,
  });
  if (!answer.ok) return readProblem(answer);
  const record = answer.records[0];
  if (record?.offset === offset) return rawResponse(record, partition);
  if (offset >= answer.highWatermark) {
    return readProblem({
      ok: false,
      error: "OFFSET_OUT_OF_RANGE",
      message: `Cannot read offset ${offset}: the log ends at ${answer.highWatermark}`,
      logStart: answer.logStart,
      highWatermark: answer.highWatermark,
    });
  }
  throw new ProblemError({
    status: 404,
    title: "Not found",
    detail: `Cannot read offset ${offset}: compaction has removed it`,
  });
}
