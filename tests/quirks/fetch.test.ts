/** Fetch without sessions: sheet section 3.4 and the Fetch rows of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ZERO_UUID } from "../../src/lib/uuid.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { codecOf } from "../../src/protocol/record_batch.ts";
import { requestFrame } from "../support/wire.ts";
import {
  batch,
  batchesOf,
  fetchRequest,
  type Quirks,
  restarted,
  startQuirks,
  valuesOf,
} from "./quirks.ts";

/** A topic `t` with one batch per value. */
async function filled(values: readonly string[], partitions = 1): Promise<Quirks> {
  const q = await startQuirks();
  await q.topic("t", partitions);
  for (let partition = 0; partition < partitions; partition++) {
    for (const value of values) await q.produce("t", batch([value]), { partition });
  }
  return q;
}

interface Asked {
  readonly partition: number;
  readonly fetchOffset: number;
  readonly partitionMaxBytes: number;
}

function manyRequest(partitions: readonly Asked[], maxBytes: number, maxWaitMs = 0) {
  return { maxBytes, minBytes: 1, maxWaitMs, topics: [{ topic: "t", partitions }] };
}

/** Values per partition. */
async function fetchMany(q: Quirks, partitions: readonly Asked[], maxBytes: number) {
  const answer = await q.call(fetchApi, 11, manyRequest(partitions, maxBytes));
  return answer.responses.flatMap((topic) =>
    topic.partitions.map((
      { partitionIndex, records },
    ) => [partitionIndex, valuesOf(records).length])
  );
}

// Size.

test("the first batch comes whole, however small the limits (KIP-74)", async () => {
  const q = await startQuirks();
  await q.topic("t", 1, { "max.message.bytes": "6000000" });
  await q.produce("t", batch(["x".repeat(5_000_000)]));
  await q.produce("t", batch(["next"]));
  for (const [maxBytes, partitionMaxBytes] of [[1 << 20, 1 << 20], [1, 1 << 20], [0, 0]]) {
    const { records } = await q.fetch("t", 0, {
      maxBytes: maxBytes!,
      partitionMaxBytes: partitionMaxBytes!,
    });
    assert.deepEqual(valuesOf(records).map((value) => value!.length), [5_000_000]);
  }
});

test("a later partition with an oversize first batch comes back empty", async () => {
  const q = await filled(["x".repeat(10_000)], 2);
  const asked = [0, 1].map((partition) => ({ partition, fetchOffset: 0, partitionMaxBytes: 100 }));
  assert.deepEqual(await fetchMany(q, asked, 1 << 20), [[0, 1], [1, 0]]);
});

test("an empty partition in front does not use up the right to one batch", async () => {
  const q = await filled(["x".repeat(10_000)], 2);
  const asked = [
    { partition: 0, fetchOffset: 1, partitionMaxBytes: 100 },
    { partition: 1, fetchOffset: 0, partitionMaxBytes: 100 },
  ];
  assert.deepEqual(await fetchMany(q, asked, 1 << 20), [[0, 0], [1, 1]]);
});

test("partitions are read in the order of the request, up to MaxBytes", async () => {
  const q = await filled(["x".repeat(1000), "x".repeat(1000)], 3);
  const asked = [2, 0, 1].map((partition) => ({
    partition,
    fetchOffset: 0,
    partitionMaxBytes: 1 << 20,
  }));
  assert.deepEqual(await fetchMany(q, asked, 3500), [[2, 2], [0, 1], [1, 0]]);
});

test("each partition gives at most PartitionMaxBytes, in whole batches", async () => {
  const q = await filled(["x".repeat(1000), "x".repeat(1000), "x".repeat(1000)]);
  const { records } = await q.fetch("t", 0, { partitionMaxBytes: 2500 });
  assert.equal(valuesOf(records).length, 2);
  const lengths = batchesOf(records).reduce((sum, one) => sum + 12 + one.batchLength, 0);
  assert.equal(records!.length, lengths, "nothing is cut off");
});

