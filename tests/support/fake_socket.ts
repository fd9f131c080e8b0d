/** WebSockets without a network: the test is the client, and says whether there is room. */
import type {
  HttpHost,
  ServerSocket,
  SocketHandler,
  SocketOffer,
} from "../../src/http/sockets/socket_port.ts";

export const HANDSHAKE: Readonly<Record<string, string>> = {
  upgrade: "websocket",
  connection: "Upgrade",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

export class FakeSocket implements ServerSocket {
  readonly remote = "192.0.2.1:40000";
  readonly sent: (string | Uint8Array)[] = [];
  closed: readonly [code: number, reason: string] | null = null;
  isHeld = false;
  hasRoom = true;
  #waiting: (() => void)[] = [];

  send(message: string | Uint8Array): boolean {
    if (this.closed !== null) return true;
    this.sent.push(typeof message === "string" ? message : message.slice());
    return this.hasRoom;
  }
  room(): Promise<void> {
    if (this.hasRoom || this.closed !== null) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }
  setRoom(hasRoom: boolean): void {
    this.hasRoom = hasRoom;
    if (hasRoom) this.#wake();
  }
  hold(isHeld: boolean): void {
    this.isHeld = isHeld;
  }
  close(code: number, reason: string): void {
    this.closed ??= [code, reason];
    this.#wake();
  }
  /** The peer is gone, as the host would tell. */
  lose(): void {
    this.closed ??= [1006, ""];
    this.#wake();
  }
  #wake(): void {
    for (const go of this.#waiting.splice(0)) go();
  }
}

export interface FakeOpening {
  readonly response: Response;
  readonly offer: SocketOffer | null;
}

type App = { fetch(request: Request, env: unknown): Response | Promise<Response> };

export async function askForSocket(
  app: App,
  path: string,
  headers: Readonly<Record<string, string>> = HANDSHAKE,
): Promise<FakeOpening> {
  let offer: SocketOffer | null = null;
  const host: HttpHost = { upgrade: (one) => void (offer = one) };
  const response = await app.fetch(new Request(`http://node${path}`, { headers }), { host });
  return { response, offer };
}

export async function openSocket(
  app: App,
  path: string,
): Promise<{ readonly socket: FakeSocket; readonly handler: SocketHandler }> {
  const { offer, response } = await askForSocket(app, path);
  if (offer === null) throw new Error(`no socket: ${response.status} ${await response.text()}`);
  const socket = new FakeSocket();
  return { socket, handler: offer.open(socket) };
}
