import assert from "node:assert/strict";
import { test } from "node:test";
import { streamEpoch } from "../lib/brand.ts";
import { fromHex } from "../lib/bytes.ts";
import { FaultError, isFault } from "../lib/errors.ts";
import { codecOf, isIntact, isLogAppendTime, readBatchHeader } from "../protocol/record_batch.ts";
import {
  accepted,
  contents,
  createHarness,
  DAY_MS,
  type Harness,
  HOUR_MS,
  outcome,
  put,
  readFrom,
  START_MS,
  STREAM_TAG,
  unopened,
} from "../../tests/support/partition_harness.ts";
import { decodeLogMeta, encodeLogMeta } from "./log_meta.ts";
import { decodeMetaKeyValue } from "./meta_codec.ts";
import { openPartitionLog } from "./open_partition_log.ts";

function segmentBases(h: Harness): number[] {
  const stored = h.streams.records(h.metaStream!)
    .map(({ payload }) => decodeMetaKeyValue(payload))
    .findLast(({ key }) => key === "LOG");
  return decodeLogMeta(stored!.value).segments.map(({ baseOffset }) => baseOffset);
}

test("offsets run on, and only offset and leader epoch of the batch are rewritten", async () => {
  const h = await createHarness();
  const first = h.batch(["a", "b"]);
  const crcFrom = first.slice(16);
  const appended = accepted(h.log.append(first));
  assert.deepEqual([appended.baseOffset, appended.lastOffset], [0, 1]);
  assert.equal(appended.logAppendTimeMs, -1);
  assert.equal(await put(h.log, h.batch(["c"])), "new @2");
  const { batches } = await readFrom(h.log, 0);
  assert.deepEqual(batches[0]!.slice(16), crcFrom);
  assert.equal(readBatchHeader(batches[0]!).partitionLeaderEpoch, 1);
  assert.deepEqual(await contents(h), ["0:a", "1:b", "2:c"]);
});

test("the end moves with the append, the high watermark with durability", async () => {
  const h = await createHarness();
  h.streams.durability = "manual";
  let told = 0;
  const stop = h.log.onAdvance(() => told++);
  const appended = accepted(h.log.append(h.batch(["a"])));
  assert.deepEqual([h.log.logEndOffset, h.log.highWatermark], [1, 0]);
  assert.deepEqual((await readFrom(h.log, 0)).batches, []);
  h.streams.confirm();
  await appended.durable;
  assert.deepEqual([h.log.highWatermark, h.log.lastStableOffset, told], [1, 1, 1]);
  stop();
});

test("a duplicate waits for the original", async () => {
  const h = await createHarness();
  h.streams.durability = "manual";
  const original = accepted(h.log.append(h.sequenced(0, 1)));
  accepted(h.log.append(h.sequenced(2, 3)));
  const again = accepted(h.log.append(h.sequenced(0, 1)));
  assert.equal(outcome(again), "duplicate @0");
  let isDone = false;
  again.durable.then(() => (isDone = true));
  await Promise.resolve();
  assert.equal(isDone, false);
  h.streams.confirm(1);
  await original.durable;
  await again.durable;
  assert.equal(h.streams.pending, 1);
  await accepted(h.log.append(h.sequenced(0, 1))).durable;
});

test("reads stay within the log", async () => {
  const h = await createHarness({ segmentBytes: 100 });
  for (const value of ["a", "b", "c"]) await put(h.log, h.batch([value]));
  await h.log.deleteRecords(1);
  const range = { ok: false, error: "OFFSET_OUT_OF_RANGE" };
  const options = { bytesMax: 1, isolation: "uncommitted" } as const;
  assert.deepEqual(await h.log.read(0, options), range);
  assert.deepEqual(await h.log.read(4, options), range);
  const read = await readFrom(h.log, 3);
  assert.deepEqual([read.batches, read.highWatermark, read.logStartOffset], [[], 3, 1]);
});

test("a read gives whole batches: at least one, else what fits", async () => {
  const h = await createHarness();
  const size = h.batch(["a", "b"]).length;
  for (let i = 0; i < 4; i++) await put(h.log, h.batch(["a", "b"]));
  const bytesOf = async (offset: number, bytesMax: number) => {
    const read = await h.log.read(offset, { bytesMax, isolation: "committed" });
    assert.ok(read?.ok);
    return [read.batches.length, read.bytes];
  };
  assert.deepEqual(await bytesOf(0, 1), [1, size]);
  assert.deepEqual(await bytesOf(1, size * 2), [2, size * 2]);
  assert.deepEqual(await bytesOf(4, size * 9), [2, size * 2]);
});

