/** ListOffsets and OffsetForLeaderEpoch: sheet sections 3.5, 3.6 and the time look-up row of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { listOffsetsApi } from "../../src/protocol/message/02_list_offsets.ts";
import { offsetForLeaderEpochApi } from "../../src/protocol/message/23_offset_for_leader_epoch.ts";
import { requestFrame } from "../support/wire.ts";
import { batch, named, type Quirks, restarted, startQuirks, TIME } from "./quirks.ts";

interface Options {
  readonly version?: number;
  readonly isolationLevel?: number;
  readonly topic?: string;
  readonly partition?: number;
  readonly currentLeaderEpoch?: number;
}

async function listOffset(q: Quirks, timestamp: number, options: Options = {}) {
  const { version = 11, isolationLevel = 0, topic = "t", partition = 0 } = options;
  const { currentLeaderEpoch = -1 } = options;
  const answer = await q.call(listOffsetsApi, version, {
    replicaId: -1,
    isolationLevel,
    topics: [{
      name: topic,
      partitions: [{ partitionIndex: partition, timestamp, currentLeaderEpoch }],
    }],
  });
  return named(answer.topics[0]!.partitions[0]!);
}

/** Error, offset and timestamp. */
async function found(q: Quirks, timestamp: number, options: Options = {}) {
  const { error, offset, timestamp: at } = await listOffset(q, timestamp, options);
  return [error, offset, at];
}

/** Batches of records at the given times after TIME. */
async function timed(...batches: readonly (readonly number[])[]): Promise<Quirks> {
  const q = await startQuirks();
  await q.topic("t");
  for (const times of batches) {
    await q.produce("t", batch(times.map((after) => ({ timestamp: TIME + after }))));
  }
  return q;
}

test("earliest is the log start, latest the watermark, both without a time, from version 1 on", async () => {
  const q = await timed([0, 1], [2]);
  for (let version = 1; version <= 11; version++) {
    assert.deepEqual(await found(q, -2, { version }), ["NONE", 0, -1], `version ${version}`);
    assert.deepEqual(await found(q, -1, { version }), ["NONE", 3, -1], `version ${version}`);
  }
});

test("latest for read_committed is the last stable offset", async () => {
  const q = await timed([0, 1]);
  assert.deepEqual(await found(q, -1, { isolationLevel: 1 }), ["NONE", 2, -1]);
});

test("an empty log: earliest and latest are 0, times find nothing", async () => {
  const q = await timed();
  assert.deepEqual(await found(q, -2), ["NONE", 0, -1]);
  assert.deepEqual(await found(q, -1), ["NONE", 0, -1]);
  assert.deepEqual(await found(q, -3), ["NONE", -1, -1]);
  assert.deepEqual(await found(q, 0), ["NONE", -1, -1]);
});

test("a time finds the first record at or after it, by record and not by batch", async () => {
  const q = await timed([0, 10, 20], [30, 40, 50]);
  const wanted: [time: number, offset: number, at: number][] = [
    [0, 0, 0],
    [1, 1, 10],
    [10, 1, 10],
    [15, 2, 20],
    [21, 3, 30],
    [45, 5, 50],
    [50, 5, 50],
  ];
  for (const [time, offset, at] of wanted) {
    assert.deepEqual(await found(q, TIME + time), ["NONE", offset, TIME + at], `time ${time}`);
  }
  assert.deepEqual(await found(q, 0), ["NONE", 0, TIME]);
});

test("every record is found by its own time, in every codec", async () => {
  const q = await startQuirks();
  await q.topic("t");
  let offset = 0;
  for (const codec of [null, "gzip", "snappy", "lz4", "zstd"] as const) {
    const records = [0, 1, 2].map((i) => ({ timestamp: TIME + offset + i }));
    await q.produce("t", batch(records, { codec }));
    for (let i = 0; i < 3; i++, offset++) {
      assert.deepEqual(await found(q, TIME + offset), ["NONE", offset, TIME + offset]);
    }
  }
});

