/** Compaction of one partition, case by case, with what Kafka's cleaner leaves. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toUtf8 } from "../../lib/bytes.ts";
import { decodeLogMeta, encodeLogMeta } from "../log_meta.ts";
import { ABORTED_RECENT_MAX } from "../../lib/limits.ts";
import { readRecords } from "../../protocol/record.ts";
import {
  BATCH_HEADER_BYTES,
  readBatchHeader,
  replacePayload,
} from "../../protocol/record_batch.ts";
import {
  accepted,
  appendInTransaction,
  appendMarker,
  createHarness,
  DAY_MS,
  DEFAULT_LOG_CONFIG,
  type Harness,
  outcome,
  put,
  readCommitted,
  readFrom,
} from "../../../tests/support/partition_harness.ts";
import {
  ALL,
  COMPACT,
  headers,
  pairs,
  records,
  roll,
} from "../../../tests/support/compacted_log.ts";
import { loseSnapshots } from "../../../tests/support/log_damage.ts";

test("the newest record of each key stays, with its offset, value, headers and time", async () => {
  const h = await createHarness(COMPACT);
  await put(h.log, pairs(h, [["a", "1"], ["b", "1"], ["a", "2"]]));
  await put(h.log, pairs(h, [["c", "1"], ["b", "2"]], { codec: "lz4" }));
  await put(h.log, pairs(h, [["c", "2"]]));
  const before = await readFrom(h.log, 0);
  const times = [...readRecords(before.batches[1]!, h.env.codecs)];
  await roll(h);
  const cleaned = await h.log.clean(ALL);
  assert.equal(cleaned?.cleanedTo, 6);
  assert.deepEqual(await records(h), ["2 a=2", "4 b=2", "5 c=2", "6 roll=x"]);
  const { batches } = await readFrom(h.log, 0);
  const [, second] = batches.map((batch) => [...readRecords(batch, h.env.codecs)]);
  assert.deepEqual(second, times.slice(1));
  assert.deepEqual(
    (await headers(h)).map((
      { baseOffset, lastOffsetDelta, recordCount, attributes },
    ) => [baseOffset, lastOffsetDelta, recordCount, attributes]),
    [[0, 2, 1, 0], [3, 1, 1, 3], [5, 0, 1, 0], [6, 0, 1, 0]],
  );
  await h.crash();
  assert.deepEqual(await records(h), ["2 a=2", "4 b=2", "5 c=2", "6 roll=x"]);
  await h.reopen();
  assert.deepEqual(await records(h), ["2 a=2", "4 b=2", "5 c=2", "6 roll=x"]);
});

test("a batch without records goes, and each offset of the hole finds the next batch", async () => {
  const h = await createHarness(COMPACT);
  for (const value of ["1", "2", "3"]) await put(h.log, pairs(h, [["a", value], ["b", value]]));
  await roll(h);
  await h.log.clean(ALL);
  assert.deepEqual((await headers(h)).map(({ baseOffset }) => baseOffset), [4, 6]);
  for (const from of [0, 1, 2, 3, 4]) {
    assert.deepEqual(await records(h, from), ["4 a=3", "5 b=3", "6 roll=x"]);
  }
  assert.deepEqual(await records(h, 5), ["5 b=3", "6 roll=x"]);
});

test("records without a key go", async () => {
  const h = await createHarness({ cleanup: { delete: true, compact: false } });
  await put(h.log, pairs(h, [[null, "1"], ["a", "1"]]));
  h.config = { ...h.config, ...COMPACT };
  h.log.updateConfig(h.config);
  await roll(h);
  await h.log.clean(ALL);
  assert.deepEqual(await records(h), ["1 a=1", "2 roll=x"]);
});

test("a deletion stays until its horizon, which the first pass sets", async () => {
  const h = await createHarness(COMPACT);
  await put(h.log, pairs(h, [["a", "1"], ["b", "1"]]));
  await put(h.log, pairs(h, [["a", null], ["c", "1"]]));
  const { timestamp } = [...readRecords((await readFrom(h.log, 2)).batches[0]!, h.env.codecs)][0]!;
  await roll(h);
  const firstPassMs = h.nowMs;
  await h.log.clean(ALL);
  assert.deepEqual(await records(h), ["1 b=1", "2 a=-", "3 c=1", "4 roll=x"]);
  const header = (await headers(h))[1]!;
  assert.equal(header.attributes & 64, 64);
  assert.equal(header.baseTimestamp, firstPassMs + DAY_MS);
  const batch = (await readFrom(h.log, 2)).batches[0]!;
  assert.equal([...readRecords(batch, h.env.codecs)][0]!.timestamp, timestamp);
  // A pass before the horizon keeps it as it is.
  await put(h.log, pairs(h, [["b", "2"]]));
  await roll(h);
  h.nowMs = firstPassMs + DAY_MS - 1;
  await h.log.clean(ALL);
  assert.ok((await records(h)).includes("2 a=-"));
  assert.equal((await headers(h))[0]!.baseTimestamp, firstPassMs + DAY_MS);
  h.nowMs = firstPassMs + 20 * DAY_MS;
  await roll(h);
  await h.log.clean(ALL);
  assert.deepEqual((await records(h)).slice(0, 2), ["3 c=1", "5 b=2"]);
});

test("data of aborted transactions goes, that of others stays; markers wait", async () => {
  const h = await createHarness(COMPACT);
  const txn = { key: "k" } as const;
  await accepted(appendInTransaction(h, 0, 0, { ...txn, producerId: 1 })).durable;
  await accepted(appendInTransaction(h, 0, 0, { ...txn, producerId: 2 })).durable;
  await accepted(appendMarker(h, { producerId: 1, commit: true })).durable;
  await accepted(appendMarker(h, { producerId: 2, commit: false })).durable;
  for (const id of [1, 2]) await put(h.log, h.sequenced(1, 1, { producerId: id, key: `p${id}` }));
  await roll(h);
  await h.log.clean(ALL);
  const found = await readCommitted(h.log, 0);
  assert.deepEqual(found.aborted, []);
  const now = (await headers(h)).map(({ baseOffset, recordCount }) => [baseOffset, recordCount]);
  // Both markers had data before them in this pass.
  assert.deepEqual(now, [[0, 1], [2, 1], [3, 1], [4, 1], [5, 1], [6, 1]]);
  await put(h.log, h.batch(["z"], { key: "k" }));
  await roll(h);
  const passMs = h.nowMs;
  await h.log.clean(ALL);
  const horizons = async () =>
    (await headers(h)).filter(({ attributes }) => (attributes & 32) !== 0)
      .map((
        { baseOffset, attributes, baseTimestamp },
      ) => [baseOffset, attributes & 64, (attributes & 64) === 0 ? 0 : baseTimestamp]);
  // The aborted one's marker has nothing left; the committed one's data went in this very pass.
  assert.deepEqual(await horizons(), [[2, 0, 0], [3, 64, passMs + DAY_MS]]);
  await roll(h);
  await h.log.clean(ALL);
  assert.deepEqual((await horizons()).map(([offset]) => offset), [2]);
  await h.crash();
  assert.equal(h.log.lastStableOffset, h.log.highWatermark);
});

test("scenario 48: the last batch of an active producer stays as its header, and a restart knows it", async () => {
  const h = await createHarness({ ...COMPACT, producerExpirationMs: 100 * DAY_MS });
  const of = (first: number, value: string) =>
    pairs(h, [["a", value]], { producerId: 7, producerEpoch: 3, baseSequence: first });
  await put(h.log, of(0, "1"));
  await put(h.log, of(1, "2"));
  const last = (await headers(h))[1]!;
  await put(h.log, pairs(h, [["a", "3"]]));
  await roll(h);
  await h.log.clean(ALL);
  const [empty] = await headers(h);
  const { batches: [bare] } = await readFrom(h.log, 0);
  assert.equal(bare!.length, 61);
  assert.deepEqual(empty, {
    ...last,
    batchLength: 49,
    crc: empty!.crc,
    baseTimestamp: -1,
    recordCount: 0,
  });
  // From the log alone: every snapshot is lost.
  loseSnapshots(h);
  await h.crash();
  assert.equal(outcome(h.log.append(of(1, "2"))), "duplicate @1");
  assert.equal(outcome(h.log.append(of(3, "4"))), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(outcome(h.log.append(of(2, "4"))), "new @4");
});

test("scenario 49: batches that went from the middle do not disturb replay", async () => {
  const h = await createHarness({ ...COMPACT, producerExpirationMs: 100 * DAY_MS });
  const of = (first: number, key: string) =>
    pairs(h, [[key, `${first}`]], { producerId: 7, producerEpoch: 3, baseSequence: first });
  for (let i = 0; i < 55; i++) await put(h.log, of(i, i < 5 ? `k${i}` : `m${i % 5}`));
  await roll(h);
  await h.log.clean(ALL);
  assert.deepEqual(
    (await headers(h)).map(({ baseSequence }) => baseSequence),
    [0, 1, 2, 3, 4, 50, 51, 52, 53, 54, -1],
  );
  loseSnapshots(h);
  await h.crash();
  assert.equal(h.log.activeProducers()[0]!.lastSequence, 54);
});

test("scenario 50: the batch of an expired producer goes, and no restart knows it", async () => {
  const h = await createHarness(COMPACT);
  const of = (value: string) =>
    pairs(h, [["a", value]], { producerId: 7, producerEpoch: 3, baseSequence: 0 });
  await put(h.log, of("1"));
  await put(h.log, pairs(h, [["a", "2"]]));
  await roll(h);
  await h.log.tick(h.nowMs);
  await h.log.clean(ALL);
  assert.deepEqual((await headers(h)).map(({ baseOffset }) => baseOffset), [1, 2]);
  await h.crash();
  assert.deepEqual(h.log.activeProducers(), []);
});

test("a producer that is only known by a marker keeps that marker, for its epoch", async () => {
  const h = await createHarness({ ...COMPACT, producerExpirationMs: 1000 * DAY_MS });
  await accepted(appendInTransaction(h, 0, 0, { key: "k" })).durable;
  await accepted(appendMarker(h, { producerEpoch: 4, commit: false })).durable;
  for (let i = 0; i < 4; i++) {
    await roll(h);
    await h.log.clean(ALL);
  }
  assert.equal((await headers(h))[0]!.baseOffset, 1);
  loseSnapshots(h);
  await h.crash();
  assert.equal(outcome(h.log.append(h.sequenced(1, 1, { key: "k" }))), "INVALID_PRODUCER_EPOCH");
});

test("the last batch of what was cleaned stays, so that offsets do not end early", async () => {
  const h = await createHarness(COMPACT);
  await put(h.log, pairs(h, [["a", "1"]]));
  await accepted(appendInTransaction(h, 0, 1, { key: "k" })).durable;
  h.nowMs += 8 * DAY_MS;
  await accepted(appendMarker(h, { commit: false })).durable;
  h.nowMs += DAY_MS;
  await h.log.tick(h.nowMs);
  assert.deepEqual(h.log.activeProducers(), [], "it is not kept for its producer");
  assert.equal((await h.log.clean(ALL))?.cleanedTo, 3);
  const left = (await headers(h)).map((
    { baseOffset, lastOffsetDelta, recordCount },
  ) => [baseOffset, lastOffsetDelta, recordCount]);
  assert.deepEqual(left, [[0, 0, 1], [1, 1, 0], [3, 0, 1]]);
  await h.reopen();
  assert.deepEqual((await readCommitted(h.log, 1)).aborted, [{ producerId: 7, firstOffset: 1 }]);
});

test("a full map ends the pass early, and the next one goes on", async () => {
  const h = await createHarness(COMPACT);
  const keys = Array.from({ length: 50 }, (_, i) => `k${i}`);
  for (const value of ["1", "2"]) {
    for (const key of keys) await put(h.log, pairs(h, [[key, value]]));
  }
  await roll(h);
  const small = { ...ALL, mapBytesMax: 24 * 20 };
  const reached: number[] = [];
  for (let i = 0; i < 20; i++) {
    const cleaned = await h.log.clean(small);
    if (cleaned === null) break;
    reached.push(cleaned.cleanedTo);
  }
  assert.deepEqual(reached, [18, 36, 54, 72, 90, 100]);
  assert.deepEqual(
    await records(h),
    [...keys.map((key, i) => `${50 + i} ${key}=2`), "100 roll=x"],
  );
});

test("a deletion that a full map has not come to stays, whatever its horizon", async () => {
  const h = await createHarness(COMPACT);
  await put(h.log, pairs(h, [["a", "1"]]));
  for (let i = 0; i < 40; i++) await put(h.log, pairs(h, [[`k${i}`, "1"]]));
  await put(h.log, pairs(h, [["a", null]]));
  await roll(h);
  const small = { ...ALL, mapBytesMax: 24 * 16 };
  await h.log.clean(small);
  h.nowMs += 2 * DAY_MS;
  await h.log.clean(small);
  const found = await records(h);
  assert.ok(found.includes("41 a=-"), "the older value would be back");
  await h.log.clean(small);
  assert.deepEqual((await records(h)).filter((one) => one.includes("a=")), []);
});

/** A batch whose second record is cut off: a topic that is not compacted takes it, since it looks at headers only. */
function halfReadable(h: Harness): Uint8Array {
  const whole = pairs(h, [["a", "broken"], ["b", "broken"]]);
  const left = h.env.codecs.compress("gzip", whole.subarray(BATCH_HEADER_BYTES, -3));
  const cut = replacePayload(readBatchHeader(whole), "gzip", left);
  assert.throws(() => [...readRecords(cut, h.env.codecs)]);
  return cut;
}

