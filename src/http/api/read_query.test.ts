import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { ProblemError } from "../problem.ts";
import { choice, flag, integer } from "./fields.ts";
import { readQuery } from "./read_query.ts";

const schema = v.strictObject({
  limit: v.optional(integer(1, 10), 5),
  start: v.optional(v.union([choice(["earliest", "latest"]), integer(0)], "not a start")),
  bare: v.optional(flag, false),
  numbers: v.optional(v.array(integer(0, 99))),
  words: v.optional(v.array(v.string()), []),
  text: v.optional(v.string()),
});

function read(query: string) {
  return readQuery(new Request(`http://x/${query}`), schema);
}

function detailOf(query: string): string {
  try {
    read(query);
  } catch (error) {
    assert.ok(error instanceof ProblemError, String(error));
    assert.equal(error.problem.status, 400);
    return error.problem.detail;
  }
  return assert.fail(`${query} was taken`);
}

test("text becomes what its field is about", () => {
  assert.deepEqual(read(""), { limit: 5, bare: false, words: [] });
  assert.deepEqual(read("?limit=7&start=12&bare&numbers=3,1,3&words=a&words=b,c&text=7"), {
    limit: 7,
    start: 12,
    bare: true,
    numbers: [3, 1, 3],
    words: ["a", "b,c"],
    text: "7",
  });
  assert.deepEqual(read("?numbers=3&numbers=1,2").numbers, [3, 1, 2]);
  assert.equal(read("?start=latest").start, "latest");
  assert.equal(read("?bare=0").bare, false);
  assert.equal(read("?text=%00%F0%9F%98%80").text, "\0\u{1f600}");
});

test("what is not meant is refused, in the words of the field", () => {
  assert.match(detailOf("?limit=0"), /limit=0: not an integer from 1 to 10/);
  for (
    const text of ["", "1e1", "0x1", " 1", "-1", "1.0", "9007199254740993", "99999999999999999"]
  ) {
    assert.match(detailOf(`?limit=${encodeURIComponent(text)}`), /not an integer/, text);
  }
  assert.match(detailOf("?start=first"), /start=first: not a start/);
  assert.match(detailOf("?start=9007199254740993"), /not an integer from 0 to/);
  assert.match(detailOf("?bare=maybe"), /bare=maybe: not 1 or 0/);
  assert.match(detailOf("?numbers=1,,2"), /numbers/);
  assert.match(detailOf("?numbers=100"), /not an integer from 0 to 99/);
  assert.match(detailOf("?text=a&text=b"), /given 2 times/);
  for (const name of ["other", "__proto__", "constructor", "Limit"]) {
    assert.match(detailOf(`?${name}=1`), /no such parameter/, name);
  }
});

test("a parameter that has to be there is asked for", () => {
  const needy = v.strictObject({ request: v.string() });
  assert.throws(
    () => readQuery(new Request("http://x/"), needy),
    /Cannot do without the parameter request/,
  );
});
