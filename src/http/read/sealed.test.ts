import assert from "node:assert/strict";
import { test } from "node:test";
import { cacheHeaders, type PageFacts } from "./sealed.ts";

const PAGE: PageFacts = {
  topicId: "00ff",
  partition: 3,
  start: 10,
  next: 20,
  count: 10,
  limit: 10,
  fixedBelow: 100,
  variant: "json-auto-uncommitted",
};

function headersOf(over: Partial<PageFacts>, how = { isById: true, isExact: true }, match = "") {
  const headers: Record<string, string> = match === "" ? {} : { "if-none-match": match };
  return cacheHeaders({ ...PAGE, ...over }, new Request("http://n/", { headers }), how);
}

test("a full page that nothing changes has a tag, and under an id it is immutable", () => {
  const { headers } = headersOf({});
  assert.equal(headers["etag"], '"1-00ff-3-10-20-10-json-auto-uncommitted"');
  assert.equal(headers["cache-control"], "public, max-age=31536000, immutable");
  assert.equal(headers["vary"], "Accept");
  const byName = headersOf({}, { isById: false, isExact: true }).headers;
  assert.equal(
    byName["cache-control"],
    "no-cache",
    "a topic of that name may be another one later",
  );
  const inexact = headersOf({}, { isById: false, isExact: false }).headers;
  assert.ok(inexact["etag"]!.startsWith('W/"'), "high watermarks are in the body");
});

test("what may change has none", () => {
  const open: readonly (readonly [string, Partial<PageFacts>])[] = [
    ["the end of the log, below the limit", { next: 100, count: 9 }],
    ["nothing", { count: 0, next: 10 }],
    ["from the beginning, wherever that is", { start: "earliest" }],
    ["from a time", { start: { timestampMs: 5 } }],
    ["the last ones", { start: { tail: 5 } }],
    ["compaction", { fixedBelow: 0 }],
    ["beyond what is fixed", { fixedBelow: 19 }],
  ];
  for (const [why, over] of open) {
    const { headers, isKnown } = headersOf(over, { isById: true, isExact: true }, "*");
    assert.equal(headers["cache-control"], "no-store", why);
    assert.equal(headers["etag"], undefined, why);
    assert.equal(isKnown, false, why);
  }
  assert.notEqual(headersOf({ next: 100 }).headers["etag"], undefined, "at the limit and the end");
});

test("tags are compared weakly, in lists, and * is any", () => {
  const tag = '"1-00ff-3-10-20-10-json-auto-uncommitted"';
  for (const match of [tag, `W/${tag}`, `"x", ${tag}`, "*"]) {
    assert.ok(headersOf({}, undefined, match).isKnown, match);
  }
  for (const match of ['"x"', tag.slice(0, -1), tag.replace("json", "lines")]) {
    assert.ok(!headersOf({}, undefined, match).isKnown, match);
  }
});
