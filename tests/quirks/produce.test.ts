/** Produce: sheet sections 3.2, 3.3, 4.1-4.6 and the Produce and idempotence rows of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setInt64 } from "../../src/lib/bytes.ts";
import { ZERO_UUID } from "../../src/lib/uuid.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { findCoordinatorApi } from "../../src/protocol/message/10_find_coordinator.ts";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { codecOf } from "../../src/protocol/record_batch.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { readResponse } from "../support/wire.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { faultyStore } from "../support/faulty_store.ts";
import {
  altered,
  batch,
  batchesOf,
  produceRequest,
  type Quirks,
  restarted,
  startQuirks,
  TIME,
  valuesOf,
} from "./quirks.ts";

const CODECS = [null, "gzip", "snappy", "lz4", "zstd"] as const;

async function withTopic(configs: Record<string, string> = {}): Promise<Quirks> {
  const q = await startQuirks();
  await q.topic("t", 1, configs);
  return q;
}

async function refused(q: Quirks, records: Uint8Array | null, version = 9): Promise<string> {
  const answer = await q.produce("t", records, { version });
  if (answer.error !== "NONE") assert.equal(answer.baseOffset, -1);
  return answer.error;
}

// Section 3.2, the whole request.

test("acks other than -1, 0, 1 fails every partition with INVALID_REQUIRED_ACKS", async () => {
  const q = await startQuirks();
  await q.topic("t", 2);
  for (const acks of [-2, 2, 100]) {
    const { responses } = await q.call(produceApi, 9, {
      acks,
      timeoutMs: 1000,
      topicData: [{
        name: "t",
        partitionData: [0, 1].map((index) => ({ index, records: batch(["a"]) })),
      }],
    });
    const errors = responses[0]!.partitionResponses.map(({ errorCode }) => errorName(errorCode));
    assert.deepEqual(errors, ["INVALID_REQUIRED_ACKS", "INVALID_REQUIRED_ACKS"]);
  }
  assert.deepEqual(batchesOf((await q.fetch("t", 0)).records), []);
});

test("a transactional batch without a transactional id is refused everywhere", async () => {
  const q = await withTopic();
  const bytes = batch(["a"], { producer: [1, 0, 0], transactional: true });
  assert.equal(await refused(q, bytes), "TRANSACTIONAL_ID_AUTHORIZATION_FAILED");
});

test("acks 1 and -1 are answered with the offset, and can be read at once", async () => {
  const q = await withTopic();
  for (const [at, acks] of [1, -1].entries()) {
    const answer = await q.produce("t", batch(["a"]), { acks });
    assert.deepEqual([answer.error, answer.baseOffset], ["NONE", at]);
    assert.equal((await q.fetch("t", at)).highWatermark, at + 1);
  }
});

test("neither acks=1 nor acks=-1 is answered before the data is durable, nor is it readable", async () => {
  for (const acks of [1, -1]) {
    const clock = createFakeClock();
    const store = faultyStore(createMemoryStore(clock), clock);
    const q = await startQuirks({}, { clock, store });
    await q.topic("t");
    await q.produce("t", batch(["first"]));
    store.setPlan(({ op }) => op === "put" ? { kind: "delay", delayMs: 5000 } : undefined);
    const other = q.node.connect();
    other.post(produceApi, 9, produceRequest("t", batch(["late"]), { acks }));
    await clock.advance(4000);
    assert.equal(other.unread, 0);
    const early = await q.fetch("t", 1);
    assert.deepEqual([early.error, early.highWatermark, early.records?.length], ["NONE", 1, 0]);
    await clock.advance(2000);
    assert.equal(other.unread, 1);
    assert.equal((await q.fetch("t", 1)).highWatermark, 2);
  }
});

test("past its timeout REQUEST_TIMED_OUT; the data stays and the retry is a duplicate", async () => {
  const clock = createFakeClock();
  const store = faultyStore(createMemoryStore(clock), clock);
  const q = await startQuirks({}, { clock, store });
  await q.topic("t");
  await q.produce("t", batch(["first"]));
  store.setPlan(({ op }) => op === "put" ? { kind: "delay", delayMs: 5000 } : undefined);
  const records = () => batch(["late"], { producer: [5, 0, 0] });
  const id = q.client.post(produceApi, 9, produceRequest("t", records(), { timeoutMs: 2000 }));
  await clock.advance(2000);
  const late = readResponse(
    produceApi,
    { version: 9, correlationId: id },
    await q.client.next(),
  );
  const { errorCode } = late.responses[0]!.partitionResponses[0]!;
  assert.equal(errorName(errorCode), "REQUEST_TIMED_OUT");
  store.setPlan();
  await clock.advance(5000);
  const again = await q.produce("t", records());
  assert.deepEqual([again.error, again.baseOffset], ["NONE", 1]);
  assert.deepEqual(valuesOf((await q.fetch("t", 0)).records), ["first", "late"]);
});

// Section 3.2, per partition before the log.

test("v13 with an unknown id is UNKNOWN_TOPIC_ID, with a known one it is stored", async () => {
  const q = await startQuirks();
  const id = await q.topic("t");
  const unknown = await q.produce({ id: ZERO_UUID }, batch(["a"]), { version: 13 });
  assert.equal(unknown.error, "UNKNOWN_TOPIC_ID");
  assert.equal((await q.produce({ id }, batch(["a"]), { version: 13 })).baseOffset, 0);
});

test("an unknown topic or partition is UNKNOWN_TOPIC_OR_PARTITION and is not created", async () => {
  const q = await withTopic();
  assert.equal((await q.produce("u", batch(["a"]))).error, "UNKNOWN_TOPIC_OR_PARTITION");
  for (const partition of [1, -1, 2 ** 31 - 1]) {
    const answer = await q.produce("t", batch(["a"]), { partition });
    assert.equal(answer.error, "UNKNOWN_TOPIC_OR_PARTITION");
  }
  assert.deepEqual((await q.metadata(null)).topics.map(({ name }) => name), ["t"]);
});

test("null records, no batch, two batches and old magic are INVALID_RECORD", async () => {
  const q = await withTopic();
  const one = batch(["a"]);
  const two = new Uint8Array(2 * one.length);
  two.set(one);
  two.set(one, one.length);
  assert.equal(await refused(q, null), "INVALID_RECORD");
  assert.equal(await refused(q, new Uint8Array(0)), "INVALID_RECORD");
  assert.equal(await refused(q, two), "INVALID_RECORD");
  for (const magic of [0, 1]) {
    assert.equal(await refused(q, altered(one, (v) => v.setInt8(16, magic))), "INVALID_RECORD");
  }
});

test("zstd below version 7 is UNSUPPORTED_COMPRESSION_TYPE, from 7 on it is stored", async () => {
  const q = await withTopic();
  const zstd = () => batch(["a"], { codec: "zstd" });
  for (const version of [3, 6]) {
    assert.equal(await refused(q, zstd(), version), "UNSUPPORTED_COMPRESSION_TYPE");
  }
  assert.equal(await refused(q, zstd(), 7), "NONE");
});

test("internal topics take no records of clients", async () => {
  const q = await startQuirks();
  await q.call(findCoordinatorApi, 3, { key: "g" });
  const answer = await q.produce("__consumer_offsets", batch(["a"]));
  assert.equal(answer.error, "INVALID_TOPIC_EXCEPTION");
});

test("min.insync.replicas does not stop a write: the store is the replica", async () => {
  const q = await withTopic({ "min.insync.replicas": "3" });
  assert.equal(await refused(q, batch(["a"])), "NONE");
});

// Section 3.2, append.

test("a base offset other than 0 is INVALID_RECORD", async () => {
  const q = await withTopic();
  const moved = altered(batch(["a"]), (view) => setInt64(view, 0, 5));
  assert.equal(await refused(q, moved), "INVALID_RECORD");
});

test("a batch above max.message.bytes is MESSAGE_TOO_LARGE; at the limit it is stored", async () => {
  const bytes = batch(["x".repeat(2000)]);
  const exact = await withTopic({ "max.message.bytes": String(bytes.length) });
  assert.equal(await refused(exact, bytes), "NONE");
  const less = await withTopic({ "max.message.bytes": String(bytes.length - 1) });
  assert.equal(await refused(less, batch(["x".repeat(2000)])), "MESSAGE_TOO_LARGE");
});

test("the default limit of a batch is 1 MiB + 12", async () => {
  const q = await withTopic();
  const overhead = batch(["x".repeat(1 << 19)]).length - (1 << 19);
  const largest = 1_048_588 - overhead;
  assert.equal(await refused(q, batch(["x".repeat(largest + 1)])), "MESSAGE_TOO_LARGE");
  assert.equal(await refused(q, batch(["x".repeat(largest)])), "NONE");
});

test("a wrong checksum and a length too short for a header are CORRUPT_MESSAGE", async () => {
  const q = await withTopic();
  const good = batch(["abc"]);
  const flipped = good.slice();
  flipped[good.length - 1]! ^= 1;
  assert.equal(await refused(q, flipped), "CORRUPT_MESSAGE");
  const short = altered(good, (view) => view.setInt32(8, 10));
  assert.equal(await refused(q, short), "CORRUPT_MESSAGE");
});

test("any changed bit behind the checksum is refused", async () => {
  const q = await withTopic();
  const good = batch(["abc"]);
  for (let at = 17; at < good.length; at++) {
    const bad = good.slice();
    bad[at]! ^= 0x01;
    assert.equal(await refused(q, bad), "CORRUPT_MESSAGE", `byte ${at}`);
  }
});

test("no header byte makes the broker hang up or answer an unknown error", async () => {
  const q = await withTopic();
  for (let at = 0; at < 61; at++) {
    for (const value of [0x00, 0x7f, 0x80, 0xff]) {
      const odd = altered(batch(["abc"]), (view) => view.setUint8(at, value));
      assert.notEqual((await q.produce("t", odd)).error, "UNKNOWN_SERVER_ERROR", `byte ${at}`);
    }
  }
});

test("bytes behind the one batch that are no whole batch are trimmed without an error", async () => {
  const q = await withTopic();
  const one = batch(["a"]);
  for (const surplus of [1, 11, 30]) {
    const padded = new Uint8Array(one.length + surplus);
    padded.set(one);
    padded.set(one.subarray(0, surplus), one.length);
    assert.equal(await refused(q, padded), "NONE", `${surplus} bytes`);
  }
  const stored = batchesOf((await q.fetch("t", 0)).records);
  assert.deepEqual(
    stored.map(({ batchLength }) => batchLength + 12),
    [1, 2, 3].map(() => one.length),
  );
});

test("counts, control flags and sequences that no producer sends are INVALID_RECORD", async () => {
  const q = await withTopic();
  const bad: Record<string, Uint8Array> = {
    "count 0": altered(batch(["a"]), (view) => view.setInt32(57, 0)),
    "count -1": altered(batch(["a"]), (view) => view.setInt32(57, -1)),
    "delta not count - 1": altered(batch(["a", "b"]), (view) => view.setInt32(23, 5)),
    "control": batch(["a"], { control: true }),
    "no sequence": batch(["a"], { producer: [1, 0, -1] }),
  };
  for (const [name, bytes] of Object.entries(bad)) {
    assert.equal(await refused(q, bytes), "INVALID_RECORD", name);
  }
});

test("a batch that claims LogAppendTime is stored without the claim, with its own times", async () => {
  for (const [codec, attributes] of [[null, 0], ["gzip", 1]] as const) {
    const q = await withTopic();
    const sent = batch([{ timestamp: 5 }, { timestamp: 6 }], { codec });
    const claims = altered(sent, (view) => view.setInt16(21, attributes | 1 << 3));
    assert.equal(await refused(q, claims), "NONE");
    const { records } = await q.fetch("t", 0);
    const [stored] = batchesOf(records);
    assert.equal(stored!.attributes, attributes);
    assert.deepEqual(stored!.records.map(({ timestamp }) => timestamp), [5, 6]);
    assert.deepEqual(altered(records!, () => {}), records, "the checksum is right");
  }
});

test("times outside the window are INVALID_TIMESTAMP and name the records from v8 on", async () => {
  const q = await withTopic({ "message.timestamp.before.max.ms": "1000" });
  const future = [TIME, TIME + 3_600_001, TIME + 9_000_000];
  const past = [TIME - 1001, TIME];
  for (const [times, wrong] of [[future, [1, 2]], [past, [0]]] as const) {
    const bytes = () => batch(times.map((timestamp) => ({ timestamp })));
    const answer = await q.produce("t", bytes(), { version: 8 });
    assert.equal(answer.error, "INVALID_TIMESTAMP");
    assert.deepEqual(answer.recordErrors.map(({ batchIndex }) => batchIndex), wrong);
    assert.ok(answer.recordErrors.every((one) => one.batchIndexErrorMessage !== null));
    assert.notEqual(answer.errorMessage, null);
    assert.equal(await refused(q, bytes(), 7), "INVALID_TIMESTAMP");
  }
  const edges = [TIME - 1000, TIME + 3_600_000].map((timestamp) => ({ timestamp }));
  assert.equal(await refused(q, batch(edges)), "NONE");
});

test("a record without key in a compacted topic is INVALID_RECORD and named; all codecs are looked into", async () => {
  const q = await withTopic({ "cleanup.policy": "compact" });
  for (const codec of CODECS) {
    const mixed = batch([{ key: "a" }, { key: null }, { key: "b" }, { key: null }], { codec });
    const answer = await q.produce("t", mixed);
    assert.equal(answer.error, "INVALID_RECORD", codec ?? "none");
    assert.deepEqual(answer.recordErrors.map(({ batchIndex }) => batchIndex), [1, 3]);
    const keyed = batch([{ key: "a", value: null }], { codec });
    assert.equal(await refused(q, keyed), "NONE", codec ?? "none");
  }
});

test("a batch above segment.bytes is RECORD_LIST_TOO_LARGE", async () => {
  const q = await withTopic({ "segment.bytes": "1048576", "max.message.bytes": "3000000" });
  assert.equal(await refused(q, batch(["x".repeat(1_100_000)])), "RECORD_LIST_TOO_LARGE");
});

test("damaged compressed records are refused where the broker must look inside", async () => {
  const q = await withTopic({ "cleanup.policy": "compact" });
  for (const codec of ["gzip", "snappy", "lz4", "zstd"] as const) {
    const bad = altered(batch([{ key: "k", value: "x".repeat(100) }], { codec }), (view) => {
      for (let at = 62; at < view.byteLength; at++) view.setUint8(at, 0xa5);
    });
    const error = await refused(q, bad);
    assert.ok(["CORRUPT_MESSAGE", "INVALID_RECORD"].includes(error), `${codec}: ${error}`);
  }
});

test("by design the broker inflates nothing elsewhere: header and checksum speak for the records", async () => {
  const q = await withTopic({ "message.timestamp.before.max.ms": "1000" });
  const damaged = altered(batch(["x".repeat(100)], { codec: "gzip" }), (view) => {
    view.setUint8(view.byteLength - 10, 0xa5);
  });
  assert.equal(await refused(q, damaged), "NONE");
  const middle = [TIME, TIME - 5000, TIME].map((timestamp) => ({ timestamp }));
  assert.equal(await refused(q, batch(middle)), "NONE");
  const early = altered(batch(["a"]), (view) => setInt64(view, 35, TIME - 7));
  assert.equal((await q.produce("t", early)).baseOffset, 4);
  const found = (await q.fetch("t", 4)).records!;
  assert.deepEqual(found.subarray(16), early.subarray(16), "the wrong largest time stays");
});

test("skerry.produce.validate=full looks at every record, by topic or for the whole node", async () => {
  const damaged = altered(batch(["x".repeat(100)], { codec: "gzip" }), (view) => {
    view.setUint8(view.byteLength - 10, 0xa5);
  });
  const early = altered(batch(["a"]), (view) => setInt64(view, 35, TIME - 7));
  const middle = [TIME, TIME - 5000, TIME].map((timestamp) => ({ timestamp }));
  const strict = { "message.timestamp.before.max.ms": "1000" };
  const byTopic = await withTopic({ ...strict, "skerry.produce.validate": "full" });
  const byNode = await startQuirks({ "skerry.produce.validate": "full" });
  await byNode.topic("t", 1, strict);
  for (const q of [byTopic, byNode]) {
    assert.equal(await refused(q, damaged), "CORRUPT_MESSAGE");
    const { error, recordErrors } = await q.produce("t", batch(middle), { version: 9 });
    assert.equal(error, "INVALID_TIMESTAMP");
    assert.deepEqual(recordErrors.map(({ batchIndex }) => batchIndex), [1]);
    assert.equal(await refused(q, early), "NONE");
    assert.equal(batchesOf((await q.fetch("t", 0)).records)[0]!.maxTimestamp, TIME);
    for (const codec of ["gzip", "snappy", "lz4", "zstd", null] as const) {
      assert.equal(await refused(q, batch(["a", "b"], { codec })), "NONE");
    }
  }
});

// Section 3.2, what is stored and answered.

test("stored as sent, but for base offset and leader epoch; every codec is kept", async () => {
  const q = await withTopic();
  for (const [at, codec] of CODECS.entries()) {
    const sent = batch(["a", "b"], { codec });
    assert.equal((await q.produce("t", sent)).baseOffset, 2 * at);
    const { records } = await q.fetch("t", 2 * at);
    assert.deepEqual(records!.subarray(16), sent.subarray(16), codec ?? "none");
    const [stored] = batchesOf(records);
    assert.equal(stored!.baseOffset, 2 * at);
    assert.ok(stored!.partitionLeaderEpoch >= 0);
  }
});

test("both framings of snappy are readable where the broker looks inside", async () => {
  const q = await withTopic({ "cleanup.policy": "compact" });
  assert.equal(await refused(q, batch([{ key: "k" }], { codec: "snappy" })), "NONE");
  const plain = batch([{ key: "k", value: "raw" }]);
  const payload = plain.subarray(61);
  // One literal of a raw snappy block: length, tag, bytes.
  const raw = Uint8Array.of(payload.length, (payload.length - 1) << 2, ...payload);
  const bytes = new Uint8Array(61 + raw.length);
  bytes.set(plain.subarray(0, 61));
  bytes.set(raw, 61);
  const framed = altered(bytes, (view) => {
    view.setInt32(8, bytes.length - 12);
    view.setInt16(21, 2);
  });
  assert.equal(await refused(q, framed), "NONE");
});

test("LogAppendTime stamps the batch, its checksum fits, and the answer says when", async () => {
  const q = await withTopic({ "message.timestamp.type": "LogAppendTime" });
  await q.node.clock.advance(12_345);
  const answer = await q.produce("t", batch([{ timestamp: 5 }, { timestamp: 6 }]));
  const now = TIME + 12_345;
  assert.equal(answer.logAppendTimeMs, now);
  const { records } = await q.fetch("t", 0);
  const [stored] = batchesOf(records);
  assert.equal(stored!.attributes & 8, 8);
  assert.equal(stored!.maxTimestamp, now);
  assert.deepEqual(stored!.records.map(({ timestamp }) => timestamp), [now, now]);
  assert.deepEqual(altered(records!, () => {}), records, "the checksum is right");
});

test("CreateTime topics answer LogAppendTime -1 and the log start", async () => {
  const q = await withTopic();
  const answer = await q.produce("t", batch(["a"]), { version: 5 });
  assert.deepEqual([answer.logAppendTimeMs, answer.logStartOffset], [-1, 0]);
});

test("compression.type other than producer recompresses and keeps the producer's fields", async () => {
  for (const [type, codec] of [["gzip", "gzip"], ["uncompressed", null], ["zstd", "zstd"]]) {
    const q = await withTopic({ "compression.type": type! });
    const sent = batch(["a", "b"], { codec: "lz4", producer: [9, 3, 0] });
    assert.equal(await refused(q, sent), "NONE");
    const [stored] = batchesOf((await q.fetch("t", 0)).records);
    assert.equal(codecOf(stored!), codec);
    const { producerId, producerEpoch, baseSequence, lastOffsetDelta } = stored!;
    assert.deepEqual([producerId, producerEpoch, baseSequence, lastOffsetDelta], [9, 3, 0, 1]);
    assert.equal(stored!.records.length, 2);
  }
});

test("times of 2^53 and more are refused, not misread", async () => {
  const q = await withTopic();
  const far = altered(batch(["a"]), (view) => view.setBigInt64(35, 2n ** 63n - 1n));
  assert.equal(await refused(q, far), "INVALID_TIMESTAMP");
  assert.equal(await refused(q, batch([{ timestamp: -1 }])), "NONE");
});

// Section 3.3.

test("the last five batches are duplicates: the original offset, nothing stored again", async () => {
  const q = await withTopic();
  const send = (sequence: number) =>
    q.produce("t", batch(["a", "b"], { producer: [1, 0, sequence] }));
  for (let at = 0; at < 6; at++) assert.equal((await send(2 * at)).baseOffset, 2 * at);
  for (let at = 1; at < 6; at++) {
    const again = await send(2 * at);
    assert.deepEqual([again.error, again.baseOffset], ["NONE", 2 * at]);
  }
  assert.equal((await send(0)).error, "OUT_OF_ORDER_SEQUENCE_NUMBER", "older than five");
  assert.equal((await q.fetch("t", 12)).highWatermark, 12);
});

test("a duplicate of what is not durable yet waits like the original", async () => {
  const clock = createFakeClock();
  const store = faultyStore(createMemoryStore(clock), clock);
  const q = await startQuirks({}, { clock, store });
  await q.topic("t");
  await q.produce("t", batch(["first"]));
  store.setPlan(({ op }) => op === "put" ? { kind: "delay", delayMs: 5000 } : undefined);
  const clients = [q.node.connect(), q.node.connect()];
  for (const client of clients) {
    const records = batch(["a"], { producer: [1, 0, 0] });
    client.post(produceApi, 9, produceRequest("t", records));
    await clock.settle();
  }
  await clock.advance(4000);
  assert.deepEqual(clients.map(({ unread }) => unread), [0, 0]);
  await clock.advance(2000);
  assert.deepEqual(clients.map(({ unread }) => unread), [1, 1]);
  assert.equal((await q.fetch("t", 0)).highWatermark, 2);
});

test("a duplicate in a LogAppendTime topic answers the original time", async () => {
  const q = await withTopic({ "message.timestamp.type": "LogAppendTime" });
  const send = () => q.produce("t", batch(["a"], { producer: [1, 0, 0] }));
  const { logAppendTimeMs } = await send();
  await q.node.clock.advance(1000);
  assert.equal((await send()).logAppendTimeMs, logAppendTimeMs);
});

test("a partial overlap is OUT_OF_ORDER, never half a duplicate", async () => {
  const q = await withTopic();
  await q.produce("t", batch(["a", "b", "c"], { producer: [1, 0, 0] }));
  for (const [sequence, count] of [[0, 2], [1, 2], [0, 4], [2, 2]]) {
    const values = Array.from({ length: count! }, () => "x");
    const answer = await q.produce("t", batch(values, { producer: [1, 0, sequence!] }));
    assert.equal(answer.error, "OUT_OF_ORDER_SEQUENCE_NUMBER", `${sequence}+${count}`);
  }
});

test("epochs: lower is INVALID_PRODUCER_EPOCH, higher begins at 0 and forgets the old one", async () => {
  const q = await withTopic();
  const send = (epoch: number, sequence: number) =>
    q.produce("t", batch(["a"], { producer: [1, epoch, sequence] }));
  assert.equal((await send(3, 0)).error, "NONE");
  assert.equal((await send(2, 0)).error, "INVALID_PRODUCER_EPOCH");
  assert.equal((await send(4, 5)).error, "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal((await send(4, 0)).baseOffset, 1);
  assert.equal((await send(3, 0)).error, "INVALID_PRODUCER_EPOCH");
});

test("within an epoch the next sequence must follow", async () => {
  const q = await withTopic();
  const send = (sequence: number) => q.produce("t", batch(["a"], { producer: [1, 0, sequence] }));
  await send(0);
  for (const sequence of [2, 100]) {
    assert.equal((await send(sequence)).error, "OUT_OF_ORDER_SEQUENCE_NUMBER");
  }
  assert.equal((await send(1)).baseOffset, 1);
});

test("an unknown producer may begin with any sequence", async () => {
  const q = await withTopic();
  const answer = await q.produce("t", batch(["a"], { producer: [77, 2, 1234] }));
  assert.deepEqual([answer.error, answer.baseOffset], ["NONE", 0]);
});

test("sequences wrap from 2147483647 to 0, also inside a batch", async () => {
  const q = await withTopic();
  const send = (sequence: number, count: number) => {
    const values = Array.from({ length: count }, () => "x");
    return q.produce("t", batch(values, { producer: [1, 0, sequence] }));
  };
  assert.equal((await send(2_147_483_646, 4)).error, "NONE");
  const again = await send(2_147_483_646, 4);
  assert.deepEqual([again.error, again.baseOffset], ["NONE", 0]);
  assert.equal((await send(2, 1)).baseOffset, 4);
  const other = (sequence: number, count: number) => {
    const values = Array.from({ length: count }, () => "x");
    return q.produce("t", batch(values, { producer: [2, 0, sequence] }));
  };
  assert.equal((await other(2_147_483_640, 8)).error, "NONE");
  assert.equal((await other(1, 1)).error, "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal((await other(0, 1)).error, "NONE");
});

test("partitions count apart from each other", async () => {
  const q = await startQuirks();
  await q.topic("t", 2);
  for (const partition of [0, 1]) {
    const answer = await q.produce("t", batch(["a"], { producer: [1, 0, 0] }), { partition });
    assert.deepEqual([answer.error, answer.baseOffset], ["NONE", 0]);
  }
});

for (const clean of [true, false]) {
  test(`a ${clean ? "clean restart" : "crash"} forgets no batch of the last five`, async () => {
    let q = await withTopic();
    const send = (sequence: number) =>
      q.produce("t", batch([`${sequence}`], { producer: [1, 0, sequence] }));
    for (let sequence = 0; sequence < 6; sequence++) await send(sequence);
    q = await restarted(q, { clean });
    for (let sequence = 1; sequence < 6; sequence++) {
      const again = await send(sequence);
      assert.deepEqual([again.error, again.baseOffset], ["NONE", sequence]);
    }
    assert.equal((await send(0)).error, "OUT_OF_ORDER_SEQUENCE_NUMBER");
    assert.equal((await send(6)).baseOffset, 6);
    assert.deepEqual(valuesOf((await q.fetch("t", 0)).records), [
      "0",
      "1",
      "2",
      "3",
      "4",
      "5",
      "6",
    ]);
  });
}

// Section 7, trouble with the store.

test("a store that fails is a retriable error to producers, and everything drains when it is back", async () => {
  const clock = createFakeClock();
  const store = faultyStore(createMemoryStore(clock), clock);
  const q = await startQuirks({}, { clock, store });
  await q.topic("t");
  await q.produce("t", batch(["before"]));
  store.setPlan(({ op }) => op === "put" ? { kind: "fail" } : undefined);
  const waiting = [0, 1].map(async (sequence) => {
    const client = q.node.connect();
    const records = batch([`${sequence}`], { producer: [3, 0, sequence] });
    const answer = await client.call(produceApi, 9, produceRequest("t", records));
    return errorName(answer.responses[0]!.partitionResponses[0]!.errorCode);
  });
  await clock.advance(31_000);
  for (const error of await Promise.all(waiting)) {
    assert.ok(["REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS"].includes(error), error);
  }
  assert.equal((await q.fetch("t", 0)).highWatermark, 1, "what was durable can be read meanwhile");
  store.setPlan();
  await clock.advance(60_000);
  for (const sequence of [0, 1]) {
    const records = batch([`${sequence}`], { producer: [3, 0, sequence] });
    assert.equal((await q.produce("t", records)).error, "NONE");
  }
  assert.deepEqual(valuesOf((await q.fetch("t", 0)).records), ["before", "0", "1"]);
});

test("while the store fails nobody is told an unknown error or an empty success", async () => {
  const clock = createFakeClock();
  const store = faultyStore(createMemoryStore(clock), clock);
  const q = await startQuirks({}, { clock, store });
  await q.topic("t");
  store.setPlan(({ op }) => op === "put" ? { kind: "fail" } : undefined);
  const asked = {
    join: q.node.connect().call(findCoordinatorApi, 3, { key: "g" }),
    offsets: q.node.connect().call(offsetFetchApi, 7, { groupId: "g", topics: null }),
    create: q.node.connect().call(createTopicsApi, 5, {
      topics: [{ name: "u", numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
    }),
    ids: q.node.connect().call(initProducerIdApi, 4, {
      transactionalId: null,
      transactionTimeoutMs: 0,
    }),
  };
  await clock.advance(120_000);
  const { join, offsets, create, ids } = asked;
  assert.equal(errorName((await join).errorCode), "COORDINATOR_NOT_AVAILABLE");
  assert.equal(errorName((await offsets).errorCode), "COORDINATOR_NOT_AVAILABLE");
  assert.equal(errorName((await create).topics[0]!.errorCode), "REQUEST_TIMED_OUT");
  assert.equal(errorName((await ids).errorCode), "COORDINATOR_NOT_AVAILABLE");
});
