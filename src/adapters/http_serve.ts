/** Serves a fetch handler over HTTP/1.1 with the runtime's own server: Bun.serve, Deno.serve or node:http. */
import { setTimeout } from "node:timers";
import { CONNECTION_DRAIN_MS } from "../lib/limits.ts";
import { serveBun } from "./http_serve_bun.ts";
import { serveDeno } from "./http_serve_deno.ts";
import { serveNode } from "./http_serve_node.ts";
import { listenFault } from "./listen_fault.ts";
import { bunRuntime, denoRuntime, type FetchHandler } from "./runtime_types.ts";

export interface HttpServeOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
}

export interface HttpServer {
  readonly host: string;
  /** The real port, also when 0 was asked for. */
  readonly port: number;
  /** Without a slash at its end. */
  readonly url: string;
  /** Stops accepting, lets running requests end for so long, then cuts them off. Idempotent. */
  close(timeoutMs?: number): Promise<void>;
}

/** What the three runtimes have in common. */
interface Serving {
  readonly port: number;
  drain(): Promise<void>;
  cut(): void | Promise<void>;
}

async function start(handler: FetchHandler, options: HttpServeOptions): Promise<Serving> {
  const bun = bunRuntime();
  if (bun !== undefined) return serveBun(bun, handler, options);
  const deno = denoRuntime();
  if (deno !== undefined) return serveDeno(deno, handler, options);
  return await serveNode(handler, options);
}

/** After a cut nothing is waited for: a handler that never answers keeps Deno's drain pending for ever. */
async function stop(serving: Serving, timeoutMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(() => resolve(serving.cut()), timeoutMs);
  });
  await Promise.race([serving.drain(), late]);
  clearTimeout(timer);
}

/** Throws FaultError("config") when the port cannot be opened. */
export async function serveHttp(
  handler: FetchHandler,
  options: HttpServeOptions,
): Promise<HttpServer> {
  const { host } = options;
  let serving: Serving;
  try {
    serving = await start(handler, options);
  } catch (cause) {
    throw listenFault(host, options.port, cause);
  }
  const { port } = serving;
  let closing: Promise<void> | null = null;
  return {
    host,
    port,
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    close: (timeoutMs = CONNECTION_DRAIN_MS) => closing ??= stop(serving, timeoutMs),
  };
}