test("fetch.max.bytes of the broker caps what a client asks for", async () => {
  const q = await startQuirks({ "fetch.max.bytes": "2500" });
  await q.topic("t");
  for (let i = 0; i < 3; i++) await q.produce("t", batch(["x".repeat(1000)]));
  assert.equal(valuesOf((await q.fetch("t", 0)).records).length, 2);
});

// Wait.

test("a fetch with MaxWaitMs 0 or without partitions is answered at once", async () => {
  const q = await filled([]);
  assert.equal((await q.fetch("t", 0)).records?.length, 0);
  const none = await q.call(fetchApi, 11, { maxWaitMs: 60_000, minBytes: 1, topics: [] });
  assert.deepEqual(none.responses, []);
  assert.equal((await q.fetch("t", 0, { maxWaitMs: -5 })).error, "NONE");
});

test("an empty fetch is held for MaxWaitMs: an idle consumer does not spin", async () => {
  const q = await filled([]);
  q.client.post(fetchApi, 11, fetchRequest("t", 0, { maxWaitMs: 500 }));
  await q.node.clock.advance(499);
  assert.equal(q.client.unread, 0);
  await q.node.clock.advance(1);
  assert.equal(q.client.unread, 1);
});

test("a held fetch is answered when a batch arrives", async () => {
  const q = await filled([]);
  const poller = q.node.connect();
  const answer = poller.call(fetchApi, 11, fetchRequest("t", 0, { maxWaitMs: 60_000 }));
  await q.node.clock.settle();
  await q.produce("t", batch(["a"]));
  assert.deepEqual(valuesOf((await answer).responses[0]!.partitions[0]!.records), ["a"]);
});

test("a held fetch waits until MinBytes are there", async () => {
  const q = await filled([]);
  const poller = q.node.connect();
  poller.post(fetchApi, 11, fetchRequest("t", 0, { maxWaitMs: 60_000, minBytes: 3000 }));
  for (let sent = 1; sent <= 3; sent++) {
    await q.produce("t", batch(["x".repeat(1000)]));
    await q.node.clock.settle();
    assert.equal(poller.unread, sent < 3 ? 0 : 1, `after ${sent}`);
  }
});

test("MinBytes above MaxBytes counts as MaxBytes", async () => {
  const q = await filled(["x".repeat(1000)]);
  const { records } = await q.fetch("t", 0, {
    maxWaitMs: 60_000,
    minBytes: 1 << 30,
    maxBytes: 500,
  });
  assert.equal(valuesOf(records).length, 1);
});

test("an error of any partition ends the wait at once", async () => {
  const q = await filled([]);
  const asked = [0, 7].map((partition) => ({ partition, fetchOffset: 0, partitionMaxBytes: 1000 }));
  const answer = await q.call(fetchApi, 11, manyRequest(asked, 1 << 20, 60_000));
  const errors = answer.responses[0]!.partitions.map(({ errorCode }) => errorName(errorCode));
  assert.deepEqual(errors, ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]);
});

test("deleting the topic ends a held fetch with an error", async () => {
  const q = await filled(["a"]);
  const poller = q.node.connect();
  const held = poller.call(fetchApi, 11, fetchRequest("t", 1, { maxWaitMs: 60_000 }));
  await q.node.clock.settle();
  await q.call(deleteTopicsApi, 5, { topicNames: ["t"], timeoutMs: 1000 });
  const { errorCode } = (await held).responses[0]!.partitions[0]!;
  assert.ok(
    ["UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER"].includes(errorName(errorCode)),
  );
});

// Per partition.

test("v13: an unknown id is UNKNOWN_TOPIC_ID, a known one is read", async () => {
  const q = await startQuirks();
  const id = await q.topic("t");
  await q.produce("t", batch(["a"]));
  const unknown = await q.fetch({ id: ZERO_UUID }, 0, { version: 13 });
  assert.equal(unknown.error, "UNKNOWN_TOPIC_ID");
  for (const version of [13, 16, 17, 18]) {
    assert.deepEqual(valuesOf((await q.fetch({ id }, 0, { version })).records), ["a"]);
  }
});

