/** Topics made, deleted and grown by admin clients: sheet section 3.8 and the names row of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Uuid, ZERO_UUID } from "../../src/lib/uuid.ts";
import { findCoordinatorApi } from "../../src/protocol/message/10_find_coordinator.ts";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { createPartitionsApi } from "../../src/protocol/message/37_create_partitions.ts";
import { listPartitionReassignmentsApi } from "../../src/protocol/message/46_list_partition_reassignments.ts";
import { batch, named, type Quirks, startQuirks } from "./quirks.ts";

interface Wanted {
  readonly name: string;
  readonly partitions?: number;
  readonly factor?: number;
  readonly assignments?: readonly { partitionIndex: number; brokerIds: readonly number[] }[];
  readonly configs?: Readonly<Record<string, string>>;
}

async function createAll(
  q: Quirks,
  wanted: readonly Wanted[],
  { version = 7, validateOnly = false } = {},
) {
  const answer = await q.call(createTopicsApi, version, {
    validateOnly,
    topics: wanted.map(({ name, partitions = 1, factor = 1, assignments = [], configs = {} }) => ({
      name,
      numPartitions: partitions,
      replicationFactor: factor,
      assignments,
      configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
    })),
  });
  return answer.topics.map(named);
}

async function create(q: Quirks, wanted: Wanted, options = {}) {
  return (await createAll(q, [wanted], options))[0]!;
}

async function topicNames(q: Quirks) {
  return (await q.metadata(null)).topics.map(({ name }) => name).toSorted();
}

/** Manual replicas of partitions 0, 1, 2, ... */
function assigned(...replicas: readonly (readonly number[])[]) {
  return replicas.map((brokerIds, partitionIndex) => ({ partitionIndex, brokerIds }));
}

// CreateTopics.

test("every version creates, and is answered TOPIC_ALREADY_EXISTS the second time", async () => {
  const q = await startQuirks();
  for (let version = 2; version <= 7; version++) {
    assert.equal((await create(q, { name: `t${version}` }, { version })).error, "NONE");
    const again = await create(q, { name: `t${version}` }, { version });
    assert.equal(again.error, "TOPIC_ALREADY_EXISTS");
  }
});

test("names that Kafka refuses are INVALID_TOPIC_EXCEPTION", async () => {
  const q = await startQuirks();
  for (const name of ["", ".", "..", "x".repeat(250), "a b", "a/b", "a\\b", "a:b", "ü", "a\0"]) {
    assert.equal((await create(q, { name })).error, "INVALID_TOPIC_EXCEPTION", name);
  }
  for (const name of ["x".repeat(249), "...", "A-z_0.9", "-"]) {
    assert.equal((await create(q, { name })).error, "NONE", name);
  }
});

test("a name that collides when . and _ are alike is INVALID_TOPIC_EXCEPTION", async () => {
  const q = await startQuirks();
  await create(q, { name: "a.b_c" });
  for (const name of ["a_b_c", "a.b.c", "a_b.c"]) {
    assert.equal((await create(q, { name })).error, "INVALID_TOPIC_EXCEPTION", name);
  }
  assert.equal((await create(q, { name: "a-b-c" })).error, "NONE");
});

test("the same name twice in one request is INVALID_REQUEST for that name; others are made", async () => {
  const q = await startQuirks();
  const answers = await createAll(q, [{ name: "a" }, { name: "b" }, { name: "a" }]);
  const errors = Object.fromEntries(answers.map(({ name, error }) => [name, error]));
  assert.deepEqual(errors, { a: "INVALID_REQUEST", b: "NONE" });
  assert.deepEqual(await topicNames(q), ["b"]);
});

test("each topic stands alone: a bad one does not stop the others", async () => {
  const q = await startQuirks();
  const answers = await createAll(q, [{ name: "a" }, { name: "b", partitions: 0 }, { name: "c" }]);
  assert.deepEqual(answers.map(({ error }) => error), ["NONE", "INVALID_PARTITIONS", "NONE"]);
  assert.deepEqual(await topicNames(q), ["a", "c"]);
});

test("partitions 0 or below -1 are INVALID_PARTITIONS, factors INVALID_REPLICATION_FACTOR", async () => {
  const q = await startQuirks();
  for (const bad of [0, -2]) {
    assert.equal((await create(q, { name: "t", partitions: bad })).error, "INVALID_PARTITIONS");
    assert.equal((await create(q, { name: "t", factor: bad })).error, "INVALID_REPLICATION_FACTOR");
  }
});

