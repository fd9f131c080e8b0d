/** Waits for a condition, within a bound: never for a time. And the gauges of a broker, to wait for. */

/** Below the 30 s of a long poll, so that one which was given up or cut does not just end by itself. */
const MS_MAX = 20_000;
const PAUSE_MS = 5;

/** Throws with `what` when the condition does not come true in time. */
export async function until(
  what: string,
  isTrue: () => boolean | Promise<boolean>,
): Promise<void> {
  const endMs = performance.now() + MS_MAX;
  while (!await isTrue()) {
    if (performance.now() > endMs) throw new Error(`not within ${MS_MAX} ms: ${what}`);
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}

async function gauge(http: string, name: string): Promise<number> {
  const text = await (await fetch(`${http}/metrics`)).text();
  const found = new RegExp(`^${name} (\\S+)$`, "m").exec(text);
  if (found === null) throw new Error(`no metric ${name}`);
  return Number(found[1]);
}

/** HTTP requests without an answer, the one that asks excluded. */
export async function activeRequests(http: string): Promise<number> {
  return await gauge(http, "skerry_http_requests_active") - 1;
}
