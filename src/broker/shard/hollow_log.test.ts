/** Rewrites of a hollow log: when they are due, and that a failed one loses nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createHarness } from "../../../tests/support/partition_harness.ts";
import { toUtf8, utf8 } from "../../lib/bytes.ts";
import { FaultError, isFault } from "../../lib/errors.ts";
import { readRecords } from "../../protocol/record.ts";
import { HollowLog } from "./hollow_log.ts";
import { appendRecords, bytesOf, type KeyValue, storedBatches } from "./shard_log.ts";

function record(key: string, value: string): KeyValue {
  return { key: toUtf8(key), value: toUtf8(value) };
}

async function world(bytesMin = 0) {
  const harness = await createHarness();
  const { env, log } = harness;
  const alive = new Map<string, KeyValue>();
  const hollow = new HollowLog({ env, log, event: "rewritten", bytesMin });
  let pictures = 0;
  return {
    harness,
    hollow,
    pictures: () => pictures,
    async put(key: string, value: string): Promise<void> {
      alive.set(key, record(key, value));
      await appendRecords(env, log, [record(key, value)]).durable;
    },
    rewrite(): Promise<void> {
      return hollow.rewriteIfHollow({
        bytes: [...alive.values()].reduce((sum, one) => sum + bytesOf(one), 0),
        records: () => {
          pictures += 1;
          return [...alive.values()];
        },
      });
    },
    /** What a reload finds, the newest of each key. */
    async stored(): Promise<Record<string, string>> {
      const found: Record<string, string> = {};
      for await (const batch of storedBatches(log, "groups")) {
        for (const { key, value } of readRecords(batch, env.codecs)) {
          found[utf8(key!)] = utf8(value!);
        }
      }
      return found;
    },
  };
}

test("a log is rewritten once it is four times as large as what is alive, and not below its minimum", async () => {
  const small = await world(1 << 20);
  for (let n = 0; n < 50; n++) await small.put("a", `${n}`.repeat(100));
  await small.rewrite();
  assert.deepEqual([small.hollow.isLarge, small.pictures()], [false, 0]);
  const w = await world();
  await w.put("a", "0".repeat(1000));
  await w.put("a", "1".repeat(1000));
  await w.rewrite();
  assert.equal(w.pictures(), 0, "half of it is alive");
  for (let n = 2; n < 6; n++) await w.put("a", `${n}`.repeat(1000));
  await w.put("b", "kept");
  await w.rewrite();
  assert.deepEqual([w.pictures(), w.harness.log.logStartOffset], [1, 7]);
  assert.deepEqual(await w.stored(), { a: "5".repeat(1000), b: "kept" });
  await w.rewrite();
  assert.equal(w.pictures(), 1, "it is solid now");
});

test("what comes while a rewrite is under way stays, and no second one begins", async () => {
  const w = await world();
  for (let n = 0; n < 8; n++) await w.put("a", `${n}`.repeat(500));
  w.harness.streams.durability = "manual";
  const rewriting = w.rewrite();
  assert.equal(w.hollow.isLarge, false);
  const later = w.put("b", "later");
  await w.rewrite();
  assert.equal(w.pictures(), 1);
  w.harness.streams.durability = "auto";
  w.harness.streams.confirm();
  await Promise.all([rewriting, later]);
  assert.deepEqual(await w.stored(), { a: "7".repeat(500), b: "later" });
});

test("a rewrite that cannot be stored cuts nothing off, and may be tried again", async () => {
  const w = await world();
  for (let n = 0; n < 8; n++) await w.put("a", `${n}`.repeat(500));
  const full = new FaultError("overloaded", "full", { retriable: true });
  w.harness.streams.fail = (op) => op === "append" ? full : null;
  await assert.rejects(w.rewrite(), (error) => isFault(error, "overloaded"));
  assert.equal(w.harness.log.logStartOffset, 0);
  w.harness.streams.fail = null;
  await w.rewrite();
  assert.equal(w.harness.log.logStartOffset, 8);
  assert.deepEqual(await w.stored(), { a: "7".repeat(500) });
});
