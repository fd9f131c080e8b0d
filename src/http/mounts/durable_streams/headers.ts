/** The headers of the dialect, in and out. */
import { STREAM_HEADER_CHARS_MAX } from "../../../lib/limits.ts";
import type { NamedWriter } from "../../../log/writer_step.ts";
import { badRequest, type Problem, ProblemError } from "../../problem.ts";
import { parseCount } from "../../query.ts";
import { offsetText } from "./offsets.ts";
import type { StreamTopic } from "./port.ts";

/** Whoever wrote a stream chose its type. */
export const CONTENT_SAFE = { "content-security-policy": "sandbox" } as const;

export interface Position {
  readonly topicId: string;
  readonly next: number;
  readonly isClosed: boolean;
  readonly isUpToDate?: boolean;
  readonly cursor?: number;
}

export function positionHeaders(position: Position): Record<string, string> {
  const { topicId, next, isClosed, isUpToDate = false, cursor } = position;
  return {
    "stream-next-offset": offsetText(topicId, next),
    ...(isUpToDate ? { "stream-up-to-date": "true" } : {}),
    ...(isClosed ? { "stream-closed": "true" } : {}),
    ...(cursor === undefined || isClosed ? {} : { "stream-cursor": String(cursor) }),
  };
}

export function termsHeaders(
  { ttlSeconds, expiresMs }: Pick<StreamTopic, "ttlSeconds" | "expiresMs">,
): Record<string, string> {
  return {
    ...(ttlSeconds === null ? {} : { "stream-ttl": String(ttlSeconds) }),
    ...(expiresMs === null ? {} : { "stream-expires-at": new Date(expiresMs).toISOString() }),
  };
}

export function writerHeaders(writer: NamedWriter | null): Record<string, string> {
  return writer === null ? {} : {
    "producer-epoch": String(writer.epoch),
    "producer-seq": String(writer.sequence),
  };
}

export function asksToClose({ headers }: Request): boolean {
  return headers.get("stream-closed")?.trim().toLowerCase() === "true";
}

/** Null without the header; else text of the client's own. */
function ownText({ headers }: Request, name: string): string | null {
  const text = headers.get(name);
  if (text === null || (text !== "" && text.length <= STREAM_HEADER_CHARS_MAX)) return text;
  throw badRequest(`Cannot use ${name}: not 1 to ${STREAM_HEADER_CHARS_MAX} characters`);
}

export function orderOf(request: Request): string | null {
  return ownText(request, "stream-seq");
}

export function writerOf(request: Request): NamedWriter | null {
  const { headers } = request;
  const [name, epoch, sequence] = [
    ownText(request, "producer-id"),
    headers.get("producer-epoch"),
    headers.get("producer-seq"),
  ];
  if (name === null && epoch === null && sequence === null) return null;
  if (name === null || epoch === null || sequence === null) {
    throw badRequest("Cannot use Producer-Id, Producer-Epoch and Producer-Seq: all or none");
  }
  return {
    name,
    epoch: parseCount(epoch, "Producer-Epoch"),
    sequence: parseCount(sequence, "Producer-Seq"),
  };
}

export function conflict(
  title: string,
  detail: string,
  more: Partial<Pick<Problem, "more" | "headers">> = {},
): ProblemError {
  return new ProblemError({ status: 409, title, detail, ...more });
}

export function notFound(detail: string): ProblemError {
  return new ProblemError({ status: 404, title: "Not found", detail });
}
