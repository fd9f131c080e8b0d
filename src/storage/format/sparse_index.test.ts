import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { AssertionError } from "../../lib/assert.ts";
import { objectId, streamId } from "../../lib/brand.ts";
import { DecodeError, toHex } from "../../lib/bytes.ts";
import { decodeSparseIndex, encodeSparseIndex, type SparseStream } from "./sparse_index.ts";

function stream(
  id: number,
  ...ranges: readonly (readonly [number, number, number])[]
): SparseStream {
  return {
    streamId: streamId(id),
    ranges: ranges.map(([start, end, object]) => ({ start, end, objectId: objectId(object) })),
  };
}

function refused(bytes: Uint8Array): void {
  assert.throws(
    () => decodeSparseIndex(bytes),
    (error) => error instanceof DecodeError || error instanceof AssertionError,
  );
}

describe("sparse index object", () => {
  const golden = "0000" + "00000001" + "0000000000000001" + "00000001" +
    "0000000000000032" + "0000000000000064" + "0000000000000058";

  test("golden bytes: stream 1 has [50, 100) in object 88", () => {
    const bytes = encodeSparseIndex([stream(1, [50, 100, 88])]);
    assert.equal(bytes.length, 42);
    assert.equal(toHex(bytes), golden);
    assert.deepEqual(decodeSparseIndex(bytes), [stream(1, [50, 100, 88])]);
  });

  test("what is not an index is refused", () => {
    const good = encodeSparseIndex([stream(1, [0, 5, 1], [5, 9, 2]), stream(4, [1, 2, 1])]);
    for (let length = 0; length < good.length; length++) refused(good.subarray(0, length));
    refused(Uint8Array.from([...good, 0]));
    refused(Uint8Array.from(good, (byte, i) => i === 1 ? 1 : byte));
    refused(encodeSparseIndex([stream(4, [1, 2, 1]), stream(1, [0, 5, 1])]));
    refused(encodeSparseIndex([stream(1, [0, 5, 1], [4, 9, 2])]));
    refused(encodeSparseIndex([stream(1, [5, 5, 1])]));
  });

  test("any bytes decode or are refused, and what decodes encodes to the same", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
      let decoded: SparseStream[];
      try {
        decoded = decodeSparseIndex(bytes);
      } catch (error) {
        assert.ok(error instanceof DecodeError || error instanceof AssertionError);
        return;
      }
      assert.deepEqual(encodeSparseIndex(decoded), bytes);
    }));
  });
});