function damaged(h: Harness): Uint8Array {
  return pairs(h, [["a", "damaged"], ["b", "damaged"]]);
}

test("a batch that cannot be read stays, and makes no other record old", async () => {
  for (const kind of [halfReadable, damaged]) {
    const h = await createHarness({ cleanup: { delete: true, compact: false } });
    await put(h.log, pairs(h, [["a", "1"]]));
    await put(h.log, pairs(h, [["a", "2"]]));
    assert.equal(await put(h.log, kind(h)), "new @2");
    h.config = { ...h.config, ...COMPACT };
    h.log.updateConfig(h.config);
    await roll(h);
    if (kind === damaged) {
      h.streams.tamper(h.streams.ids[1]!, (record) => {
        if (record.baseOffset !== 2) return record;
        const payload = record.payload.slice();
        payload[payload.length - 1]! ^= 1;
        return { ...record, payload };
      });
    }
    const cleaned = await h.log.clean(ALL);
    assert.equal(cleaned?.unreadable, 1, kind.name);
    const { batches } = await readFrom(h.log, 0);
    const kept = batches.map((batch) => readBatchHeader(batch).baseOffset);
    assert.deepEqual(kept, [1, 2, 4], kind.name);
  }
});

test("aborted data goes when its index is made while a pass is under way", async () => {
  const h = await createHarness(COMPACT);
  await put(h.log, pairs(h, [["k", "committed"]]));
  await accepted(appendInTransaction(h, 0, 0, { key: "k", producerId: 1 })).durable;
  await accepted(appendMarker(h, { producerId: 1, commit: false })).durable;
  // So many that the oldest leaves memory with the checkpoint that makes the index.
  for (let id = 2; id <= ABORTED_RECENT_MAX + 1; id++) {
    appendInTransaction(h, 0, 0, { key: "x", producerId: id });
    await accepted(appendMarker(h, { producerId: id, commit: false })).durable;
  }
  await roll(h);
  const cleaning = h.log.clean(ALL);
  await h.log.tick(h.nowMs);
  await cleaning;
  assert.deepEqual((await records(h)).filter((one) => one.includes(" k=")), ["0 k=committed"]);
});

