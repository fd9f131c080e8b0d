import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { HTTP_READY_WAIT_MS, HTTP_READY_WAITERS_MAX } from "../lib/limits.ts";
import { createHealthApp } from "../http/app.ts";
import { HttpFront } from "./http_front.ts";

function rig() {
  const clock = createFakeClock();
  const status = {
    notReady: () => front.notReady,
    renderMetrics: () => "# metrics\n",
    version: "1.2.3",
    clusterId: "c",
    nodeId: 1,
  };
  const env = testEnv({ clock });
  const { metrics } = env;
  const app = createHealthApp({ env, status });
  const health = async (request: Request) => await app.fetch(request);
  const front = new HttpFront({ clock, metrics, health });
  const get = (path: string, init?: RequestInit) =>
    front.fetch(new Request(`http://node${path}`, init));
  const active = () => Number(/^skerry_http_requests_active (\d+)$/m.exec(metrics.render())![1]);
  return { clock, front, get, active };
}

const served = () => Promise.resolve(new Response("served"));

async function problemOf(response: Response): Promise<{ status: number; detail: string }> {
  assert.equal(response.headers.get("content-type"), "application/problem+json");
  return await response.json() as { status: number; detail: string };
}

test("while the node recovers /livez is 200, /readyz 503 with the reason, /version answers", async () => {
  const { clock, front, get } = rig();
  assert.equal((await get("/livez")).status, 200);
  assert.equal((await get("/livez?a=1", { method: "HEAD" })).status, 200);
  const ready = await get("/readyz");
  assert.equal(ready.status, 503);
  assert.ok(ready.headers.has("retry-after"));
  assert.match((await problemOf(ready)).detail, /recovers/);
  assert.deepEqual(await (await get("/version")).json(), {
    name: "skerry",
    version: "1.2.3",
    clusterId: "c",
    nodeId: 1,
  });
  assert.equal(await (await get("/metrics")).text(), "# metrics\n");
  front.serve(served);
  assert.equal(await (await get("/livez")).text(), "served");
  assert.equal(clock.timers, 0);
});

test("other requests wait for the node, and no longer than they may", async () => {
  const { clock, front, get } = rig();
  const late = get("/v1/topics");
  await clock.advance(HTTP_READY_WAIT_MS);
  const response = await late;
  assert.equal(response.status, 503);
  assert.equal(response.headers.get("retry-after"), "1");
  assert.match((await problemOf(response)).detail, /recovers/);
  const inTime = get("/v1/topics");
  await clock.advance(HTTP_READY_WAIT_MS - 1);
  front.serve(served);
  assert.equal(await (await inTime).text(), "served");
  assert.equal(clock.timers, 0);
});

test("a client that goes away is not waited with", async () => {
  const { clock, get, active } = rig();
  const gone = new AbortController();
  const waiting = get("/v1/topics", { signal: gone.signal });
  await clock.settle();
  assert.equal(clock.timers, 1);
  assert.equal(active(), 1);
  gone.abort();
  assert.equal((await waiting).status, 503);
  assert.equal(clock.timers, 0);
  assert.equal(active(), 0);
  assert.equal((await get("/v1/topics", { signal: gone.signal })).status, 503);
});

test("not more wait than may, and after a failed start nobody does", async () => {
  const { clock, front, get } = rig();
  const waiting = Array.from({ length: HTTP_READY_WAITERS_MAX }, () => get("/v1/topics"));
  assert.equal((await get("/v1/topics")).status, 503);
  front.fail();
  for (const one of waiting) {
    const response = await one;
    assert.equal(response.status, 503);
    assert.match((await problemOf(response)).detail, /failed to start/);
  }
  assert.equal((await get("/v1/topics")).status, 503);
  assert.match((await problemOf(await get("/readyz"))).detail, /failed to start/);
  assert.equal(clock.timers, 0);
});

test("requests count as active until they have an answer, also when it is an error", async () => {
  const { front, get, active } = rig();
  const ends: ((response: Response) => void)[] = [];
  front.serve((request) =>
    request.url.endsWith("/fails")
      ? Promise.reject(new Error("a handler"))
      : new Promise((resolve) => void ends.push(resolve))
  );
  const first = get("/1");
  const second = get("/2");
  assert.equal(active(), 2);
  await assert.rejects(get("/fails"), /a handler/);
  assert.equal(active(), 2);
  for (const end of ends) end(new Response("done"));
  await Promise.all([first, second]);
  assert.equal(active(), 0);
});
