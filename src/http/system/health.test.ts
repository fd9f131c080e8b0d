import assert from "node:assert/strict";
import { test } from "node:test";
import { createHttpTopic } from "../../../tests/support/http_topic.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { createHealthApp } from "../app.ts";
import { HEALTH_PATHS } from "./health.ts";

function starting(reason: string | null) {
  const env = testEnv();
  env.metrics.count("skerry_http_requests_total", { method: "GET", status: "2xx" }, 3);
  const status = {
    notReady: () => reason,
    renderMetrics: (format: "prometheus" | "openmetrics") => env.metrics.render(format),
    version: "1.2.3",
    clusterId: "c",
    nodeId: 1,
  };
  const app = createHealthApp({ env, status });
  const statusOf = async (path: string) => (await app.request(path)).status;
  return { app, statusOf };
}

test("a node that recovers lives, has not started and is not ready", async () => {
  const { app, statusOf } = starting("the node recovers");
  for (const path of ["/livez", "/health", "/healthz", "/healthy", "/ping"]) {
    assert.equal(await statusOf(path), 200, path);
  }
  for (const path of ["/readyz", "/ready", "/status/ready", "/startupz"]) {
    const answer = await app.request(path);
    assert.equal(answer.status, 503, path);
    assert.equal(answer.headers.get("retry-after"), "1", path);
    assert.equal((await answer.json() as { detail: string }).detail, "the node recovers");
  }
  assert.equal((await app.request("/startupz", { method: "POST" })).status, 405);
});

test("all of them are answered before the node is ready, and take any query", async () => {
  const { app } = starting(null);
  assert.ok(HEALTH_PATHS.size >= 11);
  for (const path of HEALTH_PATHS) {
    const answer = await app.request(`${path}?no=cache`);
    assert.equal(answer.status, 200, path);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff", path);
  }
});

test("started stays true when the store fails later", async () => {
  const { app } = createHttpTopic();
  assert.equal((await app.request("/startupz")).status, 200);
});

test("metrics are OpenMetrics for those who ask for it", async () => {
  const { app } = starting(null);
  const plain = await app.request("/metrics");
  assert.match(plain.headers.get("content-type")!, /^text\/plain; version=0\.0\.4/);
  const text = await plain.text();
  assert.match(text, /^# TYPE skerry_http_requests_total counter$/m);
  assert.ok(!text.includes("# EOF"));
  const accept = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5";
  const open = await app.request("/metrics", { headers: { accept } });
  assert.match(
    open.headers.get("content-type")!,
    /^application\/openmetrics-text; version=1\.0\.0/,
  );
  const lines = (await open.text()).split("\n");
  assert.deepEqual(lines.slice(-2), ["# EOF", ""]);
  // Families of counters lose their end there, samples keep it; bounds are floats.
  assert.ok(lines.includes("# TYPE skerry_http_requests counter"));
  assert.ok(lines.some((line) => line.startsWith("skerry_http_requests_total{")));
  assert.ok(lines.some((line) => line.includes('_seconds_bucket{le="1.0"}')));
  assert.ok(!lines.some((line) => line.includes('le="1"')));
});