test("what retention takes while the keys are read is left out of the pass, which goes on", async () => {
  const cleanup = { delete: true, compact: true };
  const h = await createHarness({ cleanup, segmentBytes: 300_000 });
  const value = "x".repeat(200_000);
  for (let i = 0; i < 5; i++) await put(h.log, pairs(h, [[`k${i}`, `${value}${i}`]]));
  await roll(h);
  await h.log.clean(ALL);
  for (let i = 6; i < 12; i++) await put(h.log, pairs(h, [["k4", `${value}${i}`]]));
  await roll(h);
  const cleaning = h.log.clean(ALL);
  await h.log.deleteRecords(3);
  assert.equal((await cleaning)?.cleanedTo, 12);
  const expected = ["3 k3=3", "5 roll=x", "11 k4=11", "12 roll=x"];
  const kept = async () => (await records(h)).map((one) => one.replace(value, ""));
  assert.deepEqual(await kept(), expected);
  await h.crash();
  assert.deepEqual(await kept(), expected);
});

test("nothing dirty, nothing done: no reads, no writes", async () => {
  const h = await createHarness(COMPACT);
  await put(h.log, pairs(h, [["a", "1"]]));
  const { calls } = h.streams;
  assert.equal(h.log.cleanable(h.nowMs), null);
  assert.equal(await h.log.clean(ALL), null);
  assert.equal(h.streams.calls, calls);
  await roll(h);
  assert.equal(h.log.cleanable(h.nowMs)?.dirtyRatio, 1);
  await h.log.clean(ALL);
  await h.log.tick(h.nowMs);
  const after = h.streams.calls;
  assert.equal(await h.log.clean(ALL), null);
  await h.log.tick(h.nowMs);
  assert.equal(h.streams.calls, after);
});

