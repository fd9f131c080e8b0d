import assert from "node:assert/strict";
import { test } from "node:test";
import { GROUP_PROPERTIES } from "../../group_properties.ts";
import { checkProperty } from "../../property.ts";
import { readReset } from "./share_membership.ts";

const RESET = GROUP_PROPERTIES.get("share.auto.offset.reset")!;

test("where a group begins: durations as Java reads them", () => {
  const cases: readonly (readonly [text: string, ms: number])[] = [
    ["PT0S", 0],
    ["PT20.345S", 20_345],
    ["PT15M", 900_000],
    ["PT10H", 36_000_000],
    ["P2D", 172_800_000],
    ["P2DT3H4M", 183_840_000],
    ["p1dt2h3m4.5s", 93_784_500],
    ["PT0,5S", 500],
    ["PT1.S", 1000],
  ];
  for (const [text, durationMs] of cases) {
    const checked = checkProperty(RESET, `by_duration:${text}`);
    assert.ok(checked.ok, text);
    assert.deepEqual(readReset(checked.value), { kind: "by_duration", durationMs }, text);
  }
  assert.deepEqual(readReset("earliest"), { kind: "earliest" });
  assert.deepEqual(readReset("latest"), { kind: "latest" });
});

test("what is no place to begin is refused", () => {
  for (
    const text of [
      "",
      "none",
      "LATEST",
      "by_duration",
      "by_duration:",
      "by_duration:P",
      "by_duration:PT",
      "by_duration:P1DT",
      "by_duration:1H",
      "by_duration:-PT1H",
      "by_duration:PT-1H",
      "by_duration:P1M",
      "by_duration:PT1S1H",
      "BY_DURATION:PT1S",
    ]
  ) assert.ok(!checkProperty(RESET, text).ok, text);
});
