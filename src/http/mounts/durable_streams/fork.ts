/** A PUT that forks a stream: which one, where, and what it takes of the message there. */
import { STREAM_FORKS_DEEP_MAX } from "../../../lib/limits.ts";
import { badRequest, ProblemError } from "../../problem.ts";
import { readProblem } from "../../read/page.ts";
import { kindOf, mediaTypeOf } from "./content.ts";
import { conflict, notFound } from "./headers.ts";
import { parseOffset } from "./offsets.ts";
import { findPlace, type Found, type Named, type StreamsServices } from "./place.ts";
import type { StreamTopic } from "./port.ts";
import type { Asked, StreamSettings } from "./settings.ts";

/** As the headers say. */
export interface ForkAsk {
  readonly source: Named;
  /** Null for the end of the source. */
  readonly offset: string | null;
  readonly part: number;
}

export interface ForkPlan {
  readonly source: Found;
  /** Where the fork leaves its source. */
  readonly start: number;
  readonly part: number;
  readonly isAtEnd: boolean;
  /** The beginning of a message of bytes, which becomes the fork's first record. */
  readonly prefix: readonly Uint8Array[];
}

const PART = /^(?:0|[1-9]\d{0,14})$/;
/** Below whatever the streams are mounted, the last parts of a path are the name. */
const PATH = /^(?:https?:\/\/[^/?#]*)?(?:\/streams|\/v1\/stream)?\/?([^/?#%]+)(?:\/(\d+))?$/;

function sourceIn(text: string): Named {
  const [, topic, partition = null] = PATH.exec(text) ?? [];
  if (topic !== undefined) return { topic, partition };
  throw badRequest("Cannot use Stream-Forked-From: not the path of a stream");
}

/** Null where it is no fork. Throws ProblemError. */
export function forkIn({ headers }: Request): ForkAsk | null {
  const from = headers.get("stream-forked-from");
  const [offset, part] = [headers.get("stream-fork-offset"), headers.get("stream-fork-sub-offset")];
  if (from === null) {
    if (offset === null && part === null) return null;
    throw badRequest("Cannot use Stream-Fork-Offset without Stream-Forked-From");
  }
  if (part !== null && !PART.test(part)) {
    throw badRequest("Cannot use Stream-Fork-Sub-Offset: not a number in digits");
  }
  return { source: sourceIn(from), offset, part: Number(part ?? 0) };
}

function findSource({ gateway }: StreamsServices, { source }: ForkAsk): Found {
  if (gateway.findStream(source.topic)?.isDeleted === true) {
    throw conflict("Source is gone", `Cannot fork ${source.topic}: it was deleted`);
  }
  return findPlace(gateway, source);
}

/** The first bytes of the message at an offset. */
async function prefixOf(
  { gateway }: StreamsServices,
  source: Found,
  offset: number,
  { request, length }: { readonly request: Request; readonly length: number },
): Promise<Uint8Array> {
  const answer = await gateway.readStream(source, {
    offset,
    recordsMax: 1,
    bytesMax: 1,
    recordBytesMax: Infinity,
    waitMs: 0,
    isolation: "committed",
    signal: request.signal,
  });
  if (!answer.ok) throw new ProblemError(readProblem(answer));
  const [record] = answer.records;
  const value = record?.offset === offset ? record.value : null;
  const prefix = value?.slice(0, length);
  answer.release();
  if (prefix?.length === length) return prefix;
  throw badRequest("Cannot fork: Stream-Fork-Sub-Offset is behind the end of the message");
}

/** Where a source is left: its end, or an offset of its own. */
function anchorOf({ stream }: Found, { offset }: ForkAsk, end: number): number {
  if (offset === null) return end;
  const at = parseOffset(offset, stream);
  const anchor = at === "earliest" ? 0 : at === "latest" ? end : at;
  if (anchor <= end) return anchor;
  throw badRequest("Cannot fork: Stream-Fork-Offset is behind the end of the source");
}

/** Messages of JSON have offsets of their own, so that a part of an append is a later offset. */
export async function planFork(
  services: StreamsServices,
  request: Request,
  ask: ForkAsk,
): Promise<ForkPlan> {
  const source = findSource(services, ask);
  const { stream } = source;
  if ((stream.fork?.inherited.length ?? 0) + 1 >= STREAM_FORKS_DEEP_MAX) {
    throw conflict("Too many forks", `Cannot fork ${stream.name}: it has too many forebears`);
  }
  const tail = await services.gateway.streamTail(source);
  if (!tail.ok) throw notFound(`Cannot find stream ${stream.name}`);
  const anchor = anchorOf(source, ask, tail.next);
  const { part, offset } = ask;
  const isJson = kindOf(stream.contentType) === "json";
  const start = isJson ? anchor + part : anchor;
  if (start > tail.next) {
    throw badRequest("Cannot fork: Stream-Fork-Sub-Offset is behind the end of the source");
  }
  const isWhole = isJson || part === 0;
  const prefix = isWhole
    ? []
    : [await prefixOf(services, source, anchor, { request, length: part })];
  return { source, start, part, isAtEnd: offset === null, prefix };
}

/** What the request leaves open a fork has from its source. */
export function inheritSettings(asked: Asked, { source: { stream } }: ForkPlan): StreamSettings {
  const { contentType, ttlSeconds, expiresMs, closes } = asked;
  if (contentType !== null && mediaTypeOf(contentType) !== mediaTypeOf(stream.contentType)) {
    throw conflict("Content type mismatch", `Cannot fork: the source is ${stream.contentType}`);
  }
  const hasTerms = ttlSeconds !== null || expiresMs !== null;
  return {
    contentType: contentType ?? stream.contentType,
    ttlSeconds: hasTerms ? ttlSeconds : stream.ttlSeconds,
    expiresMs: hasTerms ? expiresMs : stream.expiresMs,
    closes,
  };
}

export function configsOfFork(
  { source, start, part }: ForkPlan,
): readonly (readonly [string, string])[] {
  return [
    ["skerry.stream.fork.source", `${source.topicId}/${source.partition}`],
    ["skerry.stream.fork.offset", String(start)],
    ["skerry.stream.fork.part", String(part)],
  ];
}

/** Whether a stream is what such a PUT makes; at its end a source may have grown since. */
export function isSameFork({ fork }: StreamTopic, plan: ForkPlan | null): boolean {
  if (fork === null || plan === null) return fork === null && plan === null;
  const { topicId, partition } = plan.source;
  return fork.source.topicId === topicId && fork.source.partition === partition &&
    fork.part === plan.part && (plan.isAtEnd || fork.start === plan.start);
}