test("metadata names the stream of a cleaned segment by its suffix, and AutoMQ's empty one is none", () => {
  const meta = { s: "", ls: { s: 0, e: 5 }, bo: 100, ct: 1, lmt: 2, lsz: 3, fbt: -1 };
  const text = (suffix: string) =>
    toUtf8(JSON.stringify({
      streamMap: { log: 1, "log.cleaned.1": 2 },
      segmentMetas: [{ ...meta, s: suffix }],
      ro: 0,
    }));
  assert.equal("suffix" in decodeLogMeta(text("")).segments[0]!, false);
  const decoded = decodeLogMeta(text(".cleaned.1"));
  assert.equal(decoded.segments[0]!.suffix, ".cleaned.1");
  assert.deepEqual(decodeLogMeta(encodeLogMeta(decoded)), decoded);
});

test("streams that no segment names are deleted, also after a crash in the middle", async () => {
  const h = await createHarness(COMPACT);
  for (const value of ["1", "2", "3"]) {
    await put(h.log, pairs(h, [["a", value]]));
    await roll(h);
  }
  await h.log.clean(ALL);
  // meta, log, the time index, the cleaned log
  const kept = h.streams.ids.length;
  await put(h.log, pairs(h, [["a", "4"]]));
  await roll(h);
  await h.log.clean(ALL);
  assert.equal(h.streams.ids.length, kept);
  await put(h.log, pairs(h, [["a", "5"]]));
  await roll(h);
  let appends = 0;
  h.streams.fail = (op) => op === "append" && ++appends > 3 ? new Error("the process dies") : null;
  await assert.rejects(h.log.clean(ALL));
  h.streams.fail = null;
  await h.crash();
  assert.equal((await records(h)).filter((one) => one.includes("a=")).at(-1), "8 a=5");
  await h.log.tick(h.nowMs);
  assert.equal(h.streams.ids.length, kept);
});