test("every version from 4 on reads the same record", async () => {
  const q = await startQuirks();
  const id = await q.topic("t");
  await q.produce("t", batch(["a"]));
  for (let version = 4; version <= 18; version++) {
    const answer = await q.fetch(version < 13 ? "t" : { id }, 0, { version });
    assert.deepEqual(valuesOf(answer.records), ["a"], `version ${version}`);
    assert.equal(answer.highWatermark, 1);
  }
});

test("an unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION", async () => {
  const q = await filled([]);
  assert.equal((await q.fetch("u", 0)).error, "UNKNOWN_TOPIC_OR_PARTITION");
  for (const partition of [1, -1]) {
    assert.equal((await q.fetch("t", 0, { partition })).error, "UNKNOWN_TOPIC_OR_PARTITION");
  }
});

test("CurrentLeaderEpoch below ours is FENCED, above UNKNOWN, -1 not looked at", async () => {
  const before = await filled(["a"]);
  const q = await restarted(before, { clean: true });
  const { topics } = await q.metadata(["t"]);
  const epoch = topics[0]!.partitions[0]!.leaderEpoch;
  assert.ok(epoch > 0, "a restart is a move: the epoch went up");
  const ask = async (currentLeaderEpoch: number) =>
    (await q.fetch("t", 0, { currentLeaderEpoch })).error;
  assert.equal(await ask(epoch - 1), "FENCED_LEADER_EPOCH");
  assert.equal(await ask(epoch + 1), "UNKNOWN_LEADER_EPOCH");
  assert.equal(await ask(epoch), "NONE");
  assert.equal(await ask(-1), "NONE");
});

test("from v16 on a fenced epoch comes with the leader and where it is (KIP-951)", async () => {
  const before = await startQuirks();
  const id = await before.topic("t");
  await before.produce("t", batch(["a"]));
  const q = await restarted(before, { clean: true });
  await q.produce("t", batch(["b"]));
  const { topics } = await q.metadata(["t"]);
  const { leaderEpoch } = topics[0]!.partitions[0]!;
  for (const version of [15, 16]) {
    const stale = { currentLeaderEpoch: leaderEpoch - 1 };
    const answer = await q.call(fetchApi, version, fetchRequest({ id }, 0, stale));
    const [found] = answer.responses[0]!.partitions;
    assert.equal(errorName(found!.errorCode), "FENCED_LEADER_EPOCH");
    const known = version === 16;
    assert.deepEqual(found!.currentLeader, {
      leaderId: known ? 1 : -1,
      leaderEpoch: known ? leaderEpoch : -1,
    });
    const places = answer.nodeEndpoints.map(({ nodeId, host, port }) => [nodeId, host, port]);
    assert.deepEqual(places, known ? [[1, "127.0.0.1", 9092]] : []);
  }
});

test("LastFetchedEpoch that does not fit answers a diverging epoch, no records, no error", async () => {
  const before = await filled(["a"]);
  const first = batchesOf((await before.fetch("t", 0)).records)[0]!.partitionLeaderEpoch;
  const q = await restarted(before, { clean: true });
  await q.produce("t", batch(["b"]));
  const fits = await q.fetch("t", 1, { version: 12, lastFetchedEpoch: first });
  assert.deepEqual(valuesOf(fits.records), ["b"]);
  const answer = await q.fetch("t", 2, { version: 12, lastFetchedEpoch: first, maxWaitMs: 9999 });
  assert.equal(answer.error, "NONE");
  assert.deepEqual(answer.divergingEpoch, { epoch: first, endOffset: 1 });
  assert.equal(answer.records?.length, 0);
});

test("an offset outside the log is OFFSET_OUT_OF_RANGE with watermark and LSO -1", async () => {
  const q = await filled(["a"]);
  for (const offset of [2, -1, Number.MAX_SAFE_INTEGER]) {
    const answer = await q.fetch("t", offset);
    assert.equal(answer.error, "OFFSET_OUT_OF_RANGE");
    assert.deepEqual([answer.highWatermark, answer.lastStableOffset], [-1, -1]);
    assert.equal(answer.records?.length, 0);
  }
});

