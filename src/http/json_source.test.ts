import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HTTP_JSON_DEPTH_MAX } from "../lib/limits.ts";
import { toUtf8, utf8 } from "../lib/bytes.ts";
import { readQuery } from "./api/read_query.ts";
import { recordsOfBody } from "./body.ts";
import { produceQuery } from "./produce/produce.ts";
import { elementsOf, fieldsOf, sourced, sourceOf } from "./json_source.ts";
import { ProblemError } from "./problem.ts";

const space = fc.string({ unit: fc.constantFrom(" ", "\t", "\r", "\n"), maxLength: 2 });
const digits = fc.string({
  unit: fc.constantFrom(..."0123456789".split("")),
  minLength: 1,
  maxLength: 25,
});
const number = fc.tuple(
  fc.constantFrom("", "-"),
  fc.oneof(fc.constant("0"), digits.map((text) => `1${text}`)),
  fc.oneof(fc.constant(""), digits.map((text) => `.${text}`)),
  fc.oneof(fc.constant(""), digits.map((text) => `E+0${text}`), digits.map((text) => `e-${text}`)),
).map((parts) => parts.join(""));
const stringText = fc.array(
  fc.constantFrom(
    "a",
    "é",
    "\u{1f600}",
    "{",
    "]",
    ",",
    ":",
    " ",
    ...'nrtbf/\\"'.split("").map((c) => `\\${c}`),
    "\\u0041",
    "\\ud83d\\ude00",
    "\\ud800",
    "\\\\",
  ),
  { maxLength: 8 },
).map((parts) => `"${parts.join("")}"`);

function spaced(open: string, inner: fc.Arbitrary<string[]>, close: string): fc.Arbitrary<string> {
  return fc.tuple(space, space, inner, space)
    .map(([a, b, parts, c]) => `${open}${a}${parts.join(`${b},${c}`)}${a}${close}`);
}

const { value: jsonText, list, object } = fc.letrec<
  { value: string; list: string; object: string; field: string }
>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    number,
    stringText,
    fc.constantFrom("true", "false", "null"),
    tie("list"),
    tie("object"),
  ),
  list: spaced("[", fc.array(tie("value"), { maxLength: 3 }), "]"),
  // Few names, so that fields stand twice.
  field: fc.tuple(
    fc.constantFrom('"a"', '"b"', '"\\u0061"', '"__proto__"', '""'),
    space,
    space,
    tie("value"),
  )
    .map(([name, before, behind, value]) => `${name}${before}:${behind}${value}`),
  object: spaced("{", fc.array(tie("field"), { maxLength: 4 }), "}"),
}));
/** What is neither text nor a tombstone. */
const kept = fc.oneof(number, fc.constantFrom("true", "false"), list, object);

interface Body {
  readonly text: string;
  readonly type?: string;
  readonly query?: string;
}

function recordsOf({ text, type = "application/json", query = "" }: Body) {
  const request = new Request(`http://localhost/?${query}`, {
    method: "POST",
    headers: { "content-type": type },
  });
  return recordsOfBody(request, readQuery(request, produceQuery), toUtf8(text));
}

function values(body: Body): string[] {
  return recordsOf(body).map(({ value }) => utf8(value!));
}

function oneLine(text: string): string {
  return text.replace(/[\r\n]/g, " ");
}

test("any JSON is stored as the text that was sent, in every shape of a body", () => {
  fc.assert(
    fc.property(kept, kept, jsonText, space, (a, b, other, s) => {
      const envelope = (text: string) =>
        `${s}{${s}"headers":[${s}["h"${s},${s}${a}],["i", null]],"value"${s}:${s}${text}${s},${s}"key":${b}}${s}`;
      const one = recordsOf({ text: envelope(a) })[0]!;
      assert.deepEqual([utf8(one.value!), utf8(one.key!)], [a, b]);
      assert.deepEqual(one.headers.map(({ value }) => value && utf8(value)), [a, null]);
      assert.deepEqual(values({ text: `[${envelope(a)},${envelope(b)}]` }), [a, b]);
      assert.deepEqual(values({ text: `${s}{"records"${s}:[${envelope(a)},${envelope(b)}]}` }), [
        a,
        b,
      ]);
      assert.deepEqual(values({ text: `[${a}${s},${b}]`, query: "bare=1" }), [a, b]);
      const lines = { type: "application/x-ndjson" };
      const [x, y] = [oneLine(a), oneLine(b)];
      assert.deepEqual(
        values({ ...lines, text: `${oneLine(envelope(x))}\n${oneLine(envelope(y))}\r\n` }),
        [x, y],
      );
      assert.deepEqual(values({ ...lines, text: `${x}\n ${y}\r\n`, query: "bare=1" }), [x, y]);
      // What stands in front of it does not matter.
      const fields = fieldsOf(sourced(`{"o":${other},"v":${a}}`, { v: 1 }));
      assert.ok(typeof fields !== "string");
      assert.equal(sourceOf(fields.get("v")!), a);
      const places = [...elementsOf(sourced(`${s}[${other}${s},${a}]`, [0, 1]))];
      assert.deepEqual(places.map(sourceOf), [other, a]);
    }),
    { numRuns: 300 },
  );
});

test("numbers, an order of fields and fields that stand twice survive", () => {
  const value = '{"id":1234567890123456789,"x":1.10,"a":1,"a":2, "e":1E5}';
  assert.deepEqual(values({ text: `{"value":${value}}` }), [value]);
  assert.deepEqual(values({ text: "12345678901234567890", query: "bare" }), [
    "12345678901234567890",
  ]);
  assert.deepEqual(values({ text: '{"v\\u0061lue":-0.0}' }), ["-0.0"]);
});

test("half of a surrogate pair is refused as text, and kept where it is JSON's own text", () => {
  const refused = [
    '{"value":"\\ud800"}',
    '{"value":"a\\udc00b"}',
    '{"key":"\\udfff","value":1}',
    '{"value":1,"headers":[["\\ud800","x"]]}',
    '{"value":1,"headers":[["x","\\ud800"]]}',
  ];
  for (const text of refused) assert.throws(() => recordsOf({ text }), ProblemError, text);
  assert.throws(() => recordsOf({ text: '["\\ud800"]', query: "bare=1" }), ProblemError);
  assert.deepEqual(values({ text: '{"value":"\\ud83d\\ude00"}' }), ["\u{1f600}"]);
  assert.deepEqual(values({ text: '{"value":["\\ud800"]}' }), ['["\\ud800"]']);
});

test("a field of an envelope that stands twice is refused: which of them counts is nobody's guess", () => {
  for (
    const text of [
      '{"value":1,"value":2}',
      '{"value":1,"v\\u0061lue":2}',
      '{"key":1,"value":1,"key":1}',
      '{"records":[{"value":1}],"records":[]}',
      '{"value":{"$base64":"AA==","$base64":"AQ=="}}',
    ]
  ) {
    assert.throws(() => recordsOf({ text }), /twice/, text);
  }
});

test("long runs of backslashes, quotes and brackets are found in one pass", () => {
  const strings = '"' + "\\\\".repeat(200_000) + '\\"'.repeat(200_000) + '"';
  const deep = "[".repeat(HTTP_JSON_DEPTH_MAX - 2) + strings + "]".repeat(HTTP_JSON_DEPTH_MAX - 2);
  assert.deepEqual(values({ text: `{"value":${deep}}` }), [deep]);
});
