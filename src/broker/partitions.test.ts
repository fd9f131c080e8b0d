import assert from "node:assert/strict";
import { test } from "node:test";
import { FaultError } from "../lib/errors.ts";
import { createBrokerWorld, keyOf } from "../../tests/support/broker_world.ts";
import { createMemoryLog } from "../../tests/support/memory_log.ts";
import { REOPEN_FIRST_MS } from "../lib/limits.ts";
import { epochProblem } from "./partitions.ts";
import { streamEpoch } from "../lib/brand.ts";

async function world() {
  const broker = await createBrokerWorld({ routes: () => [] });
  const topicId = await broker.createTopic("t", 2);
  return { broker, topicId, partitions: broker.services.partitions };
}

test("a partition opens once, on first use, and keeps its meta stream", async () => {
  const { broker, topicId, partitions } = await world();
  assert.equal(partitions.peek(topicId, 0), undefined);
  const [first, second] = await Promise.all([
    partitions.open(topicId, 0),
    partitions.open(topicId, 0),
  ]);
  assert.ok(first.ok && second.ok && first.log === second.log);
  assert.equal(broker.opened, 1);
  assert.equal(partitions.peek(topicId, 0), first.log);
  assert.notEqual(broker.metadata.view().partitions.get(keyOf(broker, "t"))!.metaStream, null);
  assert.equal(broker.metadata.submitted.filter((type) => type === "set-meta-stream").length, 1);
});

