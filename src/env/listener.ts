/** The TCP port of the core: a byte pipe. Adapters wrap sockets, `serve()` wraps Web streams. */

/** Why the server ends a connection. */
export type CloseReason =
  | "client"
  | "drained"
  | "idle"
  | "slow"
  | "protocol"
  | "failed"
  | "refused";

export interface Connection {
  /** For logs only. */
  readonly remote: string;
  /** The next bytes, or null at the end of the stream. One read at a time; the chunk belongs to the reader. */
  read(): Promise<Uint8Array | null>;
  /**
   * The reader has copied the chunk and views none of it: its memory may be used for the next one.
   * Absent where chunks are not the transport's own.
   */
  release?(chunk: Uint8Array): void;
  /** Resolves when the transport has room again; that is the back-pressure. Rejects once the peer is gone. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends both directions at once; idempotent. The reason is for transports that can tell it to the peer. */
  close(reason?: CloseReason): void;
}

export interface Listening {
  readonly host: string;
  /** The real port, also when 0 was asked for. */
  readonly port: number;
  /** Stops accepting; open connections go on. */
  close(): Promise<void>;
}

export interface ListenOptions {
  readonly host: string;
  readonly port: number;
}

export interface Listener {
  listen(options: ListenOptions, accept: (connection: Connection) => void): Promise<Listening>;
}
