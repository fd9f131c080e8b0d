/** What a PUT asks a stream to be, and whether a stream is that. */
import { STREAM_HEADER_CHARS_MAX } from "../../../lib/limits.ts";
import { badRequest } from "../../problem.ts";
import { mediaTypeOf } from "./content.ts";
import { asksToClose } from "./headers.ts";
import type { StreamTopic } from "./port.ts";

export interface StreamSettings
  extends Pick<StreamTopic, "contentType" | "ttlSeconds" | "expiresMs"> {
  readonly closes: boolean;
}

/** With what was left open. */
export interface Asked extends Omit<StreamSettings, "contentType"> {
  readonly contentType: string | null;
}

const TYPE = /^[\w!#$&^.+*-]+\/[\w!#$&^.+*-]+(\s*;.*)?$/;
const TTL = /^(?:0|[1-9]\d{0,9})$/;
const DATE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i;

function ttlIn(headers: Headers): number | null {
  const text = headers.get("stream-ttl");
  if (text === null) return null;
  if (TTL.test(text)) return Number(text);
  throw badRequest("Cannot use Stream-TTL: not a number of seconds in digits");
}

function expiryIn(headers: Headers): number | null {
  const text = headers.get("stream-expires-at");
  if (text === null) return null;
  const ms = DATE.test(text) ? Date.parse(text) : Number.NaN;
  if (ms >= 0) return ms;
  throw badRequest("Cannot use Stream-Expires-At: not a date of RFC 3339");
}

/** Throws ProblemError. */
export function settingsOf(request: Request): Asked {
  const { headers } = request;
  const contentType = headers.get("content-type");
  const isType = contentType === null ||
    (contentType.length <= STREAM_HEADER_CHARS_MAX && TYPE.test(contentType));
  if (!isType) throw badRequest("Cannot use Content-Type: not a media type");
  const [ttlSeconds, expiresMs] = [ttlIn(headers), expiryIn(headers)];
  if (ttlSeconds !== null && expiresMs !== null) {
    throw badRequest("Cannot use Stream-TTL and Stream-Expires-At in one request");
  }
  return { contentType, ttlSeconds, expiresMs, closes: asksToClose(request) };
}

export function withDefaults(asked: Asked): StreamSettings {
  return { ...asked, contentType: asked.contentType ?? "application/octet-stream" };
}

/** Streams keep what they have until they are deleted, whatever topics do by default. */
export function configsOf(settings: StreamSettings): readonly (readonly [string, string])[] {
  const { contentType, ttlSeconds, expiresMs } = settings;
  return [
    ["retention.ms", "-1"],
    ["retention.bytes", "-1"],
    ["cleanup.policy", "delete"],
    ["skerry.stream.content.type", contentType],
    ...(ttlSeconds === null ? [] : [["skerry.stream.ttl.seconds", String(ttlSeconds)] as const]),
    ...(expiresMs === null ? [] : [["skerry.stream.expires.ms", String(expiresMs)] as const]),
  ];
}

export function isSame(stream: StreamTopic, asked: StreamSettings): boolean {
  return mediaTypeOf(stream.contentType) === mediaTypeOf(asked.contentType) &&
    stream.ttlSeconds === asked.ttlSeconds && stream.expiresMs === asked.expiresMs;
}
