/** The TCP port on node:net, which Bun, Deno and Node all have. */
import { connect, createServer, type Server, type Socket } from "node:net";
import { setImmediate, setTimeout } from "node:timers";
import type { Connection, Listener, Listening, ListenOptions } from "../env/listener.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { freeMemory } from "../lib/free_memory.ts";
import {
  CONNECTION_KEEP_ALIVE_MS,
  CONNECTION_LINGER_MS,
  CONNECTION_READ_AHEAD_BYTES,
} from "../lib/limits.ts";
import { listenFault } from "./listen_fault.ts";

/** Smaller chunks are no burden to the collector. */
const RELEASED_BYTES_MIN = 16 * 1024;

function closedFault(cause?: unknown): FaultError {
  const why = cause === undefined ? "it is closed" : messageOf(cause);
  return new FaultError("closed", `Cannot write to the connection: ${why}`, {
    retriable: false,
    cause,
  });
}

class NodeConnection implements Connection {
  readonly remote: string;
  readonly #socket: Socket;
  /** Received and not yet read; the socket pauses while this is full. */
  readonly #chunks: Uint8Array[] = [];
  #queuedBytes = 0;
  #reader: ((chunk: Uint8Array | null) => void) | null = null;
  /** Rejects the writes that the kernel has not taken yet. */
  readonly #writers = new Set<(error: FaultError) => void>();
  /** No more bytes come: the peer has ended, or the connection is over. */
  #ended = false;
  #fault: FaultError | null = null;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.remote = `${socket.remoteAddress ?? "?"}:${socket.remotePort ?? 0}`;
    socket.setNoDelay(true);
    socket.setKeepAlive(true, CONNECTION_KEEP_ALIVE_MS);
    socket.on("data", (chunk: Uint8Array) => this.#received(chunk));
    // The peer may end its direction and still wait for our answers.
    socket.on("end", () => this.#endReading());
    socket.on("error", (error) => this.#fail(closedFault(error)));
    socket.on("close", () => this.#fail(closedFault()));
  }

  #received(chunk: Uint8Array): void {
    if (this.#ended) return;
    // A plain view: Buffer's slice() would share memory where the core expects a copy.
    const bytes = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length);
    const reader = this.#reader;
    if (reader !== null) {
      this.#reader = null;
      return reader(bytes);
    }
    this.#chunks.push(bytes);
    this.#queuedBytes += bytes.length;
    if (this.#queuedBytes >= CONNECTION_READ_AHEAD_BYTES) this.#socket.pause();
  }

  #endReading(): void {
    this.#ended = true;
    const reader = this.#reader;
    this.#reader = null;
    reader?.(null);
  }

  #fail(fault: FaultError): void {
    this.#fault ??= fault;
    this.#endReading();
    for (const reject of this.#writers) reject(this.#fault);
    this.#writers.clear();
  }

  /** A reset reads as the end; it is write() that tells of it, where an answer is lost. */
  read(): Promise<Uint8Array | null> {
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) {
      this.#queuedBytes -= chunk.length;
      if (this.#socket.isPaused() && this.#queuedBytes < CONNECTION_READ_AHEAD_BYTES) {
        this.#socket.resume();
      }
      return Promise.resolve(chunk);
    }
    if (this.#ended) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.#reader = resolve;
    });
  }

  /** Every chunk has a buffer of its own, except small ones on Node, which share one. */
  release(chunk: Uint8Array): void {
    const isOwn = chunk.length === chunk.buffer.byteLength;
    if (isOwn && chunk.length >= RELEASED_BYTES_MIN) freeMemory(chunk.buffer);
  }

  /** Resolves when the kernel has taken the bytes: from then on their buffer may be used again. */
  write(bytes: Uint8Array): Promise<void> {
    if (this.#fault !== null) return Promise.reject(this.#fault);
    return new Promise((resolve, reject) => {
      this.#writers.add(reject);
      this.#socket.write(bytes, (error) => {
        this.#writers.delete(reject);
        if (error == null) resolve();
        else reject(this.#fault ?? closedFault(error));
      });
    });
  }

  /**
   * Ends our direction and drops what still comes in until the peer ends too: a socket closed with unread
   * bytes would be reset, and the reset would overtake answers that the peer has not read yet.
   */
  close(): void {
    if (this.#fault !== null) return;
    this.#chunks.length = 0;
    this.#fail(closedFault());
    const socket = this.#socket;
    socket.end();
    socket.resume();
    const linger = setTimeout(() => socket.destroy(), CONNECTION_LINGER_MS);
    socket.on("close", () => clearTimeout(linger));
  }
}

/** Does not wait for open connections, as server.close()'s own callback would. */
function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    if (server.listening) server.close();
    setImmediate(resolve);
  });
}

function listen(
  options: ListenOptions,
  accept: (connection: Connection) => void,
): Promise<Listening> {
  const server = createServer(
    { allowHalfOpen: true },
    (socket) => accept(new NodeConnection(socket)),
  );
  return new Promise((resolve, reject) => {
    const refuse = (error: Error) => reject(listenFault(options.host, options.port, error));
    server.once("error", refuse);
    server.listen({ host: options.host, port: options.port }, () => {
      server.off("error", refuse);
      // Later errors are failed accepts (no descriptors left): they concern that one peer only.
      server.on("error", () => {});
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : options.port;
      resolve({ host: options.host, port, close: () => closeServer(server) });
    });
  });
}

export function nodeListener(): Listener {
  return { listen };
}

/** A connection to somebody else's port. Rejects with a retriable fault when there is none in time. */
export function connectTo(host: string, port: number, timeoutMs: number): Promise<Connection> {
  const socket = connect({ host, port });
  return new Promise((resolve, reject) => {
    const refuse = (why: string) => {
      socket.destroy();
      const message = `Cannot connect to ${host}:${port}: ${why}`;
      reject(new FaultError("closed", message, { retriable: true }));
    };
    const refused = (error: Error & { code?: string }) => refuse(error.code ?? error.message);
    const late = setTimeout(() => refuse(`no answer within ${timeoutMs} ms`), timeoutMs);
    // An error that comes after the refusal has nobody left to tell.
    socket.on("error", (error) => {
      clearTimeout(late);
      refused(error);
    });
    socket.once("connect", () => {
      clearTimeout(late);
      resolve(new NodeConnection(socket));
    });
  });
}
