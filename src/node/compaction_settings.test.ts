import assert from "node:assert/strict";
import { test } from "node:test";
import { COMPACTION_PROPERTIES } from "../broker/compaction_properties.ts";
import { DEFAULT_COMPACTION_OPTIONS } from "../storage/compaction/options.ts";
import { PRICED_COMPACTION_PUT_SIZES } from "../storage/put_sizes.ts";
import { compactionOf } from "./compaction_settings.ts";
import { brokerConfigOf } from "./settings.ts";

test("compaction is on, with the defaults of the storage layer", () => {
  assert.deepEqual(compactionOf(brokerConfigOf({}), false), {
    compaction: DEFAULT_COMPACTION_OPTIONS,
  });
});

test("it can be turned off, and its numbers set", () => {
  assert.deepEqual(
    compactionOf(brokerConfigOf({ "skerry.compaction.enable": "false" }), false),
    {},
  );
  const { compaction } = compactionOf(
    brokerConfigOf({ "skerry.compaction.split.bytes": "1" }),
    true,
  );
  assert.equal(compaction?.splitBytes, 1);
  assert.deepEqual(compaction?.puts, PRICED_COMPACTION_PUT_SIZES, "requests cost money");
});

test("each property sets one option, to its value", () => {
  const base = { ...compactionOf(brokerConfigOf({}), false).compaction };
  const set = new Set<string>();
  for (const { name, type, fallback } of COMPACTION_PROPERTIES) {
    if (type === "boolean") continue;
    // Smaller by one is allowed for all: no default is the least value.
    const value = Number(fallback) - 1;
    const { compaction } = compactionOf(brokerConfigOf({ [name]: String(value) }), false);
    const changed = Object.entries({ ...compaction })
      .filter(([option, found]) => found !== base[option as keyof typeof base]);
    assert.deepEqual(changed.map(([, found]) => found), [value], name);
    set.add(changed[0]![0]);
  }
  assert.equal(set.size, COMPACTION_PROPERTIES.length - 1, "no two set the same");
});

test("what would not fit one metadata entry is refused", () => {
  assert.throws(() => brokerConfigOf({ "skerry.compaction.stream.objects.max": "2001" }), /2001/);
});
