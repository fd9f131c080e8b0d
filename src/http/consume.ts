/** GET records: one partition from an offset (JSON or NDJSON, long poll), or one record as it is. */
import type { Clock } from "../env/clock.ts";
import {
  HTTP_READ_BYTES_MAX,
  HTTP_READ_RECORDS_MAX,
  HTTP_RECORD_BYTES_MAX,
  HTTP_RENDERED_BYTES_MAX,
  HTTP_WAIT_MS_MAX,
} from "../lib/limits.ts";
import { answerOf, chunksOf } from "./answer.ts";
import type { Gateway, Oversized, ReadAnswer, ReadQuery, RecordOutput } from "./port.ts";
import { badRequest, ProblemError, problemOf, problemResponse } from "./problem.ts";
import { parameter, parseChoice, parseCount, queryOf } from "./query.ts";
import { rawResponse } from "./raw_record.ts";
import { recordJson, renderedBytes, renderedBytesMax } from "./record_json.ts";

export interface ReadServices {
  readonly gateway: Gateway;
  readonly clock: Clock;
}

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
  const text = parameter(query, name);
  if (text === null) return fallback;
  const value = parseCount(text, name, max);
  if (value < min) throw badRequest(`Cannot use ${name}=${text}: at least ${min}`);
  return value;
}

function offsetOf(query: URLSearchParams): ReadQuery["offset"] {
  const text = parameter(query, "offset") ?? "earliest";
  return text === "earliest" || text === "latest" ? text : parseCount(text, "offset");
}

/** Kafka's words and Kafka's default. */
const ISOLATIONS = ["read_uncommitted", "read_committed"] as const;

function isolationOf(query: URLSearchParams): ReadQuery["isolation"] {
  const choice = parseChoice(query, "isolation", ISOLATIONS);
  return choice === "read_committed" ? "committed" : "uncommitted";
}

