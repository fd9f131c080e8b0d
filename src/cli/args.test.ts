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
