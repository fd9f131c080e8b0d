/** The Durable Streams protocol: a partition of a topic is a stream. */
import type { Context, Hono } from "hono";
import { problemResponse } from "../../problem.ts";
import { dialectApp } from "../dialect_app.ts";
import { append } from "./append.ts";
import { create, describe, remove } from "./manage.ts";
import type { Named, StreamsServices } from "./place.ts";
import { read } from "./read.ts";

/** The second is where the protocol's own servers have theirs. */
export const STREAM_MOUNTS = ["/streams", "/v1/stream"] as const;

type Work = (services: StreamsServices, request: Request, named: Named) => Promise<Response>;

async function get(services: StreamsServices, request: Request, named: Named): Promise<Response> {
  return request.method === "HEAD"
    ? await describe(services, named)
    : await read(services, request, named);
}

async function del(services: StreamsServices, _: Request, named: Named): Promise<Response> {
  return await remove(services, named);
}

export function durableStreamsApp(services: StreamsServices): Hono {
  const handle = (work: Work) => (c: Context) => {
    const topic = c.req.param("topic") ?? "";
    const named = { topic, partition: c.req.param("partition") ?? null };
    return work(services, c.req.raw, named);
  };
  return dialectApp(
    services.env,
    (problem) =>
      problemResponse({
        ...problem,
        headers: { "cache-control": "no-store", ...problem.headers },
      }),
    (app) => {
      for (const path of ["/:topic", "/:topic/:partition"]) {
        app.put(path, handle(create));
        app.post(path, handle(append));
        app.get(path, handle(get));
        app.delete(path, handle(del));
      }
    },
  );
}
