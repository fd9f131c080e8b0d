import assert from "node:assert/strict";
import { test } from "node:test";
import { objectId, position } from "../../lib/brand.ts";
import { nodeId } from "../../lib/brand.ts";
import type { StreamSetRef } from "../ports.ts";
import { DEFAULT_COMPACTION_OPTIONS } from "./options.ts";
import { planSets } from "./set_plan.ts";

const MIB = 2 ** 20;

function sets(...mib: readonly number[]): StreamSetRef[] {
  return mib.map((size, i) => ({
    objectId: objectId(i),
    kind: "stream-set",
    size: size * MIB,
    attributes: 0,
    checksums: { bytesCrc: 0, indexCrc: 0 },
    nodeId: nodeId(1),
    order: position(i + 1),
  }));
}

function planned(...mib: readonly number[]): number[] | null {
  const plan = planSets(sets(...mib), DEFAULT_COMPACTION_OPTIONS);
  return plan === null ? null : plan.map((one) => one.objectId);
}

const eight = Array.from({ length: 8 }, () => 80);

test("eight objects of one size are put together, seven wait", () => {
  assert.deepEqual(planned(...eight), [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.equal(planned(...eight.slice(1)), null);
});

test("a large one waits until there is about six times as much of it, not for its own size once more", () => {
  assert.deepEqual(planned(640, ...eight), [1, 2, 3, 4, 5, 6, 7, 8], "the new ones alone");
  assert.equal(planned(640, 640, 640, 640, 640, 80, 80), null, "3,360 MiB are 5.25 times 640");
  const six = [640, 640, 640, 640, 640, 640, 80, 80];
  assert.deepEqual(planned(...six), [0, 1, 2, 3, 4, 5, 6, 7], "4,000 MiB are 6.25 times 640");
});

test("a byte is written twice before its stream has enough: 64 GiB in 80 MiB objects", () => {
  let objects = sets();
  let [uploaded, rewritten, next] = [0, 0, 0];
  const splitAt = 100 * DEFAULT_COMPACTION_OPTIONS.splitBytes;
  for (; uploaded < 64 * 1024; uploaded += 80) {
    objects.push(...sets(80).map((one) => ({ ...one, objectId: objectId(next++) })));
    for (;;) {
      const plan = planSets(objects, DEFAULT_COMPACTION_OPTIONS);
      if (plan === null) break;
      const size = plan.reduce((sum, one) => sum + one.size, 0);
      rewritten += size / MIB;
      const first = objects.indexOf(plan[0]!);
      const joined = { ...plan[0]!, size, objectId: objectId(next++) };
      // A hundred streams with as much each: past the split they leave together.
      const left = size > splitAt ? [] : [joined];
      objects = objects.toSpliced(first, plan.length, ...left);
    }
    assert.ok(objects.length < 20, `${objects.length} objects`);
  }
  assert.ok(rewritten / uploaded <= 2.05, `${rewritten / uploaded} times`);
});

function plannedFor(bytesWanted: number, ...mib: readonly number[]): number[] | null {
  const plan = planSets(sets(...mib), DEFAULT_COMPACTION_OPTIONS, bytesWanted * MIB);
  return plan === null ? null : plan.map((one) => one.objectId);
}

test("what waits for enough of each stream is left alone until it is there, but not past 64 objects", () => {
  const uploads = (count: number) => Array.from({ length: count }, () => 80);
  assert.equal(plannedFor(3_360, ...uploads(41)), null, "3,280 MiB");
  assert.equal(plannedFor(3_360, ...uploads(42))?.length, 42);
  const fewer = (count: number) => [...uploads(40), ...uploads(count).map(() => 10)];
  assert.equal(plannedFor(5_000, ...fewer(23)), null);
  assert.equal(plannedFor(5_000, ...fewer(24))?.length, 64);
});

test("nobody waits for what 64 such objects would not have, whatever an earlier join has found", () => {
  assert.equal(plannedFor(3_360, ...Array.from({ length: 8 }, () => 40))?.length, 8);
});

test("of more than enough the oldest: others would only make the pieces smaller", () => {
  const uploads = Array.from({ length: 60 }, () => 80);
  assert.deepEqual(plannedFor(1_600, ...uploads), Array.from({ length: 20 }, (_, i) => i));
  assert.equal(plannedFor(500, ...uploads)?.length, 8, "never fewer than are worth a rewrite");
  const plan = plannedFor(1_600, 400, ...uploads.slice(0, 30));
  assert.equal(plan?.length, 26, "400 and 25 times 80 MiB: six times the largest");
});

test("half of the largest run is enough, whatever the number: larger ones would never be put together", () => {
  assert.deepEqual(planned(2_600, 2_600), [0, 1]);
  assert.equal(planned(2_400, 2_400), null);
  assert.equal(planned(6_000, 100), null, "but never a large one for the sake of a small one");
});
