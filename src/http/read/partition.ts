/** GET records of one partition: a page as JSON or NDJSON with a long poll, or raw batches. */
import * as v from "valibot";
import type { Clock } from "../../env/clock.ts";
import { HTTP_CHUNK_BYTES, HTTP_RECORD_BYTES_MAX } from "../../lib/limits.ts";
import { BATCH_TYPES, formatWanted, JSON_TYPES, LINE_TYPES } from "../accept.ts";
import { answerOf, chunksOf } from "../answer.ts";
import type { Gateway } from "../port.ts";
import { problemResponse } from "../problem.ts";
import type { Encoding, Shown } from "../record_json.ts";
import {
  fitted,
  type Found,
  linesOf,
  listOf,
  ofPartition,
  oversizedProblem,
  readProblem,
} from "./page.ts";
import {
  encodingField,
  idField,
  limitsOf,
  pageLimits,
  startFields,
  startOf,
} from "./parameters.ts";
import { cacheHeaders } from "./sealed.ts";

export interface ReadServices {
  readonly gateway: Gateway;
  readonly clock: Clock;
}

/** One partition, as its path says. */
export interface Place {
  readonly topic: string;
  readonly partition: number;
}

const FORMATS = [
  ["json", JSON_TYPES],
  ["lines", LINE_TYPES],
  ["batches", BATCH_TYPES],
] as const;

export const partitionQuery = v.strictObject({
  ...startFields,
  ...pageLimits,
  encoding: encodingField,
  ...idField,
});
export type PartitionQuery = v.InferOutput<typeof partitionQuery>;

interface Asked extends ReturnType<typeof limitsOf> {
  readonly offset: ReturnType<typeof startOf>;
  readonly topicId: string | null;
  readonly encoding: Encoding;
  readonly signal: AbortSignal;
}

function askedOf({ signal }: Request, query: PartitionQuery): Asked {
  const { topicId = null, encoding } = query;
  return { ...limitsOf(query), offset: startOf(query), topicId, encoding, signal };
}

function positionHeaders(
  { next, highWatermark, logStart }: Pick<Found, "next" | "highWatermark" | "logStart">,
): Record<string, string> {
  return {
    "kafka-next-offset": String(next),
    "kafka-high-watermark": String(highWatermark),
    "kafka-log-start": String(logStart),
  };
}

/** What changes with time is left out under a topic id: such an answer may be a year old. */
function* jsonOf(
  { records, next, highWatermark, logStart }: Found,
  partition: number,
  shown: Shown,
  isById: boolean,
): Generator<string, void> {
  yield '{"records":[';
  yield* listOf(ofPartition(records, partition), shown);
  yield `],"next":${next}`;
  yield isById ? "}" : `,"highWatermark":${highWatermark},"logStart":${logStart}}`;
}

function notModified(headers: Readonly<Record<string, string>>, release: () => void): Response {
  release();
  return new Response(null, { status: 304, headers });
}

function answerRecords(
  page: Found,
  { partition, request, clock }: Pick<Place, "partition"> & {
    readonly request: Request;
    readonly clock: Clock;
  },
  asked: Asked,
  format: "json" | "lines",
): Response {
  const isLines = format === "lines";
  const isById = asked.topicId !== null;
  const shown = { encoding: asked.encoding, isInLine: isLines };
  const release = () => page.release();
  const { records, topicId, next, fixedBelow } = page;
  const facts = { topicId, partition, next, fixedBelow, start: asked.offset };
  const cache = cacheHeaders(
    {
      ...facts,
      count: records.length,
      limit: asked.recordsMax,
      variant: `${format}-${asked.encoding}-${asked.isolation}`,
    },
    request,
    { isById, isExact: isById || isLines },
  );
  const headers = { ...positionHeaders(page), ...cache.headers };
  if (cache.isKnown) return notModified(headers, release);
  const pieces = isLines
    ? linesOf(ofPartition(records, partition), shown)
    : jsonOf(page, partition, shown, isById);
  const type = isLines ? "application/x-ndjson" : "application/json";
  return answerOf(chunksOf(pieces), {
    request,
    clock,
    headers: { ...headers, "content-type": type },
    release,
  });
}

/** Copies, piece by piece: the host may still look at a chunk when the log's memory is used again. */
function* piecesOf(batches: readonly Uint8Array[]): Generator<Uint8Array, void> {
  for (const batch of batches) {
    for (let at = 0; at < batch.length; at += HTTP_CHUNK_BYTES) {
      yield batch.slice(at, at + HTTP_CHUNK_BYTES);
    }
  }
}

async function consumeBatches(
  { gateway, clock }: ReadServices,
  request: Request,
  { topic, partition }: Place,
  asked: Asked,
): Promise<Response> {
  const { topicId, offset, bytesMax, waitMs, isolation, signal } = asked;
  const answer = await gateway.readBatches(topic, partition, {
    offset,
    bytesMax,
    waitMs,
    isolation,
    signal,
    ...(topicId === null ? {} : { topicId }),
  });
  if (!answer.ok) return problemResponse(readProblem(answer));
  const release = () => answer.release();
  const { batches, next, fixedBelow } = answer;
  const facts = { topicId: answer.topicId, partition, next, fixedBelow, start: offset };
  const cache = cacheHeaders(
    { ...facts, count: batches.length, limit: null, variant: `batches-${isolation}` },
    request,
    { isById: topicId !== null, isExact: true },
  );
  const headers = { ...positionHeaders(answer), ...cache.headers };
  if (cache.isKnown) return notModified(headers, release);
  return answerOf(piecesOf(batches), {
    request,
    clock,
    headers: { ...headers, "content-type": "application/vnd.kafka.batch" },
    release,
  });
}

export async function consume(
  services: ReadServices,
  request: Request,
  place: Place,
  parameters: PartitionQuery,
): Promise<Response> {
  const asked = askedOf(request, parameters);
  const format = formatWanted(request, FORMATS);
  if (format === "batches") return await consumeBatches(services, request, place, asked);
  const { gateway, clock } = services;
  const { topic, partition } = place;
  const { topicId, encoding: shown, ...query } = asked;
  const answer = await gateway.read(topic, partition, {
    ...query,
    recordBytesMax: HTTP_RECORD_BYTES_MAX,
    ...(topicId === null ? {} : { topicId }),
  });
  if (!answer.ok) return problemResponse(readProblem(answer));
  const page = fitted(answer, { encoding: shown, isInLine: format === "lines" });
  if (page.oversized !== null && page.records.length === 0) {
    page.release();
    throw oversizedProblem(page.oversized, topic, partition);
  }
  return answerRecords(page, { partition, request, clock }, asked, format);
}
