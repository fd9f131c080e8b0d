import assert from "node:assert/strict";
import { test } from "node:test";
import { Hono } from "hono";
import { refuseForeignPages } from "./foreign_pages.ts";

const EVIL = "https://evil.example";

function appFor(named: readonly string[]) {
  const app = new Hono();
  app.use(refuseForeignPages(named));
  app.all("*", () => new Response("x"));
  return app;
}

async function status(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  named: readonly string[] = [],
): Promise<number> {
  const sent = { host: "127.0.0.1:8080", ...headers };
  return (await appFor(named).request(path, { method, headers: sent })).status;
}

const RECORDS = "/v1/topics/t/records";

test("a page of another origin changes nothing, with simple requests either", async () => {
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    assert.equal(await status(method, RECORDS, { origin: EVIL }), 403, method);
    const marked = { origin: EVIL, "sec-fetch-site": "cross-site" };
    assert.equal(await status(method, RECORDS, marked), 403, method);
  }
  // A sandboxed page, one of another port, and one that lies about nothing but its host.
  assert.equal(await status("POST", RECORDS, { origin: "null" }), 403);
  assert.equal(await status("POST", RECORDS, { origin: "http://127.0.0.1:3000" }), 403);
  const sameSite = { origin: "http://localhost:3000", "sec-fetch-site": "same-site" };
  assert.equal(await status("POST", RECORDS, sameSite), 403);
});

test("nor does an image of a page, where GET changes something", async () => {
  const image = { "sec-fetch-site": "cross-site" };
  assert.equal(await status("GET", "/upstash/produce/t/m", image), 403);
  assert.equal(await status("GET", "/rest/consumers/g/instances/i/records", image), 403);
  assert.equal(await status("GET", "/%75pstash/produce/t/m", image), 403);
  assert.equal(await status("GET", RECORDS, image), 200);
  assert.equal(await status("HEAD", RECORDS, { origin: EVIL }), 200);
});

test("own pages, people, named origins and clients that are no browsers are let through", async () => {
  assert.equal(await status("POST", RECORDS, {}), 200);
  assert.equal(await status("POST", RECORDS, { origin: "http://127.0.0.1:8080" }), 200);
  const proxied = { origin: "https://kafka.example", "sec-fetch-site": "same-origin" };
  assert.equal(await status("POST", RECORDS, proxied), 200);
  assert.equal(await status("GET", "/upstash/topics", { "sec-fetch-site": "none" }), 200);
  assert.equal(await status("POST", RECORDS, { origin: EVIL }, [EVIL]), 200);
  assert.equal(await status("POST", RECORDS, { origin: EVIL }, ["https://app.example"]), 403);
  const marked = { origin: EVIL, "sec-fetch-site": "cross-site" };
  assert.equal(await status("POST", RECORDS, marked, ["*"]), 200);
});
