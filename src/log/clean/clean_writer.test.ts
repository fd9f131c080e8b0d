import assert from "node:assert/strict";
import { test } from "node:test";
import { streamEpoch } from "../../lib/brand.ts";
import { FaultError, isFault } from "../../lib/errors.ts";
import { CLEAN_OVERLOAD_PAUSE_MS } from "../../lib/limits.ts";
import { assignOffsets, buildBatch } from "../../protocol/record_batch.ts";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { createMemoryStreams } from "../../../tests/support/memory_streams.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { Segment } from "../segment.ts";
import { CleanWriter } from "./clean_writer.ts";
import { CleanedPart } from "./cleaned_streams.ts";

async function world(base: number) {
  const streams = createMemoryStreams();
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const stop = new AbortController();
  const part = new CleanedPart(".cleaned.1", await streams.create(streamEpoch(1)), null);
  const { signal } = stop;
  const writer = new CleanWriter({
    part,
    base,
    segmentBytes: 2 ** 30,
    holeOffsetsMax: 2 ** 30,
    clock,
    signal,
  });
  const write = (offset: number) => {
    const key = new Uint8Array(1);
    const records = [{ key, value: key, headers: [], timestampMs: 5 }];
    const batch = buildBatch({ records, codec: null, codecs: env.codecs });
    assignOffsets(batch, offset, 1);
    return writer.write(batch, new Segment(base, 0));
  };
  return { streams, clock, stop, part, writer, write };
}

test("a record covers the hole before its batch, and stream offsets begin at 0", async () => {
  const { streams, part, writer, write } = await world(10 ** 12);
  await write(10 ** 12 + 5);
  await write(10 ** 12 + 6);
  const stored = streams.records(part.log.streamId);
  assert.deepEqual(stored.map(({ baseOffset, count }) => [baseOffset, count]), [[0, 6], [6, 1]]);
  assert.equal(writer.end, 10 ** 12 + 7);
});

test("while the WAL is full it waits, until there is room or the log closes", async () => {
  const { streams, clock, stop, part, write } = await world(0);
  const full = new FaultError("overloaded", "the WAL is full", { retriable: true });
  streams.fail = (op) => op === "append" ? full : null;
  const first = write(0);
  await clock.advance(3 * CLEAN_OVERLOAD_PAUSE_MS);
  assert.equal(streams.records(part.log.streamId).length, 0);
  streams.fail = null;
  await clock.advance(CLEAN_OVERLOAD_PAUSE_MS);
  await first;
  assert.equal(part.log.confirmOffset, 1);
  streams.fail = (op) => op === "append" ? full : null;
  const second = write(1);
  await clock.settle();
  stop.abort();
  await assert.rejects(second, (error) => isFault(error, "aborted"));
});
