import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_COMPACTION_OPTIONS } from "../storage/compaction/options.ts";
import { compactionOf } from "./compaction_settings.ts";
import { brokerConfigOf } from "./settings.ts";

test("compaction is on, with the defaults of the storage layer", () => {
  assert.deepEqual(compactionOf(brokerConfigOf({})), { compaction: DEFAULT_COMPACTION_OPTIONS });
});

test("it can be turned off, and its numbers set", () => {
  assert.deepEqual(compactionOf(brokerConfigOf({ "skerry.compaction.enable": "false" })), {});
  const { compaction } = compactionOf(brokerConfigOf({ "skerry.compaction.split.bytes": "1" }));
  assert.equal(compaction?.splitBytes, 1);
});

test("what would not fit one metadata entry is refused", () => {
  assert.throws(() => brokerConfigOf({ "skerry.compaction.stream.objects.max": "2001" }), /2001/);
});
