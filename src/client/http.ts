/** One request to the broker: its URL and headers, a time-out, and errors in one shape. */
import {
  answerError,
  isObject,
  noAnswer,
  type Problem,
  SkerryError,
  wrongAnswer,
} from "./errors.ts";
import type { Host } from "./host.ts";

export type HeaderMap = Readonly<Record<string, string>>;

export interface HttpOptions {
  /** Of the broker's HTTP port, with a path in front of `/v1` if a proxy has one. */
  readonly url: string | URL;
  /** For every request; a function is asked each time, for tokens that expire. */
  readonly headers?: HeaderMap | (() => HeaderMap | Promise<HeaderMap>);
  /** How long one request may take, beside what it asks the broker to wait. Default 45 s. */
  readonly requestTimeoutMs?: number;
}

export interface Ask {
  readonly method: string;
  readonly path: string;
  readonly headers?: HeaderMap;
  readonly body?: BodyInit;
  readonly signal?: AbortSignal | undefined;
  /** Time that the request asks the broker to wait. */
  readonly waitMs?: number;
}

export interface Answer {
  readonly status: number;
  /** Empty where there is no content. */
  readonly json: Problem;
}

/** More than the 30 s that the broker waits for its store. */
const REQUEST_TIMEOUT_MS = 45_000;

export class Http {
  readonly host: Host;
  readonly #base: string;
  readonly #headers: NonNullable<HttpOptions["headers"]>;
  readonly #timeoutMs: number;

  constructor(host: Host, { url, headers = {}, requestTimeoutMs }: HttpOptions) {
    this.host = host;
    // A page may name a path of its own host.
    const here = typeof location === "undefined" ? undefined : location.href;
    this.#base = new URL(url, here).href.replace(/\/+$/, "");
    this.#headers = headers;
    this.#timeoutMs = requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  }

  /** A whole answer. Throws SkerryError, or the reason of the signal. */
  async request(ask: Ask): Promise<Answer> {
    return await this.open(ask, async (response) => {
      const text = await response.text();
      return { status: response.status, json: text === "" ? {} : jsonOf(text) };
    });
  }

  /** A success; aborting the exchange ends its body. Throws as above. */
  async open<T>(
    ask: Ask,
    read: (response: Response) => T | Promise<T>,
    exchange = new AbortController(),
  ): Promise<T> {
    const { method, path, body, signal, waitMs = 0 } = ask;
    const headers = await this.#headersOf(ask);
    let isLate = false;
    const leave = () => exchange.abort(signal?.reason);
    const cancel = this.host.after(this.#timeoutMs + waitMs, () => {
      isLate = true;
      exchange.abort();
    });
    signal?.addEventListener("abort", leave);
    try {
      signal?.throwIfAborted();
      const response = await this.host.fetch(`${this.#base}/v1/${path}`, {
        method,
        headers,
        body: body ?? null,
        signal: exchange.signal,
      });
      if (response.ok) return await read(response);
      throw answerError(response.status, response.headers, await response.text());
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof SkerryError) throw error;
      throw noAnswer(isLate ? "timeout" : "network", error);
    } finally {
      cancel();
      signal?.removeEventListener("abort", leave);
    }
  }

  /** What this throws is its caller's to mend, and not tried again. */
  async #headersOf({ headers }: Ask): Promise<Headers> {
    const own = typeof this.#headers === "function" ? await this.#headers() : this.#headers;
    return new Headers({ ...own, ...headers });
  }
}

/** The broker says only objects. What is no JSON was cut on its way. */
function jsonOf(text: string): Problem {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw wrongAnswer("it is not JSON", true);
  }
  if (isObject(value)) return value;
  throw wrongAnswer("it is not an object");
}

/** A name in a path, where some would be understood as steps. */
export function segment(name: string): string {
  if (/^\.{0,2}$/.test(name)) throw new TypeError(`Cannot use the name ${JSON.stringify(name)}`);
  return encodeURIComponent(name);
}

export function postJson(path: string, value: unknown): Ask {
  return {
    method: "POST",
    path,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(value),
  };
}