test("Long.MAX as offset is out of range, not malformed", async () => {
  const q = await filled(["a"]);
  const bytes = requestFrame(
    fetchApi,
    { version: 4, correlationId: 1 },
    fetchRequest("t", 0x0102030405),
  );
  const marker = Uint8Array.of(0, 0, 0, 1, 2, 3, 4, 5);
  const at = bytes.findIndex((_, i) => marker.every((byte, k) => bytes[i + k] === byte));
  bytes.set([0x7f, 255, 255, 255, 255, 255, 255, 255], at);
  q.client.push(bytes);
  const reader = await q.client.next();
  assert.ok(reader.length > 0);
  assert.equal(q.client.isClosed, false);
});

test("at the end of the log the answer is empty, without an error, and not null", async () => {
  const q = await filled(["a"]);
  const { error, records, highWatermark } = await q.fetch("t", 1);
  assert.deepEqual([error, records, highWatermark], ["NONE", new Uint8Array(0), 1]);
});

test("zstd is sent to every version: 4.x does not check any more", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.produce("t", batch(["a"], { codec: "zstd" }));
  const [stored] = batchesOf((await q.fetch("t", 0, { version: 4 })).records);
  assert.equal(codecOf(stored!), "zstd");
});

test("the answer names watermark, LSO, log start and no other replica", async () => {
  const q = await filled(["a", "b"]);
  const answer = await q.fetch("t", 0);
  assert.deepEqual(
    [answer.highWatermark, answer.lastStableOffset, answer.logStartOffset],
    [2, 2, 0],
  );
  assert.equal(answer.preferredReadReplica, -1);
});

test("records begin with the batch that contains the offset", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.produce("t", batch(["a", "b", "c"]));
  await q.produce("t", batch(["d"]));
  const bases = batchesOf((await q.fetch("t", 2)).records).map(({ baseOffset }) => baseOffset);
  assert.deepEqual(bases, [0, 3]);
});

test("the next offset is base + lastOffsetDelta + 1 over all batches", async () => {
  const q = await startQuirks();
  await q.topic("t");
  let end = 0;
  for (const count of [1, 3, 2]) {
    await q.produce("t", batch(Array.from({ length: count }, () => "v")));
    end += count;
  }
  let next = 0;
  for (const one of batchesOf((await q.fetch("t", 0)).records)) {
    assert.equal(one.baseOffset, next);
    next = one.baseOffset + one.lastOffsetDelta + 1;
  }
  assert.equal(next, end);
});

// Isolation and followers.

test("read_uncommitted answers no aborted list, read_committed an empty one", async () => {
  const q = await filled(["a"]);
  for (const version of [4, 11, 12]) {
    const uncommitted = await q.fetch("t", 0, { version });
    const committed = await q.fetch("t", 0, { version, isolationLevel: 1 });
    assert.deepEqual(
      [uncommitted.abortedTransactions, committed.abortedTransactions],
      [null, []],
    );
    assert.deepEqual(valuesOf(committed.records), ["a"]);
  }
});

test("follower fields are ignored", async () => {
  const q = await filled(["a"]);
  const answer = await q.call(fetchApi, 11, { ...fetchRequest("t", 0), replicaId: 3 });
  assert.deepEqual(valuesOf(answer.responses[0]!.partitions[0]!.records), ["a"]);
});

test("what is read cold after a crash is what was read hot before", async () => {
  const before = await filled(["a", "b", "c"]);
  const hot = (await before.fetch("t", 0)).records!;
  const q = await restarted(before, { clean: false });
  assert.deepEqual((await q.fetch("t", 0)).records, hot);
  const stored = batchesOf(hot).map(({ baseOffset }) => baseOffset);
  assert.deepEqual(stored, [0, 1, 2]);
  assert.equal((await q.produce("t", batch(["d"]))).baseOffset, 3);
});