test("what is unknown or led elsewhere is refused", async () => {
  const { broker, topicId, partitions } = await world();
  const unknown = { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" };
  assert.deepEqual(await partitions.open("f".repeat(32), 0), unknown);
  assert.deepEqual(await partitions.open(topicId, 2), unknown);
  await broker.log("t");
  // Another incarnation registers: its rows have no leader until somebody takes them.
  const { metadata } = broker;
  const incarnation = "1".repeat(32);
  const row = metadata.view().nodes.get(broker.services.nodeId)!;
  await metadata.submit({ type: "register-node", ...row, incarnation });
  assert.deepEqual(await partitions.open(topicId, 0), {
    ok: false,
    error: "NOT_LEADER_OR_FOLLOWER",
  });
  assert.equal(partitions.size, 0);
  assert.ok(broker.logs.get("t-0")!.closed);
});

test("deleting a topic closes its partitions, also one that is just opening", async () => {
  const { broker, topicId, partitions } = await world();
  const log = await broker.log("t", 0);
  let go: () => void = () => {};
  broker.gate = new Promise((resolve) => {
    go = resolve;
  });
  const opening = partitions.open(topicId, 1);
  await broker.clock.settle();
  await broker.services.topics.delete(topicId);
  assert.ok(log.closed);
  go();
  assert.deepEqual(await opening, { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" });
  assert.ok(broker.logs.get("t-1")!.closed);
  assert.equal(partitions.size, 0);
});

test("a failed record of the meta stream closes the log", async () => {
  const { broker, topicId, partitions } = await world();
  let go: () => void = () => {};
  broker.gate = new Promise((resolve) => {
    go = resolve;
  });
  const opening = partitions.open(topicId, 1);
  await broker.clock.settle();
  broker.metadata.fault = new FaultError("timeout", "late", { retriable: true });
  go();
  await assert.rejects(opening, broker.metadata.fault);
  assert.ok(broker.logs.get("t-1")!.closed);
  broker.metadata.fault = null;
  await broker.clock.advance(REOPEN_FIRST_MS);
  assert.ok((await partitions.open(topicId, 1)).ok);
});

const DAMAGED = new FaultError("corrupt", "the meta stream does not parse", { retriable: false });

test("a partition that cannot be read is not reopened at each request", async () => {
  const { broker, topicId, partitions } = await world();
  broker.openFault = DAMAGED;
  for (let second = 0; second < 600; second++) {
    for (let n = 0; n < 5; n++) await assert.rejects(partitions.open(topicId, 0), DAMAGED);
    await broker.clock.advance(1000);
  }
  assert.ok(broker.opened < 30, `${broker.opened} tries in ten minutes`);
  assert.ok(broker.opened > 20, "it is tried again every 30 s");
  const submitted = broker.metadata.submitted.length;
  await assert.rejects(partitions.open(topicId, 0), DAMAGED);
  assert.equal(broker.metadata.submitted.length, submitted, "a pause writes nothing");
  assert.ok((await partitions.open(topicId, 1).catch((error) => error)) === DAMAGED);
  broker.openFault = null;
  await broker.clock.advance(30_000);
  assert.ok((await partitions.open(topicId, 0)).ok);
  assert.ok((await partitions.open(topicId, 1)).ok);
});

test("another leader epoch and the topic's deletion end the pause of a partition", async () => {
  const { broker, topicId, partitions } = await world();
  const other = await broker.createTopic("u");
  broker.openFault = DAMAGED;
  await assert.rejects(partitions.open(other, 0), DAMAGED);
  await broker.services.topics.delete(other);
  const unknown = { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" };
  assert.deepEqual(await partitions.open(other, 0), unknown);
  broker.openFault = null;
  const next = await broker.createTopic("u");
  assert.ok((await partitions.open(next, 0)).ok);

  const { metadata } = broker;
  broker.openFault = DAMAGED;
  await assert.rejects(partitions.open(topicId, 0), DAMAGED);
  const row = metadata.view().nodes.get(broker.services.nodeId)!;
  const again = await metadata.submit({
    type: "register-node",
    ...row,
    incarnation: "1".repeat(32),
  });
  assert.ok(again.ok);
  const by = { nodeId: broker.services.nodeId, epoch: again.epoch };
  assert.ok((await metadata.submit({ type: "assign-leaders", by })).ok);
  const opened = broker.opened;
  await assert.rejects(partitions.open(topicId, 0), DAMAGED);
  assert.equal(broker.opened, opened + 1, "the next epoch is tried at once");
});

test("configs reach open logs", async () => {
  const { broker } = await world();
  const log = await broker.log("t");
  const { topics } = broker.services;
  const before = topics.find("t")!;
  await topics.alterConfigs(before, { "retention.ms": "1000" });
  assert.equal(log.config.retentionMs, 1000);
  assert.equal(await topics.alterConfigs(before, { "retention.ms": null }), "stale");
  assert.equal(log.config.retentionMs, 1000);
  await topics.alterConfigs(topics.find("t")!, { "retention.ms": null });
  assert.equal(log.config.retentionMs, 604_800_000);
});

test("open logs tick, a fault in one harms no other, and closing stops it", async () => {
  const { broker, partitions, topicId } = await world();
  const [first, second] = [await broker.log("t", 0), await broker.log("t", 1)];
  first.fault = new FaultError("store-unavailable", "gone", { retriable: true });
  await broker.clock.advance(60_000);
  assert.deepEqual([first.ticks, second.ticks], [2, 2]);
  await partitions.close();
  assert.ok(first.closed && second.closed);
  assert.equal(partitions.peek(topicId, 0), undefined);
  assert.deepEqual(await partitions.open(topicId, 0), {
    ok: false,
    error: "NOT_LEADER_OR_FOLLOWER",
  });
  assert.equal(broker.clock.timers, 0);
});

test("logs tick as often as log.retention.check.interval.ms, and at least every 30 s", async () => {
  for (const [interval, ticks] of [["5000", 12], ["30000", 2], ["300000", 2]] as const) {
    const properties = { "log.retention.check.interval.ms": interval };
    const broker = await createBrokerWorld({ properties, routes: () => [] });
    await broker.createTopic("t");
    const log = await broker.log("t");
    assert.equal(log.config.retentionCheckMs, Number(interval));
    await broker.clock.advance(60_000);
    assert.equal(log.ticks, ticks, interval);
  }
});

test("leader epochs that clients believe in", async () => {
  const { broker } = await world();
  const { config } = await broker.log("t");
  const log = createMemoryLog(config, streamEpoch(5));
  assert.deepEqual([-1, 4, 5, 6].map((asked) => epochProblem(log, asked)), [
    null,
    "FENCED_LEADER_EPOCH",
    null,
    "UNKNOWN_LEADER_EPOCH",
  ]);
});

test("closing waits for a log that is just opening, and closes it", async () => {
  const { broker, topicId, partitions } = await world();
  let go: () => void = () => {};
  broker.gate = new Promise((resolve) => {
    go = resolve;
  });
  const opening = partitions.open(topicId, 0);
  await broker.clock.settle();
  let closed = false;
  const closing = partitions.close().then(() => {
    closed = true;
  });
  await broker.clock.settle();
  assert.equal(closed, false);
  go();
  await closing;
  assert.ok(broker.logs.get("t-0")!.closed);
  assert.deepEqual(await opening, { ok: false, error: "NOT_LEADER_OR_FOLLOWER" });
});
