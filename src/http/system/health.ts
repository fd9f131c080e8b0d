/** What probes and scrapers ask: whether the process lives, is ready, has started, and its metrics. */
import * as v from "valibot";
import { formatWanted } from "../accept.ts";
import { jsonAnswer, TEXT } from "../api/answers.ts";
import { integer } from "../api/fields.ts";
import { type Answer, type Route, route } from "../api/route.ts";
import type { NodeStatus } from "../port.ts";
import { problemResponse, RETRY_AFTER_S } from "../problem.ts";

export interface HealthServices {
  readonly status: NodeStatus;
  /** Once true it stays so, whatever happens later. */
  readonly hasStarted: boolean;
}

const LIVE = ["/livez", "/health", "/healthz", "/healthy", "/ping"] as const;
const READY = ["/readyz", "/ready", "/status/ready"] as const;
const STARTED = "/startupz";

/** What a node answers before it is ready, too. */
export const HEALTH_PATHS: ReadonlySet<string> = new Set([
  ...LIVE,
  ...READY,
  STARTED,
  "/metrics",
  "/version",
]);

function text(line: string): Response {
  return new Response(line, { headers: { "content-type": "text/plain; charset=UTF-8" } });
}

function readiness(title: string, reason: string | null): Response {
  return reason === null ? text("ready\n") : problemResponse({
    status: 503,
    title,
    detail: reason,
    headers: { "retry-after": RETRY_AFTER_S },
  });
}

const METRICS = [
  ["prometheus", ["text/plain"]],
  ["openmetrics", ["application/openmetrics-text"]],
] as const;
const METRICS_TYPES = {
  prometheus: "text/plain; version=0.0.4",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

function metrics(request: Request, status: NodeStatus): Response {
  const format = formatWanted(request, METRICS);
  return new Response(status.renderMetrics(format), {
    headers: { "content-type": METRICS_TYPES[format], "vary": "Accept" },
  });
}

function idOf(path: string): string {
  return `probe${
    path.split("/").map((part) => part.slice(0, 1).toUpperCase() + part.slice(1)).join("")
  }`;
}

function probe(
  path: string,
  summary: string,
  answer: Answer,
  answerOf: (s: HealthServices) => Response,
) {
  return route("GET", path, {
    id: idOf(path),
    tag: "system",
    summary,
    query: "ignored",
    answers: { 200: answer },
    handler: (services: HealthServices) => () => answerOf(services),
  });
}

export const healthRoutes: readonly Route<HealthServices>[] = [
  ...LIVE.map((path) =>
    probe(
      path,
      "The process answers",
      { description: "it does", content: TEXT },
      () => text("ok\n"),
    )
  ),
  ...READY.map((path) =>
    probe(
      path,
      "The node is ready, and its store answers",
      { description: "it is; else 503 with the reason", content: TEXT },
      ({ status }) => readiness("Not ready", status.notReady()),
    )
  ),
  probe(
    STARTED,
    "The node has been ready since its start",
    { description: "it has; else 503", content: TEXT },
    ({ status, hasStarted }) => readiness("Not started", hasStarted ? null : status.notReady()),
  ),
  route("GET", "/metrics", {
    id: "readMetrics",
    tag: "system",
    summary: "Metrics for Prometheus",
    query: "ignored",
    answers: {
      200: {
        description: "in Prometheus' text format, or as OpenMetrics",
        content: { "text/plain": null, "application/openmetrics-text": null },
      },
    },
    handler: ({ status }: HealthServices) => ({ request }) => metrics(request, status),
  }),
  route("GET", "/version", {
    id: "readVersion",
    tag: "system",
    summary: "What runs here",
    query: "ignored",
    answers: {
      200: jsonAnswer(
        "name and version",
        v.strictObject({
          name: v.literal("skerry"),
          version: v.string(),
          clusterId: v.string(),
          nodeId: integer(0),
        }),
      ),
    },
    handler: ({ status }: HealthServices) => () => {
      const { version, clusterId, nodeId } = status;
      return Response.json({ name: "skerry", version, clusterId, nodeId });
    },
  }),
];
