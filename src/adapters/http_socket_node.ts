/** WebSockets of node:http, which has none of its own: the package is loaded here and nowhere else. */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { clearInterval, clearTimeout, setInterval, setTimeout } from "node:timers";
import type { WebSocket } from "ws";
import type { ServerSocket, SocketOffer } from "../http/sockets/socket_port.ts";
import {
  CONNECTION_LINGER_MS,
  HTTP_SOCKET_MESSAGE_BYTES_MAX,
  HTTP_SOCKET_PING_MS,
  HTTP_SOCKET_ROOM_BYTES,
} from "../lib/limits.ts";
import { SocketRoom } from "./socket_room.ts";

const OPEN = 1;

class NodeSocket implements ServerSocket {
  readonly remote: string;
  readonly #ws: WebSocket;
  readonly #room = new SocketRoom();
  #linger: ReturnType<typeof setTimeout> | undefined;

  constructor(ws: WebSocket, remote: string) {
    this.#ws = ws;
    this.remote = remote;
  }

  get #hasRoom(): boolean {
    return this.#ws.readyState !== OPEN || this.#ws.bufferedAmount < HTTP_SOCKET_ROOM_BYTES;
  }

  send(message: string | Uint8Array): boolean {
    if (this.#ws.readyState !== OPEN) return true;
    // The socket keeps what it cannot send at once by reference.
    const own = typeof message === "string" ? message : message.slice();
    this.#ws.send(own, () => {
      if (this.#hasRoom) this.#room.open();
    });
    return this.#hasRoom;
  }

  async room(): Promise<void> {
    while (!this.#hasRoom) await this.#room.wait();
  }

  hold(isHeld: boolean): void {
    if (isHeld) this.#ws.pause();
    else this.#ws.resume();
  }

  close(code: number, reason: string): void {
    if (this.#ws.readyState !== OPEN) return;
    this.#ws.close(code, reason);
    this.#linger = setTimeout(() => this.#ws.terminate(), CONNECTION_LINGER_MS);
    this.#room.open();
  }

  over(): void {
    clearTimeout(this.#linger);
    this.#room.open();
  }
}

function open(ws: WebSocket, offer: SocketOffer, remote: string): void {
  const socket = new NodeSocket(ws, remote);
  // Errors are followed by the close, which is what counts.
  ws.on("error", () => {});
  const handler = offer.open(socket);
  ws.on("message", (data, isBinary) => {
    // A plain view: Buffer's slice() would share memory where the core expects a copy.
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.length);
    handler.message(isBinary ? bytes : new TextDecoder().decode(bytes));
  });
  ws.on("close", () => {
    socket.over();
    handler.closed();
  });
}

export interface NodeSockets {
  /** Opens a socket for the request, or answers 400 to a broken handshake. */
  upgrade(message: IncomingMessage, duplex: Duplex, head: Uint8Array, offer: SocketOffer): void;
  cut(): void;
}

/** Peers that leave a ping without an answer until the next one are gone. */
function pingAll(clients: Set<WebSocket>): void {
  for (const ws of clients) {
    if (ws.isAlive === false) ws.terminate();
    ws.isAlive = false;
    ws.ping();
  }
}

export async function nodeSockets(): Promise<NodeSockets> {
  const { WebSocketServer } = await import("ws");
  const offers = new WeakMap<IncomingMessage, SocketOffer>();
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: HTTP_SOCKET_MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    handleProtocols: (_offered, message) => offers.get(message)?.protocol ?? false,
  });
  const timer = setInterval(() => pingAll(server.clients), HTTP_SOCKET_PING_MS);
  timer.unref();
  return {
    upgrade(message, duplex, head, offer) {
      offers.set(message, offer);
      server.handleUpgrade(message, duplex, head, (ws) => {
        ws.on("pong", () => (ws.isAlive = true));
        open(ws, offer, remoteOf(message));
      });
    },
    cut() {
      clearInterval(timer);
      for (const ws of server.clients) ws.terminate();
    },
  };
}

export function remoteOf({ socket }: IncomingMessage): string {
  return `${socket.remoteAddress ?? "?"}:${socket.remotePort ?? 0}`;
}
