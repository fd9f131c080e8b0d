import assert from "node:assert/strict";
import { test } from "node:test";
import { record } from "../../../tests/support/records.ts";
import { LogCacheBlock } from "../cache/log_cache_block.ts";
import type { StreamRecord } from "../stream_record.ts";
import { objectCount, planUpload } from "./plan.ts";

function planned(records: readonly StreamRecord[], splitBytes: number) {
  const block = new LogCacheBlock(0);
  for (const one of records) block.put(one, 0);
  const plan = planUpload(block.runs(), splitBytes);
  return {
    set: plan.streamSet.map(({ streamId, start, end }) => [streamId, start, end]),
    own: plan.streamObjects.map(({ streamId, start, end }) => [streamId, start, end]),
    count: objectCount(plan),
  };
}

test("a large stream gets its own object, the rest shares one", () => {
  const records = [
    record(234, 20, 2, 128),
    record(233, 10, 2, 512),
    record(233, 12, 2, 128),
    record(233, 14, 2, 512),
    record(234, 22, 2, 128),
  ];
  assert.deepEqual(planned(records, 1000), {
    set: [[234, 20, 24]],
    own: [[233, 10, 16]],
    count: 2,
  });
});

test("a single stream never shares", () => {
  assert.deepEqual(planned([record(233, 10)], 1e9), { set: [], own: [[233, 10, 11]], count: 1 });
});

test("no shared object when all streams are large", () => {
  const plan = planned([record(233, 0, 1, 512), record(234, 0, 1, 128)], 64);
  assert.deepEqual(plan, { set: [], own: [[233, 0, 1], [234, 0, 1]], count: 2 });
});
