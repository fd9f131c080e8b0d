/** Readers under way while cleaned segments take the place of others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type StreamEpoch, streamEpoch } from "../../lib/brand.ts";
import { ABORTED_RECENT_MAX } from "../../lib/limits.ts";
import { buildMarker } from "../../protocol/control_record.ts";
import { assignOffsets, buildBatch, readBatchHeader } from "../../protocol/record_batch.ts";
import type { ReadOptions } from "../../storage/storage.ts";
import type { Stream } from "../../stream/stream.ts";
import { createMemoryStreams } from "../../../tests/support/memory_streams.ts";
import { DEFAULT_LOG_CONFIG } from "../../../tests/support/partition_harness.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { encodeAborted } from "../aborted_transactions.ts";
import { LeaderEpochs } from "../leader_epochs.ts";
import { readLog } from "../log_read.ts";
import { LogState } from "../log_state.ts";
import { Segment } from "../segment.ts";
import { CleanedPart } from "./cleaned_streams.ts";

const EPOCH: StreamEpoch = streamEpoch(1);
const { codecs } = testEnv();

/** A stream whose reads wait, once they have what they read. */
class Gated implements Stream {
  readonly #stream: Stream;
  gate: Promise<void> = Promise.resolve();

  constructor(stream: Stream) {
    this.#stream = stream;
  }
  get streamId() {
    return this.#stream.streamId;
  }
  get epoch() {
    return this.#stream.epoch;
  }
  get startOffset() {
    return this.#stream.startOffset;
  }
  get confirmOffset() {
    return this.#stream.confirmOffset;
  }
  get nextOffset() {
    return this.#stream.nextOffset;
  }
  append(count: number, payload: Uint8Array) {
    return this.#stream.append(count, payload);
  }
  async fetch(start: number, end: number, options: ReadOptions) {
    const records = await this.#stream.fetch(start, end, options);
    await this.gate;
    return records;
  }
  trim(start: number) {
    return this.#stream.trim(start);
  }
  close() {
    return this.#stream.close();
  }
}

function dataOf(producerId: number): Uint8Array {
  return buildBatch({
    records: [{ key: new Uint8Array(1), value: new Uint8Array(1), headers: [], timestampMs: 5 }],
    codec: null,
    codecs,
    producerId,
    producerEpoch: 0,
    baseSequence: 0,
    transactional: true,
  });
}

async function world() {
  const streams = createMemoryStreams();
  const log = new Gated(await streams.create(EPOCH));
  const state = new LogState([new Segment(0, 0)], new LeaderEpochs(), 0, 0);
  const marker = { producerId: 7, producerEpoch: 0, coordinatorEpoch: 0, commit: false };
  const batches = [
    dataOf(7),
    buildMarker({ ...marker, timestampMs: 5 }, codecs),
    dataOf(8),
    buildMarker({ ...marker, producerId: 8, commit: true, timestampMs: 5 }, codecs),
  ];
  for (const [offset, batch] of batches.entries()) {
    assignOffsets(batch, offset, 1);
    await log.append(1, batch).durable;
    if (offset === 2) state.roll(2, 0);
    state.learn(readBatchHeader(batch), batch, DEFAULT_LOG_CONFIG, 0);
  }
  // The marker alone is left of the first two.
  const part = new CleanedPart(".cleaned.1", await streams.create(EPOCH), null);
  await part.log.append(2, batches[1]!).durable;
  const cleaned = new Segment(0, 0, { part, start: 0 });
  cleaned.countBatch({ baseOffset: 0, lastOffset: 1, bytes: 1, maxTimestampMs: 5 }, 0);
  const swap = () => state.replaceOldest(state.segments.slice(0, 1), [cleaned], 2);
  return { streams, log, state, swap };
}

const COMMITTED = { bytesMax: 2 ** 20, isolation: "committed" } as const;

test("old batches never come with what the index says after the swap", async () => {
  const { log, state, swap } = await world();
  let open = () => {};
  log.gate = new Promise((resolve) => (open = resolve));
  const reading = readLog({ log, state, txn: () => null }, 0, COMMITTED);
  await new Promise((resolve) => setImmediate(resolve));
  swap();
  open();
  const read = await reading;
  assert.ok(read !== null && read.ok);
  assert.deepEqual(read.batches.map((batch) => readBatchHeader(batch).baseOffset), [1, 2, 3]);
  assert.deepEqual(read.aborted, []);
});

test("a read of what the swap has taken away begins again", async () => {
  const { log, state, swap } = await world();
  let open = () => {};
  log.gate = new Promise((_, reject) => (open = () => reject(new Error("the stream is trimmed"))));
  const reading = readLog({ log, state, txn: () => null }, 0, COMMITTED);
  await new Promise((resolve) => setImmediate(resolve));
  swap();
  open();
  log.gate = Promise.resolve();
  const read = await reading;
  assert.ok(read !== null && read.ok && read.batches.length === 3);
});

test("before the swap the aborted transaction is named", async () => {
  const { log, state } = await world();
  const read = await readLog({ log, state, txn: () => null }, 0, COMMITTED);
  assert.ok(read !== null && read.ok);
  assert.deepEqual(read.aborted, [{ producerId: 7, firstOffset: 0 }]);
});

test("a read asks the index of aborted transactions that was made while it was under way", async () => {
  const { streams, log, state } = await world();
  const { aborted } = state;
  for (let offset = 4; offset < 4 + ABORTED_RECENT_MAX; offset++) {
    const at = { firstOffset: offset, lastOffset: offset, lastStableOffset: offset };
    aborted.add({ producerId: 100, ...at });
  }
  let txn: Stream | null = null;
  let open = () => {};
  log.gate = new Promise((resolve) => (open = resolve));
  const reading = readLog({ log, state, txn: () => txn }, 0, COMMITTED);
  // As a checkpoint does it: the oldest leaves memory once it is in the index.
  const payload = encodeAborted(aborted.unstreamedBelow(2, 1));
  const index = await streams.create(EPOCH);
  await index.append(payload.length, payload).durable;
  state.segments[0]!.txnSlice = { start: 0, end: payload.length };
  aborted.markStreamed(1);
  txn = index;
  aborted.forget(2);
  assert.equal(aborted.completeFrom, 2);
  open();
  const read = await reading;
  assert.ok(read !== null && read.ok);
  assert.deepEqual(read.aborted, [{ producerId: 7, firstOffset: 0 }]);
});
