/** The HTTP app: routes, and the one place where thrown values become answers. */
import { Hono } from "hono";
import { cors } from "hono/cors";
import type { Env } from "../env/env.ts";
import { messageOf } from "../lib/errors.ts";
import { parseCount } from "./body.ts";
import { consume, consumeOne } from "./consume.ts";
import type { Gateway, NodeStatus } from "./port.ts";
import { produce } from "./produce.ts";
import { ProblemError, problemResponse } from "./problem.ts";
import { createTopic, deleteTopic, describeTopic, listTopics } from "./topics.ts";

export interface HttpAppOptions {
  readonly gateway: Gateway;
  readonly status: NodeStatus;
  readonly env: Env;
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
  "location",
  "retry-after",
];
/** As labels of metrics; the rest is whatever a client makes up. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "DELETE", "OPTIONS"]);
const CORS_MAX_AGE_S = 7200;

function partitionOf(text: string): number {
  return parseCount(text, "partition", PARTITION_MAX);
}

function recordRoutes(app: Hono, gateway: Gateway): void {
  app.post(
    "/v1/topics/:topic/records",
    (c) => produce(gateway, c.req.raw, c.req.param("topic"), null),
  );
  app.post(
    "/v1/topics/:topic/partitions/:partition/records",
    (c) => produce(gateway, c.req.raw, c.req.param("topic"), partitionOf(c.req.param("partition"))),
  );
  app.get(
    "/v1/topics/:topic/partitions/:partition/records",
    (c) => consume(gateway, c.req.raw, c.req.param("topic"), partitionOf(c.req.param("partition"))),
  );
  app.get("/v1/topics/:topic/partitions/:partition/records/:offset", (c) => {
    const { topic, partition, offset } = c.req.param();
    return consumeOne(
      gateway,
      c.req.raw,
      topic,
      partitionOf(partition),
      parseCount(offset, "offset"),
    );
  });
}

function topicRoutes(app: Hono, gateway: Gateway): void {
  app.get("/v1/topics", () => listTopics(gateway));
  app.post("/v1/topics", (c) => createTopic(gateway, c.req.raw));
  app.get("/v1/topics/:topic", (c) => describeTopic(gateway, c.req.param("topic")));
  app.delete("/v1/topics/:topic", (c) => deleteTopic(gateway, c.req.param("topic")));
}

function healthRoutes(app: Hono, status: NodeStatus): void {
  app.get("/livez", (c) => c.text("ok\n"));
  app.get("/readyz", (c) => {
    const reason = status.notReady();
    return reason === null ? c.text("ready\n") : c.text(`not ready: ${reason}\n`, 503);
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

export function createHttpApp({ gateway, status, env, corsOrigins }: HttpAppOptions): Hono {
  const app = new Hono();
  app.use(async (c, next) => {
    const startedMs = env.clock.monotonicMs();
    await next();
    env.metrics.count("skerry_http_requests_total", {
      method: METHODS.has(c.req.method) ? c.req.method : "other",
      status: outcome(c.res.status),
    });
    env.metrics.observe(
      "skerry_http_request_seconds",
      (env.clock.monotonicMs() - startedMs) / 1000,
    );
  });
  if (corsOrigins.length > 0) {
    app.use(cors({
      origin: corsOrigins.includes("*") ? "*" : [...corsOrigins],
      allowMethods: ["GET", "POST", "DELETE", "OPTIONS"],
      exposeHeaders: EXPOSED,
      maxAge: CORS_MAX_AGE_S,
    }));
  }
  recordRoutes(app, gateway);
  topicRoutes(app, gateway);
  healthRoutes(app, status);
  app.notFound((c) =>
    problemResponse({
      status: 404,
      title: "Not found",
      detail: `Cannot find ${c.req.method} ${c.req.path}`,
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
