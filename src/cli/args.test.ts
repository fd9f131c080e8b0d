import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { OPTION_NAMES } from "../config/options.ts";
import { VERSION } from "../lib/version.ts";
import { helpText, parseArguments } from "./args.ts";

test("values stand behind a space or an equals sign; --set may repeat", () => {
  const args = parseArguments([
    "serve",
    "--store",
    "memory:",
    "--kafka-listen=127.0.0.1:0",
    "--set",
    "a=1",
    "--set=b=2",
    "--config",
    "f.json",
    "--s3-path-style",
  ]);
  assert.deepEqual(args.errors, []);
  assert.equal(args.command, "serve");
  assert.deepEqual(args.flags, {
    "store": "memory:",
    "kafka-listen": "127.0.0.1:0",
    "s3-path-style": "true",
  });
  assert.deepEqual(args.sets, ["a=1", "b=2"]);
  assert.equal(args.configFile, "f.json");
});

test("mistakes on the line are named", () => {
  assert.match(parseArguments(["serve", "--store"]).errors[0]!, /--store: no value/);
  assert.match(parseArguments(["serve", "--store", "a", "--store", "b"]).errors[0]!, /given twice/);
  assert.match(parseArguments(["serve", "more"]).errors[0]!, /"more"/);
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["serve", "--nosuch"], /--nosuch: unknown option/],
    [["serve", "--nosuch", "value"], /--nosuch: unknown option/],
    [["serve", "--__proto__", "value"], /--__proto__: unknown option/],
    [["serve", "-p", "--node-id", "2"], /-p: options begin with two dashes/],
    [["serve", "--kafka-listen", "--http-listen", "off"], /--kafka-listen: no value/],
    [["serve", "--config", "a", "--config", "b"], /--config: given twice/],
    [["--store", "memory:"], /put a command first/],
  ];
  for (const [words, pattern] of cases) {
    const { errors } = parseArguments(words);
    assert.equal(errors.length, 1, errors.join("\n"));
    assert.match(errors[0]!, pattern);
  }
});

test("an option that the command does not know is refused, whatever the command", () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [["serve", "--repair"], /--repair: serve does not know it/],
    [["serve", "--json"], /--json: serve/],
    [["inspect", "FILE", "--repair"], /--repair: inspect/],
    [["inspect", "FILE", "--accept-loss=false"], /--accept-loss: inspect/],
    [["inspect", "FILE", "--metrics", "m"], /--metrics: inspect/],
    [["fsck", "--metrics", "m"], /--metrics: fsck/],
    [["fsck", "--seconds", "3"], /--seconds: fsck/],
    [["cost", "--metrics", "m", "--store", "memory:"], /--store: cost/],
    [["cost", "--metrics", "m", "--set", "a=1", "--set", "b=1"], /--set: cost/],
    [["cost", "--metrics", "m", "--repair"], /--repair: cost/],
    [["help", "--node-id", "1"], /--node-id: help/],
  ];
  for (const [words, pattern] of cases) {
    const { errors } = parseArguments(words);
    assert.equal(errors.length, 1, words.join(" "));
    assert.match(errors[0]!, pattern);
  }
  const good = [
    ["serve", "--store", "memory:", "--set", "a=1", "--config", "f"],
    ["inspect", "KEY", "--store", "dir:x", "--json", "--s3-path-style"],
    ["fsck", "--repair", "--accept-loss", "--json=false", "--config", "f", "--set", "a=1"],
    ["cost", "--metrics", "m", "--seconds", "1", "--json"],
  ];
  for (const words of good) assert.deepEqual(parseArguments(words).errors, [], words.join(" "));
});

test("a switch is on or off: another value would be taken for off in silence", () => {
  for (const word of ["--repair=yes", "--repair=", "--accept-loss=1", "--json=TRUE"]) {
    const { errors } = parseArguments(["fsck", word]);
    assert.equal(errors.length, 1, word);
    assert.match(errors[0]!, /allowed are true and false/);
  }
  assert.equal(parseArguments(["fsck", "--repair=false"]).flags["repair"], "false");
});

test("help names every option, version equals package.json", () => {
  const text = helpText(VERSION);
  for (const name of OPTION_NAMES) assert.ok(text.includes(`--${name}`), name);
  assert.ok(parseArguments(["--help"]).help);
  assert.ok(parseArguments(["serve", "--version"]).version);
  assert.equal(parseArguments([]).command, "help");
  const manifest = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  assert.equal(VERSION, manifest.version);
});