test("-1 asks for the broker's defaults (Streams needs it)", async () => {
  const q = await startQuirks({ "num.partitions": "4", "default.replication.factor": "2" });
  const made = await create(q, { name: "t", partitions: -1, factor: -1 }, { version: 5 });
  assert.deepEqual([made.error, made.numPartitions, made.replicationFactor], ["NONE", 4, 2]);
  assert.equal(
    (await create(q, { name: "u", partitions: -1, factor: -1 }, { version: 4 })).error,
    "NONE",
  );
});

test("a factor above the number of brokers is accepted and echoed (Connect asks for 3)", async () => {
  const q = await startQuirks();
  const made = await create(q, { name: "t", factor: 3 });
  assert.deepEqual([made.error, made.replicationFactor], ["NONE", 3]);
  assert.deepEqual((await q.metadata(["t"])).topics[0]!.partitions[0]!.isrNodes, [1]);
});

test("manual assignment: partitions follow from it", async () => {
  const q = await startQuirks();
  const wanted = { name: "t", partitions: -1, factor: -1, assignments: assigned([1], [1]) };
  const made = await create(q, wanted);
  assert.deepEqual([made.error, made.numPartitions, made.replicationFactor], ["NONE", 2, 1]);
  assert.equal((await q.metadata(["t"])).topics[0]!.partitions.length, 2);
});

test("manual assignment together with counts is INVALID_REQUEST", async () => {
  const q = await startQuirks();
  for (const counts of [{ partitions: 1, factor: -1 }, { partitions: -1, factor: 1 }]) {
    const answer = await create(q, { name: "t", ...counts, assignments: assigned([1]) });
    assert.equal(answer.error, "INVALID_REQUEST");
  }
});

test("a manual assignment with gaps, unequal or repeated replicas or unknown brokers is refused", async () => {
  const q = await startQuirks();
  const bad = {
    "does not begin at 0": [{ partitionIndex: 1, brokerIds: [1] }],
    "has a gap": [{ partitionIndex: 0, brokerIds: [1] }, { partitionIndex: 2, brokerIds: [1] }],
    "unequal": assigned([1], [1, 2]),
    "repeated replica": assigned([1, 1]),
    "repeated partition": [
      { partitionIndex: 0, brokerIds: [1] },
      { partitionIndex: 0, brokerIds: [1] },
    ],
    "unknown broker": assigned([99]),
    "no replica": assigned([]),
  };
  for (const [name, assignments] of Object.entries(bad)) {
    const answer = await create(q, { name: "t", partitions: -1, factor: -1, assignments });
    assert.equal(answer.error, "INVALID_REPLICA_ASSIGNMENT", name);
  }
  assert.deepEqual(await topicNames(q), []);
});

test("an unknown key or a bad value is INVALID_CONFIG", async () => {
  const q = await startQuirks();
  const bad = [
    { "no.such.key": "1" },
    { "retention.ms": "soon" },
    { "retention.ms": "-2" },
    { "cleanup.policy": "shred" },
    { "segment.bytes": "1000" },
    { "compression.type": "rar" },
    { "max.message.bytes": "67108808" },
  ];
  for (const configs of bad) {
    const answer = await create(q, { name: "t", configs });
    assert.equal(answer.error, "INVALID_CONFIG", JSON.stringify(configs));
    assert.notEqual(answer.errorMessage, null);
  }
});

test("keys that Kafka 4 dropped are accepted from old tools and ignored", async () => {
  const q = await startQuirks();
  const configs = {
    "message.format.version": "2.0",
    "message.downconversion.enable": "true",
    "message.timestamp.difference.max.ms": "1000",
    "retention.ms": "5000",
  };
  const made = await create(q, { name: "t", configs });
  assert.equal(made.error, "NONE");
  const shown = made.configs!.map(({ name }) => name);
  assert.ok(
    !shown.some((name) => name.startsWith("message.format") || name.includes("difference")),
  );
});

test("ValidateOnly does all the checks and makes nothing", async () => {
  const q = await startQuirks();
  const dry = { validateOnly: true };
  assert.equal((await create(q, { name: "t" }, dry)).error, "NONE");
  assert.equal((await create(q, { name: "t", partitions: 0 }, dry)).error, "INVALID_PARTITIONS");
  assert.equal(
    (await create(q, { name: "t", configs: { "x.y": "1" } }, dry)).error,
    "INVALID_CONFIG",
  );
  assert.deepEqual(await topicNames(q), []);
});

