/** Requests with very many elements: work grows with them, not with their square, and unknown ones write nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { createBrokerWorld, SESSION } from "../../../tests/support/broker_world.ts";
import { errorName } from "../../protocol/error_code.ts";
import type { BrokerServices, Handler, RequestContext } from "../handler.ts";
import { listOffsetsHandler } from "./02_list_offsets.ts";
import { metadataHandler } from "./03_metadata.ts";
import { createTopicsHandler } from "./19_create_topics.ts";
import { deleteTopicsHandler } from "./20_delete_topics.ts";
import { describeConfigsHandler } from "./32_describe_configs.ts";
import { createPartitionsHandler } from "./37_create_partitions.ts";
import { incrementalAlterConfigsHandler } from "./44_incremental_alter_configs.ts";

const ELEMENTS = 2_000;
/** Reads of an element's fields that a linear handler may do. */
const READS_PER_ELEMENT_MAX = 40;

interface Case<Q> {
  readonly handler: (services: BrokerServices) => Handler<Q, unknown>;
  readonly version: number;
  /** The request around elements that count how often they are looked at. */
  readonly request: (elements: (make: (i: number) => object) => never[]) => Q;
}

function large<Q>(one: Case<Q>): Case<unknown> {
  return one as Case<unknown>;
}

const common = { timeoutMs: 1000, validateOnly: false };

function listOffsets(partitionOf: (i: number) => number) {
  return (elements: (make: (i: number) => object) => never[]) => ({
    replicaId: -1,
    isolationLevel: 0,
    timeoutMs: 0,
    topics: [{
      name: "t",
      partitions: elements((i) => ({
        partitionIndex: partitionOf(i),
        currentLeaderEpoch: -1,
        timestamp: -1,
        maxNumOffsets: 1,
      })),
    }],
  });
}

const CASES: Readonly<Record<string, Case<unknown>>> = {
  "ListOffsets, one partition again and again": large({
    handler: listOffsetsHandler,
    version: 1,
    request: listOffsets(() => 0),
  }),
  "ListOffsets, distinct partitions": large({
    handler: listOffsetsHandler,
    version: 1,
    request: listOffsets((i) => i),
  }),
  "CreateTopics, bad names": large({
    handler: createTopicsHandler,
    version: 4,
    request: (elements) => ({
      ...common,
      topics: elements((i) => ({
        name: `!${i}`,
        numPartitions: 1,
        replicationFactor: 1,
        assignments: [],
        configs: [],
      })),
    }),
  }),
  "DeleteTopics, unknown names": large({
    handler: deleteTopicsHandler,
    version: 6,
    request: (elements) => ({
      ...common,
      topicNames: [],
      topics: elements((i) => ({ name: `unknown-${i}`, topicId: ZERO_UUID })),
    }),
  }),
  "CreatePartitions, unknown names": large({
    handler: createPartitionsHandler,
    version: 0,
    request: (elements) => ({
      ...common,
      topics: elements((i) => ({ name: `unknown-${i}`, count: 2, assignments: null })),
    }),
  }),
  "IncrementalAlterConfigs, unknown names": large({
    handler: incrementalAlterConfigsHandler,
    version: 0,
    request: (elements) => ({
      ...common,
      resources: elements((i) => ({
        resourceType: 2,
        resourceName: `unknown-${i}`,
        configs: [],
      })),
    }),
  }),
};

const context: RequestContext = {
  version: 0,
  clientId: "test",
  session: SESSION,
  signal: new AbortController().signal,
  admitted: () => {},
  afterAnswer: () => {},
};

for (const [name, { handler, version, request }] of Object.entries(CASES)) {
  test(`${name}: every element is looked at a few times, and nothing is written`, async () => {
    const broker = await createBrokerWorld({ routes: () => [] });
    await broker.createTopic("t");
    const before = broker.metadata.submitted.length;
    let reads = 0;
    const counted = (row: object) =>
      new Proxy(row, {
        get(target, key) {
          reads += 1;
          return Reflect.get(target, key);
        },
      });
    const asked = request((make) =>
      Array.from({ length: ELEMENTS }, (_, i) => counted(make(i))) as never[]
    );
    await handler(broker.services).handle(asked, { ...context, version });
    assert.ok(reads <= ELEMENTS * READS_PER_ELEMENT_MAX, `${reads} reads`);
    const written = broker.metadata.submitted.slice(before).filter((type) =>
      type !== "create-stream" && type !== "set-meta-stream"
    );
    assert.deepEqual(written, []);
  });
}

