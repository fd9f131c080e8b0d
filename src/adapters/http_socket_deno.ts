/** WebSockets of Deno.serve: the Web's own class, which tells of neither room nor peers that take nothing. */
import { clearTimeout, setTimeout } from "node:timers";
import { CLOSE_CODES, type ServerSocket, type SocketOffer } from "../http/sockets/socket_port.ts";
import {
  CONNECTION_LINGER_MS,
  HTTP_SOCKET_MESSAGE_BYTES_MAX,
  HTTP_SOCKET_PING_MS,
  HTTP_SOCKET_ROOM_BYTES,
} from "../lib/limits.ts";
import type { DenoRuntime } from "./runtime_types.ts";
import { SocketRoom } from "./socket_room.ts";

const LOOK_MS_MIN = 1;
const LOOK_MS_MAX = 50;

class DenoSocket implements ServerSocket {
  readonly remote: string;
  readonly #ws: WebSocket;
  readonly #room = new SocketRoom();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ws: WebSocket, remote: string) {
    this.#ws = ws;
    this.remote = remote;
  }

  get #hasRoom(): boolean {
    return this.#ws.readyState !== WebSocket.OPEN ||
      this.#ws.bufferedAmount < HTTP_SOCKET_ROOM_BYTES;
  }

  send(message: string | Uint8Array): boolean {
    if (this.#ws.readyState !== WebSocket.OPEN) return true;
    this.#ws.send(message as string | Uint8Array<ArrayBuffer>);
    return this.#hasRoom;
  }

  async room(): Promise<void> {
    if (this.#hasRoom) return;
    if (this.#timer === undefined) this.#look(LOOK_MS_MIN);
    await this.#room.wait();
  }

  #look(delayMs: number): void {
    this.#timer = setTimeout(() => {
      if (this.#hasRoom) this.settle();
      else this.#look(Math.min(delayMs * 2, LOOK_MS_MAX));
    }, delayMs);
  }

  /** Deno pushes whatever comes. */
  hold(): void {}

  /** Deno has no way to cut off a peer that takes nothing: it keeps its place until it is gone. */
  close(code: number, reason: string): void {
    this.#ws.close(code, reason);
    this.settle();
  }

  settle(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#room.open();
  }
}

function open(ws: WebSocket, offer: SocketOffer, remote: string): void {
  const socket = new DenoSocket(ws, remote);
  const handler = offer.open(socket);
  ws.addEventListener("message", ({ data }: MessageEvent<string | ArrayBuffer>) => {
    const isText = typeof data === "string";
    if ((isText ? data.length : data.byteLength) > HTTP_SOCKET_MESSAGE_BYTES_MAX) {
      return socket.close(CLOSE_CODES.tooBig, "too large a message");
    }
    handler.message(isText ? data : new Uint8Array(data));
  });
  ws.addEventListener("close", () => {
    socket.settle();
    handler.closed();
  });
}

/** Deno's shutdown overtakes the close of a socket and puts 1001 in its place, so it waits for those a moment. */
export async function closesSent(sockets: ReadonlySet<WebSocket>): Promise<void> {
  const ends = [...sockets].filter(({ readyState }) => readyState === WebSocket.CLOSING)
    .map((socket) => new Promise((resolve) => socket.addEventListener("close", resolve)));
  if (ends.length === 0) return;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, CONNECTION_LINGER_MS)));
  await Promise.race([Promise.all(ends), late]);
  clearTimeout(timer);
}

/** The answer that opens the socket, or 400 for a broken handshake. */
export function upgradeDeno(
  deno: DenoRuntime,
  request: Request,
  offer: SocketOffer,
  remote: string,
  sockets: Set<WebSocket>,
): Response {
  const { protocol } = offer;
  let upgraded: ReturnType<DenoRuntime["upgradeWebSocket"]>;
  try {
    upgraded = deno.upgradeWebSocket(request, {
      ...(protocol === null ? {} : { protocol }),
      idleTimeout: HTTP_SOCKET_PING_MS / 1000,
    });
  } catch {
    return new Response(null, { status: 400 });
  }
  const { socket, response } = upgraded;
  socket.binaryType = "arraybuffer";
  // Errors are followed by the close, which is what counts.
  socket.addEventListener("error", (event) => event.preventDefault());
  socket.addEventListener("close", () => sockets.delete(socket));
  socket.addEventListener("open", () => open(socket, offer, remote));
  sockets.add(socket);
  return response;
}
