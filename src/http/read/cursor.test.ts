import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HTTP_CURSOR_CHARS_MAX, HTTP_CURSOR_PARTITIONS_MAX } from "../../lib/limits.ts";
import { type Cursor, decodeCursor, encodeCursor } from "./cursor.ts";

const ID = "00112233445566778899aabbccddeeff";

test("the bytes of a cursor: version, topic id, turn, partitions and offsets, checksum", () => {
  const positions = new Map([[2, 300], [0, 5]]);
  const text = encodeCursor("t", { topicId: ID, turn: 1, positions });
  const bytes = Uint8Array.from(
    atob(text.replaceAll("-", "+").replaceAll("_", "/")),
    (char) => char.charCodeAt(0),
  );
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  // 1, the id, turn 1, partition 0 at 5, one partition passed over: partition 2 at 300 (0xac 0x02).
  assert.equal(hex.slice(0, -8), `01${ID}010005` + "01ac02");
  assert.equal(bytes.length, 1 + 16 + 1 + 2 + 3 + 4);
});

const cursors: fc.Arbitrary<Cursor> = fc.record({
  topicId: fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) =>
    [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")
  ),
  turn: fc.nat(1_000),
  positions: fc.array(fc.tuple(fc.nat(5_000), fc.maxSafeNat()), { maxLength: 20 })
    .map((entries) => new Map(entries)),
});

test("every cursor comes back, in characters that a header and a URL take", () => {
  fc.assert(fc.property(cursors, fc.string(), (cursor, topic) => {
    const text = encodeCursor(topic, cursor);
    assert.match(text, /^[A-Za-z0-9_-]+$/);
    assert.deepEqual(decodeCursor(topic, text), {
      ...cursor,
      positions: new Map([...cursor.positions].toSorted(([a], [b]) => a - b)),
    });
  }));
});

test("a cursor that was changed, cut or given for another topic is none", () => {
  fc.assert(fc.property(cursors, fc.nat(), fc.integer({ min: 1, max: 61 }), (cursor, at, by) => {
    const text = encodeCursor("t", cursor);
    assert.equal(decodeCursor("u", text), null);
    assert.equal(decodeCursor("t", text.slice(0, at % text.length)), null);
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const place = at % (text.length - 1);
    const other = letters[(letters.indexOf(text[place]!) + by) % 64]!;
    assert.equal(decodeCursor("t", text.slice(0, place) + other + text.slice(place + 1)), null);
  }));
  for (const text of ["", "AQ", "a b", "=", "ä", "A".repeat(HTTP_CURSOR_CHARS_MAX + 1)]) {
    assert.equal(decodeCursor("t", text), null, text.slice(0, 10));
  }
});

test("the largest cursor that is given is taken", () => {
  const entries = Array.from(
    { length: HTTP_CURSOR_PARTITIONS_MAX },
    (_, partition) => [partition, Number.MAX_SAFE_INTEGER] as const,
  );
  const positions = new Map(entries);
  const text = encodeCursor("t", { topicId: ID, turn: 511, positions });
  assert.ok(text.length <= HTTP_CURSOR_CHARS_MAX, String(text.length));
  assert.deepEqual(decodeCursor("t", text)?.positions, positions);
});
