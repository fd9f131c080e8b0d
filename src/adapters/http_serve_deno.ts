/** A fetch handler on Deno.serve, with the request signal and the hard stop that it lacks by itself. */
import { CLOSE_CODES, type HttpHost, type SocketOffer } from "../http/sockets/socket_port.ts";
import { closesSent, upgradeDeno } from "./http_socket_deno.ts";
import type { DenoRuntime, DenoServeInfo, FetchHandler } from "./runtime_types.ts";

export interface DenoHttpServer {
  readonly port: number;
  drain(): Promise<void>;
  cut(): void;
}

function remoteOf({ remoteAddr: { hostname, port } }: DenoServeInfo): string {
  return `${hostname}:${port}`;
}

/**
 * Deno's own signal also fires after a successful answer, `completed` is silent until there is one, and
 * nothing stops the server while a handler is stuck. So each request gets a signal of ours, made of both,
 * and is answered with 503 when the server is cut.
 */
async function answer(
  handler: FetchHandler,
  request: Request,
  info: DenoServeInfo,
  upgrading: HttpHost | undefined,
  running: Set<() => void>,
): Promise<Response> {
  const gone = new AbortController();
  const onGone = () => gone.abort(new Error("The client is gone"));
  request.signal.addEventListener("abort", onGone);
  info.completed.catch(onGone);
  let giveUp = () => {};
  const cut = new Promise<Response>((resolve) => {
    giveUp = () => {
      gone.abort(new Error("The server stops"));
      resolve(new Response(null, { status: 503, headers: { connection: "close" } }));
    };
  });
  running.add(giveUp);
  try {
    return await Promise.race([
      handler(new Request(request, { signal: gone.signal }), upgrading),
      cut,
    ]);
  } finally {
    running.delete(giveUp);
    request.signal.removeEventListener("abort", onGone);
  }
}

export function serveDeno(
  deno: DenoRuntime,
  handler: FetchHandler,
  { host, port }: { readonly host: string; readonly port: number },
): DenoHttpServer {
  const running = new Set<() => void>();
  const sockets = new Set<WebSocket>();
  const options = { hostname: host, port, onListen: () => {} };
  const answerUpgrade = async (request: Request, info: DenoServeInfo) => {
    let wanted: SocketOffer | null = null;
    const upgrading: HttpHost = { upgrade: (offer) => (wanted = offer) };
    const response = await answer(handler, request, info, upgrading, running);
    if (wanted === null || !response.ok) return response;
    return upgradeDeno(deno, request, wanted, remoteOf(info), sockets);
  };
  const server = deno.serve(
    options,
    (request, info) =>
      request.headers.get("upgrade") === null
        ? answer(handler, request, info, undefined, running)
        : answerUpgrade(request, info),
  );
  return {
    port: server.addr.port,
    async drain() {
      await closesSent(sockets);
      await server.shutdown();
    },
    cut() {
      for (const giveUp of running) giveUp();
      for (const socket of sockets) socket.close(CLOSE_CODES.restart, "the broker stops");
    },
  };
}
