import assert from "node:assert/strict";
import { test } from "node:test";
import { Hono } from "hono";
import { browserHeaders } from "./browser_headers.ts";

const ORIGIN = "https://app.example";

function appFor(origins: readonly string[]) {
  const app = new Hono();
  app.use(browserHeaders(origins));
  app.get("/", () =>
    new Response("x", {
      headers: { "kafka-header-unit": "celsius", "stream-next-offset": "1", "vary": "Accept" },
    }));
  app.post("/", () => new Response(null, { status: 204 }));
  return app;
}

function names(text: string | null): string[] {
  return (text ?? "").split(",").map((name) => name.trim().toLowerCase()).filter(Boolean);
}

function preflight(origins: readonly string[], asked: string, origin = ORIGIN) {
  return appFor(origins).request("/", {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": asked,
    },
  });
}

test("a preflight lists what is allowed, by name, whatever it asks for", async () => {
  const asked =
    "idempotency-key,if-none-match,producer-id,stream-seq,kafka-key,kafka-header-unit," +
    "ce-id,x-secret";
  const answer = await preflight([ORIGIN], asked);
  assert.equal(answer.status, 204);
  const { headers } = answer;
  assert.equal(headers.get("access-control-allow-origin"), ORIGIN);
  assert.equal(headers.get("access-control-max-age"), "7200");
  assert.equal(headers.get("access-control-allow-credentials"), null);
  const allowed = names(headers.get("access-control-allow-headers"));
  for (const name of asked.split(",")) {
    assert.equal(allowed.includes(name), name !== "x-secret", name);
  }
  for (
    const name of ["authorization", "content-type", "last-event-id", "if-none-match", "if-match"]
  ) assert.ok(allowed.includes(name), name);
  assert.ok(!allowed.includes("*"));
  const methods = names(headers.get("access-control-allow-methods"));
  assert.deepEqual(methods, ["get", "head", "post", "put", "patch", "delete"]);
  assert.ok(names(headers.get("vary")).includes("origin"));
});

test("another origin is allowed nothing", async () => {
  const { headers, status } = await preflight([ORIGIN], "content-type", "https://evil.example");
  assert.equal(status, 204);
  assert.equal(headers.get("access-control-allow-origin"), null);
  assert.equal(headers.get("access-control-allow-headers"), null);
  const answer = await appFor([ORIGIN]).request("/", {
    headers: { origin: "https://evil.example" },
  });
  assert.equal(answer.headers.get("access-control-allow-origin"), null);
  assert.deepEqual(names(answer.headers.get("vary")), ["accept", "origin"]);
});

test("an answer exposes its own headers, those of the record too", async () => {
  const answer = await appFor([ORIGIN]).request("/", { headers: { origin: ORIGIN } });
  assert.equal(answer.headers.get("access-control-allow-origin"), ORIGIN);
  const exposed = names(answer.headers.get("access-control-expose-headers"));
  for (
    const name of ["etag", "location", "retry-after", "kafka-next-offset", "producer-expected-seq"]
  ) assert.ok(exposed.includes(name), name);
  for (const name of ["kafka-header-unit", "stream-next-offset"]) {
    assert.ok(exposed.includes(name), name);
  }
});

test("a star is for all, and answers do not vary by origin", async () => {
  const answer = await appFor(["*"]).request("/", { headers: { origin: ORIGIN } });
  assert.equal(answer.headers.get("access-control-allow-origin"), "*");
  assert.deepEqual(names(answer.headers.get("vary")), ["accept"]);
});

test("without origins there is no CORS, and OPTIONS is a method like others", async () => {
  const answer = await appFor([]).request("/", { headers: { origin: ORIGIN } });
  assert.equal(answer.headers.get("access-control-allow-origin"), null);
  assert.equal(answer.headers.get("cross-origin-resource-policy"), "same-origin");
  assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
  assert.equal((await preflight([], "content-type")).status, 404);
  const shared = await appFor([ORIGIN]).request("/", { headers: { origin: ORIGIN } });
  assert.equal(shared.headers.get("cross-origin-resource-policy"), "cross-origin");
});
