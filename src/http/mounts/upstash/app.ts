/** Upstash's Kafka REST API, for clients that were written for it: its service has ended, they have not. */
import type { Context, Hono } from "hono";
import { parameter, parseCount, queryOf } from "../../query.ts";
import { dialectApp } from "../dialect_app.ts";
import { NoInstance } from "../instances/instances.ts";
import type { MountServices } from "../mount_services.ts";
import { consumers, deleteConsumer, topics } from "./admin.ts";
import { commit, committed, consume, type InstanceName } from "./consume.ts";
import { fetchMessages, offsetsAt } from "./fetch.ts";
import { produceBody, producePath, webhook } from "./produce.ts";
import { upstashError } from "./shape.ts";

const READ_OR_WRITE = ["GET", "POST"];

function named(c: Context): InstanceName {
  return { group: c.req.param("group") ?? "", instance: c.req.param("instance") ?? "" };
}

function timeoutOf(request: Request): number | null {
  const text = parameter(queryOf(request), "timeout");
  return text === null ? null : parseCount(text, "timeout");
}

/** Nearly all of it takes GET and POST alike, with the same body. */
function register(app: Hono, services: MountServices): void {
  app.get("/produce/:topic/:message", (c) => {
    const { topic, message } = c.req.param();
    return producePath(services, c.req.raw, topic, message);
  });
  app.on(
    READ_OR_WRITE,
    "/produce/:topic",
    (c) => produceBody(services, c.req.raw, c.req.param("topic")),
  );
  app.on(READ_OR_WRITE, "/produce", (c) => produceBody(services, c.req.raw, null));
  app.on(READ_OR_WRITE, "/webhook", (c) => webhook(services, c.req.raw));
  app.on(READ_OR_WRITE, "/fetch", (c) => fetchMessages(services, c.req.raw));
  app.get("/consume/:group/:instance/:topic", (c) => {
    const topic = c.req.param("topic");
    return consume(services, c.req.raw, named(c), { topic, timeoutMs: timeoutOf(c.req.raw) });
  });
  app.on(
    READ_OR_WRITE,
    "/consume/:group/:instance",
    (c) => consume(services, c.req.raw, named(c), null),
  );
  app.on(READ_OR_WRITE, "/commit/:group/:instance", (c) => commit(services, c.req.raw, named(c)));
  app.on(
    READ_OR_WRITE,
    "/committed/:group/:instance",
    (c) => committed(services, c.req.raw, named(c)),
  );
  app.on(
    READ_OR_WRITE,
    "/offsets/:timestamp",
    (c) => offsetsAt(services, c.req.raw, c.req.param("timestamp")),
  );
  app.get("/topics", () => topics(services));
  app.get("/consumers", () => consumers(services));
  app.on(
    ["POST", "DELETE"],
    "/delete-consumer/:group/:instance",
    (c) => deleteConsumer(services, c.req.raw, named(c)),
  );
}

export function upstashApp(services: MountServices): Hono {
  return dialectApp(
    services.env,
    upstashError,
    (app) => register(app, services),
    (error) =>
      error instanceof NoInstance
        ? { status: 404, title: "Not found", detail: "Cannot find this consumer instance" }
        : null,
  );
}
