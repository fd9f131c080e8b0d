/** Markers on their way: tried again until they are in, dropped with their partition, left when the shard closes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../../tests/support/broker_world.ts";
import type { Appended, TransactionMarker } from "../../log/partition_log.ts";
import { TXN_MARKERS_AT_ONCE } from "../../lib/limits.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { Coordinator } from "../group/coordinator.ts";
import { Markers } from "./markers.ts";
import { NO_PARTITIONS, partitionName, partitionsOf, type Transaction } from "./transaction.ts";

const DONE: Appended = {
  ok: true,
  baseOffset: 0,
  lastOffset: 0,
  logAppendTimeMs: -1,
  logStartOffset: 0,
  duplicate: false,
  durable: Promise.resolve(),
};

function rowOf(
  ...partitions: readonly (readonly [topic: string, partition: number])[]
): Transaction {
  return {
    transactionalId: "tx",
    producerId: 7,
    previousProducerId: -1,
    nextProducerId: -1,
    producerEpoch: 4,
    lastProducerEpoch: 3,
    timeoutMs: 60_000,
    status: "PrepareCommit",
    partitions: partitions.length === 0
      ? NO_PARTITIONS
      : partitionsOf(partitions.map(([topic, partition]) => ({ topic, partition }))),
    startedAtMs: 0,
    updatedAtMs: 0,
    isV2: true,
  };
}

async function world() {
  const made: Markers[] = [];
  const broker = await createBrokerWorld({
    routes: (services) => {
      const coordinator = new Coordinator(services);
      made.push(new Markers({ ...services, coordinator }));
      return [];
    },
  });
  await broker.createTopic("t", 2);
  const markers = made[0]!;
  const done: string[] = [];
  const stop = new AbortController();
  let outcome = "";
  return {
    broker,
    done,
    stop,
    outcome: () => outcome,
    /** What a partition's log answers, one after the other; the last one stays. */
    async script(partition: number, ...answers: readonly (Appended | ErrorName)[]) {
      const log = await broker.log("t", partition);
      const seen: TransactionMarker[] = [];
      log.appendMarker = (marker) => {
        const answer = answers[Math.min(seen.length, answers.length - 1)]!;
        seen.push(marker);
        return typeof answer === "string" ? { ok: false, error: answer } : answer;
      };
      return seen;
    },
    send(row: Transaction) {
      const note = (at: Parameters<typeof partitionName>[0]) => void done.push(partitionName(at));
      markers.send(row, 9, note, stop.signal).then(
        () => void (outcome = "sent"),
        () => void (outcome = "given up"),
      );
      return broker.clock.settle();
    },
  };
}

test("a marker is sent again until its log takes it; others do not wait for it", async () => {
  const { broker, done, outcome, script, send } = await world();
  const first = await script(0, "NOT_LEADER_OR_FOLLOWER", "TRANSACTION_COORDINATOR_FENCED", DONE);
  const second = await script(1, DONE);
  await send(rowOf(["t", 0], ["t", 1]));
  assert.deepEqual([done, outcome()], [["t-1"], ""]);
  await broker.clock.advance(1_000);
  assert.deepEqual([done, outcome(), first.length, second.length], [["t-1", "t-0"], "sent", 3, 1]);
  assert.deepEqual(first[2], {
    producerId: 7,
    producerEpoch: 4,
    coordinatorEpoch: 9,
    commit: true,
    isTransactionsV2: true,
  });
});

test("a marker counts once it is durable", async () => {
  const { broker, done, script, send } = await world();
  let durable: () => void = () => {};
  await script(0, { ...DONE, durable: new Promise((resolve) => void (durable = resolve)) });
  await send(rowOf(["t", 0]));
  assert.deepEqual(done, []);
  durable();
  await broker.clock.settle();
  assert.deepEqual(done, ["t-0"]);
});

test("a partition that is gone, or has a later epoch, needs no marker", async () => {
  const { done, outcome, script, send } = await world();
  await script(0, "INVALID_PRODUCER_EPOCH");
  await send(rowOf(["gone", 0], ["t", 5], ["t", 0]));
  assert.deepEqual([done.toSorted(), outcome()], [["gone-0", "t-0", "t-5"], "sent"]);
});

test("a topic that is deleted while its marker waits ends the waiting", async () => {
  const { broker, outcome, script, send } = await world();
  await script(0, "NOT_ENOUGH_REPLICAS");
  await send(rowOf(["t", 0]));
  await broker.services.topics.delete(broker.services.topics.find("t")!.topicId);
  await broker.clock.advance(10_000);
  assert.equal(outcome(), "sent");
});

test("when the shard closes nothing is sent any more", async () => {
  const { broker, stop, outcome, script, send } = await world();
  const seen = await script(0, "NOT_ENOUGH_REPLICAS");
  await send(rowOf(["t", 0]));
  stop.abort();
  await broker.clock.advance(60_000);
  assert.deepEqual([outcome(), seen.length], ["given up", 1]);
});

test("what waits for its turn when the shard closes is not sent when the turn comes", async () => {
  const { broker, stop, outcome, script, send } = await world();
  let durable: () => void = () => {};
  await script(0, { ...DONE, durable: new Promise((resolve) => void (durable = resolve)) });
  const seen = await script(1, DONE);
  for (let n = 0; n < TXN_MARKERS_AT_ONCE; n++) void send(rowOf(["t", 0]));
  await send(rowOf(["t", 1]));
  stop.abort();
  durable();
  await broker.clock.settle();
  assert.deepEqual([outcome(), seen.length], ["given up", 0]);
});

test("a shard that closes while the partition opens sends nothing into it", async () => {
  const { broker, stop, outcome, send } = await world();
  const opening = Promise.withResolvers<void>();
  broker.gate = opening.promise;
  await send(rowOf(["t", 0]));
  stop.abort();
  broker.gate = null;
  opening.resolve();
  await broker.clock.settle();
  assert.equal(outcome(), "given up");
  const log = await broker.log("t", 0);
  assert.deepEqual(log.markers, [], "it would end the next owner's transaction");
});
