import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toUtf8 } from "../../lib/bytes.ts";
import { OffsetMap } from "./offset_map.ts";

test("it says what a map of keys says", () => {
  const keys = fc.array(fc.nat(300), { maxLength: 400 });
  fc.assert(fc.property(keys, (order) => {
    const model = new Map<number, number>();
    const map = new OffsetMap(400, 2 ** 20);
    for (const [offset, key] of order.entries()) {
      model.set(key, offset);
      map.put(toUtf8(`${key}`), offset);
    }
    assert.equal(map.size, model.size);
    for (let key = 0; key <= 300; key++) {
      assert.equal(map.get(toUtf8(`${key}`)), model.get(key) ?? -1);
    }
  }));
});

test("any number of keys: the memory is bounded, and full means full", () => {
  const map = new OffsetMap(Number.MAX_SAFE_INTEGER, 24 * 10_000);
  let count = 0;
  while (!map.isFull) map.put(toUtf8(`key ${count}`), count++);
  // Nine tenths of the slots.
  assert.equal(map.size, 9_000);
  for (let i = 0; i < count; i++) assert.equal(map.get(toUtf8(`key ${i}`)), i);
  assert.throws(() => map.put(toUtf8("one more"), count));
});
