import assert from "node:assert/strict";
import { test } from "node:test";
import { type OptionSpec, parseWords, type Syntax, Words } from "./syntax.ts";

const many: OptionSpec = { value: "X", repeats: true, help: "" };
const syntax: Syntax = {
  name: "x",
  operands: "NAME",
  operandsMin: 1,
  operandsMax: 2,
  help: "",
  options: {
    "many": many,
    "key": { value: "K", short: "k", help: "" },
    "on": { value: null, help: "" },
    "number": { value: "N", fallback: "5", help: "" },
  },
};

const parse = (...words: readonly string[]) => parseWords(syntax, words);

test("values stand behind a space or an equals sign, short ones also joined", () => {
  const words = parse("a", "--many", "1", "--many=2=3", "-k", ":", "--on", "-bh:1", "--", "--many");
  assert.deepEqual(words.operands, ["a", "--many"]);
  assert.deepEqual(words.all("many"), ["1", "2=3"]);
  assert.equal(words.text("key"), ":");
  assert.ok(words.isOn("on"));
  assert.deepEqual(words.bootstrap, [{ host: "h", port: 1 }]);
  assert.equal(words.integer("number", 0, 9), 5);
  assert.equal(words.timeoutMs, 30_000);
});

test("a value may begin with a dash, an empty one is a value", () => {
  assert.equal(parse("a", "-k", "-5").text("key"), "-5");
  assert.equal(parse("a", "--key=--x").text("key"), "--x");
  assert.equal(parse("a", "--key=").text("key"), "");
});

test("mistakes are named", () => {
  const cases: readonly (readonly [readonly string[], RegExp])[] = [
    [[], /NAME is missing/],
    [["a", "b", "c"], /"c": one word too many/],
    [["a", "--nosuch=1"], /^--nosuch: unknown option/],
    [["a", "-z"], /^-z: unknown option/],
    [["a", "--toString"], /--toString: unknown option/],
    [["a", "--key"], /--key: no value given/],
    [["a", "--key", "--on"], /--key: no value given/],
    [["a", "--key", "1", "-k", "2"], /--key: given twice/],
    [["a", "--on=1"], /--on takes no value/],
  ];
  for (const [words, pattern] of cases) {
    assert.throws(() => parse(...words), { name: "WordFault", message: pattern }, words.join(" "));
  }
});

test("values are checked where they are read", () => {
  const read: readonly (readonly [string, (words: Words) => unknown, RegExp])[] = [
    ["--number=x", (words) => words.integer("number", 0, 9), /whole number|a number from 0 to 9/],
    ["--number=1.5", (words) => words.integer("number", 0, 9), /whole number from 0 to 9/],
    ["--number=10", (words) => words.number("number", 0, 9), /a number from 0 to 9/],
    ["--many=1,x", (words) => words.partitions("many"), /partition numbers/],
    ["--many=2147483648", (words) => words.partitions("many"), /partition numbers/],
    ["--key=x", (words) => words.oneOf("key", ["a", "b"]), /--key x: allowed are a, b/],
    ["--key=x", (words) => words.place("key"), /allowed are earliest, latest/],
    ["--bootstrap=:1", (words) => words.bootstrap, /HOST:PORT/],
    ["--timeout=0", (words) => words.timeoutMs, /a number from 0.1/],
    ["--on", (words) => words.required("key"), /--key is missing/],
  ];
  for (const [word, use, pattern] of read) {
    assert.throws(() => use(parse("a", word)), { name: "WordFault", message: pattern }, word);
  }
  assert.deepEqual(parse("a", "--many=1,2", "--many=7").partitions("many"), [1, 2, 7]);
});

test("--help needs nothing else", () => {
  assert.ok(parse("--help").isOn("help"));
  assert.ok(parse("-h").isOn("help"));
});
