import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HTTP_ACK_CHARS_MAX, HTTP_CURSOR_PARTITIONS_MAX } from "../../lib/limits.ts";
import { decodeAck, encodeAck } from "./ack_token.ts";

const range = fc.record({
  topic: fc.stringMatching(/^[a-zA-Z0-9._-]{1,20}$/),
  partition: fc.nat(),
  first: fc.nat({ max: 2 ** 52 }),
  count: fc.nat(1000),
}).map(({ topic, partition, first, count }) => ({ topic, partition, first, last: first + count }));
const token = fc.record({
  holder: fc.integer({ min: 1, max: 2 ** 48 }),
  ranges: fc.array(range, { minLength: 1, maxLength: 20 }),
}).map(({ holder, ranges }) => ({ holder, ranges }));

test("what was leased comes back, for the group that it was leased to", () => {
  fc.assert(fc.property(fc.string(), token, (group, one) => {
    const text = encodeAck(group, one);
    assert.match(text, /^[A-Za-z0-9_-]+$/);
    assert.deepEqual(decodeAck(group, text), one);
    assert.equal(decodeAck(`${group}x`, text), null);
  }));
});

test("no other text is one", () => {
  fc.assert(fc.property(token, fc.nat(), fc.string({ maxLength: 3 }), (one, at, other) => {
    const text = encodeAck("g", one);
    const cut = at % text.length;
    const changed = text.slice(0, cut) + other + text.slice(cut + 1);
    const decoded = decodeAck("g", changed);
    if (decoded !== null) assert.deepEqual(decoded, one);
  }));
  for (const text of ["", "AAAA", "AAAAAAAA", "===", "\0"]) {
    assert.equal(decodeAck("g", text), null);
  }
});

test("one of as many partitions as a poll has fits", () => {
  const ranges = Array.from({ length: HTTP_CURSOR_PARTITIONS_MAX }, (_, partition) => ({
    topic: "a-topic-with-a-name",
    partition,
    first: 2 ** 40,
    last: 2 ** 40 + 10_000,
  }));
  const text = encodeAck("g", { holder: 2 ** 48, ranges });
  assert.ok(text.length < HTTP_ACK_CHARS_MAX, `${text.length}`);
  assert.equal(decodeAck("g", text)?.ranges.length, HTTP_CURSOR_PARTITIONS_MAX);
});