test("a new name is compared with the existing ones once for a whole request, not each by each", async () => {
  const broker = await createBrokerWorld({ routes: () => [] });
  for (let i = 0; i < 200; i++) await broker.createTopic(`old.${i}`);
  const { metadata } = broker;
  let walks = 0;
  const view = metadata.view();
  const topics = new Proxy(view.topics, {
    get(target, key) {
      if (key === "values" || key === Symbol.iterator) walks += 1;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const watched = new Proxy(view, {
    get: (target, key) => key === "topics" ? topics : Reflect.get(target, key, target),
  });
  metadata.view = () => watched;
  const answer = await createTopicsHandler(broker.services).handle({
    timeoutMs: 1000,
    validateOnly: true,
    topics: Array.from({ length: 500 }, (_, i) => ({
      name: i % 2 === 0 ? `old_${i}` : `new_${i}`,
      numPartitions: 1,
      replicationFactor: 1,
      assignments: [],
      configs: [],
    })),
  }, { ...context, version: 5 });
  assert.ok(answer !== null && typeof answer !== "symbol");
  const errors = answer.topics.map(({ errorCode }) => errorName(errorCode));
  assert.equal(errors.filter((one) => one === "INVALID_TOPIC_EXCEPTION").length, 100);
  assert.ok(walks <= 2, `${walks} walks`);
});

test("names that collide are refused within one request too, and many topics share entries", async () => {
  const broker = await createBrokerWorld({ routes: () => [] });
  const topic = (name: string) => ({
    name,
    numPartitions: 1,
    replicationFactor: 1,
    assignments: [],
    configs: [],
  });
  const answer = await createTopicsHandler(broker.services).handle({
    timeoutMs: 1000,
    validateOnly: false,
    topics: ["a.b", "a_b", "c"].map(topic),
  }, { ...context, version: 5 });
  assert.ok(answer !== null && typeof answer !== "symbol");
  const errors = answer.topics.map(({ errorCode }) => errorName(errorCode));
  assert.deepEqual(errors, ["NONE", "INVALID_TOPIC_EXCEPTION", "NONE"]);
});

test("between groups of elements others have their turn", async () => {
  const broker = await createBrokerWorld({ routes: () => [] });
  let isOver = false;
  const deleting = deleteTopicsHandler(broker.services).handle({
    timeoutMs: 1000,
    topicNames: [],
    topics: Array.from({ length: 1_001 }, (_, i) => ({ name: `t${i}`, topicId: ZERO_UUID })),
  }, { ...context, version: 6 }).then((answer) => {
    isOver = true;
    return answer;
  });
  let turns = 0;
  for (; !isOver; turns++) await new Promise((resolve) => setImmediate(resolve));
  assert.ok(turns >= 2, `${turns} turns`);
  const answer = await deleting;
  assert.ok(answer !== null && typeof answer !== "symbol");
  assert.equal(answer.responses.length, 1_001);
});

test("DeleteTopics hands many topics over together, so that they share metadata entries", async () => {
  const broker = await createBrokerWorld({ routes: () => [] });
  for (let i = 0; i < 50; i++) await broker.createTopic(`t${i}`);
  const { metadata } = broker;
  let waiting = 0;
  let most = 0;
  const submit = metadata.submit.bind(metadata);
  metadata.submit = async (command) => {
    waiting += 1;
    most = Math.max(most, waiting);
    await Promise.resolve();
    waiting -= 1;
    return await submit(command);
  };
  const answer = await deleteTopicsHandler(broker.services).handle({
    timeoutMs: 1000,
    topicNames: [],
    topics: Array.from({ length: 50 }, (_, i) => ({ name: `t${i}`, topicId: ZERO_UUID })),
  }, { ...context, version: 6 });
  assert.ok(answer !== null && typeof answer !== "symbol");
  assert.deepEqual(
    answer.responses.map(({ name }) => name),
    Array.from({ length: 50 }, (_, i) => `t${i}`),
  );
  assert.equal(most, 50);
});

test("more topics than one request may create are refused as a whole, as Kafka's controller does", async () => {
  const broker = await createBrokerWorld({ routes: () => [] });
  const before = broker.metadata.submitted.length;
  const answer = await createTopicsHandler(broker.services).handle({
    timeoutMs: 1000,
    validateOnly: false,
    topics: Array.from({ length: 10_001 }, (_, i) => ({
      name: `t${i}`,
      numPartitions: 1,
      replicationFactor: 1,
      assignments: [],
      configs: [],
    })),
  }, { ...context, version: 5 });
  assert.ok(answer !== null && typeof answer !== "symbol");
  const errors = new Set(answer.topics.map(({ errorCode }) => errorName(errorCode)));
  assert.deepEqual([...errors], ["POLICY_VIOLATION"]);
  assert.equal(broker.metadata.submitted.length, before);
});

test("what is asked for again and again is answered once: Metadata by id, DescribeConfigs of all keys", async () => {
  const broker = await createBrokerWorld({ routes: () => [] });
  const topicId = await broker.createTopic("t", 10);
  const metadata = await metadataHandler(broker.services).handle({
    topics: Array.from(
      { length: 100 },
      () => ({ topicId: topicId as typeof ZERO_UUID, name: null }),
    ),
    allowAutoTopicCreation: false,
    includeClusterAuthorizedOperations: false,
    includeTopicAuthorizedOperations: false,
  }, { ...context, version: 12 });
  assert.ok(metadata !== null && typeof metadata !== "symbol");
  assert.equal(metadata.topics.length, 1);
  const all = { resourceType: 2, resourceName: "t", configurationKeys: null };
  const some = { ...all, configurationKeys: ["retention.ms"] };
  const configs = await describeConfigsHandler(broker.services).handle({
    resources: [all, all, some, all, some],
    includeSynonyms: false,
    includeDocumentation: false,
  }, { ...context, version: 4 });
  assert.ok(configs !== null && typeof configs !== "symbol");
  assert.equal(configs.results.length, 3);
  assert.deepEqual(configs.results.map(({ configs: { length } }) => length > 1), [
    true,
    false,
    false,
  ]);
});
