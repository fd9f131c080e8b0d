/** Metadata and DescribeCluster: sheet sections 3.7, the cluster part of 3.8, and the metadata rows of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Uuid, ZERO_UUID } from "../../src/lib/uuid.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { findCoordinatorApi } from "../../src/protocol/message/10_find_coordinator.ts";
import { createPartitionsApi } from "../../src/protocol/message/37_create_partitions.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { describeClusterApi } from "../../src/protocol/message/60_describe_cluster.ts";
import { batch, named, type Quirks, restarted, startQuirks } from "./quirks.ts";

const NOT_ASKED = -(2 ** 31);

async function names(q: Quirks, asked: readonly string[] | null, version: number) {
  return (await q.metadata(asked, version)).topics.map(({ name }) => name).toSorted();
}

async function byId(q: Quirks, topicId: Uuid, version = 12, name: string | null = null) {
  const answer = await q.call(metadataApi, version, { topics: [{ topicId, name }] });
  return named(answer.topics[0]!);
}

test("null asks for all topics from version 1 on, an empty list for none; in 0 empty is all", async () => {
  const q = await startQuirks();
  await q.topic("a");
  await q.topic("b");
  assert.deepEqual(await names(q, [], 0), ["a", "b"]);
  for (let version = 1; version <= 13; version++) {
    assert.deepEqual(await names(q, null, version), ["a", "b"], `null in ${version}`);
    assert.deepEqual(await names(q, [], version), [], `empty in ${version}`);
  }
});

test("brokers, controller and cluster id are there even when no topic was asked", async () => {
  const q = await startQuirks();
  const { brokers, controllerId, clusterId } = await q.metadata([]);
  assert.deepEqual(brokers.map(({ nodeId, host, port }) => [nodeId, host, port]), [
    [1, "127.0.0.1", 9092],
  ]);
  assert.equal(controllerId, 1);
  assert.match(clusterId!, /^[A-Za-z0-9_-]{22}$/);
});

test("cluster id and topic id survive a restart", async () => {
  const before = await startQuirks();
  const id = await before.topic("t");
  const { clusterId } = await before.metadata([]);
  const q = await restarted(before, { clean: false });
  const after = await q.metadata(["t"], 12);
  assert.equal(after.clusterId, clusterId);
  assert.equal(after.topics[0]!.topicId, id);
  assert.notEqual(id, ZERO_UUID);
});

test("by id from version 12 on; an unknown id is UNKNOWN_TOPIC_ID", async () => {
  const q = await startQuirks();
  const id = await q.topic("t");
  for (const version of [12, 13]) {
    const known = await byId(q, id, version);
    assert.deepEqual([known.error, known.name, known.topicId], ["NONE", "t", id]);
    const other = `${id.slice(0, -2)}${id.endsWith("00") ? "11" : "00"}` as Uuid;
    const unknown = await byId(q, other, version);
    assert.deepEqual([unknown.error, unknown.topicId], ["UNKNOWN_TOPIC_ID", other]);
  }
});

test("in versions 10 and 11 an id or a null name is INVALID_REQUEST", async () => {
  const q = await startQuirks();
  const id = await q.topic("t");
  for (const version of [10, 11]) {
    assert.equal((await byId(q, id, version)).error, "INVALID_REQUEST");
    assert.equal((await byId(q, id, version, "t")).error, "INVALID_REQUEST");
    assert.equal((await byId(q, ZERO_UUID, version)).error, "INVALID_REQUEST");
  }
});

test("a request with an id ignores names", async () => {
  const q = await startQuirks();
  const id = await q.topic("t");
  const found = await byId(q, id, 12, "something else");
  assert.deepEqual([found.error, found.name], ["NONE", "t"]);
  assert.deepEqual(await names(q, null, 12), ["t"]);
});

test("a named topic is created if request and broker allow it", async () => {
  const q = await startQuirks({ "num.partitions": "3" });
  const first = await q.metadata(["t"], 9, true);
  const error = errorName(first.topics[0]!.errorCode);
  assert.ok(["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE"].includes(error));
  const next = await q.metadata(["t"]);
  assert.equal(next.topics[0]!.errorCode, 0);
  assert.equal(next.topics[0]!.partitions.length, 3);
});

test("below version 4 a request always allows creation", async () => {
  const q = await startQuirks();
  for (const version of [0, 1, 2, 3]) {
    await q.metadata([`t${version}`], version);
    assert.equal((await q.metadata([`t${version}`])).topics[0]!.errorCode, 0);
  }
});

test("not allowed by the request or by the broker: UNKNOWN_TOPIC_OR_PARTITION, nothing is made", async () => {
  const q = await startQuirks();
  assert.equal(named((await q.metadata(["t"])).topics[0]!).error, "UNKNOWN_TOPIC_OR_PARTITION");
  const off = await startQuirks({ "auto.create.topics.enable": "false" });
  for (const [version, allow] of [[9, true], [1, true]] as const) {
    const { topics } = await off.metadata(["t"], version, allow);
    assert.equal(named(topics[0]!).error, "UNKNOWN_TOPIC_OR_PARTITION");
  }
  assert.deepEqual(await names(q, null, 9), []);
  assert.deepEqual(await names(off, null, 9), []);
});

test("an illegal name is INVALID_TOPIC_EXCEPTION and never created", async () => {
  const q = await startQuirks();
  for (const name of ["", ".", "..", "a b", "a/b", "ä", "x".repeat(250)]) {
    const { topics } = await q.metadata([name], 9, true);
    assert.equal(named(topics[0]!).error, "INVALID_TOPIC_EXCEPTION", name);
  }
  const longest = "x".repeat(249);
  await q.metadata([longest], 9, true);
  assert.deepEqual(await names(q, null, 9), [longest]);
});

test("a name that differs from a topic's only in . and _ is not created on first use", async () => {
  const q = await startQuirks();
  await q.topic("a.b");
  const { topics } = await q.metadata(["a_b"], 9, true);
  assert.equal(named(topics[0]!).error, "INVALID_TOPIC_EXCEPTION");
  assert.deepEqual(await names(q, null, 9), ["a.b"]);
});

test("partitions are complete from 0 to n-1, each with a live leader that is in the list", async () => {
  const q = await startQuirks();
  await q.topic("t", 7);
  const { topics, brokers } = await q.metadata(["t"]);
  const { partitions } = topics[0]!;
  assert.deepEqual(partitions.map(({ partitionIndex }) => partitionIndex), [0, 1, 2, 3, 4, 5, 6]);
  for (const one of partitions) {
    assert.equal(one.errorCode, 0);
    assert.ok(brokers.some(({ nodeId }) => nodeId === one.leaderId));
    assert.deepEqual([one.replicaNodes, one.isrNodes, one.offlineReplicas], [[1], [1], []]);
    assert.ok(one.leaderEpoch >= 0, "-1 would clear what clients know");
  }
});

test("the leader epoch only goes up for a topic id", async () => {
  let q = await startQuirks();
  await q.topic("t");
  const epochs: number[] = [];
  for (const clean of [true, false, true]) {
    await q.produce("t", batch(["a"]));
    epochs.push((await q.metadata(["t"])).topics[0]!.partitions[0]!.leaderEpoch);
    q = await restarted(q, { clean });
    const { partitions } = (await q.metadata(["t"])).topics[0]!;
    assert.ok(partitions[0]!.leaderEpoch >= epochs.at(-1)!, "not even before its first use");
  }
  assert.deepEqual(epochs, [...new Set(epochs)].toSorted((a, b) => a - b), "raised at each move");
});

test("a topic that is made again has a new id", async () => {
  const q = await startQuirks();
  const first = await q.topic("t");
  await q.produce("t", batch(["a"]));
  await q.call(deleteTopicsApi, 5, { topicNames: ["t"], timeoutMs: 1000 });
  const second = await q.topic("t");
  assert.notEqual(second, first);
  const { partitions, topicId } = (await q.metadata(["t"], 12)).topics[0]!;
  assert.equal(topicId, second);
  assert.ok(partitions[0]!.leaderEpoch >= 0);
  assert.equal((await q.fetch("t", 0)).highWatermark, 0);
});

test("grown topics show their new partitions", async () => {
  const q = await startQuirks();
  await q.topic("t", 1);
  const topics = [{ name: "t", count: 3, assignments: null }];
  await q.call(createPartitionsApi, 3, { topics, timeoutMs: 1000, validateOnly: false });
  assert.equal((await q.metadata(["t"])).topics[0]!.partitions.length, 3);
  assert.equal((await q.produce("t", batch(["a"]), { partition: 2 })).error, "NONE");
});

test("authorized operations are all that there are, for those who ask: there are no access rules", async () => {
  const q = await startQuirks();
  await q.topic("t");
  for (const version of [8, 9, 10]) {
    for (const asks of [true, false]) {
      const answer = await q.call(metadataApi, version, {
        topics: null,
        includeClusterAuthorizedOperations: asks,
        includeTopicAuthorizedOperations: asks,
      });
      // The numbers are those of Apache Kafka 4.2.
      assert.equal(answer.clusterAuthorizedOperations, asks ? 8096 : NOT_ASKED);
      assert.equal(answer.topics[0]!.topicAuthorizedOperations, asks ? 3576 : NOT_ASKED);
    }
  }
});

test("version 13 has no error at the top", async () => {
  const q = await startQuirks();
  assert.equal((await q.metadata(null, 13)).errorCode, 0);
});

test("__consumer_offsets is marked as internal once it exists", async () => {
  const q = await startQuirks();
  await q.call(findCoordinatorApi, 3, { key: "g" });
  const { topics } = await q.metadata(null);
  assert.deepEqual(topics.map(({ name, isInternal }) => [name, isInternal]), [
    ["__consumer_offsets", true],
  ]);
});

test("the coordinator's node is one of the brokers", async () => {
  const q = await startQuirks();
  const { nodeId, host, port } = await q.call(findCoordinatorApi, 3, { key: "g" });
  const { brokers } = await q.metadata([]);
  assert.ok(brokers.some((one) => one.nodeId === nodeId && one.host === host && one.port === port));
});

test("DescribeCluster shows the same cluster as Metadata", async () => {
  const q = await startQuirks();
  const metadata = await q.metadata([]);
  for (const version of [0, 1, 2]) {
    const cluster = await q.call(describeClusterApi, version, {
      includeClusterAuthorizedOperations: false,
    });
    assert.equal(cluster.errorCode, 0);
    assert.equal(cluster.clusterId, metadata.clusterId);
    assert.equal(cluster.controllerId, metadata.controllerId);
    assert.deepEqual(cluster.brokers.map(({ brokerId, isFenced }) => [brokerId, isFenced]), [
      [1, false],
    ]);
    assert.equal(cluster.clusterAuthorizedOperations, NOT_ASKED);
  }
});

test("DescribeCluster: controllers are MISMATCHED_ENDPOINT_TYPE, other types UNSUPPORTED_ENDPOINT_TYPE", async () => {
  const q = await startQuirks();
  for (
    const [endpointType, error] of [[2, "MISMATCHED_ENDPOINT_TYPE"], [
      3,
      "UNSUPPORTED_ENDPOINT_TYPE",
    ], [0, "UNSUPPORTED_ENDPOINT_TYPE"]] as const
  ) {
    const answer = await q.call(describeClusterApi, 1, {
      includeClusterAuthorizedOperations: false,
      endpointType,
    });
    assert.equal(errorName(answer.errorCode), error);
  }
});