test("v5 answers counts and effective configs, v7 the topic id", async () => {
  const q = await startQuirks();
  const configs = { "cleanup.policy": "compact" };
  const made = await create(q, { name: "t", partitions: 3, configs });
  assert.deepEqual([made.numPartitions, made.replicationFactor], [3, 1]);
  const policy = made.configs!.find(({ name }) => name === "cleanup.policy");
  assert.deepEqual([policy?.value, policy?.configSource], ["compact", 1]);
  const retention = made.configs!.find(({ name }) => name === "retention.ms");
  assert.deepEqual([retention?.value, retention?.configSource], ["604800000", 5]);
  assert.equal((await q.metadata(["t"], 12)).topics[0]!.topicId, made.topicId);
});

test("a topic can be written and read at once after its creation", async () => {
  const q = await startQuirks();
  await create(q, { name: "t" });
  assert.equal((await q.produce("t", batch(["a"]))).error, "NONE");
});

// DeleteTopics.

interface Doomed {
  readonly name?: string | null;
  readonly topicId?: Uuid;
}

async function deleteByState(q: Quirks, doomed: readonly Doomed[]) {
  const topics = doomed.map(({ name = null, topicId = ZERO_UUID }) => ({ name, topicId }));
  const answer = await q.call(deleteTopicsApi, 6, { topics, timeoutMs: 1000 });
  return answer.responses.map(named);
}

async function deleteByName(q: Quirks, topicNames: readonly string[], version = 5) {
  const answer = await q.call(deleteTopicsApi, version, { topicNames, timeoutMs: 1000 });
  return answer.responses.map(named);
}

test("versions 1 to 5 delete by name; an unknown one is UNKNOWN_TOPIC_OR_PARTITION", async () => {
  const q = await startQuirks();
  for (let version = 1; version <= 5; version++) {
    await q.topic("t");
    const answers = await deleteByName(q, ["t", "u"], version);
    assert.deepEqual(answers.map(({ name, error }) => [name, error]), [
      ["t", "NONE"],
      ["u", "UNKNOWN_TOPIC_OR_PARTITION"],
    ]);
  }
  assert.deepEqual(await topicNames(q), []);
});

test("v6 deletes by name or by id, and answers both", async () => {
  const q = await startQuirks();
  const a = await q.topic("a");
  const b = await q.topic("b");
  const answers = await deleteByState(q, [{ name: "a" }, { topicId: b }]);
  assert.deepEqual(answers.map(({ error }) => error), ["NONE", "NONE"]);
  assert.deepEqual(answers.map(({ name }) => name), ["a", "b"]);
  assert.equal(answers[1]!.topicId, b);
  assert.deepEqual(await topicNames(q), []);
  const [gone] = await deleteByState(q, [{ topicId: a }]);
  assert.equal(gone!.error, "UNKNOWN_TOPIC_ID");
});

test("v6: both or neither of name and id is INVALID_REQUEST", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  const answers = await deleteByState(q, [{ name: "t", topicId }, {}]);
  assert.deepEqual(answers.map(({ error }) => error), ["INVALID_REQUEST", "INVALID_REQUEST"]);
  assert.deepEqual(await topicNames(q), ["t"]);
});

test("the same topic twice is INVALID_REQUEST, also once by name and once by id", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  for (const doomed of [[{ name: "t" }, { name: "t" }], [{ name: "t" }, { topicId }]]) {
    const answers = await deleteByState(q, doomed);
    assert.ok(answers.length > 0);
    assert.ok(answers.every(({ error }) => error === "INVALID_REQUEST"));
  }
  assert.deepEqual(await topicNames(q), ["t"]);
});

test("delete.topic.enable=false is TOPIC_DELETION_DISABLED from v3 on, INVALID_REQUEST before", async () => {
  const q = await startQuirks({ "delete.topic.enable": "false" });
  await q.topic("t");
  assert.equal((await deleteByName(q, ["t"], 2))[0]!.error, "INVALID_REQUEST");
  assert.equal((await deleteByName(q, ["t"], 3))[0]!.error, "TOPIC_DELETION_DISABLED");
  assert.equal((await deleteByState(q, [{ name: "t" }]))[0]!.error, "TOPIC_DELETION_DISABLED");
});

