/** GET /v1/topics/{topic}/stream: records as they come, as server-sent events or lines of JSON. */
import * as v from "valibot";
import type { Env } from "../../env/env.ts";
import { EVENT_TYPES, formatWanted, LINE_TYPES } from "../accept.ts";
import { ProblemError, RETRY_AFTER_S } from "../problem.ts";
import type { ReadGateway } from "../read_port.ts";
import { filterOf } from "../read/filter.ts";
import {
  encodingField,
  isolationField,
  isolationNamed,
  partitionsOf,
  topicFields,
} from "../read/parameters.ts";
import { cursorOf, startAt, topicOf } from "../read/positions.ts";
import { linesFormat, sseFormat, type StreamFormat } from "./formats.ts";
import { LiveBody } from "./live_body.ts";
import { LiveReader } from "./live_reader.ts";
import type { LiveStreams } from "./live_streams.ts";

export interface StreamServices {
  readonly gateway: ReadGateway;
  readonly env: Env;
  readonly streams: LiveStreams;
}

const FORMATS = [["events", EVENT_TYPES], ["lines", LINE_TYPES]] as const;

export const streamQuery = v.strictObject({
  ...topicFields,
  isolation: isolationField,
  encoding: encodingField,
});

export function expectRoom(streams: LiveStreams): void {
  if (!streams.isFull) return;
  throw new ProblemError({
    status: 503,
    title: "Busy",
    detail: "Cannot open a stream: the node has as many as it takes, or it stops",
    headers: { "retry-after": RETRY_AFTER_S },
  });
}

function headersOf({ contentType }: StreamFormat): Record<string, string> {
  return {
    "content-type": contentType,
    // Nobody may keep it, pack it or hold it back until there is more.
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
    "vary": "Accept",
  };
}

/** A reader that begins where the query says. Throws ProblemError. */
export async function liveReader(
  { gateway, env, streams }: StreamServices,
  name: string,
  query: v.InferOutput<typeof streamQuery>,
  cursor: string | null,
  signal: AbortSignal,
): Promise<LiveReader> {
  const { from } = query;
  const isolation = isolationNamed(query.isolation);
  const { matches: filter, partitionsOf: byKey } = filterOf(query);
  const named = partitionsOf(query);
  const topic = topicOf(gateway, name);
  const partitions = named ?? byKey?.(topic.partitions) ?? null;
  const start = await startAt({ gateway, topic, partitions, isolation, cursor, from });
  const choose = named === null ? byKey : () => named;
  return new LiveReader({ gateway, env, streams, start, choose, isolation, filter, signal });
}

export async function streamTopic(
  services: StreamServices,
  request: Request,
  name: string,
  query: v.InferOutput<typeof streamQuery>,
): Promise<Response> {
  const { env, streams } = services;
  const { encoding } = query;
  const isLines = formatWanted(request, FORMATS) === "lines";
  const format = isLines ? linesFormat(encoding) : sseFormat(encoding);
  expectRoom(streams);
  const gone = new AbortController();
  const cursor = cursorOf(request, query.cursor);
  const reader = await liveReader(services, name, query, cursor, gone.signal);
  expectRoom(streams);
  if (request.method === "HEAD") return new Response(null, { headers: headersOf(format) });
  const body = new LiveBody({ env, streams, reader, format, gone, request });
  return new Response(body.open(), { headers: headersOf(format) });
}
