import assert from "node:assert/strict";
import { test } from "node:test";
import { type Kind, KINDS } from "./behaviours.ts";
import {
  count,
  markdown,
  notRun,
  plainTable,
  readResults,
  remarks,
  rowsOf,
  withTables,
} from "./results.ts";

const whole = KINDS.streams.map((name) => `${name}\tpass\t`).join("\n");

test("what a program has said is read; the rest of its output is not", () => {
  const output = `version\t1.2\nnoise\n${whole.replace("pass", "skip\tno reason")}\nmore\tnoise\n`;
  const ran = readResults("c", "streams", output, null);
  assert.equal(ran.version, "1.2");
  assert.deepEqual([count([ran], "pass"), count([ran], "skip"), count([ran], "fail")], [2, 1, 0]);
});

test("a behaviour that nothing was said about has failed, with how the program ended", () => {
  const [first, ...rest] = KINDS.streams;
  const ran = readResults("c", "streams", `${first}\tpass\t\n`, "not done after 5 s");
  assert.equal(count([ran], "fail"), rest.length);
  assert.equal(ran.results.get(rest[0]!)?.detail, "no result: not done after 5 s");
});

test("what is told twice, or is not in the list, has failed", () => {
  const ran = readResults(
    "c",
    "streams",
    `${whole}\n${KINDS.streams[0]}\tpass\t\nother\tpass\t`,
    null,
  );
  assert.deepEqual(remarks([ran]), [
    `c, ${KINDS.streams[0]}: told twice`,
    "c, other: no behaviour of the list",
  ]);
});

test("the tables: a column per client that was run, a remark for one that was not", () => {
  const all = [
    readResults("a", "streams", `version\t1\n${whole}`, null),
    notRun("b", "streams", "no java"),
    readResults("c", "streams", whole.replace("pass", "fail\tx|y_z"), null),
  ];
  const rows = rowsOf(all, "streams");
  assert.deepEqual(rows.slice(0, 3), [["", "a", "c"], ["version", "1", ""], [
    KINDS.streams[0],
    "✓",
    "✗",
  ]]);
  assert.match(plainTable(rows), /^ +a {2}c\n/);
  const text = markdown(all);
  assert.match(text, /^5 passed, 1 failed; 0 are not offered/);
  assert.ok(text.includes("- b: not run: no java\n"));
  assert.ok(text.includes(`- c, ${KINDS.streams[0]}: x\\|y_z\n`));
  assert.ok(!text.includes("## Clients"));
});

test("every kind has a table of its own", () => {
  const kinds = Object.keys(KINDS) as Kind[];
  const text = markdown(kinds.map((kind) => readResults(`the ${kind}`, kind, "", null)));
  assert.deepEqual(kinds.filter((kind) => !text.includes(`| the ${kind} |`)), []);
});

test("only the part between the marks is written", () => {
  const doc = "head\n<!-- from npm run compat -->\nold\n<!-- end -->\ntail $1\n";
  const written = withTables(doc, [notRun("a", "client", "$& nothing")]);
  assert.ok(written.startsWith("head\n<!-- from npm run compat -->\n\n0 passed"));
  assert.ok(written.endsWith("<!-- end -->\ntail $1\n") && written.includes("$& nothing"));
  assert.throws(() => withTables("no marks", []), /no place/);
});
