/** The few members of the package that the adapter for Node touches. */
declare module "ws" {
  import type { IncomingMessage } from "node:http";
  import type { Duplex } from "node:stream";

  export interface WebSocket {
    readonly readyState: number;
    readonly bufferedAmount: number;
    isAlive?: boolean;
    on(event: "message", listener: (data: Uint8Array, isBinary: boolean) => void): void;
    on(event: "close" | "pong", listener: () => void): void;
    on(event: "error", listener: (error: Error) => void): void;
    send(data: string | Uint8Array, sent: () => void): void;
    ping(): void;
    pause(): void;
    resume(): void;
    close(code: number, reason: string): void;
    terminate(): void;
  }

  export class WebSocketServer {
    constructor(options: {
      readonly noServer: true;
      readonly maxPayload: number;
      readonly perMessageDeflate: false;
      readonly handleProtocols: (offered: Set<string>, request: IncomingMessage) => string | false;
    });
    readonly clients: Set<WebSocket>;
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Uint8Array,
      opened: (socket: WebSocket) => void,
    ): void;
  }
}
