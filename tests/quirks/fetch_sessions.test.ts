/** Incremental fetch sessions (KIP-227): sheet section 3.4, "Sessions", and the session row of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Uuid, ZERO_UUID } from "../../src/lib/uuid.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { batch, type Quirks, restarted, startQuirks, valuesOf } from "./quirks.ts";

const NONE = 0;

interface Ask {
  readonly session?: readonly [id: number, epoch: number];
  /** Offsets by partition of `t`. */
  readonly at?: Readonly<Record<number, number>>;
  readonly forget?: readonly number[];
  readonly topic?: string;
  readonly topicId?: Uuid;
  readonly version?: number;
  readonly maxBytes?: number;
}

function request({ session = [NONE, 0], at = {}, forget = [], ...rest }: Ask) {
  const { topic = "t", topicId = ZERO_UUID, maxBytes = 50 << 20 } = rest;
  const partitions = Object.entries(at).map(([partition, fetchOffset]) => ({
    partition: Number(partition),
    fetchOffset,
    partitionMaxBytes: 1 << 20,
  }));
  return {
    maxWaitMs: 0,
    minBytes: 1,
    maxBytes,
    sessionId: session[0],
    sessionEpoch: session[1],
    topics: partitions.length === 0 ? [] : [{ topic, topicId, partitions }],
    forgottenTopicsData: forget.length === 0 ? [] : [{ topic, topicId, partitions: forget }],
  };
}

/** The session and, per partition that stands in the answer, its values or its error. */
async function ask(q: Quirks, one: Ask) {
  const answer = await q.call(fetchApi, one.version ?? 11, request(one));
  const partitions = answer.responses.flatMap((topic) => topic.partitions);
  return {
    error: errorName(answer.errorCode),
    id: answer.sessionId,
    found: partitions.map(({ partitionIndex, errorCode, records }) =>
      errorCode === 0
        ? [partitionIndex, ...valuesOf(records)]
        : [partitionIndex, errorName(errorCode)]
    ),
  };
}

async function withTopic(partitions: number, properties: Record<string, string> = {}) {
  const q = await startQuirks(properties);
  await q.topic("t", partitions);
  return q;
}

test("id 0 and epoch -1 is a full fetch without a session, every time (librdkafka)", async () => {
  const q = await withTopic(2);
  for (let round = 0; round < 2; round++) {
    const answer = await ask(q, { session: [0, -1], at: { 0: 0, 1: 0 } });
    assert.deepEqual(answer, { error: "NONE", id: 0, found: [[0], [1]] });
  }
});

test("epoch 0 opens a session: all partitions in the answer, and an id", async () => {
  const q = await withTopic(2);
  const { error, id, found } = await ask(q, { at: { 0: 0, 1: 0 } });
  assert.deepEqual([error, found], ["NONE", [[0], [1]]]);
  assert.ok(id > 0);
});

test("an incremental answer names only partitions with news", async () => {
  const q = await withTopic(3);
  const { id } = await ask(q, { at: { 0: 0, 1: 0, 2: 0 } });
  assert.deepEqual(await ask(q, { session: [id, 1] }), { error: "NONE", id, found: [] });
  await q.produce("t", batch(["a"]), { partition: 1 });
  assert.deepEqual((await ask(q, { session: [id, 2] })).found, [[1, "a"]]);
});

test("a new watermark is news even without records in the answer", async () => {
  const q = await withTopic(2);
  await q.produce("t", batch(["x".repeat(1000)]), { partition: 0 });
  const { id } = await ask(q, { at: { 0: 0, 1: 0 } });
  for (const partition of [0, 1]) await q.produce("t", batch(["y".repeat(1000)]), { partition });
  // Partition 0 had data before and comes last now: the limit leaves nothing for it.
  const { found } = await ask(q, { session: [id, 1], maxBytes: 500 });
  const counts = found.map(([partition, ...values]) => [partition, values.length]);
  assert.deepEqual(counts, [[1, 1], [0, 0]]);
});