test("a deleted topic is gone for produce and fetch at once; made again it is empty", async () => {
  const q = await startQuirks();
  await q.topic("t");
  await q.produce("t", batch(["a"]));
  await deleteByName(q, ["t"]);
  assert.equal((await q.produce("t", batch(["a"]))).error, "UNKNOWN_TOPIC_OR_PARTITION");
  assert.equal((await q.fetch("t", 0)).error, "UNKNOWN_TOPIC_OR_PARTITION");
  await q.topic("t");
  assert.equal((await q.produce("t", batch(["b"]))).baseOffset, 0);
});

// CreatePartitions.

async function grow(
  q: Quirks,
  topics: readonly { name: string; count: number; assignments?: readonly number[][] }[],
  { version = 3, validateOnly = false } = {},
) {
  const answer = await q.call(createPartitionsApi, version, {
    topics: topics.map(({ name, count, assignments }) => ({
      name,
      count,
      assignments: assignments?.map((brokerIds) => ({ brokerIds })) ?? null,
    })),
    timeoutMs: 1000,
    validateOnly,
  });
  return answer.results.map((one) => named(one).error);
}

test("CreatePartitions: a count up to the current one is INVALID_PARTITIONS", async () => {
  const q = await startQuirks();
  await q.topic("t", 3);
  for (const count of [3, 2, 0, -1]) {
    assert.deepEqual(await grow(q, [{ name: "t", count }]), ["INVALID_PARTITIONS"], `${count}`);
  }
  for (let version = 0; version <= 3; version++) {
    assert.deepEqual(await grow(q, [{ name: "t", count: 4 + version }], { version }), ["NONE"]);
  }
  assert.equal((await q.metadata(["t"])).topics[0]!.partitions.length, 7);
});

test("CreatePartitions: the assignment's length must be the added number", async () => {
  const q = await startQuirks();
  await q.topic("t");
  for (const assignments of [[[1]], [[1], [1], [1]]]) {
    const wanted = [{ name: "t", count: 3, assignments }];
    assert.deepEqual(await grow(q, wanted), ["INVALID_REPLICA_ASSIGNMENT"]);
  }
  assert.deepEqual(await grow(q, [{ name: "t", count: 3, assignments: [[1], [1]] }]), ["NONE"]);
});

test("CreatePartitions: a topic named twice is INVALID_REQUEST, an unknown one unknown", async () => {
  const q = await startQuirks();
  await q.topic("t");
  const twice = await grow(q, [{ name: "t", count: 2 }, { name: "t", count: 3 }]);
  assert.ok(twice.every((error) => error === "INVALID_REQUEST"));
  assert.deepEqual(await grow(q, [{ name: "u", count: 2 }]), ["UNKNOWN_TOPIC_OR_PARTITION"]);
});

test("CreatePartitions: ValidateOnly changes nothing", async () => {
  const q = await startQuirks();
  await q.topic("t");
  assert.deepEqual(await grow(q, [{ name: "t", count: 2 }], { validateOnly: true }), ["NONE"]);
  assert.equal((await q.metadata(["t"])).topics[0]!.partitions.length, 1);
});

test("ListPartitionReassignments is an empty list", async () => {
  const q = await startQuirks();
  await q.topic("t");
  for (const topics of [null, [{ name: "t", partitionIndexes: [0] }]]) {
    const answer = await q.call(listPartitionReassignmentsApi, 0, { topics });
    assert.deepEqual([answer.errorCode, answer.topics], [0, []]);
  }
});

test("the topic of the groups is neither deleted nor grown: every committed offset would be lost", async () => {
  const q = await startQuirks();
  await q.call(findCoordinatorApi, 3, { key: "g" });
  const name = "__consumer_offsets";
  const deleted = await q.call(deleteTopicsApi, 5, { topicNames: [name], timeoutMs: 1000 });
  assert.deepEqual(deleted.responses.map(named).map(({ error }) => error), [
    "INVALID_TOPIC_EXCEPTION",
  ]);
  const grown = await q.call(createPartitionsApi, 1, {
    topics: [{ name, count: 100, assignments: null }],
    timeoutMs: 1000,
    validateOnly: false,
  });
  assert.deepEqual(grown.results.map(named).map(({ error }) => error), ["INVALID_TOPIC_EXCEPTION"]);
  assert.deepEqual(await topicNames(q), [name]);
});