test("no record at or after a time is -1, -1 and no error", async () => {
  const q = await timed([0, 10]);
  assert.deepEqual(await found(q, TIME + 11), ["NONE", -1, -1]);
});

test("records out of time order: the first offset whose own time is late enough", async () => {
  const q = await timed([50, 10, 60], [20]);
  assert.deepEqual(await found(q, TIME + 15), ["NONE", 0, TIME + 50]);
  assert.deepEqual(await found(q, TIME + 55), ["NONE", 2, TIME + 60]);
});

test("-3 is the record with the largest time, the first such one", async () => {
  const q = await timed([0, 90, 90], [10], [90, 5]);
  assert.deepEqual(await found(q, -3), ["NONE", 1, TIME + 90]);
});

test("LogAppendTime topics are searched by the time of arrival", async () => {
  const q = await startQuirks();
  await q.topic("t", 1, { "message.timestamp.type": "LogAppendTime" });
  await q.produce("t", batch([{ timestamp: 1 }, { timestamp: 2 }]));
  await q.node.clock.advance(1000);
  await q.produce("t", batch([{ timestamp: 3 }]));
  assert.deepEqual(await found(q, TIME), ["NONE", 0, TIME]);
  assert.deepEqual(await found(q, TIME + 1), ["NONE", 2, TIME + 1000]);
});

test("-4 is the log start, -5 the last durable offset, -6 the first that is not in the store", async () => {
  const q = await timed([0, 1, 2]);
  assert.deepEqual(await found(q, -4), ["NONE", 0, -1]);
  assert.deepEqual(await found(q, -5), ["NONE", 2, -1]);
  assert.deepEqual(await found(q, -6), ["NONE", 3, -1]);
  const empty = await timed();
  const last = await listOffset(empty, -5);
  assert.deepEqual([last.error, last.offset, last.leaderEpoch], ["NONE", -1, -1]);
});

test("a negative target below its version, or of no version, is UNSUPPORTED_VERSION", async () => {
  const q = await timed([0]);
  const since: Record<number, number> = { [-3]: 7, [-4]: 8, [-5]: 9, [-6]: 11 };
  for (const [target, version] of Object.entries(since)) {
    const below = await listOffset(q, Number(target), { version: version - 1 });
    assert.equal(below.error, "UNSUPPORTED_VERSION", target);
    assert.equal((await listOffset(q, Number(target), { version })).error, "NONE", target);
  }
  assert.equal((await listOffset(q, -7)).error, "UNSUPPORTED_VERSION");
});

test("the same partition twice is INVALID_REQUEST for it", async () => {
  const q = await startQuirks();
  await q.topic("t", 2);
  const partitions = [0, 0, 1].map((partitionIndex) => ({ partitionIndex, timestamp: -1 }));
  const answer = await q.call(listOffsetsApi, 7, {
    replicaId: -1,
    topics: [{ name: "t", partitions }],
  });
  const errors = answer.topics[0]!.partitions.map((one) =>
    [one.partitionIndex, named(one).error] as const
  );
  assert.ok(errors.every(([index, error]) => error === (index === 0 ? "INVALID_REQUEST" : "NONE")));
  assert.ok(errors.some(([index]) => index === 1));
});

test("unknown topic and partition are UNKNOWN_TOPIC_OR_PARTITION", async () => {
  const q = await timed([0]);
  assert.equal((await listOffset(q, -1, { topic: "u" })).error, "UNKNOWN_TOPIC_OR_PARTITION");
  assert.equal((await listOffset(q, -1, { partition: 3 })).error, "UNKNOWN_TOPIC_OR_PARTITION");
});

