/** WebSockets of Bun.serve. */
import { clearTimeout, setTimeout } from "node:timers";
import type { ServerSocket, SocketHandler, SocketOffer } from "../http/sockets/socket_port.ts";
import {
  CONNECTION_LINGER_MS,
  HTTP_SOCKET_MESSAGE_BYTES_MAX,
  HTTP_SOCKET_PING_MS,
  HTTP_SOCKET_ROOM_BYTES,
} from "../lib/limits.ts";
import type { BunWebSocket, BunWebSockets } from "./runtime_types.ts";
import { SocketRoom } from "./socket_room.ts";

/** What a socket carries from its handshake on. */
export interface BunSocketData {
  readonly offer: SocketOffer;
  readonly remote: string;
  opened: { readonly socket: BunSocket; readonly handler: SocketHandler } | null;
}

class BunSocket implements ServerSocket {
  readonly #ws: BunWebSocket<BunSocketData>;
  readonly #room = new SocketRoom();
  #close: (() => void) | null = null;
  #linger: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  constructor(ws: BunWebSocket<BunSocketData>) {
    this.#ws = ws;
  }

  get remote(): string {
    return this.#ws.data.remote;
  }

  send(message: string | Uint8Array): boolean {
    if (this.#isOver || this.#close !== null) return true;
    this.#ws.send(message);
    return this.#hasRoom;
  }

  get #hasRoom(): boolean {
    return this.#isOver || this.#close !== null ||
      this.#ws.getBufferedAmount() < HTTP_SOCKET_ROOM_BYTES;
  }

  async room(): Promise<void> {
    while (!this.#hasRoom) await this.#room.wait();
  }

  /** Bun pushes whatever comes. */
  hold(): void {}

  /** Bun's own close drops what has not left yet, so it has to wait for that. */
  close(code: number, reason: string): void {
    if (this.#isOver || this.#close !== null) return;
    this.#close = () => this.#ws.close(code, reason);
    this.#room.open();
    this.#linger = setTimeout(() => this.#ws.terminate(), CONNECTION_LINGER_MS);
    this.drained();
  }

  drained(): void {
    if (this.#close === null) return this.#room.open();
    if (this.#ws.getBufferedAmount() === 0) this.#close();
  }

  over(): void {
    this.#isOver = true;
    clearTimeout(this.#linger);
    this.#room.open();
  }
}

export const bunSockets: BunWebSockets<BunSocketData> = {
  maxPayloadLength: HTTP_SOCKET_MESSAGE_BYTES_MAX,
  idleTimeout: 2 * HTTP_SOCKET_PING_MS / 1000,
  sendPings: true,
  perMessageDeflate: false,
  // Bounded by those who wait for room; what is above is dropped without a word.
  backpressureLimit: 0,
  open(ws) {
    ws.binaryType = "uint8array";
    const socket = new BunSocket(ws);
    ws.data.opened = { socket, handler: ws.data.offer.open(socket) };
  },
  message: (ws, message) => ws.data.opened?.handler.message(message),
  drain: (ws) => ws.data.opened?.socket.drained(),
  close(ws) {
    const { opened } = ws.data;
    opened?.socket.over();
    opened?.handler.closed();
  },
};