test("a cache-only miss is null, a fault of the store is a fault", async () => {
  const h = await createHarness();
  await put(h.log, h.batch(["a"]));
  h.streams.cached = false;
  const options = { bytesMax: 1, isolation: "uncommitted" } as const;
  assert.equal(await h.log.read(0, { ...options, cacheOnly: true }), null);
  assert.ok((await h.log.read(0, options))?.ok);
  h.streams.fail = () => new FaultError("store-unavailable", "down", { retriable: true });
  await assert.rejects(h.log.read(0, options), FaultError);
});

test("topics that stamp on arrival: our time, flag and checksum", async () => {
  const h = await createHarness({ timestampType: "log-append" });
  const appended = accepted(h.log.append(h.batch(["a"], { timestampMs: 5 })));
  assert.equal(appended.logAppendTimeMs, START_MS);
  await appended.durable;
  const { batches: [stored] } = await readFrom(h.log, 0);
  const header = readBatchHeader(stored!);
  assert.ok(isLogAppendTime(header));
  assert.equal(header.maxTimestamp, START_MS);
  assert.ok(isIntact(stored!), "the checksum is right");
});

test("a forced codec rebuilds the batch and keeps the producer's fields", async () => {
  const h = await createHarness({ compression: "gzip" });
  assert.equal(await put(h.log, h.sequenced(0, 2)), "new @0");
  assert.equal(await put(h.log, h.sequenced(0, 2)), "duplicate @0");
  assert.equal(await put(h.log, h.sequenced(3, 3, { codec: "gzip" })), "new @3");
  const { batches: [stored] } = await readFrom(h.log, 0);
  const header = readBatchHeader(stored!);
  assert.equal(codecOf(header), "gzip");
  assert.deepEqual([header.producerId, header.producerEpoch, header.baseSequence], [7, 3, 0]);
  assert.deepEqual(await contents(h), ["0:0+0", "1:0+1", "2:0+2", "3:3+0"]);
});

test("what the log refuses", async () => {
  const h = await createHarness({ messageBytesMax: 200, segmentBytes: 150 });
  const refusal = (batch: Uint8Array) => outcome(h.log.append(batch));
  const good = h.batch(["a"]);
  assert.equal(refusal(good.slice(0, 60)), "INVALID_RECORD");
  assert.equal(refusal(good.with(68, good[68]! ^ 1)), "CORRUPT_MESSAGE");
  assert.equal(refusal(good.with(16, 1)), "INVALID_RECORD");
  assert.equal(refusal(good.with(7, 1)), "INVALID_RECORD");
  assert.equal(refusal(h.batch(["x".repeat(200)])), "MESSAGE_TOO_LARGE");
  assert.equal(refusal(h.batch(["x".repeat(100)])), "RECORD_LIST_TOO_LARGE");
  assert.equal(
    refusal(h.batch(["a"], { timestampMs: h.nowMs + 2 * HOUR_MS })),
    "INVALID_TIMESTAMP",
  );
  assert.equal(h.log.logEndOffset, 0);
  h.log.updateConfig({ ...h.config, timestampBeforeMsMax: 1000 });
  assert.equal(refusal(h.batch(["a"], { timestampMs: h.nowMs - 1001 })), "INVALID_TIMESTAMP");
  assert.equal(refusal(h.batch(["a"], { timestampMs: -1 })), "new @0");
});

test("a compacted topic needs keys, also inside compressed batches", async () => {
  const h = await createHarness({ cleanup: { delete: false, compact: true } });
  assert.equal(outcome(h.log.append(h.batch(["a"]))), "INVALID_RECORD");
  assert.equal(outcome(h.log.append(h.batch(["a", "b"], { codec: "lz4" }))), "INVALID_RECORD");
  assert.equal(outcome(h.log.append(h.batch(["a"], { codec: "lz4", key: "k" }))), "new @0");
});

