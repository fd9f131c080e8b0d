/**
 * Kafka over a WebSocket: its binary messages are a byte pipe, cut anywhere, as a TCP connection is one. The
 * server behind it cannot tell the difference.
 */
import type { CloseReason, Connection } from "../../env/listener.ts";
import { FaultError } from "../../lib/errors.ts";
import { CONNECTION_READ_AHEAD_BYTES } from "../../lib/limits.ts";
import type { MessageQueue, OpenSockets } from "./open_sockets.ts";
import { CLOSE_CODES, type ServerSocket, type SocketHandler } from "./socket_port.ts";

/** In the words of RFC 6455; a client that left is owed no code. */
const CLOSES: Record<CloseReason, readonly [code: number, reason: string]> = {
  client: [CLOSE_CODES.normal, ""],
  drained: [CLOSE_CODES.restart, "the broker stops"],
  idle: [CLOSE_CODES.goingAway, "idle for connections.max.idle.ms"],
  slow: [CLOSE_CODES.policy, "too slow"],
  protocol: [CLOSE_CODES.policy, "not the Kafka protocol"],
  failed: [CLOSE_CODES.internal, "the connection failed"],
  refused: [CLOSE_CODES.tryLater, "too many connections, or the broker stops"],
};

function closedFault(): FaultError {
  return new FaultError("closed", "Cannot write to the WebSocket: it is closed", {
    retriable: false,
  });
}

class SocketConnection implements Connection, SocketHandler {
  readonly remote: string;
  readonly #socket: ServerSocket;
  readonly #queue: MessageQueue<Uint8Array>;
  readonly #onClosed: () => void;
  #reader: ((chunk: Uint8Array | null) => void) | null = null;
  #isOver = false;
  #isHeld = false;

  constructor(socket: ServerSocket, queue: MessageQueue<Uint8Array>, onClosed: () => void) {
    this.#socket = socket;
    this.#queue = queue;
    this.#onClosed = onClosed;
    this.remote = socket.remote;
  }

  message(message: string | Uint8Array): void {
    if (this.#isOver) return;
    if (typeof message === "string") {
      return this.#end(CLOSE_CODES.unsupported, "Kafka comes in binary messages");
    }
    if (message.length === 0) return;
    const reader = this.#reader;
    if (reader !== null) {
      this.#reader = null;
      return reader(message);
    }
    if (!this.#queue.push(message)) {
      return this.#end(CLOSE_CODES.tryLater, "more was sent than the broker can take");
    }
    if (this.#queue.bytes >= CONNECTION_READ_AHEAD_BYTES) this.#hold(true);
  }

  closed(): void {
    this.#finish();
    this.#onClosed();
  }

  read(): Promise<Uint8Array | null> {
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      if (this.#queue.bytes < CONNECTION_READ_AHEAD_BYTES) this.#hold(false);
      return Promise.resolve(chunk);
    }
    if (this.#isOver) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  async write(bytes: Uint8Array): Promise<void> {
    if (!this.#isOver && !this.#socket.send(bytes)) await this.#socket.room();
    if (this.#isOver) throw closedFault();
  }

  close(reason: CloseReason = "client"): void {
    this.#end(...CLOSES[reason]);
  }

  #hold(isHeld: boolean): void {
    if (this.#isHeld === isHeld || this.#isOver) return;
    this.#isHeld = isHeld;
    this.#socket.hold(isHeld);
  }

  #end(code: number, reason: string): void {
    if (this.#isOver) return;
    // A host that waits reads no answer to our close either.
    this.#hold(false);
    this.#finish();
    this.#socket.close(code, reason);
  }

  #finish(): void {
    this.#isOver = true;
    this.#queue.clear();
    const reader = this.#reader;
    this.#reader = null;
    reader?.(null);
  }
}

/** Serves Kafka on the socket until either ends. */
export function openKafkaSocket(
  socket: ServerSocket,
  sockets: OpenSockets,
  serve: (connection: Connection) => void,
): SocketHandler {
  sockets.opened("kafka");
  const queue = sockets.queue<Uint8Array>(({ length }) => length);
  const connection = new SocketConnection(socket, queue, () => sockets.closed("kafka"));
  serve(connection);
  return connection;
}
