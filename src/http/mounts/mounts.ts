/** The dialects of other brokers' gateways, each under its own path. */
import type { Hono } from "hono";
import type { MountServices } from "./mount_services.ts";
import { restV2App } from "./rest_v2/app.ts";
import { restV3App } from "./rest_v3/app.ts";
import { upstashApp } from "./upstash/app.ts";

export function mountRoutes(app: Hono, services: MountServices): void {
  app.route("/upstash", upstashApp(services));
  app.route("/rest", restV2App(services));
  for (const path of ["/v3", "/kafka/v3"]) app.route(path, restV3App(services));
}
