import assert from "node:assert/strict";
import { test } from "node:test";
import { streamEpoch } from "../../lib/brand.ts";
import { toUtf8 } from "../../lib/bytes.ts";
import { isFault } from "../../lib/errors.ts";
import { CLEAN_STEP_RECORDS } from "../../lib/limits.ts";
import { assignOffsets, buildBatch, readBatchHeader } from "../../protocol/record_batch.ts";
import { endOffset } from "../../storage/stream_record.ts";
import { createMemoryStreams } from "../../../tests/support/memory_streams.ts";
import { DEFAULT_LOG_CONFIG } from "../../../tests/support/partition_harness.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { LeaderEpochs } from "../leader_epochs.ts";
import { LogState } from "../log_state.ts";
import { LogView } from "../log_view.ts";
import { Segment } from "../segment.ts";
import { CleanPass } from "./clean_pass.ts";
import { CleanWriter } from "./clean_writer.ts";
import { CleanedPart } from "./cleaned_streams.ts";

const HOLE_MAX = 10;
const EPOCH = streamEpoch(1);

test("a pass lets others have their turn between batches that take long, not only between reads", async () => {
  let monotonicMs = 0;
  const clock = { nowMs: () => 5, monotonicMs: () => (monotonicMs += 15), after: () => () => {} };
  const env = testEnv({ clock });
  const log = await createMemoryStreams().create(EPOCH);
  const state = new LogState([new Segment(0, 0)], new LeaderEpochs(), 0, 0);
  const key = toUtf8("k");
  for (let offset = 0; offset < 8; offset++) {
    const records = [{ key, value: key, headers: [], timestampMs: 5 }];
    const batch = buildBatch({ records, codec: null, codecs: env.codecs });
    assignOffsets(batch, offset, 1);
    await log.append(1, batch).durable;
    state.learn(readBatchHeader(batch), batch, DEFAULT_LOG_CONFIG, 0);
  }
  const paced: number[] = [];
  await new CleanPass({
    env,
    config: DEFAULT_LOG_CONFIG,
    state,
    view: new LogView(log, state.segments),
    txn: () => null,
    segments: state.segments,
    firstDirty: 0,
    mapBytesMax: 2 ** 20,
    nowMs: 5,
    signal: new AbortController().signal,
    pace(bytes) {
      paced.push(bytes);
      return Promise.resolve();
    },
  }).map();
  assert.ok(paced[0]! > 0);
  assert.ok(paced.slice(1).length >= 2 && paced.slice(1).every((bytes) => bytes === 0));
});

test("within a batch that inflates to many records others have their turn too, and the pass can be stopped", async () => {
  let monotonicMs = 0;
  const clock = { nowMs: () => 5, monotonicMs: () => (monotonicMs += 15), after: () => () => {} };
  const env = testEnv({ clock });
  const steps = 8;
  const log = await createMemoryStreams().create(EPOCH);
  const state = new LogState([new Segment(0, 0)], new LeaderEpochs(), 0, 0);
  const batch = buildBatch({
    records: Array.from({ length: steps * CLEAN_STEP_RECORDS }, (_, i) => {
      const key = toUtf8(`${i % 10}`);
      return { key, value: key, headers: [], timestampMs: 5 };
    }),
    codec: "zstd",
    codecs: env.codecs,
  });
  assignOffsets(batch, 0, 1);
  await log.append(steps * CLEAN_STEP_RECORDS, batch).durable;
  state.learn(readBatchHeader(batch), batch, DEFAULT_LOG_CONFIG, 0);
  const stop = new AbortController();
  let turns = 0;
  let turnsMax = Infinity;
  const passOf = () =>
    new CleanPass({
      env,
      config: DEFAULT_LOG_CONFIG,
      state,
      view: new LogView(log, state.segments),
      txn: () => null,
      segments: state.segments,
      firstDirty: 0,
      mapBytesMax: 2 ** 20,
      nowMs: 5,
      signal: stop.signal,
      pace(bytes) {
        if (bytes === 0 && ++turns === turnsMax) stop.abort();
        return Promise.resolve();
      },
    });
  const pass = passOf();
  const mapped = await pass.map();
  // Checked, then mapped; every second look at this clock finds that it was long.
  assert.ok(turns >= steps, `${turns} turns while mapping`);
  turns = 0;
  const writing = createMemoryStreams();
  const part = new CleanedPart(".cleaned.1", await writing.create(EPOCH), null);
  const rules = { segmentBytes: 2 ** 30, holeOffsetsMax: 2 ** 30 };
  const writer = new CleanWriter({
    part,
    base: 0,
    ...rules,
    clock: env.clock,
    signal: stop.signal,
  });
  await pass.rewrite(mapped, writer);
  assert.ok(turns >= steps, `${turns} turns while rewriting`);
  const [left] = writing.records(part.log.streamId);
  assert.equal(readBatchHeader(left!.payload).recordCount, 10);
  [turns, turnsMax] = [0, 3];
  await assert.rejects(passOf().map(), (error) => isFault(error, "aborted"));
});

test("holes are bridged by headers before a record covers too many offsets, pass after pass", async () => {
  const env = testEnv();
  const streams = createMemoryStreams();
  const log = await streams.create(EPOCH);
  const state = new LogState([new Segment(0, 0)], new LeaderEpochs(), 0, 0);
  // Three offsets each, all with the same key; one key of its own in between.
  for (let i = 0; i < 30; i++) {
    const key = toUtf8(i === 11 ? "own" : "same");
    const record = { key, value: key, headers: [], timestampMs: 5 };
    const batch = buildBatch({
      records: [record, record, record],
      codec: null,
      codecs: env.codecs,
    });
    assignOffsets(batch, 3 * i, 1);
    await log.append(3, batch).durable;
    state.learn(readBatchHeader(batch), batch, DEFAULT_LOG_CONFIG, 0);
  }
  state.roll(90, 0);
  const { signal } = new AbortController();
  for (const pass of [1, 2, 3]) {
    const segments = state.segments.slice(0, -1);
    const clean = new CleanPass({
      env,
      config: DEFAULT_LOG_CONFIG,
      state,
      view: new LogView(log, [...state.segments]),
      txn: () => null,
      segments,
      firstDirty: 0,
      mapBytesMax: 2 ** 20,
      nowMs: 5,
      signal,
      pace: () => Promise.resolve(),
    });
    const part = new CleanedPart(`.cleaned.${pass}`, await streams.create(EPOCH), null);
    const rules = { segmentBytes: 300, holeOffsetsMax: HOLE_MAX };
    const writer = new CleanWriter({ part, base: 0, ...rules, clock: env.clock, signal });
    await clean.rewrite(await clean.map(), writer);
    const cleaned = await writer.finish({
      addTimeStream: () => assert.fail("small segments have no time index"),
    });
    state.replaceOldest(segments, cleaned, clean.cleanedTo);
    const stored = streams.records(part.log.streamId);
    assert.ok(stored.every(({ count }) => count <= HOLE_MAX), `pass ${pass}`);
    assert.equal(endOffset(stored.at(-1)!), 90);
    const full = stored.map(({ payload }) => readBatchHeader(payload))
      .filter(({ recordCount }) => recordCount > 0);
    assert.deepEqual(full.map(({ baseOffset }) => baseOffset), [33, 87], `pass ${pass}`);
    assert.ok(stored.length < 15, "headers are kept where they are needed, not everywhere");
    assert.ok(state.segments.length > 2, "segments end by size");
  }
});
