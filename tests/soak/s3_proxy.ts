/** A loopback proxy in front of a real S3 server: refuses, delays, cuts connections, swallows answers. */
import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { type Random, randomInt } from "../../src/env/random.ts";

/** Shares of requests, from 0 to 1. */
export interface Trouble {
  /** 503, nothing is done. */
  readonly refuse?: number;
  /** The connection ends, nothing is done. */
  readonly cut?: number;
  /** It is done, and the answer is lost. */
  readonly swallow?: number;
  /** Half of the answer's body arrives. */
  readonly halve?: number;
  readonly delayMs?: number;
}

const SLOW_DOWN = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code></Error>';

export interface S3Proxy {
  readonly url: string;
  trouble: Trouble;
  readonly counts: Map<string, number>;
  /** Connections of the broker. */
  connections(): Promise<number>;
  close(): void;
}

export async function startProxy(target: URL, random: Random): Promise<S3Proxy> {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const counts = new Map<string, number>();
  const count = (what: string) => void counts.set(what, (counts.get(what) ?? 0) + 1);
  const hits = (share: number | undefined) => share !== undefined && random.float() < share;

  function forward(from: IncomingMessage, to: ServerResponse, trouble: Trouble): void {
    const { method, url, headers } = from;
    const { hostname, port } = target;
    const onward = request({ agent, hostname, port, method, path: url, headers }, (answer) => {
      count(`${answer.statusCode}`);
      if (hits(trouble.swallow)) {
        count("swallowed");
        answer.resume();
        from.socket.destroy();
        return;
      }
      to.writeHead(answer.statusCode ?? 500, answer.headers);
      if (hits(trouble.halve) && Number(answer.headers["content-length"]) > 1) {
        count("halved");
        answer.once("data", (chunk: Uint8Array) => {
          to.write(chunk.subarray(0, chunk.length >> 1), () => from.socket.destroy());
          answer.destroy();
        });
        return;
      }
      answer.on("error", () => from.socket.destroy());
      answer.pipe(to);
    });
    onward.on("error", () => from.socket.destroy());
    from.on("error", () => onward.destroy());
    from.pipe(onward);
  }

  const server: Server = createServer((from, to) => {
    const { trouble } = proxy;
    to.on("error", () => {});
    if (hits(trouble.refuse)) {
      count("refused");
      from.resume();
      to.writeHead(503, { "content-type": "application/xml" }).end(SLOW_DOWN);
    } else if (hits(trouble.cut)) {
      count("cut");
      from.socket.destroy();
    } else if (trouble.delayMs === undefined) forward(from, to, trouble);
    else setTimeout(() => forward(from, to, trouble), randomInt(random, trouble.delayMs));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  const proxy: S3Proxy = {
    url: `http://127.0.0.1:${port}`,
    trouble: {},
    counts,
    connections: () =>
      new Promise((done) => server.getConnections((error, number) => done(error ? 0 : number))),
    close: () => {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
  return proxy;
}
