import assert from "node:assert/strict";
import { test } from "node:test";
import { toUtf8 } from "../../lib/bytes.ts";
import type { RecordOutput } from "../port.ts";
import { ProblemError } from "../problem.ts";
import { readQuery } from "../api/read_query.ts";
import { streamQuery } from "../live/stream.ts";
import { type Filter, filterOf } from "./filter.ts";

function record(key: Uint8Array | null, headers: readonly (readonly [string, string])[] = []) {
  const one: RecordOutput = {
    offset: 0,
    timestampMs: 0,
    key,
    value: null,
    headers: headers.map(([name, value]) => ({ name, value: toUtf8(value) })),
  };
  return one;
}

function asked(query: string): Filter {
  return filterOf(readQuery(new Request(`http://x/?${query}`), streamQuery));
}

function matches(query: string, one: RecordOutput): boolean {
  return asked(query).matches?.(one) ?? true;
}

test("one of the keys, as text or as base64", () => {
  assert.ok(matches("keys=a&keys=b", record(toUtf8("b"))));
  assert.ok(!matches("keys=a&keys=b", record(toUtf8("c"))));
  assert.ok(!matches("keys=a", record(null)));
  assert.ok(matches("keys=", record(new Uint8Array())), "an empty key is a key");
  assert.ok(matches("keys=base64:/w==", record(Uint8Array.of(0xff))));
  assert.ok(matches("keys=%C3%A9", record(toUtf8("é"))));
  assert.ok(!matches("keys=%C3%A9", record(Uint8Array.of(0xe9))), "bytes, not characters");
});

test("all of the headers, any of equal names", () => {
  const one = record(null, [["a", "1"], ["a", "2"], ["b", "x:y"]]);
  assert.ok(matches("header=a:2&header=b:x:y", one));
  assert.ok(!matches("header=a:2&header=b:z", one));
  assert.ok(!matches("header=A:1", one), "names of record headers have a case");
});

test("what cannot be meant is refused", () => {
  const many = Array.from({ length: 101 }, (_, i) => `keys=${i}`).join("&");
  for (const query of ["header=a", "header=:a", "keys=base64:!", "partitioned=key", many]) {
    assert.throws(() => asked(query), ProblemError, query);
  }
});

test("partitions of keys are those of Kafka's default", () => {
  const { partitionsOf } = asked("keys=abc&partitioned=key");
  // murmur2("abc") & 0x7fffffff is 479470107.
  assert.deepEqual(partitionsOf?.(10), [7]);
  assert.equal(asked("keys=abc").partitionsOf, null);
});