test("an overloaded stream refuses with a retriable error, and later sequences wait", async () => {
  const h = await createHarness();
  let isFull = true;
  h.streams.fail = (op) =>
    op === "append" && isFull ? new FaultError("overloaded", "full", { retriable: true }) : null;
  assert.equal(outcome(h.log.append(h.sequenced(0, 4))), "NOT_ENOUGH_REPLICAS");
  isFull = false;
  assert.equal(outcome(h.log.append(h.sequenced(5, 9))), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(await put(h.log, h.sequenced(0, 4)), "new @0");
  assert.equal(await put(h.log, h.sequenced(5, 9)), "new @5");
});

test("a fenced stream ends the log", async () => {
  const h = await createHarness();
  h.streams.durability = "manual";
  const lost = accepted(h.log.append(h.batch(["a"])));
  let told = 0;
  h.log.onAdvance(() => told++);
  h.streams.crash();
  await assert.rejects(lost.durable, FaultError);
  assert.equal(told, 1);
  assert.equal(outcome(h.log.append(h.batch(["b"]))), "NOT_LEADER_OR_FOLLOWER");
  await h.log.close();
});

test("a closed log refuses; closing twice is once", async () => {
  const h = await createHarness();
  await put(h.log, h.batch(["a"]));
  assert.equal(h.log.close(), h.log.close());
  assert.equal(outcome(h.log.append(h.batch(["b"]))), "NOT_LEADER_OR_FOLLOWER");
  await h.log.close();
  await assert.rejects(h.log.deleteRecords(1), /closed/);
});

test("a close waits for what is in flight", async () => {
  const h = await createHarness();
  h.streams.durability = "manual";
  const appended = accepted(h.log.append(h.batch(["a"])));
  const closing = h.log.close();
  h.streams.durability = "auto";
  h.streams.confirm();
  await appended.durable;
  await closing;
  await h.open();
  assert.deepEqual(await contents(h), ["0:a"]);
});

test("a clean restart replays nothing, a crash replays what no checkpoint knows", async () => {
  const h = await createHarness();
  for (let i = 0; i < 50; i++) await put(h.log, h.sequenced(i, i));
  let fetched = 0;
  const log = h.streams.ids[1]!;
  await h.log.close();
  h.streams.fail = (op, _, stream) => {
    if (op === "fetch" && stream === log) fetched++;
    return null;
  };
  await h.open();
  assert.equal(fetched, 0);
  await put(h.log, h.sequenced(50, 50));
  await h.crash();
  assert.equal(fetched, 1);
  const { bytes } = await readFrom(h.log, 0);
  assert.equal(h.log.sizeBytes, bytes);
});

test("an idle log writes nothing: not by ticks, not by open and close", async () => {
  const h = await createHarness();
  await put(h.log, h.batch(["a"]));
  await h.reopen();
  const before = h.streams.appends;
  for (let i = 0; i < 100; i++) {
    h.nowMs += HOUR_MS;
    await h.log.tick(h.nowMs);
  }
  await h.reopen();
  assert.equal(h.streams.appends, before);
});

test("segments roll by size, and the meta stream tells them after a restart", async () => {
  const h = await createHarness({ segmentBytes: 200 });
  for (let i = 0; i < 6; i++) await put(h.log, h.batch([String(i)]));
  await h.log.tick(h.nowMs);
  assert.deepEqual(segmentBases(h), [0, 2, 4]);
  const { sizeBytes } = h.log;
  await h.reopen();
  assert.equal(h.log.sizeBytes, sizeBytes);
  await put(h.log, h.batch(["6"]));
  await h.crash();
  await h.log.tick(h.nowMs);
  await h.log.close();
  assert.deepEqual(segmentBases(h), [0, 2, 4, 6]);
});

test("segments roll by the time of their records; time alone rolls no empty one", async () => {
  const h = await createHarness({ segmentMs: 1000 });
  h.nowMs += DAY_MS;
  await put(h.log, h.batch(["a"]));
  h.nowMs += 1000;
  await put(h.log, h.batch(["b"]));
  h.nowMs += 1;
  await put(h.log, h.batch(["c"]));
  await h.log.close();
  assert.deepEqual(segmentBases(h), [0, 2]);
});

test("retention by time and size moves the start and trims the stream", async () => {
  const h = await createHarness({ segmentBytes: 200 });
  for (let i = 0; i < 6; i++) await put(h.log, h.batch([String(i)]));
  h.log.updateConfig({ ...h.config, retentionBytes: 250 });
  await h.log.tick(h.nowMs);
  assert.equal(h.log.logStartOffset, 2);
  assert.equal(h.streams.records(h.streams.ids[1]!)[0]!.baseOffset, 2);
  h.log.updateConfig({ ...h.config, retentionMs: 1000 });
  h.nowMs += 1001;
  await h.log.tick(h.nowMs);
  assert.deepEqual([h.log.logStartOffset, h.log.logEndOffset, h.log.sizeBytes], [6, 6, 0]);
  await h.crash();
  assert.deepEqual([h.log.logStartOffset, h.log.logEndOffset], [6, 6]);
  assert.equal(await put(h.log, h.batch(["6"])), "new @6");
});

test("retention keeps what is above the high watermark", async () => {
  const h = await createHarness({ segmentBytes: 100, retentionBytes: 0 });
  await put(h.log, h.batch(["a"]));
  h.streams.durability = "manual";
  accepted(h.log.append(h.batch(["b"])));
  const ticking = h.log.tick(h.nowMs);
  await new Promise((resolve) => setImmediate(resolve));
  h.streams.durability = "auto";
  h.streams.confirm();
  await ticking;
  assert.equal(h.log.logStartOffset, 1);
});

test("DeleteRecords moves the start into a batch and refuses what is not durable", async () => {
  const h = await createHarness();
  await put(h.log, h.batch(["a", "b", "c"]));
  assert.deepEqual(await h.log.deleteRecords(4), { ok: false, error: "OFFSET_OUT_OF_RANGE" });
  assert.deepEqual(await h.log.deleteRecords(2), { ok: true, logStartOffset: 2 });
  assert.deepEqual(await h.log.deleteRecords(1), { ok: true, logStartOffset: 2 });
  assert.deepEqual(await contents(h), ["2:c"]);
  await h.crash();
  assert.equal(h.log.logStartOffset, 2);
  assert.deepEqual(await contents(h), ["2:c"]);
});

test("leader epochs: each opening that wrote, after crashes and clean closes", async () => {
  const h = await createHarness();
  await put(h.log, h.batch(["a", "b"]));
  await h.crash();
  await h.reopen();
  await put(h.log, h.batch(["c"]));
  await h.reopen();
  assert.equal(h.log.leaderEpoch, 4);
  assert.deepEqual(h.log.endOfEpoch(1), { leaderEpoch: 1, endOffset: 2 });
  assert.deepEqual(h.log.endOfEpoch(2), { leaderEpoch: 1, endOffset: 2 });
  assert.deepEqual(h.log.endOfEpoch(3), { leaderEpoch: 3, endOffset: 3 });
  assert.deepEqual(h.log.endOfEpoch(4), { leaderEpoch: 4, endOffset: 3 });
  assert.deepEqual(h.log.endOfEpoch(5), { leaderEpoch: -1, endOffset: -1 });
  assert.deepEqual([0, 2, 3].map((offset) => h.log.epochAt(offset)), [1, 3, 4]);
});

test("the records at or after a time, to the record, in compressed batches too", async () => {
  const h = await createHarness();
  for (let i = 0; i < 5; i++) {
    const values = Array.from({ length: 10 }, (_, j) => String(i * 10 + j));
    const timestamps = values.map((value) => Number(value) * 10);
    await put(h.log, h.batch(values, { timestamps, codec: i % 2 === 0 ? "lz4" : null }));
  }
  const find = async (timestampMs: number) => (await h.log.offsetForTimestamp(timestampMs))?.offset;
  assert.deepEqual(
    await Promise.all([420, 421, 430, 431, 491, 401, 399, 0].map(find)),
    [42, 43, 43, 44, undefined, 41, 40, 0],
  );
  const largest = await h.log.maxTimestamp();
  assert.deepEqual(largest, { timestampMs: 490, offset: 49, leaderEpoch: 1 });
  await h.reopen();
  assert.equal(await find(421), 43);
});

test("times that go back: the first record at or after it, the first of the largest", async () => {
  const h = await createHarness();
  for (const timestampMs of [50, 20, 90, 10, 90, 60]) {
    await put(h.log, h.batch(["x"], { timestampMs }));
  }
  assert.equal((await h.log.offsetForTimestamp(55))?.offset, 2);
  assert.equal((await h.log.maxTimestamp())?.offset, 2);
  await h.log.deleteRecords(3);
  assert.equal((await h.log.offsetForTimestamp(55))?.offset, 4);
  assert.equal((await h.log.maxTimestamp())?.offset, 4);
});

test("times above the high watermark are not answered", async () => {
  const h = await createHarness();
  await put(h.log, h.batch(["a"], { timestampMs: 10 }));
  h.streams.durability = "manual";
  accepted(h.log.append(h.batch(["b"], { timestampMs: 20 })));
  assert.equal(await h.log.offsetForTimestamp(15), null);
  assert.equal((await h.log.maxTimestamp())?.offset, 0);
});

test("a search by time survives retention that passes it", async () => {
  const h = await createHarness({ segmentBytes: 100 });
  for (let i = 0; i < 4; i++) await put(h.log, h.batch(["x"], { timestampMs: i * 10 }));
  const deleting: Promise<unknown>[] = [];
  h.streams.fail = (op) => {
    if (op !== "fetch" || deleting.length > 0) return null;
    deleting.push(h.log.deleteRecords(3));
    return new FaultError("object-missing", "trimmed", { retriable: false });
  };
  assert.equal((await h.log.offsetForTimestamp(0))?.offset, 3);
  await Promise.all(deleting);
  h.streams.fail = () => new FaultError("store-unavailable", "down", { retriable: true });
  await assert.rejects(h.log.offsetForTimestamp(0), FaultError);
});

test("an empty log has no times", async () => {
  const h = await createHarness();
  assert.equal(await h.log.offsetForTimestamp(0), null);
  assert.equal(await h.log.maxTimestamp(), null);
});

test("the time index is made with its first entry and survives restarts and crashes", async () => {
  const h = await createHarness({ segmentBytes: 3_000_000, messageBytesMax: 2_000_000 });
  const big = "x".repeat(600_000);
  const fill = async (from: number, to: number) => {
    for (let i = from; i < to; i++) await put(h.log, h.batch([big], { timestampMs: i * 10 }));
  };
  assert.equal(h.streams.ids.length, 2);
  await fill(0, 10);
  await h.log.tick(h.nowMs);
  assert.equal(h.streams.ids.length, 3);
  assert.deepEqual([...h.streams.tags.values()], [STREAM_TAG, STREAM_TAG, STREAM_TAG]);
  const expectAll = async (count: number) => {
    for (let i = 0; i < count; i++) {
      assert.equal((await h.log.offsetForTimestamp(i * 10 - 5))?.offset, i);
    }
    assert.equal((await h.log.maxTimestamp())?.offset, count - 1);
  };
  await expectAll(10);
  await h.reopen();
  await fill(10, 14);
  await expectAll(14);
  await h.crash();
  await fill(14, 18);
  await h.log.tick(h.nowMs);
  await expectAll(18);
  await h.reopen();
  await expectAll(18);
  await h.log.deleteRecords(9);
  assert.equal((await h.log.offsetForTimestamp(0))?.offset, 9);
});

test("an index whose checkpoint was lost costs reads, not answers", async () => {
  const h = await createHarness({ messageBytesMax: 2_000_000 });
  const big = "x".repeat(600_000);
  for (let i = 0; i < 4; i++) await put(h.log, h.batch([big], { timestampMs: i * 10 }));
  await h.reopen();
  for (let i = 4; i < 8; i++) await put(h.log, h.batch([big], { timestampMs: i * 10 }));
  h.streams.durability = "manual";
  const closing = h.log.close();
  h.streams.confirm(1); // the entries, not the checkpoint
  h.streams.crash();
  await closing.catch(() => {});
  h.streams.durability = "auto";
  await h.open();
  for (let i = 8; i < 12; i++) await put(h.log, h.batch([big], { timestampMs: i * 10 }));
  await h.reopen();
  for (let i = 0; i < 12; i++) {
    assert.equal((await h.log.offsetForTimestamp(i * 10))?.offset, i);
  }
});

test("a known meta stream that names no log stream is a loss, not a new partition", async () => {
  const h = unopened();
  const stream = await h.streams.create(streamEpoch(1));
  await stream.close();
  const opening = openPartitionLog({
    streams: h.streams,
    metaStream: stream.streamId,
    onMetaStreamCreated: () => Promise.reject(new Error("must not be called")),
    leaderEpoch: streamEpoch(2),
    config: h.config,
    env: h.env,
    topic: "t",
    partition: 0,
  });
  await assert.rejects(
    opening,
    (error) => error instanceof FaultError && error.code === "data-loss",
  );
});

test("LOG keeps what it was given", () => {
  const text = `{"streamMap":{"log":5},"segmentMetas":[{"bo":0,"ct":1,"lmt":2,"s":"","lsz":3,` +
    `"ls":{"s":0,"e":-1},"ts":{"s":0,"e":12},"txs":{"s":0,"e":0},"fbt":4,"tle":{"t":5,"o":6}}],"ro":7}`;
  const bytes = new TextEncoder().encode(text);
  assert.deepEqual(encodeLogMeta(decodeLogMeta(bytes)), bytes);
  for (const damaged of ["", "[]", "{}", text.replace("5", `"x"`), text.replace("[{", "[[{")]) {
    assert.throws(() => decodeLogMeta(new TextEncoder().encode(damaged)), FaultError);
  }
  assert.throws(() => decodeLogMeta(fromHex("ff")), FaultError);
});

test("a checkpoint goes out only once its offset is below the high watermark", async () => {
  const h = await createHarness({ segmentBytes: 100 });
  for (const value of ["a", "b"]) await put(h.log, h.batch([value]));
  // Its stream of times has a name from here on.
  await h.log.tick(h.nowMs);
  h.streams.durability = "manual";
  accepted(h.log.append(h.batch(["c"])));
  let written = 0;
  h.streams.fail = (op, _, stream) => {
    if (op === "append" && stream === h.metaStream) written++;
    return null;
  };
  const ticking = h.log.tick(h.nowMs);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(written, 0);
  h.streams.durability = "auto";
  h.streams.confirm();
  await ticking;
  assert.equal(written, 3, "all but the leader epochs, which are the same");
});

test("a checkpoint that knows more than the log is corrected by the log", async () => {
  const h = await createHarness({ segmentBytes: 200 });
  for (let i = 0; i < 5; i++) await put(h.log, h.sequenced(i, i));
  await h.log.close();
  h.streams.tamper(h.streams.ids[1]!, (record) => (record.baseOffset < 3 ? record : null));
  await h.open();
  assert.equal(h.log.logEndOffset, 3);
  assert.equal(h.log.sizeBytes, (await readFrom(h.log, 0)).bytes);
  assert.equal(h.log.epochAt(2), 1);
  assert.equal(await put(h.log, h.sequenced(2, 2)), "duplicate @2");
  assert.equal(await put(h.log, h.sequenced(3, 3)), "new @3");
  assert.deepEqual(await contents(h), ["0:0+0", "1:1+0", "2:2+0", "3:3+0"]);
});

test("a record of the log stream that is not its batch is reported, not skipped", async () => {
  const h = await createHarness();
  await put(h.log, h.batch(["a"]));
  h.streams.tamper(h.streams.ids[1]!, (record) => ({
    ...record,
    payload: record.payload.with(7, 9),
  }));
  h.streams.crash();
  await assert.rejects(
    h.open(),
    (error) => error instanceof FaultError && error.code === "corrupt",
  );
});

test("retention is looked at as often as the node says, checkpoints and expiry at each tick", async () => {
  const h = await createHarness({ segmentBytes: 100, retentionCheckMs: 300_000 });
  for (const value of ["a", "b", "c"]) await put(h.log, h.batch([value.repeat(20)]));
  await h.log.tick(h.nowMs);
  h.log.updateConfig({ ...h.config, retentionBytes: 0 });
  h.nowMs += 299_999;
  await h.log.tick(h.nowMs);
  assert.equal(h.log.logStartOffset, 0);
  h.nowMs += 1;
  await h.log.tick(h.nowMs);
  assert.ok(h.log.logStartOffset > 0);
  await h.reopen();
  await put(h.log, h.batch(["d".repeat(20)]));
  await put(h.log, h.batch(["e".repeat(20)]));
  const { logStartOffset } = h.log;
  h.log.updateConfig({ ...h.config, retentionBytes: 0 });
  await h.log.tick(h.nowMs);
  assert.ok(h.log.logStartOffset > logStartOffset, "a log that was just opened does not wait");
});

test("a search by time ends with its signal", async () => {
  const h = await createHarness();
  await put(h.log, h.batch(["a"]));
  const stop = new AbortController();
  stop.abort();
  const aborted = (error: unknown) => isFault(error, "aborted");
  await assert.rejects(h.log.offsetForTimestamp(h.nowMs, stop.signal), aborted);
  await assert.rejects(h.log.maxTimestamp(stop.signal), aborted);
  assert.equal((await h.log.offsetForTimestamp(h.nowMs))?.offset, 0);
});
