/** A fetch handler on Deno.serve, with the request signal and the hard stop that it lacks by itself. */
import type { DenoRuntime, DenoServeInfo, FetchHandler } from "./runtime_types.ts";

export interface DenoHttpServer {
  readonly port: number;
  drain(): Promise<void>;
  cut(): void;
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
    return await Promise.race([handler(new Request(request, { signal: gone.signal })), cut]);
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
  const options = { hostname: host, port, onListen: () => {} };
  const server = deno.serve(options, (request, info) => answer(handler, request, info, running));
  return {
    port: server.addr.port,
    drain: () => server.shutdown(),
    cut() {
      for (const giveUp of running) giveUp();
    },
  };
}
