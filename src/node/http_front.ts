/**
 * What the HTTP port answers from the moment it is open: health at once, the rest when the node is
 * ready. Requests wait for that, but not for ever, not for a client that is gone, and not too many.
 */
import type { Cancel, Clock } from "../env/clock.ts";
import type { Metrics } from "../env/metrics.ts";
import { HTTP_READY_WAIT_MS, HTTP_READY_WAITERS_MAX } from "../lib/limits.ts";
import { isHealthRequest } from "../http/app.ts";
import { problemResponse, RETRY_AFTER_S } from "../http/problem.ts";
import type { HttpHost } from "../http/sockets/socket_port.ts";

/** The host is that of the server that the request came through. */
export type Fetch = (request: Request, host?: HttpHost) => Promise<Response>;

export interface HttpFrontOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Answers the health routes until the node serves. */
  readonly health: Fetch;
}

function refusal(why: string): Response {
  return problemResponse({
    status: 503,
    title: "Not ready",
    detail: `Cannot answer: ${why}`,
    headers: { "retry-after": RETRY_AFTER_S },
  });
}

const RECOVERS = "the node recovers";
const FAILED = "the node failed to start";

export class HttpFront {
  readonly #clock: Clock;
  readonly #metrics: Metrics;
  readonly #health: Fetch;
  readonly #waiting = new Set<() => void>();
  #serving: Fetch | null = null;
  #isFailed = false;
  #active = 0;

  constructor({ clock, metrics, health }: HttpFrontOptions) {
    this.#clock = clock;
    this.#metrics = metrics;
    this.#health = health;
  }

  /** Null once the node is ready. */
  get notReady(): string | null {
    if (this.#serving !== null) return null;
    return this.#isFailed ? FAILED : RECOVERS;
  }

  serve(fetch: Fetch): void {
    this.#serving = fetch;
    this.#wake();
  }

  /** The node will never be ready. */
  fail(): void {
    this.#isFailed = true;
    this.#wake();
  }

  async fetch(request: Request, host?: HttpHost): Promise<Response> {
    this.#countActive(1);
    try {
      return await this.#answer(request, host);
    } finally {
      this.#countActive(-1);
    }
  }

  #countActive(by: number): void {
    this.#active += by;
    this.#metrics.gauge("skerry_http_requests_active", this.#active);
  }

  async #answer(request: Request, host?: HttpHost): Promise<Response> {
    if (this.#serving !== null) return await this.#serving(request, host);
    if (isHealthRequest(request)) return await this.#health(request);
    if (!this.#isFailed && this.#waiting.size < HTTP_READY_WAITERS_MAX) await this.#wait(request);
    return await this.#late(request, host);
  }

  /** The wait is over: the node serves, or it does not. */
  async #late(request: Request, host?: HttpHost): Promise<Response> {
    if (this.#serving !== null) return await this.#serving(request, host);
    return refusal(this.#isFailed ? FAILED : RECOVERS);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }

  #wait({ signal }: Request): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      let cancel: Cancel = () => {};
      const wake = () => {
        cancel();
        this.#waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      cancel = this.#clock.after(HTTP_READY_WAIT_MS, wake);
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }
}
