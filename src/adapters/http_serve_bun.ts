/** A fetch handler on Bun.serve, WebSockets included. */
import type { SocketOffer } from "../http/sockets/socket_port.ts";
import { HTTP_IDLE_MS } from "../lib/limits.ts";
import { type BunSocketData, bunSockets } from "./http_socket_bun.ts";
import type { BunRuntime, BunServer, FetchHandler } from "./runtime_types.ts";

export interface BunHttpServer {
  readonly port: number;
  drain(): Promise<void>;
  cut(): Promise<void>;
}

/** Answers a request that asks for an upgrade. */
async function answerUpgrade(
  handler: FetchHandler,
  request: Request,
  server: BunServer<BunSocketData>,
): Promise<Response | undefined> {
  let wanted: SocketOffer | null = null;
  const response = await handler(request, { upgrade: (offer) => (wanted = offer) });
  if (wanted === null || !response.ok) return response;
  const { protocol }: SocketOffer = wanted;
  const address = server.requestIP(request);
  const data: BunSocketData = {
    offer: wanted,
    remote: `${address?.address ?? "?"}:${address?.port ?? 0}`,
    opened: null,
  };
  const headers = protocol === null ? {} : { "sec-websocket-protocol": protocol };
  return server.upgrade(request, { data, headers })
    ? undefined
    : new Response(null, { status: 400 });
}

export function serveBun(
  bun: BunRuntime,
  handler: FetchHandler,
  { host, port }: { readonly host: string; readonly port: number },
): BunHttpServer {
  const server = bun.serve({
    hostname: host,
    port,
    reusePort: false,
    idleTimeout: HTTP_IDLE_MS / 1000,
    // The gateway has limits of its own, and a stream of records has none; what nobody reads waits in the socket.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    fetch: (request, self) =>
      request.headers.get("upgrade") === null
        ? handler(request)
        : answerUpgrade(handler, request, self),
    websocket: bunSockets,
  });
  return { port: server.port, drain: () => server.stop(), cut: () => server.stop(true) };
}