test("an error is news", async () => {
  const q = await withTopic(1);
  const { id } = await ask(q, { at: { 0: 0 } });
  await q.call(deleteTopicsApi, 5, { topicNames: ["t"], timeoutMs: 1000 });
  const { error, found } = await ask(q, { session: [id, 1] });
  assert.deepEqual([error, found], ["NONE", [[0, "UNKNOWN_TOPIC_OR_PARTITION"]]]);
});

test("after an error the partition is news again when it works", async () => {
  const q = await withTopic(1);
  const { id } = await ask(q, { at: { 0: 5 } });
  assert.deepEqual((await ask(q, { session: [id, 1] })).found, [[0, "OFFSET_OUT_OF_RANGE"]]);
  assert.deepEqual((await ask(q, { session: [id, 2], at: { 0: 0 } })).found, [[0]]);
});

test("the request's partitions are added, forgotten ones go", async () => {
  const q = await withTopic(3);
  const { id } = await ask(q, { at: { 0: 0 } });
  assert.deepEqual((await ask(q, { session: [id, 1], at: { 1: 0 } })).found, [[1]]);
  for (let partition = 0; partition < 2; partition++) {
    await q.produce("t", batch(["a"]), { partition });
  }
  assert.deepEqual((await ask(q, { session: [id, 2], forget: [0] })).found, [[1, "a"]]);
});

test("a partition that is forgotten and listed in one request is there with its new offset", async () => {
  const q = await withTopic(1);
  await q.produce("t", batch(["a"]));
  await q.produce("t", batch(["b"]));
  const { id } = await ask(q, { at: { 0: 0 } });
  const { found } = await ask(q, { session: [id, 1], at: { 0: 1 }, forget: [0] });
  assert.deepEqual(found, [[0, "b"]]);
});

test("an unknown id is FETCH_SESSION_ID_NOT_FOUND with no responses", async () => {
  const q = await withTopic(1);
  const answer = await ask(q, { session: [12_345, 1] });
  assert.deepEqual(answer, { error: "FETCH_SESSION_ID_NOT_FOUND", id: 0, found: [] });
});

test("another epoch than the next one is INVALID_FETCH_SESSION_EPOCH with no responses", async () => {
  const q = await withTopic(1);
  const { id } = await ask(q, { at: { 0: 0 } });
  for (const epoch of [2, 7]) {
    const { error, found } = await ask(q, { session: [id, epoch] });
    assert.deepEqual([error, found], ["INVALID_FETCH_SESSION_EPOCH", []]);
  }
  assert.equal((await ask(q, { session: [id, 1] })).error, "NONE");
  assert.equal((await ask(q, { session: [id, 1] })).error, "INVALID_FETCH_SESSION_EPOCH");
});

test("names and ids do not mix in one session: FETCH_SESSION_TOPIC_ID_ERROR", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  const byName = await ask(q, { at: { 0: 0 }, version: 12 });
  const mixed = await ask(q, { session: [byName.id, 1], version: 13, topicId });
  assert.deepEqual([mixed.error, mixed.found], ["FETCH_SESSION_TOPIC_ID_ERROR", []]);
  const byId = await ask(q, { at: { 0: 0 }, version: 13, topicId });
  assert.equal(
    (await ask(q, { session: [byId.id, 1], version: 12 })).error,
    "FETCH_SESSION_TOPIC_ID_ERROR",
  );
});

test("by id a session is incremental too, and an unknown id in it is an error of its partition", async () => {
  const q = await startQuirks();
  const topicId = await q.topic("t");
  const { id } = await ask(q, { at: { 0: 0 }, version: 17, topicId });
  await q.produce("t", batch(["a"]));
  assert.deepEqual((await ask(q, { session: [id, 1], version: 17 })).found, [[0, "a"]]);
  await q.call(deleteTopicsApi, 5, { topicNames: ["t"], timeoutMs: 1000 });
  assert.deepEqual(
    (await ask(q, { session: [id, 2], version: 17 })).found,
    [[0, "UNKNOWN_TOPIC_ID"]],
  );
});

