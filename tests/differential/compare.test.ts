import assert from "node:assert/strict";
import { test } from "node:test";
import { compare, judge } from "./compare.ts";
import { type Json, normalise } from "./normal.ts";
import { batch } from "./script.ts";

const SIDE = { port: 9092, nowMs: 1_800_000_000_000 };
const one = (value: unknown) => normalise([{ label: "a", value }], SIDE).get("a");

test("what a broker picks for itself becomes a name, the same for the same", () => {
  const id = "00112233445566778899aabbccddeeff";
  assert.deepEqual(
    one({
      all: [
        { name: "x", topicId: id, port: 9092 },
        { name: "y", topicId: "f".repeat(32), port: 9093 },
        { name: "z", topicId: id, producerId: 7, at: SIDE.nowMs + 5 },
      ],
    }),
    {
      all: {
        x: { name: "x", topicId: "<topic 1>", port: "<port>" },
        y: { name: "y", topicId: "<topic 2>", port: 9093 },
        z: { name: "z", topicId: "<topic 1>", producerId: "<producer 1>", at: "<time>" },
      },
    },
  );
});

test("a uuid inside a member id has a name; what stands before it stays", () => {
  const uuid = "01234567-89ab-cdef-0123-456789abcdef";
  assert.deepEqual(one([`client-${uuid}`, `other-${uuid}`]), ["client-<uuid 1>", "other-<uuid 1>"]);
});

test("error texts count only as there or not", () => {
  assert.deepEqual(one({ errorMessage: "Bad." }), { errorMessage: "<text>" });
  assert.deepEqual(one({ errorMessage: null }), { errorMessage: null });
});

test("record batches are compared by what they hold", () => {
  const batches =
    (one({ records: batch(["k=v"]) }) as { readonly records: readonly Json[] }).records;
  const [read] = batches as readonly { readonly codec: string; readonly records: Json }[];
  assert.equal(read!.codec, "none");
  assert.deepEqual(read!.records, [
    { offset: 0, timestamp: 1_700_000_000_000, key: "k", value: "v", headers: {} },
  ]);
});

test("a difference is refused unless a rule fits, and a rule without one is stale", () => {
  const ours = normalise([{ label: "a", value: { errorCode: 1, same: 2 } }], SIDE);
  const theirs = normalise([{ label: "a", value: { errorCode: 3, same: 2 } }], SIDE);
  const found = compare("s", ours, theirs);
  assert.deepEqual(found, [{ step: "s / a", path: "errorCode", ours: 1, theirs: 3 }]);
  const fits = { at: /errorCode/, reason: "wanted" };
  const stale = { at: /errorCode/, reason: "other value", theirs: 4 };
  assert.deepEqual(judge(found, [fits, stale]), { refused: [], allowed: 1, stale: [stale] });
  assert.deepEqual(judge(found, []), { refused: found, allowed: 0, stale: [] });
});

test("a request that only one side answered is a difference", () => {
  const theirs = normalise([{ label: "a", value: 1 }], SIDE);
  assert.deepEqual(compare("s", new Map(), theirs), [
    { step: "s / a", path: "", ours: undefined, theirs: 1 },
  ]);
});
