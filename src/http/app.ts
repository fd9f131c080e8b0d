/** The HTTP app: routes, and the one place where thrown values become answers. */
import { Hono } from "hono";
import type { Env } from "../env/env.ts";
import { messageOf } from "../lib/errors.ts";
import { HTTP_PRODUCE_STREAMS_MAX } from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { clusterRoutes, topicRoutes } from "./admin/routes.ts";
import type { Route, RouteDescription } from "./api/route.ts";
import { badRequest, ProblemError, problemResponse } from "./problem.ts";
import { durableStreamsApp, STREAM_MOUNTS } from "./mounts/durable_streams/app.ts";
import type { DialectServices } from "./mounts/mount_services.ts";
import { mountRoutes } from "./mounts/mounts.ts";
import { produceRoutes } from "./produce/routes.ts";
import { pushRoutes } from "./push/routes.ts";
import { readRoutes } from "./read/routes.ts";
import { groupRoutes } from "./groups/routes.ts";
import type { HttpRoute, HttpServices } from "./services.ts";
import { socketRoutes } from "./sockets/routes.ts";
import { browserHeaders } from "./system/browser_headers.ts";
import { refuseForeignPages } from "./system/foreign_pages.ts";
import { HEALTH_PATHS, healthRoutes } from "./system/health.ts";
import { selfRoutes } from "./system/routes.ts";
import { isHostSound, pathOf } from "./target.ts";
import { webhookRoutes } from "./webhook/routes.ts";

export interface HttpAppOptions extends Omit<HttpServices, "recordStreams"> {
  /** Without them the dialects of other brokers' gateways are not spoken. */
  readonly mounts?: DialectServices;
}

/** As labels of metrics; the rest is whatever a client makes up. */
const METHODS: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
]);
const PATH_SHOWN_CHARS_MAX = 200;

export function isHealthRequest(request: Request): boolean {
  return HEALTH_PATHS.has(pathOf(request));
}

function outcome(status: number): string {
  return `${Math.floor(status / 100)}xx`;
}

const BAD_HOST = badRequest("Cannot use the Host header: it names no host");

/** What all apps of a node share: metrics, and answers to what is unknown or thrown. */
function createApp(env: Env, corsOrigins: readonly string[]): Hono {
  const app = new Hono({ getPath: pathOf });
  app.use(async (c, next) => {
    const startedMs = env.clock.monotonicMs();
    if (isHostSound(c.req.raw)) await next();
    else c.res = problemResponse(BAD_HOST.problem);
    env.metrics.count("skerry_http_requests_total", {
      method: METHODS.has(c.req.method) ? c.req.method : "other",
      status: outcome(c.res.status),
    });
    env.metrics.observe(
      "skerry_http_request_seconds",
      (env.clock.monotonicMs() - startedMs) / 1000,
    );
  });
  app.use(browserHeaders(corsOrigins));
  app.use(refuseForeignPages(corsOrigins));
  app.notFound((c) =>
    problemResponse({
      status: 404,
      title: "Not found",
      detail: `Cannot find ${c.req.method} ${c.req.path.slice(0, PATH_SHOWN_CHARS_MAX)}`,
    })
  );
  app.onError((error) => {
    if (error instanceof ProblemError) return problemResponse(error.problem);
    env.log.log("error", "http-handler-failed", { error: messageOf(error) });
    return problemResponse({
      status: 500,
      title: "Internal error",
      detail: "Cannot answer: the broker logged why",
    });
  });
  return app;
}

/** Behind all routes: what their paths answer to other methods. */
function refuseOtherMethods(app: Hono): void {
  const methods = new Map<string, string[]>();
  for (const { path, method } of app.routes) {
    if (method === "ALL") continue;
    const allowed = methods.get(path) ?? [];
    allowed.push(...(method === "GET" ? ["GET", "HEAD"] : [method]));
    methods.set(path, allowed);
  }
  for (const [path, allowed] of methods) {
    const allow = allowed.join(", ");
    app.all(path, () =>
      problemResponse({
        status: 405,
        title: "Method not allowed",
        detail: `Cannot use this method here: allowed are ${allow}`,
        headers: { allow },
      }));
  }
}

function register<S>(app: Hono, routes: readonly Route<S>[], services: S): void {
  for (const one of routes) one.register(app, services);
}

/** All native routes, in the order of the document. */
export const ROUTES: readonly HttpRoute[] = [
  ...produceRoutes,
  ...readRoutes,
  ...groupRoutes,
  ...pushRoutes,
  ...webhookRoutes,
  ...socketRoutes,
  ...topicRoutes,
  ...clusterRoutes,
];

/** What `/openapi.json` describes. */
export const DESCRIBED_ROUTES: readonly RouteDescription[] = [
  ...ROUTES,
  ...healthRoutes,
  ...selfRoutes(() => DESCRIBED_ROUTES),
];

/** The health routes alone, for a node that starts. */
export function createHealthApp(
  { status, env }: Pick<HttpAppOptions, "status" | "env">,
): Hono {
  const app = createApp(env, []);
  register(app, healthRoutes, { status, hasStarted: false });
  refuseOtherMethods(app);
  return app;
}

export function createHttpApp({ mounts, ...options }: HttpAppOptions): Hono {
  const { status, env, corsOrigins } = options;
  const app = createApp(env, corsOrigins);
  const recordStreams = new Semaphore(HTTP_PRODUCE_STREAMS_MAX);
  const services: HttpServices = { ...options, recordStreams };
  register(app, [...ROUTES, ...selfRoutes(() => DESCRIBED_ROUTES)], services);
  for (const path of STREAM_MOUNTS) app.route(path, durableStreamsApp(services));
  register(app, healthRoutes, { status, hasStarted: true });
  refuseOtherMethods(app);
  // Behind them: what a dialect does not know it refuses in its own words.
  if (mounts !== undefined) mountRoutes(app, { ...services, ...mounts });
  return app;
}
