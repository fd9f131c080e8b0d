/** What the comparison with Apache Kafka 4.2.1 found (tests/differential): each value is Kafka's answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorName } from "../../src/protocol/error_code.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { listOffsetsApi } from "../../src/protocol/message/02_list_offsets.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { offsetCommitApi } from "../../src/protocol/message/08_offset_commit.ts";
import { syncGroupApi } from "../../src/protocol/message/14_sync_group.ts";
import { describeGroupsApi } from "../../src/protocol/message/15_describe_groups.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { deleteGroupsApi } from "../../src/protocol/message/42_delete_groups.ts";
import { describeProducersApi } from "../../src/protocol/message/61_describe_producers.ts";
import { consumerGroupDescribeApi } from "../../src/protocol/message/69_consumer_group_describe.ts";
import { TxnClient } from "../support/txn_client.ts";
import { ConsumerMember } from "./consumer_member.ts";
import {
  batch,
  batchesOf,
  fetchRequest,
  type Quirks,
  restarted,
  startQuirks,
  TIME,
  valuesOf,
} from "./quirks.ts";

test("SyncGroup 5 without a protocol type or name is INCONSISTENT_GROUP_PROTOCOL, before all else", async () => {
  const q = await startQuirks();
  const sync = { groupId: "none", generationId: 1, memberId: "nobody", assignments: [] };
  const names = { protocolType: "consumer", protocolName: "range" };
  for (
    const [extra, version, error] of [
      [{}, 5, "INCONSISTENT_GROUP_PROTOCOL"],
      [{ protocolType: "consumer" }, 5, "INCONSISTENT_GROUP_PROTOCOL"],
      [{ protocolName: "range" }, 5, "INCONSISTENT_GROUP_PROTOCOL"],
      [{ groupId: "" }, 5, "INCONSISTENT_GROUP_PROTOCOL"],
      [names, 5, "UNKNOWN_MEMBER_ID"],
      [{}, 4, "UNKNOWN_MEMBER_ID"],
    ] as const
  ) {
    const { errorCode } = await q.call(syncGroupApi, version, { ...sync, ...extra });
    assert.equal(errorName(errorCode), error, JSON.stringify(extra));
  }
});

test("the group with the empty id is deleted like any other, if there is one", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const remove = async () => {
    const { results } = await q.call(deleteGroupsApi, 2, { groupsNames: [""] });
    return errorName(results[0]!.errorCode);
  };
  assert.equal(await remove(), "GROUP_ID_NOT_FOUND");
  await q.call(offsetCommitApi, 7, {
    groupId: "",
    memberId: "",
    topics: [{
      name: "t",
      partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata: null }],
    }],
  });
  assert.equal(await remove(), "NONE");
});

test("InitProducerId with half an identity is INVALID_REQUEST, also without a transactional id", async () => {
  const q = await startQuirks();
  for (
    const [producerId, producerEpoch, error] of [
      [1, -1, "INVALID_REQUEST"],
      [-1, 1, "INVALID_REQUEST"],
      [1, 1, "NONE"],
      [-1, -1, "NONE"],
    ] as const
  ) {
    const { errorCode } = await q.call(initProducerIdApi, 4, {
      transactionalId: null,
      transactionTimeoutMs: 1000,
      producerId,
      producerEpoch,
    });
    assert.equal(errorName(errorCode), error, `${producerId}, ${producerEpoch}`);
  }
});

test("a leader epoch of -2 is an old one; only -1 asks for no check", async () => {
  const q = await startQuirks();
  await q.topic("t");
  for (const [currentLeaderEpoch, error] of [[-1, "NONE"], [-2, "FENCED_LEADER_EPOCH"]] as const) {
    const { topics } = await q.call(listOffsetsApi, 9, {
      replicaId: -1,
      isolationLevel: 0,
      topics: [{
        name: "t",
        partitions: [{ partitionIndex: 0, timestamp: -1, currentLeaderEpoch }],
      }],
    });
    assert.equal(errorName(topics[0]!.partitions[0]!.errorCode), error);
  }
});

test("ListOffsets for a partition that stands in two places of the request is INVALID_REQUEST", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const topic = (partitionIndex: number) => ({
    name: "t",
    partitions: [{ partitionIndex, timestamp: -1 }],
  });
  const { topics } = await q.call(listOffsetsApi, 9, {
    replicaId: -1,
    isolationLevel: 0,
    topics: [topic(0), topic(0)],
  });
  assert.deepEqual(topics.map(({ partitions }) => errorName(partitions[0]!.errorCode)), [
    "INVALID_REQUEST",
    "INVALID_REQUEST",
  ]);
});

test("Metadata by id does not look at the names beside it", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  const { topics } = await q.call(metadataApi, 12, {
    topics: [{ topicId, name: null }, { name: "other" }],
  });
  assert.deepEqual(topics.map(({ name }) => name), ["t"]);
});

test("offset.metadata.max.bytes counts UTF-16 units", async () => {
  const q = await startQuirks();
  await q.topic("t");
  for (
    const [committedMetadata, error] of [
      ["ä".repeat(4096), "NONE"],
      ["m".repeat(4097), "OFFSET_METADATA_TOO_LARGE"],
      ["ä".repeat(4097), "OFFSET_METADATA_TOO_LARGE"],
    ] as const
  ) {
    const { topics } = await q.call(offsetCommitApi, 7, {
      groupId: "g",
      memberId: "",
      topics: [{
        name: "t",
        partitions: [{ partitionIndex: 0, committedOffset: 1, committedMetadata }],
      }],
    });
    assert.equal(errorName(topics[0]!.partitions[0]!.errorCode), error);
  }
});

test("a batch that is cut off is none, so INVALID_RECORD; an unknown magic is CORRUPT_MESSAGE", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const whole = batch(["a"]);
  const withMagic = (magic: number) => {
    const copy = whole.slice();
    copy[16] = magic;
    return copy;
  };
  for (
    const [label, records, error] of [
      ["10 bytes", whole.subarray(0, 10), "INVALID_RECORD"],
      ["40 bytes", whole.subarray(0, 40), "INVALID_RECORD"],
      ["all but two", whole.subarray(0, whole.length - 2), "INVALID_RECORD"],
      ["magic 0", withMagic(0), "INVALID_RECORD"],
      ["magic 1", withMagic(1), "INVALID_RECORD"],
      ["magic 3", withMagic(3), "CORRUPT_MESSAGE"],
      ["magic -1", withMagic(255), "CORRUPT_MESSAGE"],
    ] as const
  ) {
    const { responses } = await q.call(produceApi, 9, {
      acks: -1,
      timeoutMs: 1000,
      topicData: [{ name: "t", partitionData: [{ index: 0, records }] }],
    });
    assert.equal(errorName(responses[0]!.partitionResponses[0]!.errorCode), error, label);
  }
});

test("of a partition that stands twice in a Produce request the last batch counts, and is answered once", async () => {
  const q = await startQuirks();
  await q.topic("t", 2);
  const part = (index: number, value: string) => ({ index, records: batch([value]) });
  const { responses } = await q.call(produceApi, 9, {
    acks: -1,
    timeoutMs: 1000,
    topicData: [
      { name: "t", partitionData: [part(0, "1st"), part(1, "other"), part(0, "2nd")] },
      { name: "none", partitionData: [part(0, "lost"), part(0, "lost")] },
      { name: "t", partitionData: [part(0, "3rd")] },
    ],
  });
  const told = responses.map(({ name, partitionResponses }) => ({
    name,
    parts: partitionResponses.map(({ index, errorCode }) => [index, errorName(errorCode)]),
  }));
  assert.deepEqual(told, [
    { name: "t", parts: [[0, "NONE"], [1, "NONE"]] },
    { name: "none", parts: [[0, "UNKNOWN_TOPIC_OR_PARTITION"]] },
  ]);
  assert.deepEqual(valuesOf((await q.fetch("t", 0)).records), ["3rd"]);
  assert.deepEqual(valuesOf((await q.fetch("t", 0, { partition: 1 })).records), ["other"]);
});

test("of a partition that stands twice in a Fetch request the last place counts", async () => {
  const q = await startQuirks();
  await q.topic("t");
  for (const value of ["a", "b"]) await q.produce("t", batch([value]));
  const request = fetchRequest("t", 0);
  const { responses } = await q.call(fetchApi, 12, {
    ...request,
    topics: [...request.topics, ...fetchRequest("t", 1).topics],
  });
  const [one, ...others] = responses.flatMap(({ partitions }) => partitions);
  assert.deepEqual(others, []);
  assert.deepEqual(valuesOf(one!.records as Uint8Array), ["b"]);
});

test("a fetch past the end that tells its epoch hears where the histories part", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.produce("t", batch(["a", "b"]));
  const lastFetchedEpoch = batchesOf((await q.fetch("t", 0)).records)[0]!.partitionLeaderEpoch;
  const past = await q.fetch("t", 9, { version: 12, lastFetchedEpoch });
  assert.deepEqual([past.error, past.divergingEpoch?.endOffset], ["NONE", 2]);
  const below = await q.fetch("t", -1, { version: 12, lastFetchedEpoch });
  assert.equal(below.error, "OFFSET_OUT_OF_RANGE");
  assert.equal((await q.fetch("t", 9, { version: 12 })).error, "OFFSET_OUT_OF_RANGE");
});

test("a duplicate is answered with the largest time of the original, also where clients give the times", async () => {
  let q = await startQuirks();
  await q.topic("t");
  const records = batch([{ timestamp: 7 }, { timestamp: 9 }, { timestamp: 8 }], {
    producer: [5, 0, 0],
  });
  const timeOf = async () => (await q.produce("t", records.slice())).logAppendTimeMs;
  assert.equal(await timeOf(), -1);
  assert.equal(await timeOf(), 9);
  q = await restarted(q, { clean: true });
  assert.equal(await timeOf(), 9);
});

test("ListOffsets -3 of a log without times is its first record", async () => {
  const q = await startQuirks();
  await q.topic("t");
  for (const values of [["a", "b"], ["c"]]) {
    await q.produce("t", batch(values.map((value) => ({ value, timestamp: -1 }))));
  }
  const largest = async () => {
    const { topics } = await q.call(listOffsetsApi, 9, {
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ name: "t", partitions: [{ partitionIndex: 0, timestamp: -3 }] }],
    });
    const { offset, timestamp } = topics[0]!.partitions[0]!;
    return [offset, timestamp];
  };
  assert.deepEqual(await largest(), [0, -1]);
  await q.produce("t", batch([{ timestamp: 1 }]));
  assert.deepEqual(await largest(), [3, 1]);
});

async function producing(q: Quirks, transactionalId: string, epochStep = 0, version = 9) {
  const client = new TxnClient(q, "tx");
  assert.equal(await client.init(), "NONE");
  const producer = [client.producerId, client.producerEpoch + epochStep, 0] as const;
  const { responses } = await q.call(produceApi, version, {
    transactionalId,
    acks: -1,
    timeoutMs: 1000,
    topicData: [{
      name: "t",
      partitionData: [{ index: 0, records: batch(["a"], { producer, transactional: true }) }],
    }],
  });
  const { errorCode, errorMessage } = responses[0]!.partitionResponses[0]!;
  return { error: errorName(errorCode), message: errorMessage };
}

test("transactional Produce: what the coordinator does not let through has words", async () => {
  const q = await startQuirks();
  await q.topic("t");
  for (
    const [version, error] of [[9, "INVALID_TXN_STATE"], [11, "TRANSACTION_ABORTABLE"]] as const
  ) {
    const answer = await producing(q, "tx", 0, version);
    assert.equal(answer.error, error);
    assert.match(answer.message ?? "", /transaction/);
  }
});

test("transactional Produce with the empty id is INVALID_REQUEST", async () => {
  const q = await startQuirks();
  await q.topic("t");
  assert.equal((await producing(q, "")).error, "INVALID_REQUEST");
  assert.equal((await producing(q, "", 0, 12)).error, "INVALID_REQUEST");
});

test("a transactional producer without an epoch has an old one", async () => {
  const q = await startQuirks();
  await q.topic("t");
  assert.equal((await producing(q, "tx", -1)).error, "INVALID_PRODUCER_EPOCH");
  const client = new TxnClient(q, "tx");
  await client.init();
  assert.equal(await client.addOffsets("g"), "NONE");
  assert.equal(await client.commitOffset("g", "t", 1), "NONE");
  client.producerEpoch = -1;
  assert.equal(await client.commitOffset("g", "t", 2), "INVALID_PRODUCER_EPOCH");
});

test("TxnOffsetCommit for the empty group is INVALID_GROUP_ID, before the transaction is looked at", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const client = new TxnClient(q, "tx");
  await client.init();
  assert.equal(await client.commitOffset("", "t", 1), "INVALID_GROUP_ID");
});

async function producersOf(q: Quirks, name: string, partition = 0) {
  const asked = { topics: [{ name, partitionIndexes: [partition] }] };
  const { topics } = await q.call(describeProducersApi, 0, asked);
  return topics[0]!.partitions[0]!;
}

test("DescribeProducers: the last time of a producer is that of its marker, also after a restart", async () => {
  let q = await startQuirks();
  await q.topic("t");
  const client = new TxnClient(q, "tx");
  await client.init();
  await client.add("t");
  await client.produce("t", ["a"]);
  const timeOf = async () => (await producersOf(q, "t")).activeProducers[0]!.lastTimestamp;
  assert.equal(await timeOf(), TIME);
  await q.node.clock.advance(5000);
  const markedMs = q.node.clock.nowMs();
  await client.end(true);
  await q.node.clock.settle();
  await q.node.clock.settle();
  assert.ok(markedMs > TIME);
  assert.equal(await timeOf(), markedMs);
  for (const clean of [true, false]) {
    q = await restarted(q, { clean });
    assert.equal(await timeOf(), markedMs, `clean: ${clean}`);
  }
});

test("DescribeProducers has words for a topic or a partition that is not there", async () => {
  const q = await startQuirks();
  await q.topic("t");
  for (const [name, partition] of [["none", 0], ["t", 9]] as const) {
    const { errorCode, errorMessage } = await producersOf(q, name, partition);
    assert.equal(errorName(errorCode), "UNKNOWN_TOPIC_OR_PARTITION");
    assert.equal(errorMessage, "This server does not host this topic-partition.");
  }
});

test("describing groups tells what may be done, if asked and without an error", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.commit("classic", "t", 1);
  const OMITTED = -2147483648;
  // Read, delete, describe, and describing and altering settings.
  const ALL = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;
  assert.equal(ALL, 3400);
  for (
    const [version, group, isAsked, operations] of [
      [3, "classic", true, ALL],
      [6, "classic", true, ALL],
      [6, "classic", false, OMITTED],
      [5, "none", true, ALL],
      [6, "none", true, OMITTED],
    ] as const
  ) {
    const { groups } = await q.call(describeGroupsApi, version, {
      groups: [group],
      includeAuthorizedOperations: isAsked,
    });
    assert.equal(groups[0]!.authorizedOperations, operations, `${group} v${version} ${isAsked}`);
  }
  await new ConsumerMember(q, "member", "consumers").join();
  const told = async (isAsked: boolean) => {
    const request = { groupIds: ["consumers", "none"], includeAuthorizedOperations: isAsked };
    const { groups } = await q.call(consumerGroupDescribeApi, 1, request);
    return groups.map(({ authorizedOperations }) => authorizedOperations);
  };
  assert.deepEqual(await told(true), [ALL, OMITTED]);
  assert.deepEqual(await told(false), [OMITTED, OMITTED]);
});
