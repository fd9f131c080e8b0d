import assert from "node:assert/strict";
import { test } from "node:test";
import { toUtf8, utf8 } from "../lib/bytes.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { binaryEvent } from "./produce/cloud_events.ts";
import type { RecordOutput } from "./port.ts";
import { rawResponse } from "./raw_record.ts";

function answer(headers: readonly (readonly [string, string])[], value: string | null = "x") {
  const record: RecordOutput = {
    offset: 3,
    timestampMs: 5,
    key: toUtf8("k"),
    value: value === null ? null : toUtf8(value),
    headers: headers.map(([name, text]) => ({ name, value: toUtf8(text) })),
  };
  const request = new Request("http://node/");
  return rawResponse(record, {
    partition: 0,
    request,
    clock: createFakeClock(),
    release: () => {},
  });
}

test("an event is read as it was sent", async () => {
  const sent = new Request("http://node/", {
    method: "POST",
    headers: {
      "ce-specversion": "1.0",
      "ce-id": "1",
      "ce-source": "/s",
      "ce-type": "t",
      "ce-subject": "caf%C3%A9%20100%25%22",
      "content-type": "text/xml; charset=utf-8",
      traceparent: "00-1",
    },
    body: "<a/>",
  });
  const { headers } = binaryEvent(sent, toUtf8("<a/>"), null);
  const back = answer(headers.map(({ name, value }) => [name, utf8(value!)]), "<a/>");
  for (
    const name of ["ce-specversion", "ce-id", "ce-source", "ce-type", "ce-subject", "content-type"]
  ) {
    assert.equal(back.headers.get(name), sent.headers.get(name), name);
  }
  assert.equal(back.headers.get("kafka-header-traceparent"), "00-1");
  assert.equal(back.headers.get("kafka-header-ce_id"), null);
  assert.equal(back.headers.get("content-security-policy"), "sandbox");
  assert.equal(await back.text(), "<a/>");
});

test("a structured event has its type, and what is no event has none", () => {
  const type = "application/cloudevents+json";
  assert.equal(answer([["content-type", type]]).headers.get("content-type"), type);
  for (const headers of [[["content-type", "text/html"]], [["ce_id", "1"]]] as const) {
    const { headers: plain } = answer(headers);
    assert.equal(plain.get("content-type"), "application/octet-stream");
    assert.equal(plain.get(`kafka-header-${headers[0][0]}`), headers[0][1]);
    assert.equal(plain.get("content-security-policy"), null);
  }
});

test("a tombstone has no type, and what HTTP cannot hold stays encoded or is left out", () => {
  const gone = answer([["ce_specversion", "1.0"], ["content-type", "text/html"]], null);
  assert.equal(gone.status, 204);
  assert.equal(gone.headers.get("content-type"), null);
  assert.equal(gone.headers.get("ce-specversion"), "1.0");
  const odd = answer([["ce_specversion", "1.0"], ["content-type", "a\r\nset-cookie: b"]]);
  assert.equal(odd.headers.get("set-cookie"), null);
  assert.equal(odd.headers.get("content-type"), "application/octet-stream");
  const large = answer([["ce_specversion", "1.0"], ["ce_data", "x".repeat(10_000)]]);
  assert.equal(large.headers.get("kafka-omitted"), "headers;count=1");
});

test("headers of a record do not crowd out what keeps a browser from running it", () => {
  // All sizes around the bound, so that the type just fits and what comes behind it does not.
  for (let size = 6_144 - 200; size <= 6_144; size++) {
    const { headers } = answer([
      ["ce_specversion", "1.0"],
      ["ce_a", "a".repeat(size)],
      ["content-type", "text/html"],
    ], "<script>alert(1)</script>");
    assert.equal(headers.get("content-security-policy"), "sandbox", String(size));
  }
});
