/**
 * Outbound requests by node:http and node:https, which Bun, Deno and Node all have. Names are resolved here, each
 * address is asked about, and the connection goes to one that was allowed: what the name says a moment later does
 * not matter. Connections are kept and used again; proxies of the environment are not used.
 */
import { lookup as lookUp } from "node:dns";
import { Agent as PlainAgent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { Agent as SecureAgent, request as requestSecure } from "node:https";
import type { LookupFunction } from "node:net";
import type { OutboundAnswer, OutboundHttp, OutboundRequest } from "../env/outbound_http.ts";
import { isAddress } from "../lib/ip_address.ts";

/** To one host; idle ones are the host's to close. */
const KEEPING = { keepAlive: true, maxFreeSockets: 16 } as const;

export interface OutboundHttpOptions {
  /** Certificates of authorities that are trusted in place of the host's. */
  readonly ca?: string;
}

class NotAllowed extends Error {
  override readonly name = "NotAllowed";
}

const NOT_ALLOWED = "it has no address that records may be sent to";

/** In place of the host's own lookup: gives out only what is allowed. */
function guarded(mayConnectTo: OutboundRequest["mayConnectTo"]): LookupFunction {
  return (hostname, { all }, callback) => {
    lookUp(hostname, { all: true, verbatim: true }, (error, found) => {
      if (error !== null) return callback(error, "", 0);
      const allowed = found.filter(({ address }) => mayConnectTo(address));
      const [first] = allowed;
      if (first === undefined) callback(new NotAllowed(NOT_ALLOWED), "", 0);
      else if (all === true) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return `could not be reached${code === "" ? "" : ` (${code})`}`;
}

function answerTo(error: unknown, signal: AbortSignal): OutboundAnswer {
  if (signal.aborted) return { ok: false, kind: "aborted", reason: "was cut off" };
  if (error instanceof NotAllowed) return { ok: false, kind: "refused", reason: NOT_ALLOWED };
  return { ok: false, kind: "failed", reason: reasonOf(error) };
}

/** Once the body is over, or more of it than is read; without it the connection could not be used again. */
function drain(
  message: IncomingMessage,
  sending: ClientRequest,
  bytesMax: number,
  done: (answer: OutboundAnswer) => void,
): void {
  const { statusCode: status = 0, headers } = message;
  const retryAfter = headers["retry-after"] ?? null;
  const answer = { ok: true, status, retryAfter } as const;
  let bytes = 0;
  message.on("data", (chunk: Uint8Array) => {
    bytes += chunk.length;
    if (bytes <= bytesMax) return;
    done(answer);
    sending.destroy();
  });
  message.on("end", () => done(answer));
  message.on("error", () => done(answer));
  message.on("close", () => done(answer));
}

class NodeOutboundHttp implements OutboundHttp {
  readonly #tls: { readonly ca?: string };
  readonly #plain = new PlainAgent(KEEPING);
  readonly #secure: SecureAgent;

  constructor({ ca }: OutboundHttpOptions) {
    this.#tls = ca === undefined ? {} : { ca };
    this.#secure = new SecureAgent({ ...KEEPING, ...this.#tls });
  }

  send(wanted: OutboundRequest): Promise<OutboundAnswer> {
    const host = wanted.url.hostname.replace(/^\[(.*)\]$/, "$1");
    // Hosts look up no name where there is an address already.
    if (isAddress(host) && !wanted.mayConnectTo(host)) {
      return Promise.resolve({ ok: false, kind: "refused", reason: NOT_ALLOWED });
    }
    return new Promise((resolve) => this.#attempt(wanted, host, resolve, false));
  }

  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
  }

  #attempt(
    wanted: OutboundRequest,
    host: string,
    resolve: (answer: OutboundAnswer) => void,
    isFresh: boolean,
  ): void {
    const { signal, body, answerBytesMax } = wanted;
    let cut = () => {};
    const done = (answer: OutboundAnswer) => {
      signal.removeEventListener("abort", cut);
      resolve(answer);
    };
    if (signal.aborted) return done(answerTo(null, signal));
    try {
      const sending = this.#start(wanted, host, isFresh);
      let isAnswered = false;
      cut = () => {
        done(answerTo(null, signal));
        sending.destroy();
      };
      signal.addEventListener("abort", cut, { once: true });
      sending.on("error", (error) => {
        const isStale = sending.reusedSocket && !isFresh && !isAnswered && !signal.aborted;
        if (!isStale) return done(answerTo(error, signal));
        // The host may have closed an idle connection just then: its news and our request crossed.
        signal.removeEventListener("abort", cut);
        this.#attempt(wanted, host, resolve, true);
      });
      sending.on("response", (message) => {
        isAnswered = true;
        drain(message, sending, answerBytesMax, done);
      });
      sending.end(body);
    } catch (error) {
      done(answerTo(error, signal));
    }
  }

  #start(
    { url, method, headers, body, mayConnectTo }: OutboundRequest,
    host: string,
    isFresh: boolean,
  ): ClientRequest {
    const options = {
      host,
      path: `${url.pathname}${url.search}`,
      method,
      headers: { ...headers, "content-length": String(body.length) },
      lookup: guarded(mayConnectTo),
      ...(url.port === "" ? {} : { port: Number(url.port) }),
    };
    return url.protocol === "https:"
      ? requestSecure({ ...options, ...this.#tls, agent: isFresh ? false : this.#secure })
      : request({ ...options, agent: isFresh ? false : this.#plain });
  }
}

export function createOutboundHttp(options: OutboundHttpOptions = {}): OutboundHttp {
  return new NodeOutboundHttp(options);
}
