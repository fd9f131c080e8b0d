import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toUtf8 } from "./bytes.ts";
import { clusterSegment, isClusterId } from "./cluster_id.ts";

const names = fc.string({ unit: "grapheme", minLength: 1, maxLength: 80 }).filter(isClusterId);

test("ids of the earlier alphabet are their own segment, so that old clusters still open", () => {
  const old = fc.stringMatching(/^[A-Za-z0-9._~-]{1,64}$/);
  fc.assert(fc.property(old, (id) => isClusterId(id) && clusterSegment(id) === id));
});

test("a segment is plain, short, and says which id it stands for", () => {
  fc.assert(fc.property(names, (id) => {
    const segment = clusterSegment(id);
    assert.match(segment, /^(?:[A-Za-z0-9._~-]|%[0-9A-F]{2})+$/);
    assert.ok(toUtf8(`_kafka_${segment}`).length <= 255);
    assert.equal(decodeURIComponent(segment), id);
  }));
  assert.equal(clusterSegment("Köln/West (2)*!'%"), "K%C3%B6ln%2FWest%20%282%29%2A%21%27%25");
});

test("what nobody can print or see is no id", () => {
  for (const id of ["a", "two words", "Köln", "a/b", "..", "北京-1", "🦭", "x".repeat(80)]) {
    assert.ok(isClusterId(id), id);
  }
  const bad = [
    "",
    " ",
    " a",
    "a ",
    "a\nb",
    "a\0",
    "\u2028",
    "\ud800",
    "x".repeat(81),
    "北".repeat(27),
  ];
  for (const id of bad) assert.ok(!isClusterId(id), JSON.stringify(id));
});
