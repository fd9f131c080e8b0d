/**
 * WebSockets as the gateway sees them. An HTTP server that can open them hands an `HttpHost` to the fetch
 * handler beside the request; a route that wants a socket offers to take one, and answers anything with 200.
 */

/** An open WebSocket of the server. */
export interface ServerSocket {
  /** Of the client, for logs. */
  readonly remote: string;
  /** Takes a message; its memory is the caller's again. False: the next one should wait for `room()`. */
  send(message: string | Uint8Array): boolean;
  /** Resolves when there is room for a message, or the socket is closed. */
  room(): Promise<void>;
  /** Whether the peer's messages should wait. Not all hosts can: what they push has to be bounded too. */
  hold(isHeld: boolean): void;
  /** Behind what was sent; a peer that takes neither is cut off soon, where the host can. Does it once. */
  close(code: number, reason: string): void;
}

export interface SocketHandler {
  /** One of up to HTTP_SOCKET_MESSAGE_BYTES_MAX bytes; its memory is the handler's. */
  message(message: string | Uint8Array): void;
  /** Nothing comes or leaves any more. Called once, whoever closed. */
  closed(): void;
}

export interface SocketOffer {
  /** The subprotocol that was chosen of those that the client offers; null for none. */
  readonly protocol: string | null;
  /** Called once the handshake is done, or never. */
  readonly open: (socket: ServerSocket) => SocketHandler;
}

/** What an HTTP server can do with a request that asks for an upgrade, beside answering it. */
export interface HttpHost {
  /** Turns this request into a socket once it is answered with 200; a handshake that is broken gets 400. */
  upgrade(offer: SocketOffer): void;
}

/** RFC 6455 and its registry. */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  unsupported: 1003,
  policy: 1008,
  tooBig: 1009,
  internal: 1011,
  restart: 1012,
  tryLater: 1013,
} as const;
