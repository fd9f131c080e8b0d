import assert from "node:assert/strict";
import { test } from "node:test";
import { FaultError } from "../../lib/errors.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorName } from "../../protocol/error_code.ts";
import { fetchApi, type FetchRequest } from "../../protocol/message/01_fetch.ts";
import { splitBatches } from "../../protocol/record_batch.ts";
import { type BrokerWorld, createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { bind } from "../broker.ts";
import { fetchHandler } from "./01_fetch.ts";

async function world(
  permits: { readonly hotFetch?: number; readonly coldFetch?: number } = {},
): Promise<BrokerWorld> {
  const broker = await createBrokerWorld({
    permits,
    routes: (services) => [bind(fetchHandler(services))],
  });
  await broker.createTopic("t", 3);
  return broker;
}

type Partition = Partial<FetchRequest["topics"][number]["partitions"][number]>;

interface Asked {
  readonly version?: number;
  readonly topic?: string;
  readonly topicId?: string;
  readonly partitions?: readonly Partition[];
  readonly maxWaitMs?: number;
  readonly minBytes?: number;
  readonly maxBytes?: number;
  readonly isolationLevel?: number;
  readonly sessionId?: number;
  readonly sessionEpoch?: number;
  readonly forgotten?: readonly number[];
  readonly signal?: AbortSignal;
  readonly afterAnswer?: (work: (left: boolean) => void) => void;
}

function fetch(broker: BrokerWorld, asked: Asked = {}) {
  const { version = 11, topic = "t", topicId = ZERO_UUID, partitions = [{}], signal } = asked;
  const name = { topic, topicId };
  const full = partitions.map((one) => ({
    partition: 0,
    fetchOffset: 0,
    partitionMaxBytes: 1 << 20,
    ...one,
  }));
  return broker.call(fetchApi, version, {
    maxWaitMs: asked.maxWaitMs ?? 0,
    minBytes: asked.minBytes ?? 1,
    maxBytes: asked.maxBytes ?? 1 << 24,
    isolationLevel: asked.isolationLevel ?? 0,
    sessionId: asked.sessionId ?? 0,
    sessionEpoch: asked.sessionEpoch ?? -1,
    topics: full.length === 0 ? [] : [{ ...name, partitions: full }],
    forgottenTopicsData: asked.forgotten === undefined
      ? []
      : [{ ...name, partitions: asked.forgotten }],
  }, {
    ...(signal === undefined ? {} : { signal }),
    ...(asked.afterAnswer === undefined ? {} : { afterAnswer: asked.afterAnswer }),
  });
}

/** `partition:error` or `partition:number of batches`, in order. */
async function summary(broker: BrokerWorld, asked: Asked = {}): Promise<string[]> {
  const response = await fetch(broker, asked);
  if (response.errorCode !== 0) return [errorName(response.errorCode)];
  return response.responses.flatMap(({ partitions }) =>
    partitions.map(({ partitionIndex, errorCode, records }) =>
      `${partitionIndex}:${
        errorCode === 0 ? splitBatches(records ?? new Uint8Array(0)).length : errorName(errorCode)
      }`
    )
  );
}

async function fill(broker: BrokerWorld, partition: number, count: number): Promise<void> {
  const log = await broker.log("t", partition);
  for (let i = 0; i < count; i++) log.append(broker.batch("x".repeat(100)));
}

test("the table of partition errors", async () => {
  const broker = await world();
  await fill(broker, 0, 3);
  (await broker.log("t")).setStart(1);
  const at = (fetchOffset: number, over: Partition = {}) => ({
    partitions: [{ fetchOffset, ...over }],
  });
  const cases: [string, Asked][] = [
    ["0:2", at(1)],
    ["0:1", at(2)],
    ["0:0", at(3)],
    ["0:OFFSET_OUT_OF_RANGE", at(0)],
    ["0:OFFSET_OUT_OF_RANGE", at(4)],
    ["0:OFFSET_OUT_OF_RANGE", at(Number.MAX_SAFE_INTEGER)],
    ["0:UNKNOWN_LEADER_EPOCH", at(1, { currentLeaderEpoch: 9 })],
    ["0:2", at(1, { currentLeaderEpoch: 0 })],
    ["0:UNKNOWN_TOPIC_OR_PARTITION", { topic: "other" }],
    ["7:UNKNOWN_TOPIC_OR_PARTITION", { partitions: [{ partition: 7 }] }],
    ["0:UNKNOWN_TOPIC_ID", { version: 13, topicId: "a".repeat(32) }],
  ];
  for (const [expected, asked] of cases) {
    assert.deepEqual(await summary(broker, asked), [expected], JSON.stringify(asked));
  }
});

test("by id, in all versions, with aborted lists only for read_committed", async () => {
  const broker = await world();
  await fill(broker, 0, 1);
  const topicId = broker.services.topics.find("t")!.topicId;
  for (let version = 4; version <= 18; version++) {
    const asked = version < 13 ? { version } : { version, topicId };
    assert.deepEqual(await summary(broker, asked), ["0:1"], `version ${version}`);
    const plain = await fetch(broker, asked);
    assert.equal(plain.responses[0]!.partitions[0]!.abortedTransactions, null);
    const committed = await fetch(broker, { ...asked, isolationLevel: 1 });
    assert.deepEqual(committed.responses[0]!.partitions[0]!.abortedTransactions, []);
  }
});

test("storage trouble is KAFKA_STORAGE_ERROR, and NOT_LEADER for those who do not know it", async () => {
  const broker = await world();
  await fill(broker, 0, 1);
  const log = await broker.log("t");
  log.fault = new FaultError("store-unavailable", "gone", { retriable: true });
  assert.deepEqual(await summary(broker, { version: 6 }), ["0:KAFKA_STORAGE_ERROR"]);
  assert.deepEqual(await summary(broker, { version: 5 }), ["0:NOT_LEADER_OR_FOLLOWER"]);
});

test("damage of one partition is KAFKA_STORAGE_ERROR for it, and the others are read", async () => {
  const broker = await world();
  await fill(broker, 0, 1);
  await fill(broker, 1, 1);
  const damaged = await broker.log("t", 0);
  const partitions = [{ partition: 0 }, { partition: 1 }];
  for (const code of ["object-missing", "corrupt", "data-loss"] as const) {
    damaged.fault = new FaultError(code, "an object is empty", { retriable: false });
    const asked = { version: 11, partitions };
    assert.deepEqual(await summary(broker, asked), ["0:KAFKA_STORAGE_ERROR", "1:1"], code);
  }
});

test("the first batch comes whatever the limits, later ones must fit", async () => {
  const broker = await world();
  await fill(broker, 0, 2);
  await fill(broker, 1, 2);
  const both = [{ partition: 0 }, { partition: 1 }];
  assert.deepEqual(await summary(broker, { partitions: both, maxBytes: 1 }), ["0:1", "1:0"]);
  assert.deepEqual(await summary(broker, { partitions: both, maxBytes: 400 }), ["0:2", "1:0"]);
  assert.deepEqual(await summary(broker, { partitions: both, maxBytes: 600 }), ["0:2", "1:1"]);
  const tiny = [{ partition: 0, partitionMaxBytes: 1 }, { partition: 1, partitionMaxBytes: 1 }];
  assert.deepEqual(await summary(broker, { partitions: tiny }), ["0:1", "1:0"]);
  const empty = [{ partition: 2 }, { partition: 0, partitionMaxBytes: 1 }];
  assert.deepEqual(await summary(broker, { partitions: empty }), ["2:0", "0:1"]);
});

test("a long poll wakes on append, on deletion and on abort, and ends in time", async () => {
  const broker = await world();
  const log = await broker.log("t");
  const polling = summary(broker, { maxWaitMs: 10_000 });
  await broker.clock.settle();
  log.append(broker.batch("a"));
  assert.deepEqual(await polling, ["0:1"]);

  const at = { partitions: [{ fetchOffset: 1 }], maxWaitMs: 10_000 };
  const late = summary(broker, at);
  await broker.clock.advance(10_000);
  assert.deepEqual(await late, ["0:0"]);

  const gone = new AbortController();
  const aborted = summary(broker, { ...at, signal: gone.signal });
  await broker.clock.settle();
  gone.abort();
  assert.deepEqual(await aborted, ["0:0"]);

  const deleted = summary(broker, at);
  await broker.clock.settle();
  await broker.services.topics.delete(broker.services.topics.find("t")!.topicId);
  assert.deepEqual(await deleted, ["0:UNKNOWN_TOPIC_OR_PARTITION"]);
  assert.equal(log.listeners, 0, "every watch was removed");
});

test("minBytes holds until enough is there; an error in any partition does not wait", async () => {
  const broker = await world();
  const log = await broker.log("t");
  const size = broker.batch("a").length;
  let done = false;
  const polling = summary(broker, { maxWaitMs: 10_000, minBytes: 2 * size }).then((seen) => {
    done = true;
    return seen;
  });
  await broker.clock.settle();
  log.append(broker.batch("a"));
  await broker.clock.settle();
  assert.equal(done, false);
  log.append(broker.batch("b"));
  assert.deepEqual(await polling, ["0:2"]);
  const mixed = [{ fetchOffset: 2 }, { partition: 9 }];
  assert.deepEqual(await summary(broker, { maxWaitMs: 10_000, partitions: mixed }), [
    "0:0",
    "9:UNKNOWN_TOPIC_OR_PARTITION",
  ]);
});

test("a hot partition never waits for a cold one; alone, the cold one is read", async () => {
  const broker = await world();
  await fill(broker, 0, 1);
  await fill(broker, 1, 1);
  const cold = await broker.log("t", 1);
  cold.cold = true;
  let open: () => void = () => {};
  cold.gate = new Promise((resolve) => {
    open = resolve;
  });
  const both = [{ partition: 1 }, { partition: 0 }];
  assert.deepEqual(await summary(broker, { partitions: both, maxWaitMs: 5000 }), ["1:0", "0:1"]);
  assert.equal(cold.coldReads, 1, "what was left out is read ahead");
  const alone = summary(broker, { partitions: [{ partition: 1 }], maxWaitMs: 5000 });
  open();
  assert.deepEqual(await alone, ["1:1"]);
});

test("permits return: at once what is not used, the rest when the answer has left", async () => {
  const broker = await world({ hotFetch: 1 << 20, coldFetch: 1 << 20 });
  await fill(broker, 0, 4);
  const { hotFetch, coldFetch } = broker.services.permits;
  const left: ((left: boolean) => void)[] = [];
  const held = { afterAnswer: (work: (left: boolean) => void) => void left.push(work) };
  await fetch(broker, held);
  assert.ok(hotFetch.free < 1 << 20 && hotFetch.free > (1 << 20) - 2000);
  assert.ok(hotFetch.tryAcquire(hotFetch.free));
  assert.deepEqual(await summary(broker), ["0:1"], "without permits, a single batch");
  hotFetch.release((1 << 20) - 4 * broker.batch("x".repeat(100)).length);
  for (const work of left) work(true);
  assert.equal(hotFetch.free, 1 << 20);
  (await broker.log("t")).cold = true;
  await fetch(broker, { afterAnswer: (work) => work(false) });
  assert.equal(coldFetch.free, 1 << 20);
});

test("while a cold partition is read, its fetch holds cold permits and no hot ones", async () => {
  const broker = await world({ hotFetch: 1 << 20, coldFetch: 1 << 20 });
  await fill(broker, 0, 2);
  await fill(broker, 1, 1);
  const { hotFetch, coldFetch } = broker.services.permits;
  const cold = await broker.log("t", 1);
  cold.cold = true;
  let open: () => void = () => {};
  cold.gate = new Promise((resolve) => {
    open = resolve;
  });
  const reading = summary(broker, { partitions: [{ partition: 1 }], maxWaitMs: 5000 });
  await broker.clock.settle();
  assert.equal(hotFetch.free, 1 << 20);
  assert.ok(coldFetch.free < 1 << 20);
  assert.deepEqual(await summary(broker), ["0:2"], "a hot fetch is not cut to one batch");
  open();
  assert.deepEqual(await reading, ["1:1"]);
});

test("an incremental session tells only news", async () => {
  const broker = await world();
  await fill(broker, 0, 1);
  const both = [{ partition: 0 }, { partition: 1 }];
  const full = await fetch(broker, { partitions: both, sessionEpoch: 0 });
  const { sessionId } = full;
  assert.ok(sessionId > 0);
  assert.equal(full.responses[0]!.partitions.length, 2);
  const next = (sessionEpoch: number, over: Asked = {}) =>
    summary(broker, { sessionId, sessionEpoch, partitions: [], ...over });
  assert.deepEqual(await next(1, { partitions: [{ fetchOffset: 1 }] }), [], "nothing changed");
  await fill(broker, 1, 1);
  assert.deepEqual(await next(2), ["1:1"], "the new data alone");
  assert.deepEqual(await next(3, { forgotten: [1] }), []);
  assert.deepEqual(await next(3), ["INVALID_FETCH_SESSION_EPOCH"]);
  const ids = { version: 13, topicId: ZERO_UUID };
  assert.deepEqual(await next(4, ids), ["FETCH_SESSION_TOPIC_ID_ERROR"]);
  const other = { sessionId: sessionId + 1, sessionEpoch: 1 };
  assert.deepEqual(await summary(broker, other), ["FETCH_SESSION_ID_NOT_FOUND"]);
});

test("a pass that a bug ends gives its permits and its lease back", async () => {
  const broker = await world({ hotFetch: 1 << 20, coldFetch: 1 << 20 });
  await fill(broker, 0, 1);
  const log = await broker.log("t");
  const { hotFetch, coldFetch } = broker.services.permits;
  let leases = 0;
  log.read = (_, { lease }) => {
    leases += 1;
    lease?.add(() => void (leases -= 1));
    throw new TypeError("a bug");
  };
  await assert.rejects(summary(broker), /request failed/);
  assert.deepEqual([hotFetch.free, coldFetch.free, leases], [1 << 20, 1 << 20, 0]);
  log.read = (_, { lease, cacheOnly }) => {
    if (cacheOnly === true) return Promise.resolve(null);
    leases += 1;
    lease?.add(() => void (leases -= 1));
    return Promise.reject(new TypeError("a bug"));
  };
  await assert.rejects(summary(broker), /request failed/);
  assert.deepEqual([hotFetch.free, coldFetch.free, leases], [1 << 20, 1 << 20, 0]);
});
