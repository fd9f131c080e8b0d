import assert from "node:assert/strict";
import { test } from "node:test";
import { runCli } from "../../../tests/support/cli_io.ts";
import { COMMANDS, FAMILIES } from "./run.ts";
import { COMMON_OPTIONS } from "./syntax.ts";

/** Nobody listens there: what is refused before it connects is exit 2, not 3. */
const NOWHERE = ["-b", "127.0.0.1:1"];

test("wrong words are exit 2 in one line, before anything is connected", async () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["topic nosuch", /allowed are list, describe, create/],
    ["topic create", /skerry topic create: TOPIC is missing: see skerry topic create --help/],
    ["topic create t --partitions 0", /--partitions 0/],
    ["topic create t --config x", /--config x: allowed is NAME=VALUE/],
    ["topic alter t", /--partitions is missing/],
    ["topic truncate t", /--to is missing/],
    ["topic truncate t --to soon", /--to soon: allowed are earliest/],
    ["config get table t", /table: allowed are topic, broker and group/],
    ["config get broker x", /the id of a broker and default/],
    ["config set topic t x", /allowed is NAME=VALUE/],
    ["group delete-offsets g", /--topic is missing/],
    ["produce", /TOPIC is missing/],
    ["produce t --acks 2", /--acks 2: allowed are all, 1, 0/],
    ["produce t --compression zip", /none, gzip, snappy, lz4, zstd/],
    ["produce t --partition 1,2", /allowed is one partition/],
    ["produce t --key-separator=", /it is empty/],
    ["produce t --header x", /NAME=VALUE/],
    ["consume t --count 0", /--count 0/],
    ["consume t --group g --partition 1", /share all partitions/],
    ["consume t --isolation none", /read_uncommitted, read_committed/],
    ["consume t --format xml", /value, key-value, json/],
  ];
  for (const [words, pattern] of cases) {
    const { code, out, err } = await runCli([...words.split(" "), ...NOWHERE]);
    assert.equal(code, 2, `${words}: ${err}`);
    assert.equal(out, "");
    assert.match(err, pattern);
    assert.equal(err.split("\n").length, 2, err);
  }
});

test("a family alone is exit 2, and lists its commands", async () => {
  const { code, out, err } = await runCli(["topic"]);
  assert.equal(code, 2);
  assert.equal(out, "");
  for (const word of ["list", "describe", "create", "alter", "delete", "truncate"]) {
    assert.ok(err.includes(`skerry topic ${word}`), word);
  }
});

test("every command knows --help, with each of its options and the exit codes", async () => {
  assert.deepEqual(FAMILIES, ["topic", "group", "config", "produce", "consume"]);
  for (const { name, options } of COMMANDS) {
    const { code, out } = await runCli([...name.split(" "), "--help"]);
    assert.equal(code, 0);
    assert.ok(out.startsWith(`Usage: skerry ${name}`), out);
    for (const option of [...Object.keys(options), ...Object.keys(COMMON_OPTIONS)]) {
      assert.ok(out.includes(`--${option}`), `${name}: ${option}`);
    }
    for (const exit of ["  0  ", "  1  ", "  2  ", "  3  ", "  4  "]) assert.ok(out.includes(exit));
    for (const line of out.split("\n")) assert.ok(line.length <= 120, line);
  }
});
