/** A fetch handler on Deno.serve, with the request signal and the hard stop that it lacks by itself. */
import type { DenoRuntime, DenoServeInfo, FetchHandler } from "./runtime_types.ts";

export interface DenoHttpServer {
  readonly port: number;
  drain(): Promise<void>;
  cut(): void;
}

/**
 * Deno's own signal also fires after a successful answer, and its abort waits for stuck handlers. So each
 * request gets a signal of ours, and is answered with 503 when the server is cut.
 */
function answer(
  handler: FetchHandler,
  request: Request,
  info: DenoServeInfo,
  running: Set<() => void>,
): Promise<Response> {
  const gone = new AbortController();
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      gone.abort(new Error("The server stops"));
      resolve(new Response(null, { status: 503 }));
    };
    running.add(giveUp);
    info.completed.then(
      () => running.delete(giveUp),
      () => {
        running.delete(giveUp);
        gone.abort(new Error("The client is gone"));
      },
    );
    const ours = new Request(request, { signal: gone.signal });
    Promise.resolve(handler(ours)).then(resolve, reject);
  });
}

export function serveDeno(
  deno: DenoRuntime,
  handler: FetchHandler,
  { host, port }: { readonly host: string; readonly port: number },
): DenoHttpServer {
  const abort = new AbortController();
  const running = new Set<() => void>();
  const options = { hostname: host, port, signal: abort.signal, onListen: () => {} };
  const server = deno.serve(options, (request, info) => answer(handler, request, info, running));
  return {
    port: server.addr.port,
    drain: () => server.shutdown(),
    cut() {
      for (const giveUp of running) giveUp();
      abort.abort();
    },
  };
}
