/** AutoMQ's cases of segments and time indexes, with their numbers. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SEGMENT_OFFSETS_MAX, TIME_INDEX_INTERVAL_BYTES } from "../lib/limits.ts";
import type { LogConfig } from "./partition_log.ts";
import { type CountedBatch, Segment } from "./segment.ts";
import { decodeTimeEntries, encodeTimeEntries, lookupTime } from "./time_index.ts";

const CONFIG = { segmentBytes: 1000, segmentMs: 100 } as LogConfig;

function batch(baseOffset: number, lastOffset: number, maxTimestampMs = 0): CountedBatch {
  return { baseOffset, lastOffset, bytes: 10, maxTimestampMs };
}

describe("ElasticLogSegmentTest", () => {
  test("time alone does not roll an empty segment, but one with a batch", () => {
    const segment = new Segment(40, 0);
    assert.equal(segment.isFullFor(batch(40, 40, 9_999), CONFIG, 9_999), false);
    segment.countBatch(batch(40, 40, 5), 0);
    assert.equal(segment.isFullFor(batch(41, 41, 105), CONFIG, 0), false);
    assert.equal(segment.isFullFor(batch(41, 41, 106), CONFIG, 0), true);
  });

  test("AutoMQ 2720: offsets relative to the base never pass 31 bits, whatever the size and the time", () => {
    const segment = new Segment(40, 0);
    segment.countBatch(batch(40, 40), 0);
    const last = 40 + SEGMENT_OFFSETS_MAX;
    assert.equal(SEGMENT_OFFSETS_MAX, 2 ** 31 - 1);
    assert.equal(segment.isFullFor(batch(41, last - 1), CONFIG, 0), false);
    assert.equal(segment.isFullFor(batch(41, last), CONFIG, 0), true);
  });

  test("30 records, an interval just under 2 of them: 15 entries, one of the last batch too", () => {
    const segment = new Segment(0, 0);
    const bytes = Math.ceil((TIME_INDEX_INTERVAL_BYTES + 1) / 2);
    for (let offset = 0; offset < 30; offset++) {
      const one = { baseOffset: offset, lastOffset: offset, bytes, maxTimestampMs: 10 * offset };
      segment.countBatch(one, 0);
    }
    // Theirs are 14: Kafka looks at the interval before it counts a batch, so the last one has no entry.
    assert.deepEqual(
      segment.timePending.map(({ offset }) => offset),
      Array.from({ length: 15 }, (_, i) => 2 * i + 1),
    );
    assert.deepEqual(segment.largest, { timestampMs: 290, offset: 29 });
  });
});

test("ElasticTimeIndexTest: entries 10..290 by 10, base 45: 9 → (−1, 45), 25 → (20, 65), 30 → (30, 75)", () => {
  const made = Array.from({ length: 29 }, (_, i) => ({
    timestampMs: 10 * (i + 1),
    offset: 45 + 10 * (i + 1),
  }));
  const entries = decodeTimeEntries(encodeTimeEntries(made, 45), 45);
  const cases = [[9, -1, 45], [10, 10, 55], [25, 20, 65], [30, 30, 75], [9_999, 290, 335]] as const;
  for (const [asked, timestampMs, offset] of cases) {
    assert.deepEqual(lookupTime(entries, asked, 45), { timestampMs, offset }, `${asked}`);
  }
});
