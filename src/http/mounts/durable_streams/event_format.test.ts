import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toUtf8, utf8 } from "../../../lib/bytes.ts";
import { HTTP_CHUNK_BYTES } from "../../../lib/limits.ts";
import type { ContentKind } from "./content.ts";
import { recordEvents } from "./event_format.ts";

function eventsOf(value: Uint8Array | null, kind: ContentKind): string {
  const record = { offset: 0, timestampMs: 0, key: null, value, headers: [] };
  return [...recordEvents(record, kind, () => "event: control\ndata:{}\n\n")].join("");
}

/** As the specification of server-sent events has it. */
function parse(text: string): { readonly type: string; readonly data: string }[] {
  const events: { type: string; data: string }[] = [];
  let [type, data]: [string, string[]] = ["message", []];
  for (const line of text.split(/\r\n|\r|\n/)) {
    if (line === "") {
      if (data.length > 0) events.push({ type, data: data.join("\n") });
      [type, data] = ["message", []];
    }
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line)!;
    if (name === "event") type = value!;
    if (name === "data") data.push(value!);
  }
  return events;
}

const hostile = fc.array(
  fc.constantFrom("\r", "\n", " ", "\r\n", "a", ":", "data: x", "event: control", "é", "\u2028"),
).map((parts) => parts.join(""));

test("whatever stands in a text, it is one data event with that text, and a control event", () => {
  fc.assert(fc.property(hostile, fc.nat(3), (text, more) => {
    // Cut into pieces at every place of a break.
    const long = "x".repeat(more === 0 ? 0 : HTTP_CHUNK_BYTES - more) + text;
    const [data, control, ...rest] = parse(eventsOf(toUtf8(long), "text"));
    assert.deepEqual(data, { type: "data", data: long.replaceAll(/\r\n|\r/g, "\n") });
    assert.deepEqual(control, { type: "control", data: "{}" });
    assert.deepEqual(rest, []);
  }));
});

test("bytes are base64 in one line, and come out as they were", () => {
  fc.assert(fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(2), (bytes, large) => {
    const value = large === 0 ? new Uint8Array([...bytes, ...new Uint8Array(100_000)]) : bytes;
    const [data] = parse(eventsOf(value, "binary"));
    const binary = atob(data?.data ?? "");
    assert.deepEqual(Uint8Array.from(binary, (char) => char.charCodeAt(0)), value);
  }));
});

test("a message of JSON is an array of one, on one line", () => {
  const value = toUtf8('{"a": 1.0,\r\n "b":[]}');
  assert.ok(eventsOf(value, "json").startsWith('event: data\ndata:[{"a": 1.0,   "b":[]}]\n\n'));
  const [data] = parse(eventsOf(Uint8Array.of(0xff), "json"));
  assert.deepEqual(JSON.parse(data!.data), [{ $base64: "/w==" }], "of another producer");
});

test("a record without a value is its control event alone", () => {
  assert.equal(eventsOf(null, "text"), "event: control\ndata:{}\n\n");
  assert.equal(utf8(toUtf8(eventsOf(new Uint8Array(0), "text"))).split("event:").length, 3);
});
