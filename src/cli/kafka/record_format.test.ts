import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, toUtf8, utf8 } from "../../lib/bytes.ts";
import type { BatchRecord } from "../../protocol/record.ts";
import { type Format, recordFormat } from "./record_format.ts";
import { progressText } from "./progress.ts";
import { splitLine } from "./produce.ts";
import { table } from "./answer.ts";

function printed(format: Format, record: Partial<BatchRecord>, separator = "\t"): Uint8Array {
  const out: Uint8Array[] = [];
  const whole = { offset: 3, timestamp: 9, key: null, value: null, headers: [], ...record };
  recordFormat({ format, topic: "t", separator })(1, whole, (bytes) => out.push(bytes));
  return concatBytes(out);
}

test("values and keys go out as they are, null as nothing", () => {
  const binary = Uint8Array.of(0, 255, 10, 13);
  assert.deepEqual(printed("value", { value: binary }), Uint8Array.of(...binary, 10));
  assert.equal(utf8(printed("value", {})), "\n");
  assert.equal(utf8(printed("key-value", { key: toUtf8("k"), value: toUtf8("v") })), "k\tv\n");
  assert.equal(utf8(printed("key-value", { value: toUtf8("v") }, "::")), "::v\n");
});

test("JSON: text, bytes that are none, null, headers in order", () => {
  const line = utf8(printed("json", {
    key: toUtf8('é"'),
    value: Uint8Array.of(0xff, 0xfe),
    headers: [{ key: "a", value: toUtf8("1") }, { key: "a", value: null }],
  }));
  assert.equal(line.at(-1), "\n");
  assert.deepEqual(JSON.parse(line), {
    topic: "t",
    partition: 1,
    offset: 3,
    timestamp: 9,
    key: 'é"',
    value: { "$base64": "//4=" },
    headers: [["a", "1"], ["a", null]],
  });
});

test("a line is cut at its first separator", () => {
  const split = (line: string, separator: string | null) => {
    const got = splitLine(toUtf8(line), separator === null ? null : toUtf8(separator));
    return got === null ? null : [got.key === null ? null : utf8(got.key), utf8(got.value)];
  };
  assert.deepEqual(split("a:b:c", ":"), ["a", "b:c"]);
  assert.deepEqual(split("a:-b::c", "::"), ["a:-b", "c"]);
  assert.deepEqual(split(":v", ":"), ["", "v"]);
  assert.deepEqual(split("a:b", null), [null, "a:b"]);
  assert.equal(split("ab:", "::"), null);
});

test("progress and tables", () => {
  assert.equal(progressText(3_000, 6e6, 2_000), "3000 records, 6.0 MB, 1500 records/s, 3.0 MB/s");
  assert.equal(
    table(["NAME", "N"], [["a", "1"], ["long", "-"], ["b", "100"]]),
    "NAME    N\na       1\nlong    -\nb     100\n",
  );
  assert.equal(table(["NAME", "N"], []), "NAME  N\n");
});
