/** Transactions over the wire: sheet sections 3.3, 3.13, 3.14 and the transactions rows of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorName } from "../../src/protocol/error_code.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { findCoordinatorApi } from "../../src/protocol/message/10_find_coordinator.ts";
import { addPartitionsToTxnApi } from "../../src/protocol/message/24_add_partitions_to_txn.ts";
import { writeTxnMarkersApi } from "../../src/protocol/message/27_write_txn_markers.ts";
import { updateFeaturesApi } from "../../src/protocol/message/57_update_features.ts";
import { describeProducersApi } from "../../src/protocol/message/61_describe_producers.ts";
import { describeTransactionsApi } from "../../src/protocol/message/65_describe_transactions.ts";
import { listTransactionsApi } from "../../src/protocol/message/66_list_transactions.ts";
import { committedValues } from "../support/read_committed.ts";
import { fetchOffset, stateOf, TxnClient } from "../support/txn_client.ts";
import { batch, Quirks, restarted, startQuirks } from "./quirks.ts";

async function settled(q: Quirks): Promise<void> {
  await q.node.clock.settle();
  await q.node.clock.settle();
}

for (const isV2 of [false, true]) {
  const rules = isV2 ? "transactions v2" : "the old rules";

  test(`${rules}: what was committed is read, what was aborted is not`, async () => {
    const q = await startQuirks();
    await q.topic("t", 2);
    const client = new TxnClient(q, "tx", { isV2 });
    assert.equal(await client.init(), "NONE");
    for (const [commit, value] of [[true, "a"], [false, "b"], [true, "c"]] as const) {
      if (!isV2) assert.equal(await client.add("t", [0, 1]), "NONE");
      assert.equal(await client.produce("t", [value]), "NONE");
      assert.equal(await client.produce("t", [`${value}2`], { partition: 1 }), "NONE");
      assert.equal(await client.end(commit), "NONE");
      await settled(q);
    }
    assert.deepEqual(await committedValues(q, "t"), ["a", "c"]);
    assert.deepEqual(await committedValues(q, "t", 1), ["a2", "c2"]);
    assert.equal(await stateOf(q, "tx"), "CompleteCommit");
    await q.node.close();
  });

  test(`${rules}: offsets count when the transaction commits, and not before`, async () => {
    const q = await startQuirks();
    await q.topic("t");
    const client = new TxnClient(q, "tx", { isV2 });
    await client.init();
    for (const [commit, offset, expected] of [[true, 5, 5], [false, 9, 5]] as const) {
      if (!isV2) assert.equal(await client.addOffsets("g"), "NONE");
      assert.equal(await client.commitOffset("g", "t", offset), "NONE");
      assert.equal(await fetchOffset(q, "g", "t"), "UNSTABLE_OFFSET_COMMIT");
      assert.equal(await fetchOffset(q, "g", "t", false), commit ? -1 : 5);
      assert.equal(await client.end(commit), "NONE");
      await settled(q);
      assert.equal(await fetchOffset(q, "g", "t"), expected);
    }
    await q.node.close();
  });

  test(`${rules}: a crash in the middle of a transaction leaves it open, and its offsets pending`, async () => {
    let q = await startQuirks();
    await q.topic("t");
    const client = new TxnClient(q, "tx", { isV2 });
    await client.init();
    if (!isV2) await client.add("t");
    await client.produce("t", ["a"]);
    if (!isV2) await client.addOffsets("g");
    await client.commitOffset("g", "t", 7);
    q = await restarted(q, { clean: false });
    assert.equal(await stateOf(q, "tx"), "Ongoing");
    assert.deepEqual(await committedValues(q, "t"), []);
    assert.equal(await fetchOffset(q, "g", "t"), "UNSTABLE_OFFSET_COMMIT");
    const next = new TxnClient(q, "tx", { isV2 });
    assert.equal(await next.init(), "CONCURRENT_TRANSACTIONS");
    await settled(q);
    assert.equal(await next.init(), "NONE");
    assert.equal(next.producerId, client.producerId);
    assert.ok(next.producerEpoch > client.producerEpoch);
    assert.deepEqual(await committedValues(q, "t"), []);
    assert.equal(await fetchOffset(q, "g", "t"), -1);
    await q.node.close();
  });
}

test("the next transaction by the old rules waits for the markers of the one before", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const client = new TxnClient(q, "tx");
  await client.init();
  await client.add("t");
  await client.produce("t", ["a"]);
  await client.end(true);
  const early = await client.add("t");
  assert.ok(early === "NONE" || early === "CONCURRENT_TRANSACTIONS", early);
  await settled(q);
  assert.equal(await client.add("t"), "NONE");
  await q.node.close();
});

test("a partition that was not added is refused, by what the client understands", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const client = new TxnClient(q, "tx");
  await client.init();
  assert.equal(await client.produce("t", ["a"], { version: 10 }), "INVALID_TXN_STATE");
  assert.equal(await client.produce("t", ["a"], { version: 11 }), "TRANSACTION_ABORTABLE");
  assert.equal(await client.produce("t", ["a"], { version: 12 }), "NONE");
  assert.equal(await client.commitOffset("g", "t", 1, { version: 3 }), "INVALID_TXN_STATE");
  assert.equal(await client.commitOffset("g", "t", 1, { version: 4 }), "TRANSACTION_ABORTABLE");
  assert.equal(await client.commitOffset("g", "t", 1, { version: 5 }), "NONE");
  await q.node.close();
});

test("a producer whose place another one took is fenced, in the words of each version", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const old = new TxnClient(q, "tx");
  await old.init();
  const next = new TxnClient(q, "tx");
  assert.equal(await next.init(), "NONE");
  assert.equal(await old.add("t", [0], 1), "INVALID_PRODUCER_EPOCH");
  assert.equal(await old.add("t", [0], 2), "PRODUCER_FENCED");
  assert.equal(await old.addOffsets("g", 1), "INVALID_PRODUCER_EPOCH");
  assert.equal(await old.addOffsets("g", 2), "PRODUCER_FENCED");
  assert.equal(await old.end(true, 1), "INVALID_PRODUCER_EPOCH");
  assert.equal(await old.end(true, 2), "PRODUCER_FENCED");
  assert.equal(await old.produce("t", ["a"]), "INVALID_PRODUCER_EPOCH");
  assert.equal(await old.init({ keep: true, version: 3 }), "INVALID_PRODUCER_EPOCH");
  assert.equal(await old.init({ keep: true, version: 4 }), "PRODUCER_FENCED");
  const stranger = new TxnClient(q, "other");
  assert.equal(await stranger.end(true), "INVALID_PRODUCER_ID_MAPPING");
  await q.node.close();
});

test("a transaction that is open for too long is aborted, and its producer fenced", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const client = new TxnClient(q, "tx", { timeoutMs: 5_000 });
  await client.init();
  await client.add("t");
  await client.produce("t", ["a"]);
  await q.node.clock.advance(4_000);
  assert.equal(await stateOf(q, "tx"), "Ongoing");
  await q.node.clock.advance(20_000);
  assert.equal(await stateOf(q, "tx"), "CompleteAbort");
  assert.equal(await client.end(true), "PRODUCER_FENCED");
  assert.equal(await client.produce("t", ["b"]), "INVALID_PRODUCER_EPOCH");
  await q.node.close();
});

test("a restart ends what timed out meanwhile, though no client comes", async () => {
  let q = await startQuirks();
  await q.topic("t");
  const client = new TxnClient(q, "tx", { timeoutMs: 5_000 });
  await client.init();
  await client.add("t");
  await client.produce("t", ["a"]);
  q = await restarted(q, { clean: false });
  await q.node.clock.advance(20_000);
  const { lastStableOffset, highWatermark } = await q.fetch("t", 0, { isolationLevel: 1 });
  assert.deepEqual([lastStableOffset, highWatermark], [2, 2]);
  assert.equal(await stateOf(q, "tx"), "CompleteAbort");
  await q.node.close();
});

test("an id that nobody used for seven days is forgotten", async () => {
  const q = await startQuirks({ "transactional.id.expiration.ms": "60000" });
  await q.topic("t");
  const client = new TxnClient(q, "tx");
  await client.init();
  await q.node.clock.advance(2 * 3_600_000);
  // Idle connections were closed.
  const again = new Quirks(q.node);
  assert.equal(await stateOf(again, "tx"), "TRANSACTIONAL_ID_NOT_FOUND");
  assert.equal(
    await new TxnClient(again, "tx").end(true),
    "INVALID_PRODUCER_ID_MAPPING",
  );
  await q.node.close();
});

test("two producers in one request are INVALID_PRODUCER_ID_MAPPING", async () => {
  const q = await startQuirks();
  await q.topic("t", 2);
  const of = (id: number) => batch(["a"], { producer: [id, 0, 0], transactional: true });
  const answer = await q.call(produceApi, 11, {
    transactionalId: "tx",
    acks: -1,
    timeoutMs: 1000,
    topicData: [{
      name: "t",
      partitionData: [{ index: 0, records: of(1) }, { index: 1, records: of(2) }],
    }],
  });
  const errors = answer.responses[0]!.partitionResponses.map((one) => errorName(one.errorCode));
  assert.deepEqual(errors, ["INVALID_PRODUCER_ID_MAPPING", "INVALID_PRODUCER_ID_MAPPING"]);
  await q.node.close();
});

test("one unknown topic fails all of AddPartitionsToTxn; the batch form answers per transaction", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const client = new TxnClient(q, "tx");
  await client.init();
  const of = (verifyOnly: boolean, names: readonly string[]) => ({
    transactionalId: "tx",
    producerId: client.producerId,
    producerEpoch: client.producerEpoch,
    verifyOnly,
    topics: names.map((name) => ({ name, partitions: [0] })),
  });
  const ask = async (verifyOnly: boolean, ...names: string[]) => {
    const request = { transactions: [of(verifyOnly, names)] };
    const { resultsByTransaction } = await q.call(addPartitionsToTxnApi, 5, request);
    return resultsByTransaction[0]!.topicResults.map((one) =>
      errorName(one.resultsByPartition[0]!.partitionErrorCode)
    );
  };
  assert.deepEqual(await ask(false, "t", "none"), [
    "OPERATION_NOT_ATTEMPTED",
    "UNKNOWN_TOPIC_OR_PARTITION",
  ]);
  assert.deepEqual(await ask(true, "t"), ["TRANSACTION_ABORTABLE"]);
  assert.deepEqual(await ask(false, "t"), ["NONE"]);
  assert.deepEqual(await ask(true, "t"), ["NONE"]);
  await q.node.close();
});

test("tools see transactions and producers, and can end one that hangs", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const client = new TxnClient(q, "tx");
  await client.init();
  await client.add("t");
  await client.produce("t", ["a", "b"]);
  const listed = await q.call(listTransactionsApi, 1, {
    stateFilters: ["Ongoing", "Sleeping"],
    producerIdFilters: [],
  });
  assert.deepEqual(listed.unknownStateFilters, ["Sleeping"]);
  assert.deepEqual(listed.transactionStates, [
    { transactionalId: "tx", producerId: client.producerId, transactionState: "Ongoing" },
  ]);
  for (const [pattern, found] of [["t.", 1], ["t", 0], ["", 1], ["(", -1]] as const) {
    const filter = { stateFilters: [], producerIdFilters: [], transactionalIdPattern: pattern };
    const { errorCode, transactionStates } = await q.call(listTransactionsApi, 2, filter);
    if (found < 0) assert.equal(errorName(errorCode), "INVALID_REGULAR_EXPRESSION");
    else assert.equal(transactionStates.length, found, pattern);
  }
  const described = await q.call(describeTransactionsApi, 0, { transactionalIds: ["tx"] });
  assert.deepEqual(described.transactionStates[0]!.topics, [{ topic: "t", partitions: [0] }]);
  const asked = { topics: [{ name: "t", partitionIndexes: [0] }] };
  const producers = await q.call(describeProducersApi, 0, asked);
  const [active] = producers.topics[0]!.partitions[0]!.activeProducers;
  const { producerId, lastSequence, currentTxnStartOffset } = active!;
  assert.deepEqual([producerId, lastSequence, currentTxnStartOffset], [client.producerId, 1, 0]);
  const marked = await q.call(writeTxnMarkersApi, 1, {
    markers: [{
      producerId: client.producerId,
      producerEpoch: client.producerEpoch,
      transactionResult: false,
      coordinatorEpoch: 1000,
      topics: [{ name: "t", partitionIndexes: [0, 1] }],
    }],
  });
  const errors = marked.markers[0]!.topics[0]!.partitions.map((one) => errorName(one.errorCode));
  assert.deepEqual(errors, ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]);
  assert.deepEqual(await committedValues(q, "t"), []);
  assert.equal((await q.fetch("t", 0, { isolationLevel: 1 })).lastStableOffset, 3);
  await q.node.close();
});

for (const isV2 of [false, true]) {
  test(
    `a marker of a tool, whatever its coordinator epoch, does not lock the coordinator out, ${
      isV2 ? "v2" : "v1"
    }`,
    async () => {
      const q = await startQuirks();
      await q.topic("t");
      const client = new TxnClient(q, "tx", { isV2 });
      await client.init();
      if (!isV2) await client.add("t");
      assert.equal(await client.produce("t", ["a"]), "NONE");
      const mark = async (coordinatorEpoch: number) => {
        const { markers } = await q.call(writeTxnMarkersApi, 1, {
          markers: [{
            producerId: client.producerId,
            producerEpoch: client.producerEpoch,
            transactionResult: false,
            coordinatorEpoch,
            topics: [{ name: "t", partitionIndexes: [0] }],
          }],
        });
        return errorName(markers[0]!.topics[0]!.partitions[0]!.errorCode);
      };
      assert.equal(await mark(2 ** 31 - 1), "NONE");
      assert.equal(await mark(1000), "TRANSACTION_COORDINATOR_FENCED", "other tools are");
      assert.equal(await client.end(true), "NONE");
      await settled(q);
      assert.equal(await stateOf(q, "tx"), "CompleteCommit");
      if (!isV2) await client.add("t");
      assert.equal(await client.produce("t", ["b"]), "NONE");
      assert.equal(await client.end(true), "NONE");
      await settled(q);
      assert.deepEqual(await committedValues(q, "t"), ["b"]);
      await q.node.close();
    },
  );
}

test("while transaction.version is 1, an end raises no epoch, whatever the version of the request", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const downgrade = { feature: "transaction.version", maxVersionLevel: 1, upgradeType: 2 };
  const answer = await q.call(updateFeaturesApi, 1, { featureUpdates: [downgrade] });
  assert.equal(errorName(answer.errorCode), "NONE");
  const client = new TxnClient(q, "tx", { isV2: true });
  await client.init();
  assert.equal(await client.produce("t", ["a"]), "TRANSACTION_ABORTABLE", "nothing is added");
  await client.add("t");
  assert.equal(await client.produce("t", ["a"]), "NONE");
  const { producerId, producerEpoch } = client;
  assert.equal(await client.end(true), "NONE");
  assert.deepEqual([client.producerId, client.producerEpoch], [producerId, producerEpoch]);
  await q.node.close();
});

test("asking for what is not there makes no topic", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const stranger = new TxnClient(q, "tx", { isV2: true });
  assert.equal(await stranger.end(true), "INVALID_PRODUCER_ID_MAPPING");
  assert.equal(await stranger.add("t"), "INVALID_PRODUCER_ID_MAPPING");
  assert.equal(await stateOf(q, "tx"), "TRANSACTIONAL_ID_NOT_FOUND");
  const { topics } = await q.metadata(null);
  assert.deepEqual(topics.map(({ name }) => name), ["t"]);
  await q.node.close();
});

test("the coordinator of a transactional id is found like that of a group", async () => {
  const q = await startQuirks();
  for (const version of [1, 3]) {
    const answer = await q.call(findCoordinatorApi, version, { key: "tx", keyType: 1 });
    assert.deepEqual([errorName(answer.errorCode), answer.nodeId], ["NONE", 1]);
  }
  const many = await q.call(findCoordinatorApi, 6, { keyType: 1, coordinatorKeys: ["tx", "ty"] });
  assert.deepEqual(many.coordinators.map((one) => errorName(one.errorCode)), ["NONE", "NONE"]);
  await q.node.close();
});
