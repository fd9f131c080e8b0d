/** GET reads what is there, or waits for more as a long poll. */
import {
  HTTP_READ_RECORDS_MAX,
  HTTP_STREAM_PAGE_BYTES,
  STREAM_POLL_MS,
} from "../../../lib/limits.ts";
import { answerOf } from "../../answer.ts";
import type { ReadQuery } from "../../port.ts";
import { badRequest, ProblemError } from "../../problem.ts";
import { parameter, queryOf } from "../../query.ts";
import { type Found as Page, type NotFound, readProblem, STATUS_GONE } from "../../read/page.ts";
import { isNamed } from "../../read/sealed.ts";
import { chunksOfContent, hasContent, kindOf } from "./content.ts";
import { CONTENT_SAFE, type Position, positionHeaders } from "./headers.ts";
import { tailOf } from "./manage.ts";
import { cursorAfter, parseOffset, type StreamStart } from "./offsets.ts";
import { findPlace, type Found, type Named, type StreamsServices } from "./place.ts";
import { openEvents } from "./events.ts";

/** Behind a place of its own in a stream, and not at its end, nothing changes any more. */
const CACHED = "public, max-age=60, stale-while-revalidate=300";

interface Asked extends Found {
  readonly request: Request;
  readonly start: StreamStart;
  readonly cursor: string | null;
}

function refused(answer: NotFound, start: StreamStart): ProblemError {
  const { error, logStart } = answer;
  if (error !== "OFFSET_OUT_OF_RANGE" || typeof start !== "number") {
    return new ProblemError(readProblem(answer));
  }
  return start < (logStart ?? 0)
    ? new ProblemError({ ...readProblem(answer), status: STATUS_GONE, title: "Gone" })
    : badRequest("Cannot read: the offset is behind the end of the stream");
}

async function readPage(
  { gateway }: StreamsServices,
  asked: Asked,
  start: StreamStart,
  waitMs: number,
): Promise<Page> {
  const query: ReadQuery = {
    offset: start,
    recordsMax: HTTP_READ_RECORDS_MAX,
    bytesMax: HTTP_STREAM_PAGE_BYTES,
    recordBytesMax: Infinity,
    waitMs,
    isolation: "committed",
    signal: asked.request.signal,
  };
  const answer = await gateway.readStream(asked, query);
  if (answer.ok) return answer;
  throw refused(answer, start);
}

/** Where a page ends, by what is durable in the moment that it is answered. */
function positionOf({ gateway }: StreamsServices, asked: Asked, page: Page): Position {
  const tail = gateway.peekTail(asked);
  const { next } = page;
  const closedAt = tail?.closedAt ?? null;
  return {
    topicId: asked.topicId,
    next,
    isClosed: closedAt !== null && next >= closedAt,
    isUpToDate: next >= (tail?.next ?? page.highWatermark),
  };
}

function etagOf({ topicId, partition }: Found, page: Page, position: Position): string {
  const from = page.records[0]?.offset ?? page.next;
  const state = `${position.isUpToDate === true ? "u" : ""}${position.isClosed ? "c" : ""}`;
  return `"${topicId}-${partition}-${from}-${page.next}-${page.records.length}${state}"`;
}

/** A stream that ends some time is asked for, so that it is known to be in use, and gone once it is. */
function cacheOf(
  { stream, start }: Asked,
  page: Page,
  position: Position,
  isLive: boolean,
): string {
  const isForGood = stream.ttlSeconds === null && stream.expiresMs === null &&
    page.next <= page.fixedBelow;
  const isSealed = isLive || position.isUpToDate !== true || position.isClosed;
  return typeof start === "number" && isForGood && isSealed && hasContent(page.records)
    ? CACHED
    : "no-cache";
}

function answerPage(
  { env: { clock } }: StreamsServices,
  asked: Asked,
  page: Page,
  position: Position,
  isLive: boolean,
): Response {
  const { stream, request } = asked;
  const etag = etagOf(asked, page, position);
  const headers = {
    ...CONTENT_SAFE,
    ...positionHeaders(position),
    "cache-control": cacheOf(asked, page, position, isLive),
    etag,
  };
  if (isNamed(etag, request)) {
    page.release();
    return new Response(null, { status: 304, headers });
  }
  return answerOf(chunksOfContent(page.records, kindOf(stream.contentType)), {
    request,
    clock,
    headers: { ...headers, "content-type": stream.contentType },
    release: () => page.release(),
  });
}

async function catchUp(services: StreamsServices, asked: Asked): Promise<Response> {
  const page = await readPage(services, asked, asked.start, 0);
  return answerPage(services, asked, page, positionOf(services, asked, page), false);
}

/** Nothing is read: only where the end is. */
async function readNow(services: StreamsServices, asked: Asked): Promise<Response> {
  const { next, closedAt } = await tailOf(services, asked);
  const { topicId, stream: { contentType } } = asked;
  const position = { topicId, next, isClosed: closedAt !== null, isUpToDate: true };
  return new Response(kindOf(contentType) === "json" ? "[]" : "", {
    headers: {
      ...CONTENT_SAFE,
      ...positionHeaders(position),
      "content-type": contentType,
      "cache-control": "no-store",
    },
  });
}

async function longPoll(services: StreamsServices, asked: Asked): Promise<Response> {
  const { gateway, env } = services;
  const tail = await tailOf(services, asked);
  const start = asked.start === "latest" ? tail.next : asked.start;
  const isOver = tail.closedAt !== null && start === tail.next;
  const page = await readPage(services, asked, start, isOver ? 0 : STREAM_POLL_MS);
  gateway.touchStream(asked.topicId);
  const cursor = cursorAfter(asked.cursor, env);
  const position = { ...positionOf(services, asked, page), cursor };
  if (hasContent(page.records)) return answerPage(services, asked, page, position, true);
  page.release();
  return new Response(null, {
    status: 204,
    headers: { ...CONTENT_SAFE, ...positionHeaders(position), "cache-control": "no-store" },
  });
}

export async function read(
  services: StreamsServices,
  request: Request,
  named: Named,
): Promise<Response> {
  const { gateway } = services;
  const place = findPlace(gateway, named);
  // Parameters that nobody knows are passed over: the protocol says so, for proxies add theirs.
  const query = queryOf(request);
  const [offset, live] = [parameter(query, "offset"), parameter(query, "live")];
  if (live !== null && offset === null) throw badRequest("Cannot read live without offset");
  const start = parseOffset(offset ?? "-1", place.stream);
  const asked = { ...place, request, start, cursor: parameter(query, "cursor") };
  gateway.touchStream(place.topicId);
  switch (live) {
    case null:
      return start === "latest" ? await readNow(services, asked) : await catchUp(services, asked);
    case "long-poll":
      return await longPoll(services, asked);
    case "sse":
      return openEvents(services, asked, await tailOf(services, asked));
    default:
      throw badRequest("Cannot use live: not long-poll or sse");
  }
}
