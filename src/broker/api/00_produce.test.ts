import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32c } from "../../lib/crc32c.ts";
import { FaultError } from "../../lib/errors.ts";
import { REOPEN_FIRST_MS } from "../../lib/limits.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorName } from "../../protocol/error_code.ts";
import { produceApi } from "../../protocol/message/00_produce.ts";
import { buildBatch } from "../../protocol/record_batch.ts";
import { type BrokerWorld, createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { bind } from "../broker.ts";
import { produceHandler } from "./00_produce.ts";

function world(properties: Record<string, string> = {}): Promise<BrokerWorld> {
  return createBrokerWorld({ properties, routes: (services) => [bind(produceHandler(services))] });
}

interface Asked {
  readonly acks?: number;
  readonly version?: number;
  readonly topic?: string;
  readonly topicId?: string;
  readonly partition?: number;
  readonly timeoutMs?: number;
  readonly transactionalId?: string;
  readonly clientId?: string;
  readonly records?: Uint8Array | null;
}

function produce(broker: BrokerWorld, asked: Asked) {
  const { version = 9, topic = "t", topicId = ZERO_UUID, partition = 0 } = asked;
  const records = asked.records === undefined ? broker.batch("a") : asked.records;
  return broker.send(produceApi, version, {
    transactionalId: asked.transactionalId ?? null,
    acks: asked.acks ?? -1,
    timeoutMs: asked.timeoutMs ?? 30_000,
    topicData: [{ name: topic, topicId, partitionData: [{ index: partition, records }] }],
  }, { clientId: asked.clientId ?? "test" });
}

async function outcome(broker: BrokerWorld, asked: Asked): Promise<string> {
  const { version = 9, topic = "t", topicId = ZERO_UUID, partition = 0 } = asked;
  const records = asked.records === undefined ? broker.batch("a") : asked.records;
  const response = await broker.call(produceApi, version, {
    transactionalId: asked.transactionalId ?? null,
    acks: asked.acks ?? -1,
    timeoutMs: asked.timeoutMs ?? 30_000,
    topicData: [{ name: topic, topicId, partitionData: [{ index: partition, records }] }],
  }, { clientId: asked.clientId ?? "test" });
  const only = response.responses[0]!.partitionResponses[0]!;
  return only.errorCode === 0 ? `@${only.baseOffset}` : errorName(only.errorCode);
}

function withAttributes(batch: Uint8Array, attributes: number): Uint8Array {
  new DataView(batch.buffer, batch.byteOffset).setInt16(21, attributes);
  return batch;
}

test("the table of refusals", async () => {
  const broker = await world();
  await broker.createTopic("t");
  const two = new Uint8Array([...broker.batch("a"), ...broker.batch("b")]);
  const cases: [string, Asked][] = [
    ["@0", {}],
    ["@1", { acks: 1 }],
    ["INVALID_REQUIRED_ACKS", { acks: 2 }],
    ["INVALID_REQUIRED_ACKS", { acks: -2 }],
    ["UNKNOWN_TOPIC_OR_PARTITION", { topic: "other" }],
    ["UNKNOWN_TOPIC_OR_PARTITION", { partition: 1 }],
    ["UNKNOWN_TOPIC_OR_PARTITION", { partition: -1 }],
    ["UNKNOWN_TOPIC_ID", { version: 13, topicId: "a".repeat(32) }],
    ["INVALID_RECORD", { records: null }],
    ["INVALID_RECORD", { records: new Uint8Array(0) }],
    ["INVALID_RECORD", { records: two }],
    ["CORRUPT_MESSAGE", { records: broker.batch("a").fill(1, 30, 40) }],
    ["UNSUPPORTED_COMPRESSION_TYPE", { version: 6, records: withAttributes(broker.batch("a"), 4) }],
    ["TRANSACTIONAL_ID_AUTHORIZATION_FAILED", { records: withAttributes(broker.batch("a"), 16) }],
    ["@2", { transactionalId: "mine" }],
    ["@3", { version: 3 }],
    ["@4", { version: 8 }],
    ["@5", { version: 12 }],
  ];
  for (const [expected, asked] of cases) {
    assert.equal(await outcome(broker, asked), expected, JSON.stringify({ ...asked, records: 0 }));
  }
});

test("topic ids find the topic, and the answer carries them", async () => {
  const broker = await world();
  const topicId = await broker.createTopic("t");
  assert.equal(await outcome(broker, { version: 13, topicId }), "@0");
});

test("an internal topic is closed to all but the admin client", async () => {
  const broker = await world();
  await broker.metadata.submit({
    type: "create-topic",
    topicId: "b".repeat(32),
    name: "__consumer_offsets",
    partitions: 1,
    replicationFactor: 1,
    configs: {},
    internal: true,
  });
  const asked = { topic: "__consumer_offsets" };
  assert.equal(await outcome(broker, asked), "INVALID_TOPIC_EXCEPTION");
  assert.equal(await outcome(broker, { ...asked, clientId: "__admin_client" }), "@0");
});

test("acks=all and acks=1 are answered only when durable", async () => {
  const broker = await world();
  await broker.createTopic("t");
  const log = await broker.log("t");
  log.durability = "manual";
  for (const acks of [-1, 1]) {
    let answered = false;
    const sending = produce(broker, { acks }).then((reply) => {
      answered = true;
      return reply;
    });
    await broker.clock.settle();
    assert.equal(answered, false);
    log.confirm();
    assert.equal((await sending).kind, "answer");
  }
});

test("acks=1 with skerry.acks.one=log-end does not wait", async () => {
  const broker = await world({ "skerry.acks.one": "log-end" });
  await broker.createTopic("t");
  (await broker.log("t")).durability = "manual";
  assert.equal(await outcome(broker, { acks: 1 }), "@0");
});

test("acks=0 sends nothing, and hangs up when something failed", async () => {
  const broker = await world();
  await broker.createTopic("t");
  const log = await broker.log("t");
  log.durability = "manual";
  assert.deepEqual(await produce(broker, { acks: 0 }), { kind: "none" });
  assert.equal((await produce(broker, { acks: 0, topic: "other" })).kind, "close");
  log.reject(new FaultError("store-unavailable", "gone", { retriable: true }));
  await broker.clock.settle();
});

test("the time-out answers REQUEST_TIMED_OUT, a fault a retriable code, the data stays", async () => {
  const broker = await world();
  await broker.createTopic("t");
  const log = await broker.log("t");
  log.durability = "manual";
  const late = outcome(broker, { timeoutMs: 5_000 });
  await broker.clock.advance(5_000);
  assert.equal(await late, "REQUEST_TIMED_OUT");
  assert.equal(log.logEndOffset, 1);
  const failing = outcome(broker, {});
  await broker.clock.settle();
  log.reject(new FaultError("store-unavailable", "gone", { retriable: true }));
  assert.equal(await failing, "NOT_ENOUGH_REPLICAS");
  log.fault = new FaultError("overloaded", "full", { retriable: true });
  assert.equal(await outcome(broker, {}), "NOT_ENOUGH_REPLICAS");
  log.fault = new FaultError("fenced", "newer", { retriable: false });
  assert.equal(await outcome(broker, {}), "NOT_LEADER_OR_FOLLOWER");
  broker.openFault = new FaultError("store-denied", "no", { retriable: true });
  await broker.createTopic("u");
  assert.equal(await outcome(broker, { topic: "u" }), "NOT_ENOUGH_REPLICAS");
  assert.equal(broker.clock.timers, 1, "only the tick of the partitions is left");
});

test("a refusal names the new leader from version 10 on", async () => {
  const broker = await world();
  await broker.createTopic("t");
  const log = await broker.log("t");
  log.refusal = "NOT_LEADER_OR_FOLLOWER";
  const ask = (version: number) =>
    broker.call(produceApi, version, {
      acks: -1,
      timeoutMs: 1,
      topicData: [{ name: "t", partitionData: [{ index: 0, records: broker.batch("a") }] }],
    });
  const { responses, nodeEndpoints } = await ask(10);
  assert.deepEqual(responses[0]!.partitionResponses[0]!.currentLeader, {
    leaderId: 1,
    leaderEpoch: 0,
  });
  assert.deepEqual(nodeEndpoints, [{ nodeId: 1, host: "broker.test", port: 9092, rack: null }]);
  assert.deepEqual((await ask(9)).nodeEndpoints, []);
});

test("a later sequence does not pass one that was refused while the log could not be opened", async () => {
  // Found by the simulator: the log, once open, takes any first sequence, and sequence 0 could never get in.
  const broker = await world();
  await broker.createTopic("t");
  const sequenced = (baseSequence: number) =>
    buildBatch({
      records: [{ key: null, value: new Uint8Array(1), headers: [], timestampMs: 1 }],
      codec: null,
      codecs: broker.env.codecs,
      producerId: 7,
      producerEpoch: 0,
      baseSequence,
    });
  broker.openFault = new FaultError("store-unavailable", "down", { retriable: true });
  const refused = await outcome(broker, { records: sequenced(0) });
  assert.ok(!refused.startsWith("@"), refused);
  broker.openFault = null;
  await broker.clock.advance(REOPEN_FIRST_MS);
  const later = { records: sequenced(1) };
  assert.equal(await outcome(broker, later), "OUT_OF_ORDER_SEQUENCE_NUMBER");
  assert.equal(await outcome(broker, { records: sequenced(0) }), "@0");
  assert.equal(await outcome(broker, { records: sequenced(1) }), "@1");
});

test("a bug while a produce waits leaves no timer of its deadline behind", async () => {
  const broker = await world();
  await broker.createTopic("t");
  const log = await broker.log("t");
  log.append = () => ({
    ok: true,
    baseOffset: 0,
    lastOffset: 0,
    logAppendTimeMs: -1,
    logStartOffset: 0,
    duplicate: false,
    durable: Promise.reject(new TypeError("a bug")),
  });
  assert.deepEqual(await produce(broker, {}), { kind: "close", reason: "request failed" });
  assert.equal(broker.clock.timers, 1, "only the tick of the partitions is left");
});

test("64-bit extremes in a batch are an error of the partition also when its log cannot be opened", async () => {
  const broker = await world();
  await broker.createTopic("t");
  const extreme = (at: number, value: bigint) => {
    const batch = broker.batch("a");
    const view = new DataView(batch.buffer, batch.byteOffset);
    view.setBigInt64(at, value);
    view.setUint32(17, crc32c(batch.subarray(21)));
    return batch;
  };
  const places = [0, 27, 35, 43];
  const values = [2n ** 63n - 1n, -(2n ** 63n), 2n ** 53n];
  const all = places.flatMap((at) => values.map((value) => extreme(at, value)));
  broker.openFault = new FaultError("store-unavailable", "down", { retriable: true });
  const outcomes = new Set<string>();
  for (const records of all) outcomes.add(await outcome(broker, { records }));
  assert.deepEqual([...outcomes], ["NOT_ENOUGH_REPLICAS"]);
  // A refused sequence of a sound batch is remembered: extremes are then looked at once more.
  const sound = broker.batch("a");
  const view = new DataView(sound.buffer, sound.byteOffset);
  view.setBigInt64(43, 7n);
  view.setInt16(51, 0);
  view.setInt32(53, 0);
  view.setUint32(17, crc32c(sound.subarray(21)));
  await outcome(broker, { records: sound });
  broker.openFault = null;
  await broker.clock.advance(60_000);
  outcomes.clear();
  for (const records of all) outcomes.add(await outcome(broker, { records }));
  assert.deepEqual([...outcomes], ["INVALID_RECORD", "INVALID_TIMESTAMP"]);
});