function readQueryOf(request: Request): ReadQuery {
  const query = queryOf(request);
  return {
    offset: offsetOf(query),
    recordsMax: numberOf(query, "limit", LIMIT_DEFAULT, 1, HTTP_READ_RECORDS_MAX),
    bytesMax: numberOf(query, "maxBytes", BYTES_DEFAULT, 1, HTTP_READ_BYTES_MAX),
    recordBytesMax: HTTP_RECORD_BYTES_MAX,
    waitMs: numberOf(query, "wait", 0, 0, HTTP_WAIT_MS_MAX),
    isolation: isolationOf(query),
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

/** A record that JSON is too small for: where it can be had, and where to read on. */
function oversizedProblem({ offset, bytes }: Oversized, topic: string, partition: number) {
  const raw = `/v1/topics/${encodeURIComponent(topic)}/partitions/${partition}/records/${offset}`;
  return new ProblemError({
    status: 422,
    title: "Record too large",
    detail: `Cannot show offset ${offset} as JSON: ${bytes} bytes are more than a record of an ` +
      `answer may take; GET ${raw} gives its value as it is; read on at ${offset + 1}`,
    more: { raw, next: offset + 1 },
  });
}

/** The page, ended where its text would become too large. */
function fitted(page: Found): Found {
  let bytes = page.records.reduce((sum, record) => sum + renderedBytesMax(record), 0);
  if (bytes <= HTTP_RENDERED_BYTES_MAX) return page;
  bytes = 0;
  for (const [i, record] of page.records.entries()) {
    const more = renderedBytes(record);
    bytes += more;
    if (bytes <= HTTP_RENDERED_BYTES_MAX) continue;
    const oversized = i === 0 ? { offset: record.offset, bytes: more } : null;
    return { ...page, records: page.records.slice(0, i), next: record.offset, oversized };
  }
  return page;
}

function positionHeaders(page: Found): Record<string, string> {
  return {
    "kafka-next-offset": String(page.next),
    "kafka-high-watermark": String(page.highWatermark),
    "kafka-log-start": String(page.logStart),
    "cache-control": "no-store",
  };
}

const LINES: ReadonlySet<string> = new Set(["application/x-ndjson", "application/jsonl"]);

/** The weight of a media type of an Accept header; what is no number counts as 1. */
function weightOf(parameters: readonly string[]): number {
  const q = parameters.map((text) => /^\s*q\s*=\s*([\d.]+)\s*$/i.exec(text)?.[1])
    .find((text) => text !== undefined);
  const weight = Number(q ?? 1);
  return Number.isNaN(weight) ? 1 : weight;
}

/** Lines where they are named, not refused, and JSON is not named as better. */
function wantsLines(request: Request): boolean {
  let [lines, json] = [0, 0];
  for (const part of (request.headers.get("accept") ?? "").split(",")) {
    const [type = "", ...parameters] = part.split(";");
    const name = type.trim().toLowerCase();
    if (LINES.has(name)) lines = Math.max(lines, weightOf(parameters));
    else if (name === "application/json") json = weightOf(parameters);
  }
  return lines > 0 && lines >= json;
}

function* linesOf(records: readonly RecordOutput[], partition: number): Generator<string, void> {
  for (const record of records) {
    yield* recordJson(record, partition);
    yield "\n";
  }
}

function* jsonOf(
  { records, next, highWatermark, logStart }: Found,
  partition: number,
): Generator<string, void> {
  yield '{"records":[';
  for (const [i, record] of records.entries()) {
    if (i > 0) yield ",";
    yield* recordJson(record, partition);
  }
  yield `],"next":${next},"highWatermark":${highWatermark},"logStart":${logStart}}`;
}

function answerRead(page: Found, partition: number, request: Request, clock: Clock): Response {
  const lines = wantsLines(request);
  const type = lines ? "application/x-ndjson" : "application/json";
  const pieces = lines ? linesOf(page.records, partition) : jsonOf(page, partition);
  return answerOf(chunksOf(pieces), {
    request,
    clock,
    headers: { ...positionHeaders(page), "content-type": type },
    release: () => page.release(),
  });
}

export async function consume(
  { gateway, clock }: ReadServices,
  request: Request,
  topic: string,
  partition: number,
): Promise<Response> {
  const answer = await gateway.read(topic, partition, readQueryOf(request));
  if (!answer.ok) return readProblem(answer);
  const page = fitted(answer);
  if (page.oversized !== null && page.records.length === 0) {
    page.release();
    throw oversizedProblem(page.oversized, topic, partition);
  }
  return answerRead(page, partition, request, clock);
}

/** Why there is no such record: the log ends before it, compaction has removed it, or it is not committed. */
function missing(page: Found, offset: number, isolation: ReadQuery["isolation"]): Response {
  const { logStart, highWatermark } = page;
  if (offset >= highWatermark) {
    const message = `Cannot read offset ${offset}: the log ends at ${highWatermark}`;
    return readProblem({
      ok: false,
      error: "OFFSET_OUT_OF_RANGE",
      message,
      logStart,
      highWatermark,
    });
  }
  return problemResponse({
    status: 404,
    title: "Not found",
    detail: `Cannot read offset ${offset}: ` +
      (isolation === "committed"
        ? "it is not committed, or compaction has removed it"
        : "compaction has removed it"),
  });
}

/** One record: its value as the body, 204 for a tombstone, 404 when compaction has removed it. */
export async function consumeOne(
  { gateway, clock }: ReadServices,
  request: Request,
  topic: string,
  partition: number,
  offset: number,
): Promise<Response> {
  const isolation = isolationOf(queryOf(request));
  const page = await gateway.read(topic, partition, {
    offset,
    isolation,
    recordsMax: 1,
    bytesMax: 1,
    recordBytesMax: Infinity,
    waitMs: 0,
    signal: request.signal,
  });
  if (!page.ok) return readProblem(page);
  const record = page.records[0];
  if (record?.offset === offset) {
    return rawResponse(record, { partition, request, clock, release: () => page.release() });
  }
  page.release();
  return missing(page, offset, isolation);
}