test("leader epochs are checked as in Fetch, and the found offset's epoch is answered from v4 on", async () => {
  const before = await timed([0, 1]);
  const old = (await listOffset(before, -2)).leaderEpoch;
  const q = await restarted(before, { clean: true });
  await q.produce("t", batch([{ timestamp: TIME + 2 }]));
  const now = (await listOffset(q, -1)).leaderEpoch;
  assert.ok(now > old, "raised at the move");
  assert.equal((await listOffset(q, -2)).leaderEpoch, old);
  assert.equal((await listOffset(q, TIME + 1)).leaderEpoch, old);
  assert.equal((await listOffset(q, TIME + 2)).leaderEpoch, now);
  const ask = async (currentLeaderEpoch: number) =>
    (await listOffset(q, -1, { currentLeaderEpoch })).error;
  assert.equal(await ask(now - 1), "FENCED_LEADER_EPOCH");
  assert.equal(await ask(now + 1), "UNKNOWN_LEADER_EPOCH");
  assert.equal(await ask(now), "NONE");
});

test("the debug consumer's replica id -2 is answered like -1", async () => {
  const q = await timed([0]);
  const answer = await q.call(listOffsetsApi, 5, {
    replicaId: -2,
    topics: [{ name: "t", partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
  });
  assert.equal(answer.topics[0]!.partitions[0]!.offset, 1);
});

test("Long.MAX as a time finds nothing and is not malformed", async () => {
  const q = await timed([0]);
  const bytes = requestFrame(listOffsetsApi, { version: 1, correlationId: 1 }, {
    replicaId: -1,
    topics: [{ name: "t", partitions: [{ partitionIndex: 0, timestamp: 5 }] }],
  });
  bytes.set([0x7f, 255, 255, 255, 255, 255, 255, 255], bytes.length - 8);
  q.client.push(bytes);
  const answer = await q.client.next();
  const offset = answer.subarray(answer.length - 8);
  assert.deepEqual(offset, new Uint8Array(8).fill(255), "offset -1");
});

test("the latest offset is where Fetch ends: Connect reads to the end by it", async () => {
  const q = await timed([0], [1, 2]);
  const { offset } = await listOffset(q, -1);
  const { records, highWatermark } = await q.fetch("t", offset);
  assert.deepEqual([records?.length, highWatermark], [0, offset]);
});

// Section 3.6.

async function endOf(q: Quirks, leaderEpoch: number, currentLeaderEpoch = -1, version = 4) {
  const answer = await q.call(offsetForLeaderEpochApi, version, {
    topics: [{ topic: "t", partitions: [{ partition: 0, leaderEpoch, currentLeaderEpoch }] }],
  });
  const { error, leaderEpoch: epoch, endOffset } = named(answer.topics[0]!.partitions[0]!);
  return [error, epoch, endOffset];
}

test("OffsetForLeaderEpoch: the largest epoch up to the asked one, and where it ends", async () => {
  const before = await timed([0, 1]);
  const old = (await listOffset(before, -2)).leaderEpoch;
  const q = await restarted(before, { clean: false });
  await q.produce("t", batch([{ timestamp: TIME + 2 }]));
  const now = (await listOffset(q, -1)).leaderEpoch;
  for (const version of [2, 3, 4]) {
    assert.deepEqual(await endOf(q, old, -1, version), ["NONE", old, 2]);
    assert.deepEqual(await endOf(q, now, -1, version), ["NONE", now, 3]);
  }
  assert.deepEqual(await endOf(q, old - 1), ["NONE", -1, -1], "before all history");
  assert.deepEqual(await endOf(q, now + 5), ["NONE", -1, -1], "after all history");
  assert.deepEqual(await endOf(q, now, now + 1), ["UNKNOWN_LEADER_EPOCH", -1, -1]);
  assert.deepEqual(await endOf(q, old, old), ["FENCED_LEADER_EPOCH", -1, -1]);
});

test("OffsetForLeaderEpoch of an unknown topic is UNKNOWN_TOPIC_OR_PARTITION", async () => {
  const q = await startQuirks();
  assert.deepEqual(await endOf(q, 0), ["UNKNOWN_TOPIC_OR_PARTITION", -1, -1]);
});
