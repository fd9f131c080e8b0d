/** Nobody is missing: each number of the list of 56 recovery scenarios has a test here. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const SCENARIOS = 56;
/** Titles: "12: ...", "36 and 37: ...". */
const TITLE = /["`](\d+(?: and \d+)*): /g;

test("every recovery scenario has its test", () => {
  const found = new Set<number>();
  for (const name of readdirSync("tests/recovery").filter((one) => one.endsWith(".test.ts"))) {
    const text = readFileSync(`tests/recovery/${name}`, "utf8");
    for (const [, numbers] of text.matchAll(TITLE)) {
      for (const number of numbers!.split(" and ")) found.add(Number(number));
    }
  }
  const missing = Array.from({ length: SCENARIOS }, (_, i) => i + 1).filter((one) =>
    !found.has(one)
  );
  assert.deepEqual(missing, []);
});
