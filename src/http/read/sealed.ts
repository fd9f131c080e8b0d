/**
 * Pages that caches may keep. A page is sealed when the same request finds the same records whenever it comes:
 * it begins at a number, holds records, ended before the end of the log or at its own limit, and nothing removes
 * single records from the topic. Names are used again for other topics, so it is immutable only under an id.
 */
import { HTTP_SEALED_MAX_AGE_S } from "../../lib/limits.ts";
import type { ReadStart } from "../port.ts";

/** Rises when records are shown in another way. */
const RENDERING = 1;

export interface PageFacts {
  readonly topicId: string;
  readonly partition: number;
  readonly start: ReadStart;
  readonly next: number;
  readonly count: number;
  /** What was asked for at most; null where it is bytes alone. */
  readonly limit: number | null;
  readonly fixedBelow: number;
  /** Format, encoding, isolation: what else the bytes depend on. */
  readonly variant: string;
}

function isSealed({ start, next, count, limit, fixedBelow }: PageFacts): boolean {
  return typeof start === "number" && count > 0 && next <= fixedBelow &&
    (next < fixedBelow || count === limit);
}

export interface CacheHeaders {
  readonly headers: Readonly<Record<string, string>>;
  /** The client has the page already. */
  readonly isKnown: boolean;
}

export function isNamed(etag: string, request: Request): boolean {
  const named = request.headers.get("if-none-match");
  if (named === null) return false;
  const opaque = etag.replace(/^W\//, "");
  return named.split(",").some((one) => {
    const tag = one.trim();
    return tag === "*" || tag.replace(/^W\//, "") === opaque;
  });
}

/** No commas: they part the tags of a list. */
function startText(start: PageFacts["start"]): string {
  if (typeof start !== "object") return String(start);
  return Object.entries(start).map(([name, value]) => `${name}.${value}`).join(".");
}

/** `isExact`: nothing in the body changes but with the records; else the tag is weak. */
export function cacheHeaders(
  facts: PageFacts,
  request: Request,
  { isById, isExact }: { readonly isById: boolean; readonly isExact: boolean },
): CacheHeaders {
  const vary = { vary: "Accept" };
  if (!isSealed(facts)) {
    return { headers: { ...vary, "cache-control": "no-store" }, isKnown: false };
  }
  const { topicId, partition, start, next, count, variant } = facts;
  const tag = `"${RENDERING}-${topicId}-${partition}-${
    startText(start)
  }-${next}-${count}-${variant}"`;
  const etag = isExact ? tag : `W/${tag}`;
  const control = isById && isExact
    ? `public, max-age=${HTTP_SEALED_MAX_AGE_S}, immutable`
    : "no-cache";
  return {
    headers: { ...vary, etag, "cache-control": control },
    isKnown: isNamed(etag, request),
  };
}