test("times, epochs and sizes are right across cleaned and other segments", async () => {
  const h = await createHarness(COMPACT);
  const times = [h.nowMs, h.nowMs + 1000, h.nowMs + 2000];
  for (const time of times) {
    await put(h.log, pairs(h, [[`k${time}`, "1"], ["a", `${time}`]], { timestamps: [time, time] }));
  }
  await roll(h);
  await h.log.clean(ALL);
  assert.deepEqual(await h.log.offsetForTimestamp(times[1]! - 1), {
    timestampMs: times[1]!,
    offset: 2,
    leaderEpoch: 1,
  });
  assert.equal((await h.log.offsetForTimestamp(0))?.offset, 0);
  assert.equal((await h.log.maxTimestamp())?.offset, 6);
  assert.deepEqual(h.log.endOfEpoch(1), { leaderEpoch: 1, endOffset: 7 });
  const { bytes: size } = await readFrom(h.log, 0);
  assert.equal(h.log.sizeBytes, size);
});

test("compact,delete: retention takes cleaned segments", async () => {
  const h = await createHarness({
    cleanup: { delete: true, compact: true },
    retentionMs: 20 * DAY_MS,
    cleaning: DEFAULT_LOG_CONFIG.cleaning,
    segmentBytes: 100,
  });
  for (const key of ["a", "b", "c"]) await put(h.log, pairs(h, [[key, "1"]]));
  await roll(h);
  await h.log.clean(ALL);
  assert.equal((await records(h)).length, 4);
  h.nowMs += 13 * DAY_MS;
  await h.log.tick(h.nowMs);
  assert.deepEqual(await records(h), ["3 roll=x"]);
  assert.equal(h.log.logStartOffset, 3);
  await h.reopen();
  assert.deepEqual(await records(h), ["3 roll=x"]);
});
