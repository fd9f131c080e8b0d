/** Where the client runs in tests: a clock that stands still, no chance, and a broker that is a function. */
import type { Host } from "../../src/client/host.ts";
import { Http, type HttpOptions } from "../../src/client/http.ts";
import { createFakeClock } from "./fake_clock.ts";

export interface Asked {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: string;
  readonly signal: AbortSignal;
}

/** What throws is a broken connection; what never resolves is heard of by its signal alone. */
export type Broker = (asked: Asked, count: number) => Response | Promise<Response>;

export function createClientHost(broker: Broker, options: Partial<HttpOptions> = {}) {
  const clock = createFakeClock();
  const asked: Asked[] = [];
  let tokens = 0;
  const host: Host = {
    async fetch(url, init) {
      const request = new Request(url, init);
      const { method, headers } = request;
      const signal = init.signal!;
      const one = { method, url: new URL(url), headers, body: await request.text(), signal };
      asked.push(one);
      signal.throwIfAborted();
      const left = new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error));
      });
      left.catch(() => {});
      return await Promise.race([broker(one, asked.length), left]);
    },
    nowMs: () => clock.monotonicMs(),
    after: (delayMs, work) => clock.after(delayMs, work),
    random: () => 0,
    token: () => `token-${++tokens}`,
  };
  return { host, clock, asked, http: new Http(host, { url: "http://broker/", ...options }) };
}

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(value), { status, headers });
}

export function problem(
  status: number,
  more: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Response {
  return json({ type: "about:blank", title: "No", status, detail: "not now", ...more }, status, {
    "content-type": "application/problem+json",
    ...headers,
  });
}

/** The lines of a request as values. */
export function linesOf({ body }: Asked): Record<string, unknown>[] {
  return body.trimEnd().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
}
