/**
 * What browsers need to be told: which pages of other origins may call (CORS), what scripts may see of an answer,
 * and that a body is never taken for another type than it says. Preflights are answered here, before any route:
 * a browser sends them without whatever the request itself would bring.
 */
import type { MiddlewareHandler } from "hono";

/** Names and prefixes of request headers that have a meaning here. */
const ALLOWED_NAMES: ReadonlySet<string> = new Set([
  "accept",
  "authorization",
  "cache-control",
  "content-encoding",
  "content-type",
  "idempotency-key",
  "if-match",
  "if-none-match",
  "last-event-id",
  "traceparent",
  "tracestate",
]);
const ALLOWED_PREFIXES = ["kafka-", "producer-", "stream-", "ce-"];

/** Response headers that are always named; those of a record are named where they occur. */
const EXPOSED_NAMES = [
  "etag",
  "location",
  "retry-after",
  "idempotency-window",
  "idempotent-replayed",
  "kafka-next-offset",
  "kafka-high-watermark",
  "kafka-log-start",
  "kafka-cursor",
  "kafka-up-to-date",
  "kafka-partition",
  "kafka-offset",
  "kafka-timestamp",
  "kafka-key",
  "kafka-omitted",
  "producer-id",
  "producer-epoch",
  "producer-expected-seq",
  "producer-received-seq",
];
const EXPOSED_ALWAYS: ReadonlySet<string> = new Set(EXPOSED_NAMES);
const EXPOSED_TEXT = EXPOSED_NAMES.join(", ");
/** Chrome keeps none for longer. */
const PREFLIGHT_MAX_AGE_S = "7200";
/** Larger lists of headers than any client sends are not looked at. */
const REQUESTED_CHARS_MAX = 8_192;

function isAllowed(name: string): boolean {
  return ALLOWED_NAMES.has(name) || ALLOWED_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** All that are allowed by name, and what was asked for by prefix: a list, never a star. */
function allowedHeaders(requested: string | null): string {
  const names = (requested ?? "").slice(0, REQUESTED_CHARS_MAX).toLowerCase().split(",");
  const asked = names.map((name) => name.trim()).filter((name) => isAllowed(name));
  return [...new Set([...ALLOWED_NAMES, ...asked])].join(", ");
}

/** Also what only this answer has: a record's own headers. */
function exposedHeaders(headers: Headers): string {
  let text = EXPOSED_TEXT;
  headers.forEach((_, name) => {
    if (EXPOSED_ALWAYS.has(name)) return;
    if (ALLOWED_PREFIXES.some((prefix) => name.startsWith(prefix))) text += `, ${name}`;
  });
  return text;
}

function isPreflight({ method, headers }: Request): boolean {
  return method === "OPTIONS" && headers.has("origin") &&
    headers.has("access-control-request-method");
}

export interface Origins {
  /** Whether answers differ by the origin that asks. */
  readonly isList: boolean;
  /** What is allowed to a request of this origin; null: nothing. */
  allow(origin: string | null): string | null;
}

export function originsOf(configured: readonly string[]): Origins {
  if (configured.includes("*")) return { isList: false, allow: () => "*" };
  const known = new Set(configured);
  return {
    isList: true,
    allow: (origin) => origin !== null && known.has(origin) ? origin : null,
  };
}

const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE";

function preflightAnswer(request: Request, allowed: string | null): Response {
  const headers = new Headers({ "vary": VARY_PREFLIGHT });
  if (allowed !== null) {
    headers.set("access-control-allow-origin", allowed);
    headers.set("access-control-allow-methods", METHODS);
    const requested = request.headers.get("access-control-request-headers");
    headers.set("access-control-allow-headers", allowedHeaders(requested));
    headers.set("access-control-max-age", PREFLIGHT_MAX_AGE_S);
  }
  return new Response(null, { status: 204, headers });
}

const VARY_PREFLIGHT = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers";
const STATUS_SWITCHING = 101;

/** Every answer passes here, but for those that take over the connection. */
function mark(headers: Headers, request: Request, origins: Origins | null): void {
  headers.set("x-content-type-options", "nosniff");
  headers.set("cross-origin-resource-policy", origins === null ? "same-origin" : "cross-origin");
  if (origins === null) return;
  if (origins.isList) headers.append("vary", "Origin");
  const allowed = origins.allow(request.headers.get("origin"));
  if (allowed === null) return;
  headers.set("access-control-allow-origin", allowed);
  headers.set("access-control-expose-headers", exposedHeaders(headers));
}

/** Without origins no CORS headers are sent at all. */
export function browserHeaders(corsOrigins: readonly string[]): MiddlewareHandler {
  const origins = corsOrigins.length === 0 ? null : originsOf(corsOrigins);
  return async (c, next) => {
    const request = c.req.raw;
    if (origins !== null && isPreflight(request)) {
      return preflightAnswer(request, origins.allow(request.headers.get("origin")));
    }
    await next();
    if (c.res.status !== STATUS_SWITCHING) mark(c.res.headers, request, origins);
    return undefined;
  };
}
