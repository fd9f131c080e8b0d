/**
 * The few members of Bun and Deno that the adapters touch, declared by hand: each runtime's own types
 * would claim the globals of the other.
 */

import type { HttpHost } from "../http/sockets/socket_port.ts";

export type FetchHandler = (request: Request, host?: HttpHost) => Response | Promise<Response>;

export interface BunWebSocket<Data> {
  readonly data: Data;
  binaryType: "uint8array";
  /** Takes what does not leave at once into a buffer. */
  send(message: string | Uint8Array): number;
  getBufferedAmount(): number;
  /** Drops what has not left. */
  close(code: number, reason: string): void;
  terminate(): void;
}

export interface BunWebSockets<Data> {
  readonly maxPayloadLength: number;
  /** Seconds without traffic, pings included, until a socket is closed. */
  readonly idleTimeout: number;
  readonly sendPings: true;
  readonly perMessageDeflate: false;
  /** Bytes in a socket's buffer above which messages are dropped; 0 for no bound. */
  readonly backpressureLimit: number;
  readonly open: (socket: BunWebSocket<Data>) => void;
  readonly message: (socket: BunWebSocket<Data>, message: string | Uint8Array) => void;
  readonly drain: (socket: BunWebSocket<Data>) => void;
  readonly close: (socket: BunWebSocket<Data>) => void;
}

export interface BunServer<Data> {
  readonly port: number;
  /** Null once it is upgraded. */
  requestIP(request: Request): { readonly address: string; readonly port: number } | null;
  /** Opens the socket at once; false for a broken handshake. */
  upgrade(
    request: Request,
    options: { readonly data: Data; readonly headers: Readonly<Record<string, string>> },
  ): boolean;
  /** Stops accepting and resolves when all requests are answered; `true` cuts them off. */
  stop(closeActiveConnections?: boolean): Promise<void>;
}

export interface BunRuntime {
  serve<Data>(options: {
    readonly hostname: string;
    readonly port: number;
    /** Must be said: left out, one process can bind the same port twice (Bun 1.4). */
    readonly reusePort: false;
    /** Seconds without traffic until a connection is closed. */
    readonly idleTimeout: number;
    readonly maxRequestBodySize: number;
    readonly development: false;
    /** Nothing is answered for an upgraded request. */
    readonly fetch: (
      request: Request,
      server: BunServer<Data>,
    ) => Response | Promise<Response | undefined>;
    readonly websocket: BunWebSockets<Data>;
  }): BunServer<Data>;
}

export interface DenoServeInfo {
  readonly remoteAddr: { readonly hostname: string; readonly port: number };
  /** Resolves when the answer has been delivered, rejects when the client went away before. */
  readonly completed: Promise<void>;
}

interface DenoServer {
  readonly addr: { readonly port: number };
  /** Stops accepting and resolves when all requests are answered. */
  shutdown(): Promise<void>;
}

export interface DenoRuntime {
  serve(
    options: {
      readonly hostname: string;
      readonly port: number;
      readonly onListen: () => void;
    },
    handler: (request: Request, info: DenoServeInfo) => Promise<Response>,
  ): DenoServer;
  /** Throws on a broken handshake; the socket opens once the response is returned. */
  upgradeWebSocket(
    request: Request,
    options: { readonly protocol?: string; readonly idleTimeout: number },
  ): { readonly socket: WebSocket; readonly response: Response };
}

/** Undefined on other runtimes. */
export function bunRuntime(): BunRuntime | undefined {
  return (globalThis as unknown as { Bun?: BunRuntime }).Bun;
}

export function denoRuntime(): DenoRuntime | undefined {
  return (globalThis as unknown as { Deno?: DenoRuntime }).Deno;
}