test("epoch -1 with an id closes the session and reads the full list", async () => {
  const q = await withTopic(2);
  const { id } = await ask(q, { at: { 0: 0, 1: 0 } });
  const last = await ask(q, { session: [id, -1], at: { 0: 0 } });
  assert.deepEqual(last, { error: "NONE", id: 0, found: [[0]] });
  assert.equal((await ask(q, { session: [id, 1] })).error, "FETCH_SESSION_ID_NOT_FOUND");
});

test("epoch 0 with an id drops that session and opens another", async () => {
  const q = await withTopic(1);
  const first = await ask(q, { at: { 0: 0 } });
  const second = await ask(q, { session: [first.id, 0], at: { 0: 0 } });
  assert.ok(second.id > 0 && second.id !== first.id);
  assert.equal((await ask(q, { session: [first.id, 1] })).error, "FETCH_SESSION_ID_NOT_FOUND");
});

test("without room a full fetch still works, with id 0; an idle session makes room after 120 s", async () => {
  const q = await withTopic(1, { "max.incremental.fetch.session.cache.slots": "1" });
  const first = await ask(q, { at: { 0: 0 } });
  assert.ok(first.id > 0);
  assert.deepEqual(await ask(q, { at: { 0: 0 } }), { error: "NONE", id: 0, found: [[0]] });
  await q.node.clock.advance(120_001);
  assert.ok((await ask(q, { at: { 0: 0 } })).id > 0);
  assert.equal((await ask(q, { session: [first.id, 1] })).error, "FETCH_SESSION_ID_NOT_FOUND");
});

test("0 slots: every fetch is full, and nobody minds", async () => {
  const q = await withTopic(1, { "max.incremental.fetch.session.cache.slots": "0" });
  assert.deepEqual(await ask(q, { at: { 0: 0 } }), { error: "NONE", id: 0, found: [[0]] });
});

test("partitions that returned data move to the back", async () => {
  const q = await withTopic(3);
  for (let partition = 0; partition < 3; partition++) {
    for (let i = 0; i < 3; i++) {
      await q.produce("t", batch([`${partition}${"x".repeat(1000)}`]), { partition });
    }
  }
  const order: number[] = [];
  const { id, found } = await ask(q, { at: { 0: 0, 1: 0, 2: 0 }, maxBytes: 1 });
  order.push(...found.filter((one) => one.length > 1).map(([partition]) => Number(partition)));
  for (let epoch = 1; epoch <= 3; epoch++) {
    const next = await ask(q, { session: [id, epoch], maxBytes: 1 });
    order.push(...next.found.filter((one) => one.length > 1).map(([p]) => Number(p)));
  }
  assert.deepEqual(order, [0, 1, 2, 0]);
});

test("a session belongs to the node, not to the connection, and not to its next life", async () => {
  const q = await withTopic(1);
  const { id } = await ask(q, { at: { 0: 0 } });
  const other = q.node.connect();
  const answer = await other.call(fetchApi, 11, request({ session: [id, 1] }));
  assert.equal(answer.errorCode, 0);
  const later = await restarted(q, { clean: true });
  assert.equal((await ask(later, { session: [id, 2] })).error, "FETCH_SESSION_ID_NOT_FOUND");
});

test("200 partitions: pause, resume and add, each answered with what changed", async () => {
  const q = await withTopic(201);
  const at = Object.fromEntries(Array.from({ length: 200 }, (_, partition) => [partition, 0]));
  const { id, found } = await ask(q, { at });
  assert.equal(found.length, 200);
  const paused = Array.from({ length: 100 }, (_, partition) => partition);
  assert.deepEqual((await ask(q, { session: [id, 1], forget: paused })).found, []);
  await q.produce("t", batch(["a"]), { partition: 5 });
  await q.produce("t", batch(["b"]), { partition: 150 });
  assert.deepEqual((await ask(q, { session: [id, 2] })).found, [[150, "b"]]);
  const resumed = await ask(q, { session: [id, 3], at: { 5: 0, 150: 1, 200: 0 } });
  assert.deepEqual(resumed.found.toSorted((a, b) => Number(a[0]) - Number(b[0])), [[5, "a"], [
    200,
  ]]);
});
