/** The HTTP app: routes, and the one place where thrown values become answers. */
import { Hono } from "hono";
import { cors } from "hono/cors";
import type { Env } from "../env/env.ts";
import { messageOf } from "../lib/errors.ts";
import type { Semaphore } from "../lib/semaphore.ts";
import { consume, consumeOne } from "./consume.ts";
import type { Gateway, NodeStatus } from "./port.ts";
import { produce, type ProduceServices } from "./produce.ts";
import { badRequest, ProblemError, problemResponse, RETRY_AFTER_S } from "./problem.ts";
import { parseCount } from "./query.ts";
import type { BodyRooms } from "./read_body.ts";
import { isHostSound, pathOf } from "./target.ts";
import { createTopic, deleteTopic, describeTopic, listTopics } from "./topics.ts";

export interface HttpAppOptions {
  readonly gateway: Gateway;
  readonly status: NodeStatus;
  readonly env: Env;
  /** Node-wide bytes of produce requests. */
  readonly producePermits: Semaphore;
  readonly rooms: BodyRooms;
  /** Origins that browsers may call from; empty sends no CORS headers at all. */
  readonly corsOrigins: readonly string[];
}

const PARTITION_MAX = 2 ** 31 - 1;
const EXPOSED = [
  "kafka-next-offset",
  "kafka-high-watermark",
  "kafka-log-start",
  "kafka-offset",
  "kafka-partition",
  "kafka-timestamp",
  "kafka-key",
  "kafka-omitted",
  "location",
  "retry-after",
];
/** As labels of metrics; the rest is whatever a client makes up. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "DELETE", "OPTIONS"]);
const CORS_MAX_AGE_S = 7200;
const PATH_SHOWN_CHARS_MAX = 200;
/** What a node answers before it is ready, too. */
const HEALTH_PATHS: ReadonlySet<string> = new Set(["/livez", "/readyz", "/metrics", "/version"]);

export function isHealthRequest(request: Request): boolean {
  return HEALTH_PATHS.has(pathOf(request));
}

function partitionOf(text: string): number {
  return parseCount(text, "partition", PARTITION_MAX);
}

function recordRoutes(app: Hono, services: ProduceServices): void {
  app.post(
    "/v1/topics/:topic/records",
    (c) => produce(services, c.req.raw, c.req.param("topic"), null),
  );
  app.post(
    "/v1/topics/:topic/partitions/:partition/records",
    (c) =>
      produce(services, c.req.raw, c.req.param("topic"), partitionOf(c.req.param("partition"))),
  );
  app.get(
    "/v1/topics/:topic/partitions/:partition/records",
    (c) =>
      consume(services, c.req.raw, c.req.param("topic"), partitionOf(c.req.param("partition"))),
  );
  app.get("/v1/topics/:topic/partitions/:partition/records/:offset", (c) => {
    const { topic, partition, offset } = c.req.param();
    return consumeOne(
      services,
      c.req.raw,
      topic,
      partitionOf(partition),
      parseCount(offset, "offset"),
    );
  });
}

function topicRoutes(app: Hono, { gateway, rooms }: ProduceServices): void {
  app.get("/v1/topics", () => listTopics(gateway));
  app.post("/v1/topics", (c) => createTopic(gateway, c.req.raw, rooms));
  app.get("/v1/topics/:topic", (c) => describeTopic(gateway, c.req.param("topic")));
  app.delete("/v1/topics/:topic", (c) => deleteTopic(gateway, c.req.param("topic")));
}

function healthRoutes(app: Hono, status: NodeStatus): void {
  app.get("/livez", (c) => c.text("ok\n"));
  app.get("/readyz", (c) => {
    const reason = status.notReady();
    return reason === null ? c.text("ready\n") : problemResponse({
      status: 503,
      title: "Not ready",
      detail: reason,
      headers: { "retry-after": RETRY_AFTER_S },
    });
  });
  app.get(
    "/metrics",
    (c) => c.text(status.renderMetrics(), 200, { "content-type": "text/plain; version=0.0.4" }),
  );
  app.get(
    "/version",
    (c) =>
      c.json({
        name: "skerry",
        version: status.version,
        clusterId: status.clusterId,
        nodeId: status.nodeId,
      }),
  );
}

function outcome(status: number): string {
  return `${Math.floor(status / 100)}xx`;
}

const BAD_HOST = badRequest("Cannot use the Host header: it names no host");

/** What all apps of a node share: metrics, and answers to what is unknown or thrown. */
function createApp(env: Env): Hono {
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

/** The health routes alone, for a node that starts. */
export function createHealthApp({ status, env }: Pick<HttpAppOptions, "status" | "env">): Hono {
  const app = createApp(env);
  healthRoutes(app, status);
  refuseOtherMethods(app);
  return app;
}

export function createHttpApp(options: HttpAppOptions): Hono {
  const { gateway, status, env, producePermits, rooms, corsOrigins } = options;
  const { clock } = env;
  const app = createApp(env);
  if (corsOrigins.length > 0) {
    app.use(cors({
      origin: corsOrigins.includes("*") ? "*" : [...corsOrigins],
      allowMethods: ["GET", "POST", "DELETE", "OPTIONS"],
      exposeHeaders: EXPOSED,
      maxAge: CORS_MAX_AGE_S,
    }));
  }
  const services = { gateway, clock, rooms, producePermits };
  recordRoutes(app, services);
  topicRoutes(app, services);
  healthRoutes(app, status);
  refuseOtherMethods(app);
  return app;
}
