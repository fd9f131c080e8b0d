import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePlace, type Place } from "./place.ts";

test("places by their words", () => {
  const cases: readonly (readonly [string, Place])[] = [
    ["earliest", { kind: "earliest" }],
    ["latest", { kind: "latest" }],
    ["0", { kind: "offset", offset: 0 }],
    ["42", { kind: "offset", offset: 42 }],
    ["-10", { kind: "beforeEnd", count: 10 }],
    ["@1700000000000", { kind: "time", timestampMs: 1_700_000_000_000 }],
    ["2023-11-14", { kind: "time", timestampMs: 1_699_920_000_000 }],
    ["2023-11-14T22:13:20Z", { kind: "time", timestampMs: 1_700_000_000_000 }],
    // Without a zone it is UTC, wherever the machine stands.
    ["2023-11-14T22:13:20", { kind: "time", timestampMs: 1_700_000_000_000 }],
    ["2023-11-14T23:13:20+01:00", { kind: "time", timestampMs: 1_700_000_000_000 }],
  ];
  for (const [text, place] of cases) assert.deepEqual(parsePlace(text), place, text);
});

test("anything else is none", () => {
  for (
    const text of ["", "begin", "-", "@", "1.5", "+3", "9007199254740993", "2023-13-40", "Friday"]
  ) {
    assert.equal(parsePlace(text), null, text);
  }
});
