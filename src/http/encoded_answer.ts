/**
 * Answers in gzip for those who take it: text that is read once. Live streams do not come here, since an encoder
 * holds back what it is given.
 */

/** What may be encoded; what is not wanted still has to say that it varies. */
export interface AnswerEncoding {
  readonly isWanted: boolean;
}

const TYPES = /^application\/(json|problem\+json|x-ndjson|jsonl)(;|$)/;
const NAMED = /^\s*(gzip|x-gzip|\*)\s*(?:;\s*q\s*=\s*([\d.]+)\s*)?$/i;

/** A name wins over `*`; a weight of 0 refuses. */
function takesGzip(accepted: string): boolean {
  let byStar = false;
  for (const part of accepted.split(",")) {
    const [, name, weight = "1"] = NAMED.exec(part) ?? [];
    if (name === undefined) continue;
    if (name !== "*") return Number(weight) > 0;
    byStar = Number(weight) > 0;
  }
  return byStar;
}

function valueOf(headers: Record<string, string> | Headers, name: string): string {
  return (headers instanceof Headers ? headers.get(name) : headers[name]) ?? "";
}

/** Null for what is never encoded. */
export function encodingOf(
  request: Request,
  headers: Record<string, string> | Headers,
): AnswerEncoding | null {
  if (typeof CompressionStream === "undefined") return null;
  if (!TYPES.test(valueOf(headers, "content-type"))) return null;
  if (valueOf(headers, "cache-control").includes("no-transform")) return null;
  return { isWanted: takesGzip(request.headers.get("accept-encoding") ?? "") };
}

/** Bytes that differ have a tag that differs: a strong one stands for the plain answer alone. */
function weakened(tag: string): string {
  return tag.startsWith("W/") ? tag : `W/${tag}`;
}

export function encodedAnswer(
  body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>,
  init: ResponseInit,
  { isWanted }: AnswerEncoding,
): Response {
  const headers = new Headers(init.headers);
  headers.append("vary", "Accept-Encoding");
  if (!isWanted || !(body instanceof ReadableStream)) {
    return new Response(body, { ...init, headers });
  }
  headers.set("content-encoding", "gzip");
  const tag = headers.get("etag");
  if (tag !== null) headers.set("etag", weakened(tag));
  const gzip = new CompressionStream("gzip") as ReadableWritablePair<Uint8Array, Uint8Array>;
  return new Response(body.pipeThrough(gzip), { ...init, headers });
}
