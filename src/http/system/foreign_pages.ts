/**
 * Keeps pages of other origins from changing anything. A browser sends a plain POST for any page without asking, and
 * only hides the answer: without authentication, whoever visits a page would lend it the broker on its own machine.
 * Browsers say where a request is from; other clients send neither header, and are let through.
 */
import type { MiddlewareHandler } from "hono";
import { problemResponse } from "../problem.ts";
import { pathOf } from "../target.ts";

const SAFE_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);
/** Where GET writes records, or moves positions: their clients want it so. */
const CHANGED_BY_GET = ["/upstash/", "/rest/consumers/"];

function isSafe(request: Request): boolean {
  if (!SAFE_METHODS.has(request.method)) return false;
  const path = pathOf(request);
  return !CHANGED_BY_GET.some((prefix) => path.startsWith(prefix));
}

/** Only what comes from a page of the host that is asked itself; `none` is the person at the browser. */
function isOwn({ headers }: Request, origin: string | null): boolean {
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin" || site === "none";
  if (origin === null) return true;
  const host = headers.get("host") ?? "";
  return host !== "" && URL.parse(origin)?.host === host.toLowerCase();
}

function isNamed(origin: string | null, named: readonly string[]): boolean {
  return named.includes("*") || (origin !== null && named.includes(origin));
}

const NOT_ALLOWED = {
  status: 403,
  title: "Origin not allowed",
  detail: "Cannot do this for a page of another origin: see skerry.http.cors.origins",
} as const;

/** Of the same origins that may read: see browser_headers.ts. */
export function refuseForeignPages(named: readonly string[]): MiddlewareHandler {
  return async ({ req: { raw: request } }, next) => {
    const origin = request.headers.get("origin");
    if (isSafe(request) || isOwn(request, origin) || isNamed(origin, named)) return await next();
    return problemResponse(NOT_ALLOWED);
  };
}
