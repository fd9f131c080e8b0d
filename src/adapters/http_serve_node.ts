/** A fetch handler on node:http, for Node, which has no server of that shape. */
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  ServerResponse,
} from "node:http";
import type { Duplex } from "node:stream";
import type { HttpHost, SocketOffer } from "../http/sockets/socket_port.ts";
import { type NodeSockets, nodeSockets } from "./http_socket_node.ts";
import type { FetchHandler } from "./runtime_types.ts";

export interface NodeHttpServer {
  readonly port: number;
  /** Stops accepting; resolves when all requests are answered. */
  drain(): Promise<void>;
  cut(): void;
}

function headersOf(incoming: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming)) {
    for (const each of Array.isArray(value) ? value : [value ?? ""]) headers.append(name, each);
  }
  return headers;
}

/** The body as a stream that pauses the socket while nobody reads. */
function bodyOf(message: IncomingMessage): ReadableStream<Uint8Array> {
  let open = true;
  const finish = (act: () => void) => {
    if (open) act();
    open = false;
  };
  return new ReadableStream<Uint8Array>({
    start(controller) {
      message.pause();
      message.on("data", (chunk: Uint8Array) => {
        if (!open) return;
        controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length));
        if ((controller.desiredSize ?? 0) <= 0) message.pause();
      });
      message.on("end", () => finish(() => controller.close()));
      message.on("error", (error) => finish(() => controller.error(error)));
      message.on("close", () => finish(() => controller.error(new Error("The client is gone"))));
    },
    pull: () => void message.resume(),
    // The rest is read and dropped: it stands in front of the next request.
    cancel: () => finish(() => message.resume()),
  });
}

function requestOf(message: IncomingMessage, signal: AbortSignal): Request {
  const method = message.method ?? "GET";
  const target = message.url ?? "/";
  // Joined, not resolved: a target like `//name` would be taken for a host. The Host header may hold anything.
  const url = new URL(target.startsWith("/") ? `http://localhost${target}` : target);
  const headers = headersOf(message.headers);
  if (method === "GET" || method === "HEAD") return new Request(url, { method, headers, signal });
  return new Request(url, { method, headers, signal, body: bodyOf(message), duplex: "half" });
}

/** Resolves when the answer has room again, or nobody takes it any more. */
function room(answer: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      answer.off("drain", go);
      answer.off("close", go);
      resolve();
    };
    answer.on("drain", go);
    answer.on("close", go);
  });
}

async function sendBody(body: ReadableStream<Uint8Array>, answer: ServerResponse): Promise<void> {
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (!answer.write(part.value) && !answer.destroyed) await room(answer);
      if (answer.destroyed) break;
    }
  } finally {
    if (answer.destroyed) await reader.cancel();
  }
}

async function send(response: Response, answer: ServerResponse, isHead: boolean): Promise<void> {
  answer.statusCode = response.status;
  for (const [name, value] of response.headers) answer.appendHeader(name, value);
  if (response.body !== null && !isHead) await sendBody(response.body, answer);
  else await response.body?.cancel();
  answer.end();
}

/**
 * Requests whose answers are under way. Node's Request follows the signal that it is made with through a weak
 * reference: once the Request itself is collected, a handler that waits on `request.signal` hears of nothing.
 */
const underWay = new Set<Request>();

async function respond(
  handler: FetchHandler,
  message: IncomingMessage,
  answer: ServerResponse,
  /** Where the client asks for an upgrade: takes the connection over, instead of the answer. */
  open?: (offer: SocketOffer) => void,
): Promise<void> {
  const gone = new AbortController();
  answer.on("close", () => {
    if (!answer.writableFinished) gone.abort(new Error("The client is gone"));
  });
  let request: Request;
  try {
    request = requestOf(message, gone.signal);
    underWay.add(request);
    answer.on("close", () => underWay.delete(request));
  } catch {
    // A target, a Host header or a method that no Request can carry.
    answer.statusCode = 400;
    answer.end();
    return;
  }
  let wanted: SocketOffer | null = null;
  const host: HttpHost | undefined = open && { upgrade: (offer) => (wanted = offer) };
  const response = await handler(request, host);
  if (wanted !== null && response.ok && !gone.signal.aborted) return open?.(wanted);
  await send(response, answer, message.method === "HEAD");
  // What the handler left of the body would otherwise stay in front of the next request.
  message.resume();
}

function fail(answer: ServerResponse): void {
  // Half an answer cannot be turned into an error: it has to be seen as cut off.
  if (answer.headersSent) return void answer.destroy();
  answer.statusCode = 500;
  answer.end();
}

/**
 * Node hands over the bare connection of a request that asks for an upgrade; an answer is written to it as to
 * any other, as the last one. Bodies do not come through then, but no upgrade that is ours has one.
 */
function respondToUpgrade(
  handler: FetchHandler,
  message: IncomingMessage,
  duplex: Duplex,
  head: Uint8Array,
  sockets: NodeSockets,
): void {
  duplex.on("error", () => {});
  const answer = new ServerResponse(message);
  answer.shouldKeepAlive = false;
  answer.assignSocket(message.socket);
  answer.on("finish", () => duplex.end());
  respond(handler, message, answer, (offer) => {
    answer.detachSocket(message.socket);
    sockets.upgrade(message, duplex, head, offer);
  }).catch(() => fail(answer));
}

export async function serveNode(
  handler: FetchHandler,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<NodeHttpServer> {
  const sockets = await nodeSockets();
  const server = createServer((message, answer) => {
    respond(handler, message, answer).catch(() => fail(answer));
  });
  server.on("upgrade", (message, duplex, head) => {
    respondToUpgrade(handler, message, duplex, head, sockets);
  });
  return await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      // Later errors are failed accepts: they concern that one peer only.
      server.on("error", () => {});
      const address = server.address();
      resolve({
        port: typeof address === "object" && address !== null ? address.port : port,
        drain: () =>
          new Promise((drained) => {
            server.close(() => drained());
            server.closeIdleConnections();
          }),
        cut() {
          server.closeAllConnections();
          sockets.cut();
        },
      });
    });
  });
}
