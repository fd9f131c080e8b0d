import assert from "node:assert/strict";
import { test } from "node:test";
import { toUtf8 } from "../lib/bytes.ts";
import { murmur2, partitionOfKey } from "./partitioner.ts";

/** Values of Kafka's own UtilsTest. */
const KNOWN: [string, number][] = [
  ["21", -973932308],
  ["foobar", -790332482],
  ["a-little-bit-long-string", -985981536],
  ["a-little-bit-longer-string", -1486304829],
  ["lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971],
  ["abc", 479470107],
];

test("murmur2 gives Kafka's values", () => {
  for (const [text, hash] of KNOWN) assert.equal(murmur2(toUtf8(text)), hash, text);
});

test("a key's partition is the positive hash modulo the count", () => {
  assert.equal(partitionOfKey(toUtf8("abc"), 10), 7);
  assert.equal(partitionOfKey(toUtf8("21"), 7), (-973932308 & 0x7fffffff) % 7);
});
